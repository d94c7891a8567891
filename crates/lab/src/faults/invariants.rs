//! [`violations`]: what must hold of every session, whatever its faults.

use std::fmt;
use std::time::Duration;

use video_server::serve::SessionEnd;

use super::ending::Ending;
use super::kind::FaultKind;
use super::plan::FaultPlan;
use super::run::{SHUTDOWN, ServerEnd, SessionRecord};
use crate::words::{grouped, time};

/// Bytes that a server may have read beyond its send window and the client's receive window: two chunks of 64 KiB for
/// the response, and the 256 KiB that may wait to be sent.
const READ_AHEAD: u64 = (2 * 64 + 256) << 10;
/// Time in which a session goes on after a fault, besides the fault's own length: for the client's keep-alive (10 s),
/// with which a server notices a new address and the client a restart, and for probes after backing off (RFC 9002
/// §6.2.1), a handshake, and a slow link.
const RECOVERY: Duration = Duration::from_secs(15);
/// Time after which a client has noticed that its server is another one with another endpoint key: the idle timeout of
/// 30 s since its keep-alive.
const UNNOTICED: Duration = Duration::from_secs(40);
/// Time after which a session ends in which nothing arrives: the idle timeout of the connection and the timeout of the
/// player are both 30 s, and the second may begin when the first has almost passed.
const SILENCE: Duration = Duration::from_secs(65);
/// Time for which a client that connects again goes on without a byte (`ReconnectOptions::limit`).
const RECONNECTS: Duration = Duration::from_secs(60);
/// Time in which the first connection is made or the session ends: `ClientOptions::connect_timeout`, and some.
const CONNECTS: Duration = Duration::from_secs(6);
/// Longest time of a shutdown beyond its deadline: one second for the closes, one for the tasks.
const SHUTDOWN_EXTRA: Duration = Duration::from_secs(2);

/// Something that must hold of every session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Invariant {
    Bytes,
    Ending,
    Limits,
    Memory,
    Progress,
    Agreement,
    Panic,
}

impl Invariant {
    pub(super) const fn name(self) -> &'static str {
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

/// An invariant that does not hold of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) invariant: Invariant,
    pub(super) text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant.name(), self.text)
    }
}

/// A defect outside of this project that explains violations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum KnownDefect {
    /// After a change of the peer's port quinn sends a `PATH_CHALLENGE` only in a packet of the previous MTU.
    PathChallenge,
}

impl KnownDefect {
    /// The page that describes it.
    pub(super) const fn page(self) -> &'static str {
        match self {
            Self::PathChallenge => "docs/upstream/quinn-path-challenge-mtu.md",
        }
    }

    /// The defect that explains this violation of a session of `plan`, if there is one.
    pub(super) fn behind(violation: &Violation, plan: &FaultPlan) -> Option<Self> {
        let has = |is: fn(&FaultKind) -> bool| plan.faults.iter().any(|fault| is(&fault.kind));
        let migrates = has(|kind| *kind == FaultKind::NewPort);
        let shrinks = has(|kind| matches!(kind, FaultKind::MtuLimit(_)));
        let fits = matches!(violation.invariant, Invariant::Progress | Invariant::Ending);
        (fits && migrates && shrinks).then_some(Self::PathChallenge)
    }
}

/// Collects violations of a session.
struct Check<'a> {
    plan: &'a FaultPlan,
    record: &'a SessionRecord,
    found: Vec<Violation>,
}

/// The invariants that do not hold of `record`.
pub(super) fn violations(plan: &FaultPlan, record: &SessionRecord) -> Vec<Violation> {
    let mut check = Check {
        plan,
        record,
        found: Vec::new(),
    };
    check.bytes();
    check.ending();
    check.limits();
    check.memory();
    check.progress();
    check.agreement();
    check.found
}

