//! The quinn adapter: drives a [`CongestionController`] from quinn's callbacks.
//!
//! Everything that is particular to quinn's side of congestion control is here: its clock becomes a
//! [`Timestamp`], its per-packet calls become runs, its "zero bytes lost" becomes [`Signal::EcnCe`], and the
//! controller's window becomes a plain integer, because quinn asks for it twice per datagram.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use playrate_cc::events::{AckBatch, Acked, Congestion, MtuChange, Sent, Signal};
use playrate_cc::{CongestionController, Path, Snapshot, Timestamp, VideoKnowledge};
use playrate_units::Bytes;
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

use crate::baseline::Observed;
use crate::controllers::{Built, ControllerChoice};
use crate::overhead::WireOverhead;
use crate::telemetry::{Monitor, Recorder};

/// One connection's congestion control, ready for quinn: which controller, what is known of the video, and who
/// watches. Make a fresh one for every connection; all paths of that connection share it.
///
/// ```
/// use playrate_transport::{ConnectionController, ControllerChoice};
///
/// let control = ConnectionController::new("cubic+start=hystartpp".parse::<ControllerChoice>()?);
/// let mut transport = quinn::TransportConfig::default();
/// control.install(&mut transport);
/// # Ok::<(), playrate_cc::SpecError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ConnectionController {
    choice: ControllerChoice,
    knowledge: Arc<VideoKnowledge>,
    monitor: Arc<Monitor>,
    fits_rates: bool,
    overhead: Arc<WireOverhead>,
}

impl ConnectionController {
    /// `choice` for one connection of whose video nothing is known yet.
    pub fn new(choice: ControllerChoice) -> Self {
        Self {
            choice,
            knowledge: Arc::default(),
            monitor: Arc::default(),
            fits_rates: true,
            overhead: Arc::default(),
        }
    }

    /// Whether windows that follow from the video's rate are fitted to QUIC (on by default): one MTU more, because quinn sends
    /// only while `in_flight + mtu < window`, and in proportion to what packets add to the video's bytes. A divergence
    /// from the papers, whose windows are TCP's; without it such a window carries less than the video.
    #[must_use]
    pub fn fitting_rates(mut self, on: bool) -> Self {
        self.fits_rates = on;
        self
    }

    /// Where response bodies are counted, if windows are fitted to them.
    pub(crate) fn overhead(&self) -> Option<&WireOverhead> {
        self.fits_rates.then_some(&*self.overhead)
    }

    /// Has samples go to `monitor`.
    #[must_use]
    pub fn with_monitor(mut self, monitor: Arc<Monitor>) -> Self {
        self.monitor = monitor;
        self
    }

    /// Has the controller read `knowledge`.
    #[must_use]
    pub fn with_knowledge(mut self, knowledge: Arc<VideoKnowledge>) -> Self {
        self.knowledge = knowledge;
        self
    }

    /// Which controller.
    pub fn choice(&self) -> &ControllerChoice {
        &self.choice
    }

    /// What the controller is told about the video. Write to it at any time.
    pub fn knowledge(&self) -> &Arc<VideoKnowledge> {
        &self.knowledge
    }

    /// Who watches.
    pub fn monitor(&self) -> &Arc<Monitor> {
        &self.monitor
    }

    /// Makes connections that use `transport` use this controller, and asks their peer for an acknowledgement of
    /// every packet if the controller wants that. `transport` must be one connection's own.
    pub fn install(&self, transport: &mut quinn::TransportConfig) {
        let every_ack = self.choice.wants_every_ack();
        transport.congestion_controller_factory(Arc::new(self.clone()));
        transport.ack_frequency_config(every_ack.then(|| {
            let mut frequency = quinn::AckFrequencyConfig::default();
            // Counts the packets that may go unacknowledged: none (draft-ietf-quic-ack-frequency §4).
            frequency.ack_eliciting_threshold(quinn::VarInt::from_u32(0));
            frequency
        }));
    }
}

