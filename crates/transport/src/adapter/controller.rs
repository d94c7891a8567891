//! [`QuinnController`]: drives a [`CongestionController`] from quinn's callbacks.
//!
//! Everything that is particular to quinn's side of congestion control is here: its clock becomes a
//! [`Timestamp`], its per-packet calls become runs, its "zero bytes lost" becomes [`Signal::EcnCe`], and the
//! controller's window becomes a plain integer, because quinn asks for it twice per datagram.
//!
//! What happens per packet is kept to adding up: times are converted and the controller is called once per ACK frame, and
//! bursts are reported only where the controller [needs](CongestionController::needs_every_burst) them.

use std::any::Any;
use std::time::{Duration, Instant};

use playrate_cc::events::{AckBatch, Acked, Congestion, MtuChange, Sent, Signal};
use playrate_cc::{CongestionController, Snapshot, Timestamp};
use playrate_units::Bytes;
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerMetrics};

use crate::telemetry::{Frame, Recorder};

/// Acknowledged packets of one burst. Times stay on quinn's clock until the run is reported: an `Instant` is dear to subtract
/// and cheap to compare.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// When they were acknowledged.
    now: Instant,
    /// When they left; `None` before the first run.
    sent: Option<Instant>,
    bytes: u64,
    /// None: there is nothing to report.
    packets: u32,
    app_limited: bool,
}

/// What quinn's RTT estimator has to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Estimate {
    /// Its initial guess: it has seen no sample.
    Guess,
    /// The same, but the frame being read acknowledges something that asked for it: quinn takes its sample once it
    /// has been read, so from the next frame on the estimator is worth reading.
    Due,
    Measured,
}

/// A [`CongestionController`] as quinn drives it. [`quinn::Connection::congestion_state`] gives a copy; reach it
/// with `into_any().downcast::<QuinnController>()`.
#[derive(Debug)]
pub struct QuinnController {
    inner: Box<dyn CongestionController>,
    /// When this controller was built: its time zero.
    built: Instant,
    /// Packets that have not been reported yet; once they have been, what the last ones were.
    run: Run,
    /// When the ACK frame arrived that is being read, on both clocks, if it has several runs: all events of a frame carry
    /// the same moment.
    frame: Option<(Instant, Timestamp)>,
    /// When the last frame was read to its end that acknowledged nothing of interest.
    ended: Option<Instant>,
    /// Whether the application or flow control limited the sender as of the last ACK frame.
    app_limited: bool,
    /// Bytes in flight as of the last ACK frame.
    in_flight: u64,
    /// Bytes lost since.
    lost: u64,
    /// The last burst since the last ACK frame, if the controller has not been told.
    unreported: Option<(Instant, u64)>,
    /// Whether the controller wants to be told of all bursts.
    every_burst: bool,
    /// Cached after every event, because quinn asks twice per datagram.
    window: u64,
    mtu: u64,
    smoothed_rtt: Option<Duration>,
    estimate: Estimate,
    recorder: Recorder,
}

