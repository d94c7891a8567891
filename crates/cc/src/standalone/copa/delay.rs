//! [`Delays`]: the RTTs from which Copa computes the queueing delay.

use crate::Timestamp;
use crate::estimator::{Largest, PromptSamples, Smallest};
use crate::state::Batch;

/// Window of `RTTmin`, 10 s (§2.1).
const MIN_WINDOW_NS: u64 = 10_000_000_000;
/// Window of `RTTstanding` as a fraction of the smoothed RTT: τ = srtt/2 (§2.1).
const STANDING_DIVISOR: u64 = 2;
/// Window of `RTTmax`, in smoothed RTTs (§2.2).
const MAX_RTTS: u64 = 4;
/// The queue is nearly empty below a tenth of the RTT's variation (§2.2).
const NEARLY_EMPTY_DIVISOR: u64 = 10;

/// Three extremes of the RTT, each over its own window. Times are nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Delays {
    prompt: PromptSamples,
    min: Smallest,
    standing: Smallest,
    max: Largest,
}

impl Delays {
    /// Processes an ACK frame. If the peer may have delayed the acknowledgement, its RTT counts only if it shortens the
    /// queue, because the path's RTT is no longer than this one.
    pub(super) fn on_batch(&mut self, batch: &Batch, smoothed_ns: u64) {
        let Some(rtt_ns) = batch.rtt_ns else { return };
        let prompt = self.prompt.on_sample(batch.newest_sent, batch.packets, rtt_ns);
        let bound = Some(rtt_ns).filter(|&rtt| self.standing.get().is_none_or(|standing| rtt <= standing));
        if let Some(rtt_ns) = prompt.or(bound) {
            self.on_sample(batch.now, rtt_ns, smoothed_ns);
        }
    }

    /// Records an RTT; `smoothed_ns` already contains it.
    fn on_sample(&mut self, now: Timestamp, rtt_ns: u64, smoothed_ns: u64) {
        self.min.insert(now, rtt_ns, MIN_WINDOW_NS);
        self.standing.insert(now, rtt_ns, smoothed_ns / STANDING_DIVISOR);
        self.max.insert(now, rtt_ns, smoothed_ns.saturating_mul(MAX_RTTS));
    }

    /// `RTTstanding`: smallest RTT of the last half round trip. Jitter of ACKs does not raise it.
    pub(super) fn standing_ns(&self) -> u64 {
        self.standing.get().unwrap_or(0)
    }

    /// `dq` = `RTTstanding` − `RTTmin`, the time that a packet waits in the queue (eq. 2).
    pub(super) fn queueing_ns(&self) -> u64 {
        self.standing_ns().saturating_sub(self.min_ns())
    }

    /// `dq` ≤ 0.1·(`RTTmax` − `RTTmin`), with `RTTmax` over four round trips (§2.2). Equality counts, so a path whose
    /// RTT never varies has an empty queue.
    pub(super) fn queue_is_nearly_empty(&self) -> bool {
        let range = self.max.get().unwrap_or(0).saturating_sub(self.min_ns());
        self.queueing_ns() <= range / NEARLY_EMPTY_DIVISOR
    }

    fn min_ns(&self) -> u64 {
        self.min.get().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{MS_IN_NS as MS, at};

    fn delays(samples: &[(u64, u64)]) -> Delays {
        let mut delays = Delays::default();
        for &(at_ms, rtt_ms) in samples {
            delays.on_sample(at(at_ms), rtt_ms * MS, 100 * MS);
        }
        delays
    }

    #[test]
    fn the_queueing_delay_is_the_smallest_rtt_of_half_a_round_trip_above_that_of_ten_seconds() {
        let delays = delays(&[(0, 100), (1_000, 140), (1_020, 120), (1_049, 150)]);
        assert_eq!(delays.standing_ns(), 120 * MS);
        assert_eq!(delays.queueing_ns(), 20 * MS);
    }

    #[test]
    fn jitter_within_half_a_round_trip_is_no_queue() {
        let delays = delays(&[(0, 100), (1_000, 190), (1_010, 100), (1_030, 170)]);
        assert_eq!(delays.queueing_ns(), 0);
    }

    #[test]
    fn an_acknowledgement_that_the_peer_may_have_held_back_makes_no_queue() {
        let mut delays = delays(&[(0, 100)]);
        delays.on_batch(&Batch::sample(1_000, 125, true), 100 * MS);
        assert_eq!(delays.queueing_ns(), 0);
        delays.on_batch(&Batch::sample(1_100, 90, true), 100 * MS);
        assert_eq!(delays.standing_ns(), 90 * MS, "the path is no longer than that");
    }

    // The second packet left at most 1 ms after the first and was acknowledged separately.
    #[test]
    fn a_peer_that_acknowledges_every_packet_shows_the_queue_too() {
        let mut delays = delays(&[(0, 100)]);
        for now_ms in [1_125, 1_126, 1_127] {
            delays.on_batch(&Batch::sample(now_ms, 125, true), 100 * MS);
        }
        assert_eq!(delays.queueing_ns(), 25 * MS);
    }

    #[test]
    fn a_longer_path_is_learnt_after_ten_seconds() {
        let mut delays = delays(&[(0, 100)]);
        for second in 1..=11 {
            delays.on_sample(at(second * 1_000), 150 * MS, 150 * MS);
        }
        assert_eq!(delays.queueing_ns(), 0);
    }

    // RTTmin 100 ms and RTTmax 150 ms give a limit of 5 ms.
    #[test]
    fn the_queue_is_nearly_empty_up_to_a_tenth_of_what_the_rtt_varied_by() {
        for (rtt_ms, nearly_empty) in [(105, true), (106, false)] {
            let delays = delays(&[(0, 100), (1_000, 150), (1_100, rtt_ms)]);
            assert_eq!(delays.queue_is_nearly_empty(), nearly_empty, "{rtt_ms} ms");
        }
    }

    #[test]
    fn a_path_whose_rtt_never_varies_has_an_empty_queue() {
        assert!(delays(&[(0, 100), (1_000, 100)]).queue_is_nearly_empty());
    }
}
