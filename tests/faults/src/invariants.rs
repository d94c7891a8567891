//! [`violations`]: what must hold for every session, whatever its faults.

use std::fmt;
use std::time::Duration;

use playrate_transport::ConnectionLost;
use playrate_units::rounded::{grouped, time};
use video_server::serve::{SessionEnd, SessionSummary};

use crate::ending::Ending;
use crate::gap::{Gap, RECONNECTS, RECOVERY};
use crate::kind::{Fault, FaultKind, Ways};
use crate::media::Comparison;
use crate::plan::FaultPlan;
use crate::run::{SHUTDOWN, ServerEnd, SessionRecord};
use crate::server::EndedConnection;

/// Maximum time until the first connection is made or the session ends: `ClientOptions::connect_timeout`, plus a
/// margin.
const CONNECTS: Duration = Duration::from_secs(6);
/// Time after which a server gives up on a handshake (`ServerOptions::request_timeout`).
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Maximum time for which a client sends nothing (`TransportOptions::keep_alive`).
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// Maximum time for a client to take the bytes waiting for it.
const LAST_BYTES: Duration = Duration::from_secs(1);
/// Maximum time of a shutdown beyond its deadline: one second for the closes, one for the tasks.
const SHUTDOWN_EXTRA: Duration = Duration::from_secs(2);

/// Something that must hold for every session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Invariant {
    Bytes,
    Ending,
    Limits,
    Memory,
    Progress,
    Agreement,
    Panic,
}

impl Invariant {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Ending => "ending",
            Self::Limits => "limits",
            Self::Memory => "memory",
            Self::Progress => "progress",
            Self::Agreement => "agreement",
            Self::Panic => "panic",
        }
    }
}

/// An invariant that does not hold for a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) invariant: Invariant,
    pub(crate) text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant.name(), self.text)
    }
}

/// A defect outside this project that explains an apparent violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum KnownDefect {
    /// After a change of the peer's port quinn sends a `PATH_CHALLENGE` only in a packet of the previous MTU.
    PathChallenge,
}

impl KnownDefect {
    /// The page that describes it.
    pub(crate) const fn page(self) -> &'static str {
        match self {
            Self::PathChallenge => "docs/upstream/quinn-path-challenge-mtu.md",
        }
    }

    /// The known defect that may explain the length of `gap`, if any. It is a new port that the server notices after
    /// the MTU has become smaller. The port changes within the gap, or before it while the viewer took what had
    /// arrived.
    fn behind(gap: &Gap, plan: &FaultPlan) -> Option<Self> {
        let shrinks = |fault: &&Fault| matches!(fault.kind, FaultKind::MtuLimit(_));
        let shrinks = plan.faults.iter().find(shrinks)?.at;
        // One that left just before the MTU shrank is lost as well.
        let challenge = plan.path.rtt * 3 + plan.path.jitter;
        // The server notices the port with the client's next packet.
        let noticed = KEEP_ALIVE + challenge;
        // A player with a small buffer takes arrived data at the title's rate.
        let arrived = plan.title.duration;
        let within = |fault: &&Fault| fault.at <= gap.until && fault.at + challenge + arrived >= gap.from;
        let mut ports = plan.of_kind(FaultKind::NewPort).filter(within);
        ports
            .any(|port| port.at + noticed >= shrinks)
            .then_some(Self::PathChallenge)
    }
}

/// Findings of one session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    pub(crate) violations: Vec<Violation>,
    /// Defects outside this project that explain what would otherwise be violations.
    pub(crate) known: Vec<KnownDefect>,
}

/// Returns true if the server had received nothing from the client for the idle timeout.
fn is_timeout(end: &SessionEnd) -> bool {
    matches!(end, SessionEnd::Lost(why) if *why == ConnectionLost::TimedOut.to_string())
}

/// Collects the findings of a session.
struct Check<'a> {
    plan: &'a FaultPlan,
    record: &'a SessionRecord,
    gaps: Vec<Gap>,
    found: Findings,
}

/// The invariants that do not hold for `record`.
pub(crate) fn findings(plan: &FaultPlan, record: &SessionRecord) -> Findings {
    let mut check = Check {
        plan,
        record,
        gaps: Gap::all(record),
        found: Findings::default(),
    };
    check.bytes();
    check.ending();
    check.limits();
    check.memory();
    check.progress();
    check.interruptions();
    check.agreement();
    check.found.known.dedup();
    check.found
}