impl QuinnController {
    pub(super) fn new(
        inner: Box<dyn CongestionController>,
        now: Instant,
        current_mtu: u16,
        recorder: Recorder,
    ) -> Self {
        let mut controller = Self {
            every_burst: inner.needs_every_burst(),
            inner,
            built: now,
            run: Run {
                now,
                sent: None,
                bytes: 0,
                packets: 0,
                app_limited: false,
            },
            frame: None,
            ended: None,
            app_limited: false,
            in_flight: 0,
            lost: 0,
            unreported: None,
            window: 0,
            mtu: u64::from(current_mtu),
            smoothed_rtt: None,
            estimate: Estimate::Guess,
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
    fn frame_time(&self, now: Instant) -> Timestamp {
        match self.frame {
            Some((at, time)) if at == now => time,
            _ => self.timestamp(now),
        }
    }

    fn refresh_window(&mut self) {
        self.window = self.for_quinn(self.inner.window());
    }

    /// The one place where a controller's window is turned into what quinn does with it.
    ///
    /// quinn sends a packet only if `in flight + mtu < window`, so a window up to one MTU sends nothing at all,
    /// and it stops pacing above `u32::MAX`.
    #[inline]
    fn for_quinn(&self, window: Bytes) -> u64 {
        window.as_u64().max(self.mtu + 1).min(u64::from(u32::MAX))
    }

    /// Counts the run, which was acknowledged at `now`, and makes the controller's event of it. There must be one.
    #[inline]
    fn take_run(&mut self, now: Timestamp) -> Acked {
        let run = self.run;
        self.run.packets = 0;
        self.recorder.acked(run.bytes, run.packets);
        Acked {
            now,
            sent: self.timestamp(run.sent.unwrap_or(self.built)),
            bytes: Bytes::new(run.bytes),
            packets: run.packets,
            app_limited: run.app_limited,
        }
    }

    /// Reports the run, if there is one. A run is nearly always reported with the end of its frame; this is for those that
    /// are not: off the hot path.
    #[inline]
    fn flush(&mut self) {
        #[cold]
        fn report(controller: &mut QuinnController) {
            let now = controller.frame_time(controller.run.now);
            controller.frame = Some((controller.run.now, now));
            let acked = controller.take_run(now);
            controller.inner.on_acked(&acked);
        }
        if self.run.packets > 0 {
            report(self);
        }
    }

    #[inline]
    fn begin_run(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        if self.estimate == Estimate::Measured {
            self.smoothed_rtt = Some(rtt.get());
        } else {
            self.estimate = Estimate::Due;
        }
        self.run = Run {
            now,
            sent: Some(sent),
            bytes,
            packets: 1,
            app_limited,
        };
    }

    /// A packet that does not belong to the run before it begins one of its own.
    #[inline(never)]
    fn begin_next_run(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.flush();
        self.begin_run(now, sent, bytes, app_limited, rtt);
    }

    #[inline(never)]
    fn report_burst(&mut self, now: Instant, bytes: u64) {
        self.flush();
        self.inner.on_sent(&Sent {
            now: self.timestamp(now),
            bytes: Bytes::new(bytes),
        });
        self.refresh_window();
    }

    /// The last ACK frame, for telemetry.
    fn last_frame(&self) -> Frame {
        let newest = self.run.sent.map(|sent| (sent, self.run.now));
        Frame {
            ended: newest.map(|(_, acked)| acked).max(self.ended),
            newest,
            in_flight: self.in_flight,
            app_limited: self.app_limited,
            smoothed_rtt: self.smoothed_rtt,
        }
    }

    #[cold]
    fn sample(&mut self, now: Instant) {
        self.recorder
            .sample(now, &self.last_frame(), self.inner.snapshot());
    }
}

impl Drop for QuinnController {
    /// The path's last sample shows all that was counted.
    fn drop(&mut self) {
        if let Some(at) = self.recorder.unsampled(&self.last_frame()) {
            self.sample(at);
        }
    }
}

impl Controller for QuinnController {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        // quinn infers an acknowledgement without an ACK frame when a Retry comes (its run is reported here), and
        // no RTT sample goes with it.
        if self.estimate == Estimate::Due {
            self.estimate = Estimate::Guess;
        }
        self.recorder.sent(bytes);
        if self.in_flight > self.lost && !self.every_burst && self.run.packets == 0 {
            self.unreported = Some((now, bytes));
        } else {
            self.report_burst(now, bytes);
        }
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        let run = &mut self.run;
        if run.packets == 0 {
            self.begin_run(now, sent, bytes, app_limited, rtt);
        } else if run.sent == Some(sent) && run.now == now && run.app_limited == app_limited {
            run.bytes = run.bytes.saturating_add(bytes);
            run.packets = run.packets.saturating_add(1);
        } else {
            self.begin_next_run(now, sent, bytes, app_limited, rtt);
        }
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        let at = self.frame_time(now);
        let batch = AckBatch {
            now: at,
            in_flight: Bytes::new(in_flight),
            app_limited,
            smoothed_rtt: self.smoothed_rtt,
        };
        let window = if self.run.packets > 0 {
            let acked = self.take_run(at);
            self.inner.on_ack_frame(&acked, &batch)
        } else {
            self.ended = Some(now);
            self.inner.on_ack_batch(&batch);
            self.inner.window()
        };
        self.window = self.for_quinn(window);
        self.app_limited = app_limited;
        self.in_flight = in_flight;
        self.lost = 0;
        self.frame = None;
        self.unreported = None;
        self.recorder.frame_ended(in_flight, app_limited);
        if self.estimate == Estimate::Due {
            self.estimate = Estimate::Measured;
        }
        if self.recorder.is_due(now) {
            self.sample(now);
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
        if let Some((left, bytes)) = self.unreported.take() {
            self.report_burst(left, bytes);
        }
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
        self.lost = self.lost.saturating_add(lost_bytes);
        let (frame, snapshot) = (self.last_frame(), self.inner.snapshot());
        self.recorder.congestion(now, lost_bytes, &frame, snapshot);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        // Arrives in the middle of an ACK frame when the frame acknowledges an MTU probe.
        self.flush();
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
            ended: self.ended,
            app_limited: self.app_limited,
            in_flight: self.in_flight,
            lost: self.lost,
            unreported: self.unreported,
            every_burst: self.every_burst,
            window: self.window,
            mtu: self.mtu,
            smoothed_rtt: self.smoothed_rtt,
            estimate: self.estimate,
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
