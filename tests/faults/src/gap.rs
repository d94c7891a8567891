//! [`Gap`]: a time when a session's viewer took no bytes, and the faults that caused it.

use std::time::Duration;

use crate::kind::{Fault, FaultKind};
use crate::plan::FaultPlan;
use crate::run::SessionRecord;

/// Time that a session needs to recover from a fault, in addition to the fault's own length (backed-off probes come in
/// doubling intervals, RFC 9002 §6.2.1). It covers a handshake, a slow link and the client's keep-alive (10 s), by
/// which a server notices a new address and the client notices a restart.
pub(crate) const RECOVERY: Duration = Duration::from_secs(15);
/// Time after which a session ends if nothing arrives: the idle timeout of the connection and the timeout of the player
/// are both 30 s, and the second may begin when the first has almost passed.
pub(crate) const SILENCE: Duration = Duration::from_secs(65);
/// Time that a reconnecting client continues without a byte (`ReconnectOptions::limit`).
pub(crate) const RECONNECTS: Duration = Duration::from_secs(60);
/// Time after which a client has noticed that a server with a different endpoint key replaced its server: the idle
/// timeout of 30 s since its keep-alive.
const UNNOTICED: Duration = Duration::from_secs(40);
/// Maximum time until a client with an unconfirmed handshake sends a packet from its new address that its server
/// accepts: its keep-alive follows 10 s after a probe, and probes come in doubling intervals.
const UNCONFIRMED: Duration = Duration::from_secs(20);
/// Number of loss bursts after which quinn notices that the MTU has become smaller: one more than
/// `BLACK_HOLE_THRESHOLD` in quinn-proto's `connection/mtud.rs`. A probe finds each burst.
const BURSTS: u32 = 4;

/// A time when a session's viewer took no bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gap {
    /// Arrival of the last byte before it, or the session's beginning.
    pub(crate) from: Duration,
    /// Arrival of the next byte, or the session's end.
    pub(crate) until: Duration,
}

impl Gap {
    /// All gaps of a session, of any length, in chronological order. There is at least one.
    pub(crate) fn all(record: &SessionRecord) -> Vec<Self> {
        let ended = record.ended;
        let arrivals = record.taken.iter().map(|(at, _)| (*at).min(ended));
        let mut gaps = Vec::new();
        let mut from = Duration::ZERO;
        for until in arrivals.chain([ended]) {
            gaps.push(Self { from, until });
            from = until;
        }
        gaps
    }

    pub(crate) fn length(&self) -> Duration {
        self.until.saturating_sub(self.from)
    }

    /// Faults that may keep bytes from arriving during the gap, because they begin before it ends and may have an
    /// effect when it begins; with the times of their ends.
    pub(crate) fn faults<'a>(&self, plan: &'a FaultPlan) -> Vec<(&'a Fault, Duration)> {
        let slack = slack(plan);
        let disturbs = |fault: &&Fault| {
            let by_itself = matches!(
                fault.kind,
                FaultKind::PausedReader(_) | FaultKind::BrokenDisk { .. }
            );
            by_itself || plan.silences(fault)
        };
        let within =
            |(fault, ends): &(&Fault, Duration)| fault.at <= self.until && *ends + slack >= self.from;
        let faults = plan.faults.iter().filter(disturbs);
        faults
            .map(|fault| (fault, end_of(fault, plan)))
            .filter(within)
            .collect()
    }

    /// The faults from the gap's beginning on, as long as there is no time for recovery between them.
    pub(crate) fn disturbance(&self, plan: &FaultPlan) -> Disturbance {
        let mut found = Disturbance {
            until: self.from,
            length: Duration::ZERO,
            probes: Duration::ZERO,
            stays: false,
        };
        for (fault, ends) in self.faults(plan) {
            if fault.at <= found.until + slack(plan) {
                found.length += ends.saturating_sub(found.until.max(fault.at));
                found.probes += fault.probe_timeout();
                found.until = found.until.max(ends);
                found.stays |= fault.ends().is_none();
            }
        }
        let shrinks = |fault: &Fault| matches!(fault.kind, FaultKind::MtuLimit(_)) && fault.at <= self.until;
        if plan.faults.iter().any(shrinks) {
            found.probes *= BURSTS;
        }
        found
    }

    /// Latest time for the next byte to arrive or the session to end: the [deadline](Disturbance::deadline) of its
    /// faults, plus the time that a player may wait before its next request.
    pub(crate) fn deadline(&self, plan: &FaultPlan) -> Duration {
        self.disturbance(plan).deadline() + plan.title.duration
    }
}

