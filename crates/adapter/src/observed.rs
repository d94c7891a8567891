//! [`ObservedBaseline`]: one of a stack's own controllers, observed for telemetry.

use playrate_cc::events::Signal;
use playrate_cc::{Phase, Reason, Snapshot};
use playrate_units::Bitrate;

use crate::QuicStack;
use crate::telemetry::LastAckFrame;

/// One of the stack's own controllers, with the state that its behaviour reveals.
#[derive(Clone)]
pub(crate) struct ObservedBaseline<S: QuicStack> {
    pub(crate) inner: S::BaselineController,
    pub(crate) reason: Reason,
    /// Pacing rate after the last ACK frame, if the controller reports one.
    pacing_rate: Option<Bitrate>,
    /// True once the pacing rate has fallen. BBR's never falls before its slow start ends.
    rate_fell: bool,
}

impl<S: QuicStack> ObservedBaseline<S> {
    pub(crate) fn new(inner: S::BaselineController) -> Self {
        Self {
            inner,
            reason: Reason::Began,
            pacing_rate: None,
            rate_fell: false,
        }
    }

    pub(crate) fn on_congestion(&mut self, signal: &Signal) {
        self.reason = match signal {
            Signal::Loss { persistent: true, .. } => Reason::PersistentCongestion,
            Signal::EcnCe => Reason::EcnCe,
            _ => Reason::Loss,
        };
    }

    /// Detects the end of slow start for a controller that paces and has no threshold.
    pub(crate) fn watch_pacing_rate(&mut self) {
        let rate = S::metrics(&self.inner).pacing_rate;
        if !self.rate_fell && rate.is_some() && rate < self.pacing_rate {
            self.rate_fell = true;
            self.reason = Reason::CapacityKnown;
        }
        self.pacing_rate = rate;
    }

    pub(crate) fn snapshot(&self, frame: &LastAckFrame) -> Snapshot {
        let ssthresh = S::metrics(&self.inner).ssthresh;
        let mut snapshot = Snapshot::of_window(S::window(&self.inner));
        snapshot.phase = match ssthresh {
            Some(ssthresh) if snapshot.window >= ssthresh => Phase::Avoidance,
            Some(_) if self.reason == Reason::PersistentCongestion => Phase::AfterPersistentCongestion,
            None if self.rate_fell => Phase::Avoidance,
            _ => Phase::Startup,
        };
        snapshot.ssthresh = ssthresh;
        snapshot.smoothed_rtt = frame.smoothed_rtt;
        snapshot.min_rtt = frame.min_rtt;
        snapshot.reason = self.reason;
        snapshot
    }
}
