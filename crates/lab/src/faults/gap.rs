//! [`Gap`]: a stretch of a session in which its viewer took no byte, and the faults behind it.

use std::time::Duration;

use super::kind::{Fault, FaultKind};
use super::plan::FaultPlan;
use super::run::SessionRecord;

/// Time in which a session goes on after a fault, besides the fault's own length: for the client's keep-alive (10 s),
/// with which a server notices a new address and the client a restart, and for probes after backing off (RFC 9002
/// §6.2.1), a handshake, and a slow link.
pub(super) const RECOVERY: Duration = Duration::from_secs(15);
/// Time after which a session ends in which nothing arrives: the idle timeout of the connection and the timeout of the
/// player are both 30 s, and the second may begin when the first has almost passed.
pub(super) const SILENCE: Duration = Duration::from_secs(65);
/// Time for which a client that connects again goes on without a byte (`ReconnectOptions::limit`).
pub(super) const RECONNECTS: Duration = Duration::from_secs(60);
/// Time after which a client has noticed that its server is another one with another endpoint key: the idle timeout of
/// 30 s since its keep-alive.
const UNNOTICED: Duration = Duration::from_secs(40);
/// Time for which a client sends nothing that tells the server its new address, before the handshake is confirmed: its
/// keep-alive follows 10 s after a probe, and probes come in doubling intervals.
const UNCONFIRMED: Duration = Duration::from_secs(20);

/// A stretch of a session in which its viewer took no byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    /// Arrival of the last byte before it, or the session's beginning.
    pub(super) from: Duration,
    /// Arrival of the next byte, or the session's end.
    pub(super) until: Duration,
}

impl Gap {
    /// All gaps of a session, of any length, in order of time. There is at least one.
    pub(super) fn all(record: &SessionRecord) -> Vec<Self> {
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

    pub(super) fn length(&self) -> Duration {
        self.until.saturating_sub(self.from)
    }

    /// Faults that begin before it ends, and that last, with the time for recovery, until it begins; with the times of
    /// their ends.
    pub(super) fn faults<'a>(&self, plan: &'a FaultPlan) -> Vec<(&'a Fault, Duration)> {
        let slack = slack(plan);
        let of = |fault: &'a Fault| (fault, self.end_of(fault, plan));
        let within =
            |(fault, ends): &(&Fault, Duration)| fault.at <= self.until && *ends + slack >= self.from;
        plan.faults.iter().map(of).filter(within).collect()
    }

    /// Time until which faults keep bytes from arriving, one after the other without time for recovery between them.
    pub(super) fn disturbed_until(&self, plan: &FaultPlan) -> Duration {
        let slack = slack(plan);
        self.faults(plan)
            .into_iter()
            .fold(self.from, |until, (fault, ends)| {
                if fault.at <= until + slack {
                    until.max(ends)
                } else {
                    until
                }
            })
    }

    /// Time by which bytes have to arrive again, or the session to end: in the time for recovery and the length of the
    /// faults since they have ended, and in that which the player may wait for its buffer.
    pub(super) fn deadline(&self, plan: &FaultPlan) -> Duration {
        let disturbed = self.disturbed_until(plan);
        let recovery = (disturbed.saturating_sub(self.from) + RECOVERY).min(SILENCE);
        disturbed + recovery + plan.title.duration
    }

    /// Time at which `fault` has ended. One that stays ends when the session must.
    fn end_of(&self, fault: &Fault, plan: &FaultPlan) -> Duration {
        let silence = SILENCE
            + if plan.reconnects {
                RECONNECTS
            } else {
                Duration::ZERO
            };
        let ends = match fault.kind {
            FaultKind::PausedReader(None) => plan.viewer_leaves(),
            FaultKind::Restart { gap, same_key: false } => Some(fault.at + gap.max(UNNOTICED)),
            FaultKind::NewPort | FaultKind::NewAddress if self.may_begin_a_connection(fault, plan) => {
                Some(fault.at + UNCONFIRMED)
            }
            _ => fault.ends(),
        };
        ends.unwrap_or(fault.at + silence)
    }

    /// Returns true if the client may have been connecting when `fault` began: before the first byte of all, and after
    /// another fault that kept bytes from arriving.
    fn may_begin_a_connection(&self, fault: &Fault, plan: &FaultPlan) -> bool {
        let silences = |other: &&Fault| other.at < fault.at && other.kind.silences();
        let mut before = plan.faults.iter().filter(silences);
        self.from.is_zero() || before.any(|other| other.at + slack(plan) >= self.from)
    }
}

/// Time in which a fault that has ended may still be felt.
fn slack(plan: &FaultPlan) -> Duration {
    RECOVERY + plan.title.duration
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A plan of outages, of a title of 5 s, whose client does not connect again.
    fn outages(outages: &[(u64, u64)]) -> FaultPlan {
        let mut plan = FaultPlan::of(1);
        plan.title.duration = secs(5);
        plan.reconnects = false;
        plan.faults = outages.iter().map(|(at, lasts)| outage(*at, *lasts)).collect();
        plan
    }

    fn outage(at: u64, lasts: u64) -> Fault {
        let (ways, lasts) = (super::super::kind::Ways::Both, secs(lasts));
        Fault {
            at: secs(at),
            kind: FaultKind::Outage { ways, lasts },
        }
    }

    #[test]
    fn a_gap_is_disturbed_by_the_faults_within_it_that_leave_no_time_for_recovery_between_them() {
        let plan = outages(&[(10, 4), (30, 6), (100, 1)]);
        let gap = |from, until| Gap {
            from: secs(from),
            until: secs(until),
        };
        // The first has ended long before, and the last begins after it.
        assert_eq!(gap(60, 90).disturbed_until(&plan), secs(60));
        assert_eq!(gap(60, 90).deadline(&plan), secs(60 + 15 + 5));
        assert_eq!(gap(9, 50).disturbed_until(&plan), secs(36));
        assert_eq!(gap(9, 50).deadline(&plan), secs(36 + 27 + 15 + 5));
        // 64 s lie between the second and the third.
        assert_eq!(gap(9, 200).disturbed_until(&plan), secs(36));
        assert_eq!(gap(99, 200).disturbed_until(&plan), secs(101));
        assert_eq!(gap(33, 40).faults(&plan).len(), 2);
    }

    #[test]
    fn a_new_port_keeps_bytes_from_arriving_only_before_a_connection_is_confirmed() {
        let mut plan = outages(&[(10, 4)]);
        plan.faults.push(Fault {
            at: secs(12),
            kind: FaultKind::NewPort,
        });
        let until = |plan: &FaultPlan, from| {
            let gap = Gap {
                from: secs(from),
                until: secs(60),
            };
            gap.disturbed_until(plan)
        };
        assert_eq!(until(&plan, 9), secs(32));
        plan.faults.remove(0);
        assert_eq!(until(&plan, 9), secs(12));
        assert_eq!(until(&plan, 0), secs(32));
    }
}
