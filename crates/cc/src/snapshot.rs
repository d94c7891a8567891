//! [`Snapshot`]: a controller's state for telemetry.

use core::fmt;
use core::time::Duration;

use playrate_units::{Bitrate, Bytes};

use crate::Facts;

/// A controller's state for telemetry. Fields that a controller does not keep are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// Phase that the controller is in.
    pub phase: Phase,
    /// Congestion window (cwnd) that the transport gets.
    pub window: Bytes,
    /// Window of the algorithm or slow start, before shaping, loss policy and ceiling turn it into
    /// [`window`](Self::window); `None` if the controller is not composed of components.
    pub algorithm_window: Option<Bytes>,
    /// Slow start threshold; `None` while it is infinite.
    pub ssthresh: Option<Bytes>,
    /// Smoothed RTT of the path.
    pub smoothed_rtt: Option<Duration>,
    /// Smallest RTT of the connection.
    pub min_rtt: Option<Duration>,
    /// Largest RTT that counts, without delayed acknowledgements.
    pub max_rtt: Option<Duration>,
    /// Estimated capacity of the path's narrowest link, as the controller uses it. It may exceed the link by a seventh
    /// and never expires; an encoder or a player should use [`Estimate`](crate::Estimate) instead.
    pub capacity: Option<Bitrate>,
    /// Estimated bytes queued on the path.
    pub backlog: Option<Bytes>,
    /// Cause of the last change of phase, or of the window except for ordinary growth.
    pub reason: Reason,
    /// Facts of the [`VideoKnowledge`](crate::VideoKnowledge) that the controller's components use and that are
    /// unknown. While it is not empty, some component behaves as its plain counterpart.
    pub waiting_for: Facts,
}

impl Snapshot {
    /// A snapshot with only the window; the other fields can be set one by one.
    pub fn of_window(window: Bytes) -> Self {
        Self {
            window,
            ..Self::default()
        }
    }
}

/// Phase of a controller; it decides which component governs the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Slow start or one of its variants, at the start of the connection.
    #[default]
    Startup,
    /// Congestion avoidance by the algorithm.
    Avoidance,
    /// From a congestion event to the first acknowledgement of a packet sent after it.
    Recovery,
    /// Slow start again, after persistent congestion.
    AfterPersistentCongestion,
    /// Slow start again, after the sender was idle.
    AfterIdle,
}

impl Phase {
    /// The name in telemetry: lower case, words joined by `-`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Avoidance => "avoidance",
            Self::Recovery => "recovery",
            Self::AfterPersistentCongestion => "after-persistent-congestion",
            Self::AfterIdle => "after-idle",
        }
    }

    /// Returns true in the phases of the startup component.
    #[inline]
    pub(crate) const fn is_slow_start(self) -> bool {
        !matches!(self, Self::Avoidance | Self::Recovery)
    }

    /// Returns true if a controller may pass from this phase to `next` for this reason.
    pub(crate) const fn may_become(self, next: Self, reason: Reason) -> bool {
        if matches!(reason, Reason::SpuriousLoss) {
            return matches!(self, Self::Recovery | Self::Avoidance);
        }
        match next {
            // A connection starts once.
            Self::Startup => false,
            Self::Recovery => matches!(reason, Reason::Loss | Reason::EcnCe),
            Self::AfterPersistentCongestion => {
                matches!(reason, Reason::PersistentCongestion | Reason::LostAgain)
            }
            Self::AfterIdle => matches!(reason, Reason::Idle),
            Self::Avoidance => match self {
                Self::Avoidance => false,
                Self::Recovery => matches!(reason, Reason::RecoveryEnded),
                Self::Startup | Self::AfterPersistentCongestion | Self::AfterIdle => reason.ends_slow_start(),
            },
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Cause of the last change of phase, or of the window except for ordinary growth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The connection has just begun.
    #[default]
    Began,
    /// The window reached ssthresh.
    ReachedSsthresh,
    /// The window carries the video's rate; from here on, only the delay window grows.
    VideoRateReached,
    /// The path's capacity has its first estimate.
    CapacityKnown,
    /// The RTT rose far enough to end slow start: for the whole conservative phase of HyStart++ (RFC 9406 §4.2), over a
    /// round trip of HyStart, until Vegas counted more than γ queued segments, or until the rate exceeded Copa's
    /// target.
    RttRose,
    /// Closely spaced ACK frames lasted long enough to fill the path (HyStart, feature `papers`).
    AckTrain,
    /// A share of the bytes sent one RTT ago did not arrive: the path's rate is reached (SEARCH).
    RateFlattened,
    /// Packets were declared lost.
    Loss,
    /// The peer reported ECN-CE marks.
    EcnCe,
    /// Persistent congestion (RFC 9002 §7.6).
    PersistentCongestion,
    /// Data that had been resent was lost again, and the sender waits for a timeout as TCP does (`recovery=tcp`,
    /// feature `papers`).
    LostAgain,
    /// A packet sent after the congestion event was acknowledged.
    RecoveryEnded,
    /// The packets declared lost had arrived, so the last reduction was undone (RFC 9438 §4.9).
    SpuriousLoss,
    /// The sender had been idle.
    Idle,
    /// The path's MTU changed.
    MtuChanged,
}

impl Reason {
    /// The name in telemetry: lower case, words joined by `-`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Began => "began",
            Self::ReachedSsthresh => "reached-ssthresh",
            Self::VideoRateReached => "video-rate-reached",
            Self::CapacityKnown => "capacity-known",
            Self::RttRose => "rtt-rose",
            Self::AckTrain => "ack-train",
            Self::RateFlattened => "rate-flattened",
            Self::Loss => "loss",
            Self::EcnCe => "ecn-ce",
            Self::PersistentCongestion => "persistent-congestion",
            Self::LostAgain => "lost-again",
            Self::RecoveryEnded => "recovery-ended",
            Self::SpuriousLoss => "spurious-loss",
            Self::Idle => "idle",
            Self::MtuChanged => "mtu-changed",
        }
    }

    /// Returns true for the reasons that end slow start and begin congestion avoidance.
    pub(crate) const fn ends_slow_start(self) -> bool {
        matches!(
            self,
            Self::ReachedSsthresh
                | Self::VideoRateReached
                | Self::CapacityKnown
                | Self::RttRose
                | Self::AckTrain
                | Self::RateFlattened
                | Self::Loss
                | Self::EcnCe
        )
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
