//! [`AckDelay`]: RTT samples without the time for which the peer held its acknowledgements back.

use crate::Timestamp;
use crate::state::Batch;

/// No peer is believed to hold them back for longer, ns: 25 ms is the default (RFC 9000 §18.2), and timers are late.
const LONGEST_NS: u64 = 30_000_000;
/// quinn's smoothed RTT is rounded down to a nanosecond; eight of them are too small by up to seven.
const ROUNDED_NS: u64 = 8;
/// A sample that was taken this many smoothed RTTs ago is from before a pause.
const LATEST_RTTS: u64 = 2;

/// Takes the peer's acknowledgement delay out of RTT samples.
///
/// quinn shows a controller no delay, but its smoothed RTT is without it: s′ = (7·s + sample)/8 (RFC 9002 §5.3), so
/// two of them give the sample between. It is therefore known one ACK frame late. Without it a browser, which
/// acknowledges ten packets at once or waits for a quarter of the RTT, makes every small window look like a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::standalone::video) struct AckDelay {
    /// The transport's smoothed RTT as of the last frame, ns.
    smoothed: Option<u64>,
    /// That frame's sample, and its arrival.
    pending: Option<(Sample, Timestamp)>,
    mean_ns: u64,
}

/// An RTT sample, with and without the delay, and the ACK frame that it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::standalone::video) struct Sample {
    pub(in crate::standalone::video) rtt_ns: u64,
    /// Packets that its ACK frame acknowledged.
    pub(in crate::standalone::video) packets: u32,
    /// It is of the ACK frame before.
    pub(in crate::standalone::video) is_late: bool,
}

impl Sample {
    /// The sample of an ACK frame, as the controller sees it.
    pub(in crate::standalone::video) fn of(batch: &Batch) -> Option<Self> {
        let packets = batch.packets;
        batch.rtt_ns.map(|rtt_ns| Self {
            rtt_ns,
            packets,
            is_late: false,
        })
    }
}

impl AckDelay {
    /// Takes an ACK frame and the transport's smoothed RTT, which does not contain its sample yet, ns. Returns the
    /// sample of the frame before without its delay; this frame's as it is if the transport has measured none.
    pub(in crate::standalone::video) fn without(
        &mut self,
        batch: &Batch,
        smoothed: Option<u64>,
    ) -> Option<Sample> {
        let sample = Sample::of(batch);
        let before = core::mem::replace(&mut self.smoothed, smoothed);
        let pending = core::mem::replace(&mut self.pending, sample.map(|sample| (sample, batch.now)));
        let Some(after) = smoothed else { return sample };
        let (sample, at) = pending?;
        if batch.now.nanos_since(at) > LATEST_RTTS.saturating_mul(after) {
            return None;
        }
        // If the transport has not taken the sample, this is its smoothed RTT.
        let prompt = before.map(|before| after.saturating_mul(8).saturating_sub(before.saturating_mul(7)));
        let least = sample.rtt_ns.saturating_sub(LONGEST_NS + ROUNDED_NS);
        let rtt_ns = prompt.filter(|prompt| (least..=sample.rtt_ns).contains(prompt));
        let rtt_ns = rtt_ns.unwrap_or(sample.rtt_ns);
        let delay = sample.rtt_ns.saturating_sub(rtt_ns);
        self.mean_ns = self
            .mean_ns
            .saturating_sub(self.mean_ns / 8)
            .saturating_add(delay / 8);
        Some(Sample {
            rtt_ns,
            is_late: true,
            ..sample
        })
    }

    /// The transport may take samples of which nothing is seen here: the next two smoothed RTTs are not of one frame.
    pub(in crate::standalone::video) const fn lose_track(&mut self) {
        self.smoothed = None;
        self.pending = None;
    }

    /// Mean of the last delays, ns: bytes that wait for their acknowledgement this long are in flight as well.
    pub(in crate::standalone::video) const fn mean_ns(&self) -> u64 {
        self.mean_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{MS_IN_NS as MS, at};

    fn frame(ms: u64, rtt_ns: Option<u64>) -> Batch {
        Batch {
            now: at(ms),
            rtt_ns,
            packets: 2,
            ..Batch::default()
        }
    }

    /// The samples that a controller finds in frames every 10 ms with these RTTs and delays (ns).
    fn found(frames: &[(u64, u64)]) -> (Vec<u64>, AckDelay) {
        let (mut found, mut smoothed) = (AckDelay::default(), None);
        let mut samples = Vec::new();
        for (number, (rtt, delay)) in (0..).zip(frames) {
            let sample = found.without(&frame(10 * number, Some(rtt + delay)), smoothed);
            samples.extend(sample.map(|sample| sample.rtt_ns));
            // As quinn does, after the controller has seen the frame.
            let before = smoothed.map_or(rtt + delay, |smoothed| (7 * smoothed + rtt) / 8);
            smoothed = Some(before);
        }
        (samples, found)
    }

    #[test]
    fn the_delay_of_every_frame_is_taken_out_one_frame_later() {
        // RTTs that are no multiple of eight nanoseconds, and delays of up to what quinn believes.
        let frames: Vec<_> = (0..40)
            .map(|n| (100_300_001 + 1_234_567 * (n % 3), 5 * MS * (n % 6)))
            .collect();
        let (samples, found) = found(&frames);
        // The first one is seen twice, once before the transport has measured anything.
        for (sample, (rtt, _)) in samples[2..].iter().zip(&frames[1..]) {
            assert!((rtt - 7..=*rtt).contains(sample), "{sample} of {rtt}");
        }
        assert_eq!(samples.len(), frames.len());
        assert!(
            (5 * MS..20 * MS).contains(&found.mean_ns()),
            "{}",
            found.mean_ns()
        );
    }

    #[test]
    fn a_sample_that_the_transport_has_not_taken_stays_as_it_is() {
        let mut found = AckDelay::default();
        let mut sample = |ms, rtt: Option<u64>, smoothed: Option<u64>| {
            let batch = frame(ms, rtt.map(|rtt| rtt * MS));
            let sample = found.without(&batch, smoothed.map(|rtt| rtt * MS))?;
            Some((sample.rtt_ns / MS, sample.is_late))
        };
        assert_eq!(sample(0, Some(90), None), Some((90, false)), "it measures none");
        assert_eq!(sample(10, Some(95), Some(300)), Some((90, true)));
        assert_eq!(
            sample(20, Some(80), Some(300)),
            Some((95, true)),
            "a smoothed RTT of 300 ms does not follow from it"
        );
        assert_eq!(
            sample(30, None, Some(280)),
            Some((80, true)),
            "nor does a sample of 140 ms"
        );
        assert_eq!(sample(40, Some(80), Some(270)), None);
    }

    #[test]
    fn a_sample_of_before_a_pause_or_beside_frames_that_were_not_seen_is_dropped() {
        let (_, mut found) = found(&[(100 * MS, 0); 3]);
        assert_eq!(found.without(&frame(1_000, Some(100 * MS)), Some(100 * MS)), None);
        assert!(
            found
                .without(&frame(1_010, Some(97 * MS)), Some(100 * MS))
                .is_some()
        );
        found.lose_track();
        assert_eq!(found.without(&frame(1_200, Some(97 * MS)), Some(98 * MS)), None);
        let next = found.without(&frame(1_210, Some(97 * MS)), Some(97_875_000));
        assert_eq!(next.map(|sample| sample.rtt_ns), Some(97 * MS));
    }
}
