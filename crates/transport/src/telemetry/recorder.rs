//! [`Recorder`]: counts on the ACK path, and decides when a sample is due.

use std::sync::Arc;
use std::time::{Duration, Instant};

use playrate_cc::Snapshot;
use playrate_units::Bytes;

use super::{Monitor, Sample};

/// The part of telemetry that lives inside a controller. Plain integers; touches the shared [`Monitor`] only when
/// a sample is due.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    monitor: Arc<Monitor>,
    began: Instant,
    /// Not before this moment is the next sample due.
    next: Instant,
    /// When something was counted last.
    counted: Instant,
    /// When the last sample was taken.
    sampled: Instant,
    /// Departure of the newest packet acknowledged since the last batch.
    newest_sent: Option<Instant>,
    /// Departure of the newest packet of the last batch that acknowledged any, and when that arrived.
    measured: Option<(Instant, Instant)>,
    /// Totals so far, in the shape they leave in.
    totals: Sample,
    last: Option<Sample>,
}

impl Recorder {
    /// For a controller built at `now`. After a path change the totals go on from the last sample.
    pub(crate) fn new(monitor: Arc<Monitor>, now: Instant) -> Self {
        let last = monitor.latest();
        Self {
            began: monitor.began(now),
            next: now,
            counted: now,
            sampled: now,
            newest_sent: None,
            measured: None,
            totals: last.unwrap_or_default(),
            last,
            monitor,
        }
    }

    pub(crate) fn sent(&mut self, bytes: u64) {
        self.totals.sent += Bytes::new(bytes);
    }

    /// Packets of one burst, all sent at `sent`. quinn tells of a frame's packets in the order in which they left.
    pub(crate) fn acked(&mut self, sent: Instant, bytes: u64, packets: u32) {
        self.totals.delivered += Bytes::new(bytes);
        self.totals.delivered_packets += u64::from(packets);
        self.newest_sent = Some(sent);
    }

    /// An ACK frame has been read to its end. Says whether a [`sample`](Self::sample) is due.
    pub(crate) fn batch_ended(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        smoothed_rtt: Option<Duration>,
    ) -> bool {
        self.totals.bytes_in_flight = Bytes::new(in_flight);
        self.totals.app_limited = app_limited;
        self.totals.smoothed_rtt = smoothed_rtt;
        self.counted = now;
        if let Some(sent) = self.newest_sent.take() {
            self.measured = Some((sent, now));
        }
        now >= self.next
    }

    /// The path signalled congestion: always worth a sample.
    pub(crate) fn congestion(&mut self, now: Instant, lost_bytes: u64, snapshot: Snapshot) {
        self.totals.lost += Bytes::new(lost_bytes);
        self.totals.congestion_events += 1;
        self.sample(now, snapshot);
    }

    /// When something was counted last, if no sample shows it yet.
    pub(crate) fn unsampled(&self) -> Option<Instant> {
        (self.counted > self.sampled).then_some(self.counted)
    }

    /// Hands a sample to the monitor.
    pub(crate) fn sample(&mut self, now: Instant, snapshot: Snapshot) {
        if let Some((sent, acked)) = self.measured {
            self.totals.latest_rtt = Some(acked.saturating_duration_since(sent));
        }
        let mut sample = Sample {
            at: now.saturating_duration_since(self.began),
            snapshot,
            ..self.totals
        };
        sample.rate_since(self.last.as_ref());
        // A congestion event follows its ACK frame at the same moment: no time has passed to measure a rate over.
        if sample.delivery_rate.is_none() {
            sample.delivery_rate = self.last.and_then(|last| last.delivery_rate);
        }
        self.next = now + self.monitor.interval();
        self.sampled = now;
        self.last = Some(sample);
        self.monitor.record(&sample);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use playrate_units::Bitrate;

    /// An arbitrary origin for instants.
    #[expect(
        clippy::disallowed_methods,
        reason = "only differences between instants matter here"
    )]
    fn origin() -> Instant {
        Instant::now()
    }

    #[test]
    fn samples_come_no_closer_than_the_interval_unless_the_path_is_congested() {
        let start = origin();
        let monitor = Arc::new(Monitor::new(Duration::from_millis(20)));
        let mut recorder = Recorder::new(Arc::clone(&monitor), start);
        let mut asked = 0;
        for millis in 0..100 {
            let now = start + Duration::from_millis(millis);
            recorder.acked(now, 1_200, 1);
            if recorder.batch_ended(now, 0, false, None) {
                asked += 1;
                recorder.sample(now, Snapshot::default());
            }
        }
        assert_eq!(asked, 5);
        recorder.congestion(start + Duration::from_millis(100), 1_200, Snapshot::default());
        let latest = monitor.latest().unwrap();
        assert_eq!((latest.congestion_events, latest.lost), (1, Bytes::new(1_200)));
        assert_eq!(latest.delivered, Bytes::new(120_000));
    }

    #[test]
    fn the_delivery_rate_is_what_was_acknowledged_over_the_time_between_samples() {
        let start = origin();
        let monitor = Arc::new(Monitor::new(Duration::from_millis(20)));
        let mut recorder = Recorder::new(Arc::clone(&monitor), start);
        for millis in [0, 50, 100] {
            let now = start + Duration::from_millis(millis);
            recorder.acked(start, 125_000, 100);
            assert!(recorder.batch_ended(now, 7, true, Some(Duration::from_millis(30))));
            recorder.sample(now, Snapshot::default());
        }
        let latest = monitor.latest().unwrap();
        assert_eq!(latest.delivery_rate, Some(Bitrate::from_mbps(20)));
        assert_eq!(latest.latest_rtt, Some(Duration::from_millis(100)));
        assert_eq!(latest.delivered_packets, 300);
        assert_eq!(
            (latest.bytes_in_flight, latest.app_limited),
            (Bytes::new(7), true)
        );
    }

    #[test]
    fn totals_survive_a_controller_that_is_built_anew() {
        let start = origin();
        let monitor = Arc::new(Monitor::new(Duration::ZERO));
        let mut first = Recorder::new(Arc::clone(&monitor), start);
        first.sent(5_000);
        first.acked(start, 1_200, 1);
        first.sample(start, Snapshot::default());
        let later = start + Duration::from_secs(9);
        let mut second = Recorder::new(Arc::clone(&monitor), later);
        second.acked(later, 1_200, 1);
        second.sample(later, Snapshot::default());
        let latest = monitor.latest().unwrap();
        assert_eq!(latest.at, Duration::from_secs(9));
        assert_eq!(
            (latest.sent, latest.delivered),
            (Bytes::new(5_000), Bytes::new(2_400))
        );
    }
}