impl Check<'_> {
    fn expect(&mut self, holds: bool, invariant: Invariant, text: impl FnOnce() -> String) {
        if !holds {
            let text = text();
            self.found.push(Violation { invariant, text });
        }
    }

    /// Every byte is right, and all of them are there at the end.
    fn bytes(&mut self) {
        let compared = self.record.comparison;
        self.expect(compared.right == compared.taken, Invariant::Bytes, || {
            format!(
                "of {} bytes only the first {} are the title's",
                compared.taken, compared.right
            )
        });
        let completed = self.record.ending == Ending::Completed;
        self.expect(!completed || compared.is_whole, Invariant::Bytes, || {
            format!(
                "the session completed with {} bytes, which is not the whole title",
                compared.taken
            )
        });
    }

    /// The session completes, or ends with an error that a fault explains.
    fn ending(&mut self) {
        let ending = self.record.ending;
        let explained = ending == Ending::Completed || self.explains(ending);
        self.expect(explained, Invariant::Ending, || {
            let error = self.record.error.as_deref().unwrap_or("no error");
            format!(
                "no fault explains that the session ended `{}` ({error})",
                ending.name()
            )
        });
    }

    /// Returns true if the faults of the plan explain that the session ended so.
    fn explains(&self, ending: Ending) -> bool {
        let mut faults = self.plan.faults.iter();
        match ending {
            // Of the first connection, which is not tried again.
            Ending::NoAnswer => faults.any(|fault| fault.at <= CONNECTS && fault.kind.explains(ending)),
            Ending::Left | Ending::Vanished => faults.any(|fault| fault.kind.explains(ending)),
            Ending::GivenUp => {
                let stays = faults.any(|fault| fault.ends().is_none());
                let long = |(from, until): &(Duration, Duration)| {
                    until.saturating_sub(*from) + RECOVERY >= RECONNECTS
                };
                stays || self.disturbances().iter().any(long)
            }
            _ if self.plan.reconnects => false,
            Ending::Closed => self.plan.idle_limit.is_some(),
            _ => faults.any(|fault| fault.kind.explains(ending)),
        }
    }

    /// No connection and no task outlives its limits.
    fn limits(&mut self) {
        if self.record.ending == Ending::Unended {
            return;
        }
        if let Some(server) = self.record.server.clone() {
            self.expect(server.freed.is_some(), Invariant::Limits, || {
                let bound = time(self.plan.freed_within());
                format!("the server still had a connection {bound} after the session")
            });
            self.expect(
                server.shutdown <= SHUTDOWN + SHUTDOWN_EXTRA,
                Invariant::Limits,
                || {
                    format!(
                        "a shutdown within {} took {}",
                        time(SHUTDOWN),
                        time(server.shutdown)
                    )
                },
            );
            let gave_up = self.record.ending != Ending::Left || self.record.open_responses.last == 0;
            self.expect(gave_up, Invariant::Limits, || {
                let limit = time(self.plan.stall_timeout);
                format!("a response to a client that reads nothing outlived the stall timeout of {limit}")
            });
        }
        let [server, client] = self.record.tasks_left;
        let freed = self
            .record
            .server
            .as_ref()
            .is_none_or(|server| server.freed.is_some());
        self.expect(!freed || server + client == 0, Invariant::Limits, || {
            format!("{server} tasks of the server and {client} of the client are left")
        });
    }

    /// A server holds no more bytes than its windows, and one response at a time for a client that requests one.
    fn memory(&mut self) {
        let windows = self.plan.send_window.as_u64() + self.plan.receive_window.as_u64();
        let most = self.record.most_ahead;
        self.expect(most <= windows + READ_AHEAD, Invariant::Memory, || {
            let (most, windows) = (grouped(most), grouped(windows));
            format!("the server had read {most} bytes ahead of the client, with windows of {windows} bytes")
        });
        // The player requests one thing at a time, on one connection at a time; a lost one may not have been noticed.
        let open = self.record.open_responses.most;
        self.expect(open <= 1 + self.connections(), Invariant::Memory, || {
            format!("{open} requests of a client that sends one at a time were open at once")
        });
    }

    /// Number of connections beside the last one of which the server's end was known.
    fn connections(&self) -> u64 {
        let ended = self
            .record
            .server
            .as_ref()
            .map_or(0, |server| server.connections.len());
        (ended as u64).saturating_sub(1)
    }

    /// Within a bound after a fault has ended, bytes arrive again or the session has ended.
    fn progress(&mut self) {
        if self.record.ending == Ending::Vanished {
            return;
        }
        for (from, until) in self.disturbances() {
            let bound = (until.saturating_sub(from) + RECOVERY).min(SILENCE) + self.plan.title.duration;
            let arrivals = self.record.taken.iter().map(|(at, _)| *at);
            let next = arrivals.chain([self.record.ended]).find(|at| *at >= until);
            let next = next.unwrap_or(self.record.ended);
            self.expect(next <= until + bound, Invariant::Progress, || {
                let (until, next, bound) = (time(until), time(next), time(bound));
                format!("after the faults that ended at {until} nothing arrived before {next}: bound {bound}")
            });
        }
    }

    /// Stretches of time with faults, those joined that overlap or follow within the time for recovery. A fault that
    /// stays ends when the session must.
    fn disturbances(&self) -> Vec<(Duration, Duration)> {
        let mut joined: Vec<(Duration, Duration)> = vec![(Duration::ZERO, Duration::ZERO)];
        for fault in &self.plan.faults {
            let until = match fault.kind {
                FaultKind::PausedReader(None) => self.plan.viewer_leaves(),
                FaultKind::Restart { gap, same_key: false } => Some(fault.at + gap.max(UNNOTICED)),
                _ => fault.ends(),
            };
            let silence = if self.plan.reconnects {
                SILENCE + RECONNECTS
            } else {
                SILENCE
            };
            let until = until.unwrap_or(fault.at + silence);
            match joined.last_mut() {
                Some(last) if fault.at <= last.1 + RECOVERY + self.plan.title.duration => {
                    last.1 = last.1.max(until);
                }
                _ => joined.push((fault.at, until)),
            }
        }
        joined
    }

    /// Both ends report the same.
    fn agreement(&mut self) {
        let taken = self.record.comparison.taken;
        if let Some(reported) = self.record.reported {
            // A piece that the application has not finished taking is reported as received.
            self.expect(reported == taken, Invariant::Agreement, || {
                format!("the client reports {reported} bytes, and its viewer took {taken}")
            });
        }
        let Some(server) = self.record.server.clone() else {
            return;
        };
        let connections = server.connections.iter().map(|ended| &ended.summary);
        let sum =
            |of: fn(&video_server::serve::SessionSummary) -> u64| connections.clone().map(of).sum::<u64>();
        let handed = sum(|it| it.bytes.as_u64());
        self.expect(handed == server.read, Invariant::Agreement, || {
            format!("the server has read {} bytes and reports {handed}", server.read)
        });
        let totals = (
            server.totals.sessions,
            server.totals.responses,
            server.totals.bytes.as_u64(),
        );
        let summed = (
            server.connections.len() as u64,
            sum(|it| it.state.responses),
            handed,
        );
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

    /// The server of a session that completed on one server agrees that it did.
    fn completed(&mut self, server: &ServerEnd, taken: u64) {
        self.expect(server.read >= taken, Invariant::Agreement, || {
            format!(
                "the client took {taken} bytes of {} that the server had read",
                server.read
            )
        });
        // Packets of the end may be lost: the last acknowledgement, and the close.
        let ended = self.record.ended;
        let quiet = self.plan.path.loss.as_parts_per_billion() == 0
            && self.plan.faults.iter().all(|fault| {
                let has_ended = fault.ends().is_some_and(|until| until + RECOVERY < ended);
                has_ended || fault.at > ended + RECOVERY
            });
        if quiet {
            let connections = server.connections.iter().map(|it| &it.summary);
            let responses: u64 = connections.clone().map(|it| it.state.responses).sum();
            let expected = self.record.segments.unwrap_or(1) as u64;
            self.expect(responses == expected, Invariant::Agreement, || {
                format!("the client received {expected} responses whole, the server counts {responses}")
            });
            let lost = connections.clone().find(|it| it.end != SessionEnd::Orderly);
            self.expect(lost.is_none(), Invariant::Agreement, || {
                let why = lost.map(|it| it.end.to_string()).unwrap_or_default();
                format!("the client closed its connection in order, the server saw it end {why}")
            });
        }
    }
}