impl Check<'_> {
    fn expect(&mut self, holds: bool, invariant: Invariant, text: impl FnOnce() -> String) {
        if !holds {
            let text = text();
            self.found.violations.push(Violation { invariant, text });
        }
    }

    /// Every byte is correct, and all bytes are there at the end.
    fn bytes(&mut self) {
        let Comparison {
            right,
            taken,
            is_whole,
        } = self.record.comparison;
        self.expect(right == taken, Invariant::Bytes, || {
            format!("of {taken} bytes only the first {right} are the title's")
        });
        let completed = self.record.ending == Ending::Completed;
        self.expect(!completed || is_whole, Invariant::Bytes, || {
            format!("the session completed with {taken} bytes, which is not the whole title")
        });
    }

    /// Gaps that ended with the session or just before it: a suspended client first takes the bytes waiting for it, and
    /// only then sees how its session ended.
    fn last_gaps(&self) -> impl Iterator<Item = &Gap> {
        let last = self.record.ended.saturating_sub(LAST_BYTES);
        self.gaps.iter().rev().take_while(move |gap| gap.until >= last)
    }

    /// The session completes, or ends with an error that a fault explains.
    fn ending(&mut self) {
        let ending = self.record.ending;
        if ending == Ending::Completed || self.last_gaps().any(|gap| self.explains(ending, gap)) {
            return;
        }
        if matches!(ending, Ending::Silent | Ending::TimedOut | Ending::GivenUp) {
            let behind = |gap| KnownDefect::behind(gap, self.plan);
            let known = self.last_gaps().find_map(behind);
            self.found.known.extend(known);
            if known.is_some() {
                return;
            }
        }
        self.expect(false, Invariant::Ending, || {
            let (name, error) = (ending.name(), self.record.error.as_deref().unwrap_or("no error"));
            format!("no fault explains that the session ended `{name}` ({error})")
        });
    }

    /// Returns true if the faults of `gap` explain this ending of the session.
    fn explains(&self, ending: Ending, gap: &Gap) -> bool {
        let within = gap.faults(self.plan);
        let any = |explains: fn(&FaultKind) -> bool| within.iter().any(|(fault, _)| explains(&fault.kind));
        let silenced = within.iter().any(|(fault, _)| self.plan.silences(fault));
        let disturbance = gap.disturbance(self.plan);
        match ending {
            Ending::Left => any(|kind| *kind == FaultKind::PausedReader(None)),
            Ending::Vanished => {
                let mut gone = self.plan.of_kind(FaultKind::ClientGone);
                gone.any(|fault| fault.at <= gap.until)
            }
            // For the first connection, which is not retried.
            Ending::NoAnswer => {
                let early = |fault: &Fault| fault.at <= CONNECTS && self.plan.silences(fault);
                self.record.taken.is_empty() && self.plan.faults.iter().any(early)
            }
            Ending::GivenUp => {
                let length = disturbance.until.saturating_sub(gap.from);
                silenced && length + RECOVERY >= RECONNECTS
            }
            _ if self.plan.reconnects => false,
            Ending::TimedOut | Ending::Silent => silenced && gap.until <= disturbance.deadline(),
            Ending::Reset => {
                // The server has given up on a handshake whose last packets did not arrive.
                let unconfirmed = silenced && gap.from.is_zero() && gap.length() >= HANDSHAKE;
                let restarted = any(|kind| matches!(kind, FaultKind::Restart { same_key: true, .. }));
                unconfirmed || restarted || self.server_timed_out() || self.close_was_lost()
            }
            Ending::Cancelled => {
                // An exchange is aborted if nothing of it was acknowledged during the stall timeout. In the meantime, a
                // player with a small buffer may take what had arrived before the fault. If only acknowledgements are
                // lost, probes also bring it new bytes.
                let arrived = gap.from.saturating_sub(self.plan.title.duration);
                let unacknowledged = |fault: &Fault| match fault.kind {
                    FaultKind::Outage { ways: Ways::Up, .. } => fault.at,
                    _ => fault.at.max(arrived),
                };
                let since = within.iter().map(|(fault, _)| unacknowledged(fault)).min();
                let stalled = since.is_some_and(|since| {
                    gap.until.saturating_sub(since.min(gap.from)) >= self.plan.stall_timeout
                });
                let broken = any(|kind| matches!(kind, FaultKind::BrokenDisk { .. }));
                stalled || (broken && gap.until <= disturbance.deadline())
            }
            Ending::Closed => {
                // A suspended client requests nothing, and takes the data that arrived in the meantime afterwards.
                let stops = |kind| matches!(kind, FaultKind::PausedReader(_) | FaultKind::ClientSuspended(_));
                let stopped = within.iter().filter(|(fault, _)| stops(fault.kind));
                let stopped = stopped.map(|(fault, _)| fault.at);
                let since = stopped.min().map_or(gap.from, |at| at.min(gap.from));
                let idle = gap.until.saturating_sub(since);
                self.plan.idle_limit.is_some_and(|limit| idle >= limit)
            }
            Ending::Completed | Ending::Stalled | Ending::Refused | Ending::Broken | Ending::Unended => false,
        }
    }

    /// Connections whose end the last server has seen.
    fn ended(&self) -> impl Iterator<Item = &EndedConnection> {
        self.record.server.iter().flat_map(|server| &server.connections)
    }

    /// Returns true if, before the session ended, the server had received nothing from the client for its idle timeout,
    /// and a fault explains this.
    fn server_timed_out(&self) -> bool {
        let ended = self.record.ended;
        let mut timed_out = self
            .ended()
            .filter(|it| it.at <= ended && is_timeout(&it.summary.end));
        timed_out.any(|it| {
            let (from, until) = (it.at, it.at);
            let faults = Gap { from, until }.faults(self.plan);
            faults.iter().any(|(fault, _)| self.plan.silences(fault))
        })
    }

    /// Returns true if the server closed the connection at its idle limit before the session ended and the path may
    /// have lost the close: a stateless reset then informs the client.
    fn close_was_lost(&self) -> bool {
        let loses = self.plan.path.loss.as_parts_per_billion() > 0;
        let lost = |at: Duration| {
            let reaches = |fault: &&Fault| {
                let until = fault.ends().unwrap_or(Duration::MAX);
                (fault.at..=until.saturating_add(self.plan.path.rtt)).contains(&at)
            };
            let mut faults = self.plan.faults.iter().filter(reaches);
            loses || faults.any(|it| self.plan.silences(it))
        };
        let mut closed = self.ended().filter(|it| it.summary.end == SessionEnd::Orderly);
        self.plan.idle_limit.is_some() && closed.any(|it| it.at < self.record.ended && lost(it.at))
    }

    /// No connection and no task outlives its limits.
    fn limits(&mut self) {
        if self.record.ending == Ending::Unended {
            return;
        }
        if let Some(server) = self.record.server.clone() {
            self.expect(server.freed.is_some(), Invariant::Limits, || {
                let bound = time(self.plan.freed_within(self.record.ended));
                format!("the server still had a connection {bound} after the session")
            });
            let in_time = server.shutdown <= SHUTDOWN + SHUTDOWN_EXTRA;
            self.expect(in_time, Invariant::Limits, || {
                let [limit, took] = [SHUTDOWN, server.shutdown].map(time);
                format!("a shutdown within {limit} took {took}")
            });
            let gave_up = self.record.ending != Ending::Left || self.record.open_responses.last == 0;
            self.expect(gave_up, Invariant::Limits, || {
                let limit = time(self.plan.stall_timeout);
                format!("a response to a client that reads nothing outlived two stall timeouts of {limit}, and 60 s")
            });
        }
        let [server, client] = self.record.tasks_left;
        let server_end = self.record.server.as_ref();
        let freed = server_end.is_none_or(|server| server.freed.is_some());
        self.expect(!freed || server + client == 0, Invariant::Limits, || {
            format!("{server} tasks of the server and {client} of the client are left")
        });
    }

    /// A server holds no more bytes than its windows, and one response at a time for a client that requests one at a
    /// time.
    fn memory(&mut self) {
        let (most, bound) = (self.record.most_ahead, self.plan.memory().as_u64());
        // The amount read by lost connections of a segmented title is unknown.
        let is_known = !self.plan.title.in_segments || (self.connections() == 0 && !self.restarted());
        // If the client has taken little of an aborted response, it is also unknown when its memory is freed.
        let aborted = self.ended().map(|it| it.summary.aborted).sum::<u64>();
        let bound = bound.saturating_mul(1 + if self.plan.title.in_segments { aborted } else { 0 });
        self.expect(!is_known || most <= bound, Invariant::Memory, || {
            let (most, bound) = (grouped(most), grouped(bound));
            format!("the server had read {most} bytes ahead of the client, with memory for {bound} bytes")
        });
        // The player makes one request at a time, on one connection at a time. A lost connection may not have been
        // noticed yet, and the acknowledgement of the last response may arrive after the next request.
        let open = self.record.open_responses.most;
        self.expect(open <= 2 + self.connections(), Invariant::Memory, || {
            format!("{open} requests of a client that sends one at a time were open at once")
        });
    }

    /// Number of connections whose end the server has seen, not counting the last of them.
    fn connections(&self) -> u64 {
        (self.ended().count() as u64).saturating_sub(1)
    }

    /// After every byte, either the next one arrives in time or the session ends: the faults of a gap explain its
    /// length.
    fn progress(&mut self) {
        for gap in self.gaps.clone() {
            let deadline = gap.deadline(self.plan);
            if gap.until <= deadline {
                continue;
            }
            let known = KnownDefect::behind(&gap, self.plan);
            self.found.known.extend(known);
            self.expect(known.is_some(), Invariant::Progress, || {
                let disturbed = time(gap.disturbance(self.plan).until);
                let [from, until, deadline] = [gap.from, gap.until, deadline].map(time);
                format!(
                    "nothing arrived from {from} to {until}, with faults until {disturbed}: {deadline} would do"
                )
            });
        }
    }

    /// A connection is lost, or a response abandoned, only during a fault or after the idle limit.
    fn interruptions(&mut self) {
        for began in self.record.interruptions.clone() {
            let mut gaps = self
                .gaps
                .iter()
                .filter(|gap| (gap.from..=gap.until).contains(&began));
            let is_explained = |gap: &Gap| {
                !gap.faults(self.plan).is_empty() || KnownDefect::behind(gap, self.plan).is_some()
            };
            let explained = self.plan.idle_limit.is_some() || gaps.any(is_explained);
            self.expect(explained, Invariant::Ending, || {
                format!("no fault explains the interruption at {}", time(began))
            });
        }
    }

    /// Both ends report the same.
    fn agreement(&mut self) {
        let taken = self.record.comparison.taken;
        if let Some(reported) = self.record.reported {
            // A piece counts as received even if the application has not finished taking it.
            self.expect(reported == taken, Invariant::Agreement, || {
                format!("the client reports {reported} bytes, and its viewer took {taken}")
            });
        }
        let Some(server) = self.record.server.clone() else {
            return;
        };
        let connections = server.connections.iter().map(|ended| &ended.summary);
        let sum = |of: fn(&SessionSummary) -> u64| connections.clone().map(of).sum::<u64>();
        let (handed, read) = (sum(|it| it.bytes.as_u64()), server.read);
        self.expect(handed == read, Invariant::Agreement, || {
            format!("the server has read {read} bytes and reports {handed}")
        });
        let all = &server.totals;
        let totals = [all.sessions, all.responses, all.bytes.as_u64()];
        let summed = [
            server.connections.len() as u64,
            sum(|it| it.state.responses),
            handed,
        ];
        self.expect(totals == summed, Invariant::Agreement, || {
            format!("the server's totals {totals:?} are not the sums {summed:?} of its connections")
        });
        let counted = sum(|it| it.state.responses + it.aborted);
        let requests = sum(|it| it.state.requests);
        self.expect(counted == requests, Invariant::Agreement, || {
            format!("the server counts {requests} requests, and {counted} that ended")
        });
        if self.record.ending == Ending::Completed && !self.restarted() {
            self.completed(&server, taken);
        }
    }

    fn restarted(&self) -> bool {
        let restarts = |kind| matches!(kind, FaultKind::Restart { .. } | FaultKind::ServerGone);
        self.plan.faults.iter().any(|fault| restarts(fault.kind))
    }

    /// If a session completed on one server, that server agrees.
    fn completed(&mut self, server: &ServerEnd, taken: u64) {
        let read = server.read;
        self.expect(read >= taken, Invariant::Agreement, || {
            format!("the client took {taken} bytes of {read} that the server had read")
        });
        // The final packets may be lost: the last acknowledgement and the close.
        let ended = self.record.ended;
        let quiet = self.plan.path.loss.as_parts_per_billion() == 0
            && self.plan.faults.iter().all(|fault| {
                let has_ended = fault.ends().is_some_and(|until| until + RECOVERY < ended);
                has_ended || fault.at > ended + RECOVERY
            });
        // After a stall timeout without acknowledgements the server aborts a response, even if its end has arrived.
        let quiet = quiet && self.gaps.iter().all(|gap| gap.length() < self.plan.stall_timeout);
        if quiet {
            let connections = server.connections.iter().map(|it| &it.summary);
            let responses: u64 = connections.clone().map(|it| it.state.responses).sum();
            let expected = self.record.segments.unwrap_or(1) as u64;
            self.expect(responses == expected, Invariant::Agreement, || {
                format!("the client received {expected} responses whole, the server counts {responses}")
            });
            // A connection that the client has lost or abandoned ends as seen by the server.
            let ends = connections.map(|it| (it.connection.id, &it.end));
            let unclosed = ends.clone().filter(|(_, end)| **end != SessionEnd::Orderly);
            let [unclosed, interrupted] = [unclosed.count(), self.record.interruptions.len()];
            self.expect(unclosed <= interrupted, Invariant::Agreement, || {
                format!("the server has lost {unclosed} connections, the client {interrupted}")
            });
            if let Some((_, last)) = ends.max_by_key(|(id, _)| *id) {
                self.expect(*last == SessionEnd::Orderly, Invariant::Agreement, || {
                    format!("the client closed its connection in order, the server saw it end {last}")
                });
            }
        }
    }
}
