//! Which phase may follow which, and for what reason.

use crate::{Phase, Reason};

/// Whether a controller may pass from one phase to another for this reason.
pub(super) const fn may_follow(from: Phase, to: Phase, reason: Reason) -> bool {
    match to {
        // A connection starts once.
        Phase::Startup => false,
        Phase::Recovery => matches!(reason, Reason::Loss | Reason::EcnCe),
        Phase::AfterPersistentCongestion => matches!(reason, Reason::PersistentCongestion),
        Phase::AfterIdle => matches!(reason, Reason::Idle),
        Phase::Avoidance => match from {
            Phase::Avoidance => false,
            Phase::Recovery => matches!(reason, Reason::RecoveryEnded),
            Phase::Startup | Phase::AfterPersistentCongestion | Phase::AfterIdle => {
                matches!(
                    reason,
                    Reason::ReachedSsthresh
                        | Reason::RttRose
                        | Reason::VideoRateReached
                        | Reason::CapacityKnown
                        | Reason::Loss
                        | Reason::EcnCe
                )
            }
        },
    }
}

/// Whether the startup part governs in this phase.
pub(super) const fn is_slow_start(phase: Phase) -> bool {
    matches!(
        phase,
        Phase::Startup | Phase::AfterPersistentCongestion | Phase::AfterIdle
    )
}