impl ControllerFactory for ConnectionController {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let recorder = Recorder::new(Arc::clone(&self.monitor), now);
        let path = Path::new(Bytes::new(u64::from(current_mtu)));
        let path = if self.fits_rates { path.strict() } else { path };
        match self.choice.build(&path, Arc::clone(&self.knowledge)) {
            Built::Ours(controller) => Box::new(QuinnController::new(controller, now, current_mtu, recorder)),
            Built::Baseline(baseline) => Box::new(Observed::new(
                baseline.factory(current_mtu).build(now, current_mtu),
                recorder,
            )),
        }
    }
}

/// Acknowledged packets of one burst.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// As the controller will be told. No packets: there is nothing to report.
    acked: Acked,
    /// When they left, on quinn's clock.
    sent: Instant,
}

/// A [`CongestionController`] as quinn drives it. [`quinn::Connection::congestion_state`] gives a copy; reach it
/// with `into_any().downcast::<QuinnController>()`.
#[derive(Debug)]
pub struct QuinnController {
    inner: Box<dyn CongestionController>,
    /// When this controller was built: its time zero.
    built: Instant,
    /// Packets that have not been reported yet.
    run: Run,
    /// When the last ACK frame arrived, on both clocks: all events of a frame carry the same moment.
    frame: (Instant, Timestamp),
    /// Cached after every event, because quinn asks twice per datagram.
    window: u64,
    mtu: u64,
    smoothed_rtt: Option<Duration>,
    /// Whether quinn's estimator has seen a sample; before, it returns its initial guess.
    rtt_measured: bool,
    /// Whether the batch being read has acknowledged anything that asked for it.
    batch_acked: bool,
    recorder: Recorder,
}

impl QuinnController {
    fn new(inner: Box<dyn CongestionController>, now: Instant, current_mtu: u16, recorder: Recorder) -> Self {
        let mut controller = Self {
            inner,
            built: now,
            run: Run {
                acked: Acked {
                    now: Timestamp::ZERO,
                    sent: Timestamp::ZERO,
                    bytes: Bytes::ZERO,
                    packets: 0,
                    app_limited: false,
                },
                sent: now,
            },
            frame: (now, Timestamp::ZERO),
            window: 0,
            mtu: u64::from(current_mtu),
            smoothed_rtt: None,
            rtt_measured: false,
            batch_acked: false,
            recorder,
        };
        controller.refresh_window();
        controller
    }

    /// What the controller says of itself.
    pub fn snapshot(&self) -> Snapshot {
        self.inner.snapshot()
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "2⁶⁴ ns are 584 years")]
    fn timestamp(&self, at: Instant) -> Timestamp {
        Timestamp::from_nanos(at.saturating_duration_since(self.built).as_nanos() as u64)
    }

    /// [`timestamp`](Self::timestamp) of the moment an ACK frame arrived at.
    #[inline]
    fn frame_time(&mut self, now: Instant) -> Timestamp {
        if self.frame.0 != now {
            self.frame = (now, self.timestamp(now));
        }
        self.frame.1
    }

    #[inline]
    fn refresh_window(&mut self) {
        self.window = self.for_quinn(self.inner.window());
    }

    /// The one place where a controller's window is turned into what quinn does with it.
    ///
    /// quinn sends a packet only if `in flight + mtu < window`, so a window up to one MTU sends nothing at all,
    /// and it stops pacing above `u32::MAX`.
    fn for_quinn(&self, window: Bytes) -> u64 {
        window.as_u64().max(self.mtu + 1).min(u64::from(u32::MAX))
    }

    /// Reports the run, if there is one.
    #[inline]
    fn flush(&mut self) {
        let Run { acked, sent } = &mut self.run;
        if acked.packets > 0 {
            self.recorder.acked(*sent, acked.bytes.as_u64(), acked.packets);
            self.inner.on_acked(acked);
            acked.packets = 0;
        }
    }

    /// As [`flush`](Self::flush), where there is hardly ever a run: off the hot path.
    #[inline]
    fn flush_rare(&mut self) {
        #[cold]
        fn report(controller: &mut QuinnController) {
            controller.flush();
        }
        if self.run.acked.packets > 0 {
            report(self);
        }
    }

    /// A packet that does not belong to the run before it begins one of its own.
    #[inline(never)]
    fn begin_run(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.flush();
        self.batch_acked = true;
        if self.rtt_measured {
            self.smoothed_rtt = Some(rtt.get());
        }
        self.run = Run {
            acked: Acked {
                now: self.frame_time(now),
                sent: self.timestamp(sent),
                bytes: Bytes::new(bytes),
                packets: 1,
                app_limited,
            },
            sent,
        };
    }
}