/// Faults that follow each other without time for recovery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Disturbance {
    /// End of the last fault; the gap's beginning if there is none.
    pub(crate) until: Duration,
    /// Time within the gap with at least one fault.
    pub(crate) length: Duration,
    /// Maximum time until probes find its losses, with an RTT that the faults made appear long.
    probes: Duration,
    /// True if one of them lasts to the end.
    pub(crate) stays: bool,
}

impl Disturbance {
    /// Latest time for the session to recover: as long after the faults as they lasted or as probes take, and 15 s
    /// more; at most 65 s. A permanent fault ends when the session must have ended.
    pub(crate) fn deadline(&self) -> Duration {
        if self.stays {
            self.until
        } else {
            self.until + (self.length.max(self.probes) + RECOVERY).min(SILENCE)
        }
    }
}

/// End of `fault`. A permanent one ends when the session must.
fn end_of(fault: &Fault, plan: &FaultPlan) -> Duration {
    let silence = SILENCE
        + if plan.reconnects {
            RECONNECTS
        } else {
            Duration::ZERO
        };
    let ends = match fault.kind {
        FaultKind::PausedReader(None) => plan.viewer_leaves(),
        FaultKind::Restart { gap, same_key: false } => {
            Some((fault.at + gap).max(noticed(fault, UNNOTICED, plan)))
        }
        FaultKind::NewPort | FaultKind::NewAddress => Some(noticed(fault, UNCONFIRMED, plan)),
        // No stateless reset answers the packets of a handshake.
        FaultKind::Restart { gap, .. } if plan.may_be_connecting(fault.at) => {
            Some((fault.at + gap).max(noticed(fault, UNCONFIRMED, plan)))
        }
        _ => fault.ends(),
    };
    ends.unwrap_or_else(|| noticed(fault, silence, plan))
}

/// Latest time for a client to act on `fault`, if a time-out of this length makes it act. While the client is suspended
/// no time passes for it, and pending events then restart its time-outs. A player whose reader pauses acts at the end
/// of the pause. It acts at once on the loss of a connection; on its own time-out (the only one for a permanent fault),
/// it acts once that has passed since the pause.
fn noticed(fault: &Fault, timeout: Duration, plan: &FaultPlan) -> Duration {
    let mut until = fault.at + timeout;
    for stop in &plan.faults {
        let Some(ends) = stop.ends().filter(|ends| stop.at <= until && fault.at <= *ends) else {
            continue;
        };
        until = match stop.kind {
            FaultKind::ClientSuspended(_) => until.max(ends + timeout),
            FaultKind::PausedReader(_) if fault.ends().is_none() => until.max(ends + timeout),
            FaultKind::PausedReader(_) => until.max(ends),
            _ => until,
        };
    }
    until
}

/// Time during which a past fault may still have an effect.
fn slack(plan: &FaultPlan) -> Duration {
    RECOVERY + plan.title.duration
}

#[cfg(test)]
mod tests {
    use playrate_units::Bytes;

    use super::*;
    use crate::tests::{fault, outage, paused, secs};

    /// A plan for a title of 5 s, whose client does not reconnect.
    fn plan(faults: &[Fault]) -> FaultPlan {
        let mut plan = FaultPlan::of(1);
        plan.title.duration = secs(5);
        plan.reconnects = false;
        plan.faults = faults.to_vec();
        plan
    }

    fn gap(from: u64, until: u64) -> Gap {
        let [from, until] = [from, until].map(secs);
        Gap { from, until }
    }

    /// The deadline of a gap between these seconds of a plan with `faults`.
    fn deadline(faults: &[Fault], (from, until): (u64, u64)) -> Duration {
        gap(from, until).deadline(&plan(faults))
    }

