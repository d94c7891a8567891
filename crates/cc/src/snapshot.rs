//! [`Snapshot`]: what a controller tells telemetry.

use core::fmt;
use core::time::Duration;

use playrate_units::{Bitrate, Bytes};

use crate::Facts;

/// A controller's state as telemetry sees it. What a controller does not keep is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// Which part governs the window now.
    pub phase: Phase,
    /// Congestion window (cwnd).
    pub window: Bytes,
    /// Window of the avoidance law or slow start, before shaping, loss response and ceiling make [`window`](Self::window)
    /// of it; `None` if the controller is not composed of parts.
    pub law_window: Option<Bytes>,
    /// Slow start threshold; `None` while it is infinite.
    pub ssthresh: Option<Bytes>,
    /// Smoothed RTT.
    pub smoothed_rtt: Option<Duration>,
    /// Smallest RTT of the connection.
    pub min_rtt: Option<Duration>,
    /// Largest RTT that counts, delayed acknowledgements left out.
    pub max_rtt: Option<Duration>,
    /// Estimated capacity of the path's narrowest link.
    pub capacity: Option<Bitrate>,
    /// Estimated bytes queued on the path.
    pub backlog: Option<Bytes>,
    /// Why the phase or the window last changed other than by ordinary growth.
    pub reason: Reason,
    /// What the controller's parts would use of the [`VideoKnowledge`](crate::VideoKnowledge) and is not known. As long as
    /// this is not empty, some part behaves as its plain counterpart.
    pub waiting_for: Facts,
}

impl Snapshot {
    /// A snapshot that knows only the window; the other fields can be set one by one.
    pub fn of_window(window: Bytes) -> Self {
        Self {
            window,
            ..Self::default()
        }
    }
}

/// Which part of a controller governs the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Slow start or one of its variants, at the start of the connection.
    #[default]
    Startup,
    /// Congestion avoidance.
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
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Why the phase or the window changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The connection began.
    #[default]
    Began,
    /// The window reached ssthresh.
    ReachedSsthresh,
    /// The window carries the video's rate; what comes on top is the delay window's.
    VideoRateReached,
    /// The first estimate of the path's capacity is there.
    CapacityKnown,
    /// HyStart++ saw the RTT rise for its whole conservative phase (RFC 9406 §4.2).
    RttRose,
    /// Packets were declared lost.
    Loss,
    /// The peer reported ECN-CE marks.
    EcnCe,
    /// Persistent congestion (RFC 9002 §7.6).
    PersistentCongestion,
    /// A packet sent after the congestion event was acknowledged.
    RecoveryEnded,
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
            Self::Loss => "loss",
            Self::EcnCe => "ecn-ce",
            Self::PersistentCongestion => "persistent-congestion",
            Self::RecoveryEnded => "recovery-ended",
            Self::Idle => "idle",
            Self::MtuChanged => "mtu-changed",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