impl Drop for QuinnController {
    /// The path's last sample shows all that was counted.
    fn drop(&mut self) {
        if let Some(at) = self.recorder.unsampled() {
            self.recorder.sample(at, self.inner.snapshot());
        }
    }
}

impl Controller for QuinnController {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        // quinn infers an acknowledgement without an ACK frame when a Retry comes (its run is reported here), and
        // no RTT sample goes with it.
        self.flush_rare();
        self.batch_acked = false;
        self.recorder.sent(bytes);
        self.inner.on_sent(&Sent {
            now: self.timestamp(now),
            bytes: Bytes::new(bytes),
        });
        self.refresh_window();
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        let Run { acked, sent: left } = &mut self.run;
        if acked.packets > 0 && *left == sent && self.frame.0 == now && acked.app_limited == app_limited {
            acked.bytes += Bytes::new(bytes);
            acked.packets = acked.packets.saturating_add(1);
            return;
        }
        self.begin_run(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        self.flush();
        let event = AckBatch {
            now: self.frame_time(now),
            in_flight: Bytes::new(in_flight),
            app_limited,
            smoothed_rtt: self.smoothed_rtt,
        };
        self.inner.on_ack_batch(&event);
        // quinn takes its RTT sample after this call, from the first frame that acknowledges something that asked
        // for it; so from the next frame on the estimator is worth reading.
        self.rtt_measured |= self.batch_acked;
        self.batch_acked = false;
        self.refresh_window();
        if self
            .recorder
            .batch_ended(now, in_flight, app_limited, self.smoothed_rtt)
        {
            self.recorder.sample(now, self.inner.snapshot());
        }
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.flush();
        let signal = if lost_bytes == 0 && !is_persistent_congestion {
            Signal::EcnCe
        } else {
            Signal::Loss {
                bytes: Bytes::new(lost_bytes),
                persistent: is_persistent_congestion,
            }
        };
        self.inner.on_congestion(&Congestion {
            now: self.timestamp(now),
            newest_sent: self.timestamp(sent),
            signal,
        });
        self.refresh_window();
        self.recorder.congestion(now, lost_bytes, self.inner.snapshot());
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        // Arrives in the middle of an ACK frame when the frame acknowledges an MTU probe.
        self.flush_rare();
        self.mtu = u64::from(new_mtu);
        self.inner.on_mtu_change(&MtuChange {
            mtu: Bytes::new(self.mtu),
        });
        self.refresh_window();
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window;
        metrics.ssthresh = self.inner.snapshot().ssthresh.map(Bytes::as_u64);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self {
            inner: self.inner.clone_box(),
            built: self.built,
            run: self.run,
            frame: self.frame,
            window: self.window,
            mtu: self.mtu,
            smoothed_rtt: self.smoothed_rtt,
            rtt_measured: self.rtt_measured,
            batch_acked: self.batch_acked,
            recorder: self.recorder.clone(),
        })
    }

    fn initial_window(&self) -> u64 {
        self.for_quinn(self.inner.initial_window())
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl fmt::Display for ConnectionController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.choice.fmt(f)
    }
}

#[cfg(test)]
mod tests;
