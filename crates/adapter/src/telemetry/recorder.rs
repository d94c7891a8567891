//! [`Recorder`]: counts on the ACK path, and takes samples when they are due.

use std::sync::Arc;
use std::time::{Duration, Instant};

use playrate_cc::Snapshot;
use playrate_units::Bytes;

use super::{Monitor, Sample};
use crate::unsent::UnsentBytes;

/// Counters inside a controller: plain integers that reach the shared [`Monitor`] only when a sample is due.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    monitor: Arc<Monitor>,
    pub(crate) unsent: Arc<UnsentBytes>,
    began: Instant,
    /// Time from which the next sample is due.
    next: Instant,
    /// Time of the last sample.
    sampled: Instant,
    /// Totals so far, as fields of the next sample.
    pub(crate) totals: Sample,
    pub(crate) last: Option<Sample>,
    /// The last ACK frame, as the next sample shows it.
    pub(crate) frame: LastAckFrame,
}

/// The last ACK frame, as shown in samples.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LastAckFrame {
    /// Time when it was read to its end; `None` before the first.
    pub(crate) ended: Option<Instant>,
    /// Departure and acknowledgement of the newest packet that it acknowledged; of an earlier frame if it acknowledged
    /// none. Stacks report a frame's packets in the order of their departure.
    pub(crate) newest: Option<(Instant, Instant)>,
    /// Bytes in flight after it.
    pub(crate) in_flight: Bytes,
    /// True if the application or flow control limited the sender.
    pub(crate) app_limited: bool,
    /// The transport's smoothed RTT, if it was measured.
    pub(crate) smoothed_rtt: Option<Duration>,
    /// The transport's smallest RTT, if it was measured.
    pub(crate) min_rtt: Option<Duration>,
}

impl Recorder {
    /// A recorder for a controller built at `now`. After a path change, the totals continue from the last sample.
    pub(crate) fn new(monitor: Arc<Monitor>, unsent: Arc<UnsentBytes>, now: Instant) -> Self {
        let last = monitor.latest();
        Self {
            began: monitor.began(now),
            next: now,
            sampled: now,
            totals: last.unwrap_or_default(),
            last,
            frame: LastAckFrame::default(),
            monitor,
            unsent,
        }
    }

    #[inline]
    pub(crate) fn sent(&mut self, bytes: Bytes) {
        self.totals.sent += bytes;
        self.unsent.sent(bytes.as_u64());
    }

    /// Counts packets that an ACK frame acknowledged.
    #[inline]
    pub(crate) fn acked(&mut self, bytes: Bytes, packets: u32) {
        self.totals.delivered += bytes;
        self.totals.delivered_packets += u64::from(packets);
    }

    /// Records the end of an ACK frame, and reports it to the estimate of unsent bytes.
    #[inline]
    pub(crate) fn frame_ended(&mut self, now: Instant, in_flight: Bytes, app_limited: bool) {
        self.frame.ended = Some(now);
        self.frame.in_flight = in_flight;
        self.frame.app_limited = app_limited;
        let totals = &self.totals;
        let content = UnsentBytes::content(totals.delivered.as_u64(), totals.delivered_packets);
        self.unsent
            .acked(content.saturating_add(in_flight.as_u64()), app_limited);
    }