    #[test]
    fn a_gap_is_disturbed_by_the_faults_within_it_that_leave_no_time_for_recovery_between_them() {
        let faults = [outage(10, 4), outage(30, 6), outage(100, 1)];
        let until = |from, until| gap(from, until).disturbance(&plan(&faults)).until;
        // The first has ended long before, and the last begins after it.
        assert_eq!(until(60, 90), secs(60));
        assert_eq!(deadline(&faults, (60, 90)), secs(60 + 15 + 5));
        assert_eq!(until(9, 50), secs(36));
        assert_eq!(deadline(&faults, (9, 50)), secs(36 + 3 * (4 + 6) + 15 + 5));
        // 64 s lie between the second and the third.
        assert_eq!(until(9, 200), secs(36));
        assert_eq!(until(99, 200), secs(101));
        assert_eq!(gap(33, 40).faults(&plan(&faults)).len(), 2);
    }

    #[test]
    fn faults_that_delay_nothing_give_no_time() {
        let deadline = |faults: &[Fault]| {
            let mut plan = plan(faults);
            plan.path.rtt = Duration::from_millis(10);
            gap(0, 60).deadline(&plan)
        };
        let port = |at| fault(at, FaultKind::NewPort);
        // While the client connects, and later.
        assert_eq!(deadline(&[port(1)]), secs(21 + 20 + 15 + 5));
        assert_eq!(deadline(&[port(2)]), secs(15 + 5));
        // An outage may make it connect again.
        assert_eq!(deadline(&[outage(1, 0), port(2)]), secs(22 + 20 + 15 + 5));
        // Time without faults does not count towards them.
        assert_eq!(deadline(&[outage(16, 1)]), secs(17 + 3 + 15 + 5));
    }

    #[test]
    fn a_fault_that_keeps_acknowledgements_back_gives_time_for_probes_of_the_rtt_that_it_makes_appear() {
        // The client continued to read what had arrived.
        let deadline = |faults: &[Fault]| deadline(faults, (13, 60));
        let suspended = |lasts| fault(10, FaultKind::ServerSuspended(secs(lasts)));
        let limit = fault(12, FaultKind::MtuLimit(Bytes::new(1_300)));
        assert_eq!(deadline(&[suspended(4)]), secs(14 + 3 * 4 + 15 + 5));
        assert_eq!(deadline(&[suspended(4), limit]), secs(14 + 4 * 3 * 4 + 15 + 5));
        // Not longer than the time-outs of the client.
        assert_eq!(deadline(&[suspended(40), limit]), secs(50 + 65 + 5));
        // A smaller MTU delays no acknowledgement.
        assert_eq!(deadline(&[limit]), secs(13 + 15 + 5));
    }

    #[test]
    fn time_outs_of_a_client_begin_when_it_goes_on() {
        let gone = fault(10, FaultKind::ServerGone);
        let suspended = fault(20, FaultKind::ClientSuspended(secs(30)));
        assert_eq!(deadline(&[gone, suspended], (50, 200)), secs(50 + 65 + 5));
        assert_eq!(deadline(&[gone, paused(20, 80)], (100, 300)), secs(100 + 65 + 5));
        // A fault that begins when the session must have ended, or that ended before, gives no extra time.
        for other in [paused(97, 10), paused(0, 9)] {
            assert_eq!(deadline(&[gone, other], (9, 200)), secs(10 + 65 + 5));
        }
        let (restarts, same_key) = (secs(1), false);
        let restart = fault(
            10,
            FaultKind::Restart {
                gap: restarts,
                same_key,
            },
        );
        let until = |stop, from| gap(from, 200).disturbance(&plan(&[restart, stop])).until;
        assert_eq!(until(suspended, 50), secs(50 + 40));
        // The connection is lost before the reader goes on.
        assert_eq!(until(paused(20, 80), 19), secs(100));
    }

    #[test]
    fn after_a_fault_that_stays_a_session_has_only_the_time_in_which_it_must_end() {
        let mut plan = plan(&[fault(10, FaultKind::ServerGone)]);
        assert_eq!(gap(9, 60).deadline(&plan), secs(10 + 65 + 5));
        plan.reconnects = true;
        assert_eq!(gap(9, 60).deadline(&plan), secs(10 + 65 + 60 + 5));
    }
}
