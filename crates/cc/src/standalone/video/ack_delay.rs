//! [`AckDelay`]: RTT samples without the time for which the peer held its acknowledgements back.

/// A peer holds them back no longer than this, unless it says so (RFC 9000 §18.2), ns.
const LONGEST_NS: u64 = 25_000_000;

/// Takes the peer's acknowledgement delay out of RTT samples.
///
/// quinn shows a controller no delay, but its smoothed RTT is without it: s′ = (7·s + sample)/8 (RFC 9002 §5.3), so
/// two of them give the sample between. It is therefore known one ACK frame late. Without it a browser, which
/// acknowledges ten packets at once or waits for a quarter of the RTT, makes every small window look like a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckDelay {
    /// The transport's smoothed RTT as of the last frame, and that frame's sample, ns.
    smoothed: Option<u64>,
    sample: Option<u64>,
    mean_ns: u64,
}

impl AckDelay {
    /// Takes the RTT sample of an ACK frame and the transport's smoothed RTT, which does not contain it yet, ns. Returns
    /// the sample of the frame before without its delay; this one as it is if the transport has measured none.
    pub(super) fn without(&mut self, sample: Option<u64>, smoothed: Option<u64>) -> Option<u64> {
        let before = core::mem::replace(&mut self.smoothed, smoothed);
        let earlier = core::mem::replace(&mut self.sample, sample);
        let Some(after) = smoothed else { return sample };
        let sample = earlier?;
        let prompt = before.map(|before| after.saturating_mul(8).saturating_sub(before.saturating_mul(7)));
        // Another value means that the transport has not taken this sample.
        let is_possible = |prompt: &u64| (sample.saturating_sub(LONGEST_NS)..=sample).contains(prompt);
        let prompt = prompt.filter(is_possible).unwrap_or(sample);
        let delay = sample.saturating_sub(prompt);
        self.mean_ns = self
            .mean_ns
            .saturating_sub(self.mean_ns / 8)
            .saturating_add(delay / 8);
        Some(prompt)
    }

    /// Mean of the last delays, ns: bytes that wait for their acknowledgement this long are in flight as well.
    pub(super) const fn mean_ns(&self) -> u64 {
        self.mean_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::MS_IN_NS as MS;

    /// Samples with the delays in them (ms), as a controller sees them. Returns the delay that each still has.
    fn left_over(rtt: u64, delays: &[u64]) -> (Vec<u64>, AckDelay) {
        let (mut found, mut smoothed) = (AckDelay::default(), None);
        let mut left = Vec::new();
        for delay in delays.iter().chain([&0]) {
            let sample = found.without(Some((rtt + delay) * MS), smoothed);
            left.extend(sample.map(|sample| sample.saturating_add(8) / MS - rtt));
            // As quinn does, after the controller has seen the frame.
            smoothed = Some(smoothed.map_or((rtt + delay) * MS, |smoothed| (7 * smoothed + rtt * MS) / 8));
        }
        (left, found)
    }

    #[test]
    fn the_delay_of_every_frame_is_taken_out_one_frame_later() {
        let (left, found) = left_over(80, &[0, 20, 3, 0, 25, 20, 20, 20, 20]);
        assert_eq!(left[1..], [0; 9]);
        assert!(
            (10 * MS..20 * MS).contains(&found.mean_ns()),
            "{}",
            found.mean_ns()
        );
    }

    #[test]
    fn a_sample_that_the_transport_has_not_taken_stays_as_it_is() {
        let mut found = AckDelay::default();
        assert_eq!(
            found.without(Some(90 * MS), None),
            Some(90 * MS),
            "it measures none"
        );
        assert_eq!(found.without(Some(95 * MS), Some(300 * MS)), Some(90 * MS));
        assert_eq!(
            found.without(Some(80 * MS), Some(300 * MS)),
            Some(95 * MS),
            "300 ms is no RTT of it"
        );
        assert_eq!(
            found.without(None, Some(280 * MS)),
            Some(80 * MS),
            "140 ms neither"
        );
        assert_eq!(found.without(Some(80 * MS), Some(270 * MS)), None);
    }
}