    /// Returns true if a [`sample`](Self::sample) is due.
    #[inline]
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        now >= self.next
    }

    /// Counts a congestion signal. The caller always takes a sample afterwards.
    pub(crate) fn congestion(&mut self, lost: Bytes) {
        self.totals.lost += lost;
        self.totals.congestion_events += 1;
    }

    /// Time of the last ACK frame, if no sample shows it yet. Comparing times alone is not enough, because datagrams
    /// received by one system call have the same time.
    pub(crate) fn unsampled(&self) -> Option<Instant> {
        let sampled = self.last.map(|last| last.delivered);
        self.frame
            .ended
            .filter(|&ended| ended > self.sampled || sampled != Some(self.totals.delivered))
    }

    /// Hands a sample to the monitor.
    #[cold]
    pub(crate) fn sample(&mut self, now: Instant, snapshot: Snapshot) {
        let frame = self.frame;
        if frame.ended.is_some() {
            self.totals.bytes_in_flight = frame.in_flight;
            self.totals.app_limited = frame.app_limited;
            self.totals.smoothed_rtt = frame.smoothed_rtt;
            if let Some((sent, acked)) = frame.newest {
                self.totals.latest_rtt = Some(acked.saturating_duration_since(sent));
            }
        }
        let mut sample = Sample {
            at: now.saturating_duration_since(self.began),
            snapshot,
            ..self.totals
        };
        sample.rate_since(self.last.as_ref());
        // A congestion event follows its ACK frame at the same time, so there is no interval to measure a rate over.
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
    use crate::tests::origin;
    use playrate_units::Bitrate;

    /// A recorder that begins at the returned time and samples every `interval` milliseconds.
    fn recorder(interval: u64) -> (Recorder, Arc<Monitor>, Instant) {
        let (start, monitor) = (origin(), Arc::new(Monitor::new(Duration::from_millis(interval))));
        let recorder = Recorder::new(Arc::clone(&monitor), Arc::default(), start);
        (recorder, monitor, start)
    }

    #[test]
    fn samples_are_at_least_an_interval_apart_unless_the_path_is_congested() {
        let (mut recorder, monitor, start) = recorder(20);
        let mut due = 0;
        for millis in 0..100 {
            let now = start + Duration::from_millis(millis);
            recorder.acked(Bytes::new(1_200), 1);
            if recorder.is_due(now) {
                due += 1;
                recorder.sample(now, Snapshot::default());
            }
        }
        assert_eq!(due, 5);
        let end = start + Duration::from_millis(100);
        recorder.congestion(Bytes::new(1_200));
        recorder.sample(end, Snapshot::default());
        let latest = monitor.latest().unwrap();
        assert_eq!((latest.congestion_events, latest.lost), (1, Bytes::new(1_200)));
        assert_eq!(latest.delivered, Bytes::new(120_000));
    }

    #[test]
    fn the_delivery_rate_is_acknowledged_bytes_over_the_time_between_samples() {
        let (mut recorder, monitor, start) = recorder(20);
        for millis in [0, 50, 100] {
            let now = start + Duration::from_millis(millis);
            recorder.acked(Bytes::new(125_000), 100);
            assert!(recorder.is_due(now));
            recorder.frame.newest = Some((start, now));
            recorder.frame_ended(now, Bytes::new(7), true);
            recorder.sample(now, Snapshot::default());
        }
        let expected = Sample {
            at: Duration::from_millis(100),
            bytes_in_flight: Bytes::new(7),
            app_limited: true,
            latest_rtt: Some(Duration::from_millis(100)),
            delivered: Bytes::new(375_000),
            delivered_packets: 300,
            delivery_rate: Some(Bitrate::from_mbps(20)),
            ..Sample::default()
        };
        assert_eq!(monitor.latest(), Some(expected));
    }

    #[test]
    fn a_frame_that_arrived_together_with_a_sampled_one_is_still_unsampled() {
        let (mut recorder, _, start) = recorder(20);
        let arrived = start + Duration::from_millis(50);
        recorder.frame_ended(arrived, Bytes::ZERO, false);
        recorder.acked(Bytes::new(1_200), 1);
        recorder.sample(arrived, Snapshot::default());
        assert_eq!(recorder.unsampled(), None);
        recorder.acked(Bytes::new(1_200), 1);
        assert!(!recorder.is_due(arrived));
        assert_eq!(recorder.unsampled(), Some(arrived));
    }

    #[test]
    fn totals_survive_a_controller_that_is_built_again() {
        let (mut first, monitor, start) = recorder(0);
        first.sent(Bytes::new(5_000));
        first.acked(Bytes::new(1_200), 1);
        first.sample(start, Snapshot::default());
        let later = start + Duration::from_secs(9);
        let mut second = Recorder::new(Arc::clone(&monitor), Arc::default(), later);
        second.acked(Bytes::new(1_200), 1);
        second.sample(later, Snapshot::default());
        let latest = monitor.latest().unwrap();
        let totals = (latest.at, latest.sent, latest.delivered);
        let expected = (Duration::from_secs(9), Bytes::new(5_000), Bytes::new(2_400));
        assert_eq!(totals, expected);
    }
}
