//! quinn's own controllers as baselines: unmodified, with telemetry around them.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use playrate_cc::{Phase, Reason, Snapshot};
use playrate_units::Bytes;
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{
    BbrConfig, Controller, ControllerFactory, ControllerMetrics, CubicConfig, NewRenoConfig,
};

use crate::telemetry::Recorder;

/// One of quinn's own controllers, unmodified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Baseline {
    /// quinn's `NewReno` (RFC 6582 and RFC 9002).
    NewReno,
    /// quinn's `Cubic` (its default; written after RFC 8312).
    Cubic,
    /// quinn's `Bbr` (BBR, version 1, after Chromium; quinn calls it experimental).
    Bbr,
}

impl Baseline {
    /// Every baseline, in the order of the registry.
    pub const ALL: [Self; 3] = [Self::NewReno, Self::Cubic, Self::Bbr];

    /// Name in a [`ControllerChoice`](crate::ControllerChoice).
    pub const fn name(self) -> &'static str {
        match self {
            Self::NewReno => "quinn-newreno",
            Self::Cubic => "quinn-cubic",
            Self::Bbr => "quinn-bbr",
        }
    }

    /// One line of description for lists of controllers.
    pub const fn about(self) -> &'static str {
        match self {
            Self::NewReno => "quinn's own NewReno, unmodified, as a baseline",
            Self::Cubic => "quinn's own Cubic (its default), unmodified, as a baseline",
            Self::Bbr => "quinn's own experimental BBR (version 1), unmodified, as a baseline",
        }
    }

    /// Returns true if the same events give the same windows. quinn's `Bbr` starts its cycle of gains at a random
    /// point, from the operating system's randomness.
    pub const fn is_deterministic(self) -> bool {
        !matches!(self, Self::Bbr)
    }

    /// quinn's factory of this controller, for paths that start with an MTU of `mtu` bytes. The initial window is
    /// quinn's, or RFC 9002's if quinn's would deadlock with that MTU.
    pub fn factory(self, mtu: u16) -> Arc<dyn ControllerFactory + Send + Sync> {
        match self {
            Self::NewReno => {
                let mut config = NewRenoConfig::default();
                if let Some(window) = raised_initial_window(mtu) {
                    config.initial_window(window);
                }
                Arc::new(config)
            }
            Self::Cubic => {
                let mut config = CubicConfig::default();
                if let Some(window) = raised_initial_window(mtu) {
                    config.initial_window(window);
                }
                Arc::new(config)
            }
            // Its initial window of 240,000 bytes holds three packets of any MTU.
            Self::Bbr => Arc::new(BbrConfig::default()),
        }
    }
}

/// quinn's initial window is 12,000 bytes for every MTU. A connection that starts with an MTU of that size would never
/// send a full packet, so from 6,000 bytes on the window is the one that RFC 9002 §7.2 recommends.
fn raised_initial_window(mtu: u16) -> Option<u64> {
    const QUINN_INITIAL_WINDOW: u64 = 12_000;
    let mtu = u64::from(mtu);
    (2 * mtu >= QUINN_INITIAL_WINDOW).then(|| (10 * mtu).min((2 * mtu).max(14_720)))
}

/// One of quinn's controllers with telemetry around it.
pub(crate) struct ObservedBaseline {
    inner: Box<dyn Controller>,
    min_rtt: Option<Duration>,
    rtt_measured: bool,
    batch_acked: bool,
    reason: Reason,
    /// Largest pacing rate, bit/s, of a controller that reports one and has not reduced it yet.
    rising_rate: Option<u64>,
    /// The pacing rate has fallen. BBR's never falls before its slow start ends.
    rate_fell: bool,
    recorder: Recorder,
}

impl fmt::Debug for ObservedBaseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObservedBaseline")
            .field("window", &self.inner.window())
            .finish_non_exhaustive()
    }
}

impl ObservedBaseline {
    pub(crate) fn new(inner: Box<dyn Controller>, recorder: Recorder) -> Self {
        Self {
            inner,
            min_rtt: None,
            rtt_measured: false,
            batch_acked: false,
            reason: Reason::Began,
            rising_rate: None,
            rate_fell: false,
            recorder,
        }
    }

    /// Detects the end of slow start for a controller without a threshold that paces.
    fn watch_pacing_rate(&mut self) {
        if self.rate_fell {
            return;
        }
        let Some(rate) = self.inner.metrics().pacing_rate else {
            return;
        };
        if self.rising_rate.is_some_and(|before| rate < before) {
            self.rate_fell = true;
            self.reason = Reason::CapacityKnown;
        }
        self.rising_rate = Some(rate);
    }

    fn snapshot(&self) -> Snapshot {
        let metrics = self.inner.metrics();
        // quinn writes "infinite" as the largest integer.
        let ssthresh = metrics.ssthresh.filter(|&ssthresh| ssthresh < u64::MAX);
        let mut snapshot = Snapshot::default();
        snapshot.phase = match ssthresh {
            Some(ssthresh) if metrics.congestion_window >= ssthresh => Phase::Avoidance,
            Some(_) if self.reason == Reason::PersistentCongestion => Phase::AfterPersistentCongestion,
            None if self.rate_fell => Phase::Avoidance,
            _ => Phase::Startup,
        };
        snapshot.window = Bytes::new(metrics.congestion_window);
        snapshot.ssthresh = ssthresh.map(Bytes::new);
        snapshot.smoothed_rtt = self.recorder.frame.smoothed_rtt;
        snapshot.min_rtt = self.min_rtt;
        snapshot.reason = self.reason;
        snapshot
    }
}

impl Drop for ObservedBaseline {
    /// Makes the path's last sample include everything counted.
    fn drop(&mut self) {
        if let Some(at) = self.recorder.unsampled() {
            self.recorder.sample(at, self.snapshot());
        }
    }
}

impl Controller for ObservedBaseline {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.recorder.sent(bytes);
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.recorder.acked(bytes, 1);
        self.recorder.frame.newest = Some((sent, now));
        self.batch_acked = true;
        if self.rtt_measured {
            self.recorder.frame.smoothed_rtt = Some(rtt.get());
            self.min_rtt = Some(rtt.min());
        }
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.inner
            .on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
        self.rtt_measured |= self.batch_acked;
        self.batch_acked = false;
        self.watch_pacing_rate();
        self.recorder.frame_ended(now, in_flight, app_limited);
        if self.recorder.is_due(now) {
            self.recorder.sample(now, self.snapshot());
        }
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.inner
            .on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
        self.reason = match (is_persistent_congestion, lost_bytes) {
            (true, _) => Reason::PersistentCongestion,
            (false, 0) => Reason::EcnCe,
            (false, _) => Reason::Loss,
        };
        let snapshot = self.snapshot();
        self.recorder.congestion(lost_bytes);
        self.recorder.sample(now, snapshot);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.recorder.window_for_quinn(self.inner.window())
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self {
            inner: self.inner.clone_box(),
            min_rtt: self.min_rtt,
            rtt_measured: self.rtt_measured,
            batch_acked: self.batch_acked,
            reason: self.reason,
            rising_rate: self.rising_rate,
            rate_fell: self.rate_fell,
            recorder: self.recorder.clone(),
        })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    /// quinn's own controller, so that code that downcasts to it works as without the telemetry.
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.inner.clone_box().into_any()
    }
}
