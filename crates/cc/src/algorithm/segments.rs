//! [`TwoWindows`]: a loss window and a delay window, for algorithms whose equations count segments.

use super::round_rtt::RoundRtt;
use crate::Reason;
use crate::component::Reduction;
use crate::state::{Core, floor_bytes};

/// A window that is the sum of a loss window and a delay window, segments. The delay window acts on the smallest RTT of
/// each round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TwoWindows {
    /// Delay window (`dwnd`), segments.
    pub(super) delay: f64,
    pub(super) round: RoundRtt,
    /// The fraction of a byte in the sum. `core.window()` is whole bytes, and an algorithm that adds fractions of a
    /// segment must not lose it.
    fraction: f64,
}

impl TwoWindows {
    /// Begins congestion avoidance. The delay window is kept only across a recovery.
    pub(super) fn begin(&mut self, reason: Reason) {
        if reason != Reason::RecoveryEnded {
            self.delay = 0.0;
        }
        self.fraction = 0.0;
        self.round.restart();
    }

    fn whole(&self, core: &Core) -> f64 {
        (core.window() as f64 + self.fraction) / core.mtu() as f64
    }

    /// The sum, segments. If something else has cut the sum below the delay window, this cuts the delay window, too.
    pub(super) fn sum(&mut self, core: &Core) -> f64 {
        let sum = self.whole(core);
        self.delay = self.delay.min(sum);
        sum
    }

    /// The loss window, segments.
    pub(super) fn loss(&self, core: &Core) -> f64 {
        (self.whole(core) - self.delay).max(0.0)
    }

    /// Sets the sum, segments. If `may_grow` is false, it never increases, not even by the rounding of its last byte.
    pub(super) fn set(&mut self, core: &mut Core, sum: f64, may_grow: bool) {
        let bytes = sum * core.mtu() as f64;
        let whole = floor_bytes(bytes);
        if may_grow || whole <= core.window() {
            self.fraction = bytes - whole as f64;
            core.set_window(whole);
        }
    }

    /// Sets the loss window, the delay window and the threshold after congestion, segments.
    pub(super) fn reduce(&mut self, core: &Core, loss: f64, ssthresh: f64) -> Reduction {
        let mtu = core.mtu() as f64;
        self.fraction = 0.0;
        Reduction {
            window: floor_bytes((loss + self.delay) * mtu),
            ssthresh: floor_bytes(ssthresh.max(2.0) * mtu),
        }
    }

    /// Drops the delay window after a pause, because it is based on an outdated RTT.
    pub(super) fn on_pause(&mut self, core: &mut Core) {
        let loss = self.loss(core);
        self.delay = 0.0;
        self.set(core, loss, false);
        self.round.restart();
    }

    /// Counts segments in the new size; the window in bytes is the core's.
    pub(super) fn on_mtu_change(&mut self, core: &Core, before: u64) {
        self.delay *= before as f64 / core.mtu() as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bytes;

    impl TwoWindows {
        pub(in crate::algorithm) fn of_delay(delay: f64) -> Self {
            Self {
                delay,
                ..Self::default()
            }
        }
    }

    #[test]
    fn what_is_below_a_byte_is_kept() {
        let mut core = Core::sample(12_000, 100, 100);
        let mut windows = TwoWindows::default();
        for _ in 0..4 {
            let window = windows.sum(&core);
            windows.set(&mut core, window + 0.25 / 1_200.0, true);
        }
        assert_eq!(core.window(), 12_001);
    }

    // Found by the fuzzer: 14,720 B in segments of 2735 B become 14,719.999… B, and after a change of the MTU the
    // fraction belongs to a larger window.
    #[test]
    fn rounding_does_not_grow_a_window_that_may_not() {
        let mut core = Core::sample(14_720, 100, 100);
        let mut windows = TwoWindows::default();
        for mtu in [2_735, 8_778] {
            core.set_mtu(Bytes::new(mtu));
            let (before, window) = (core.window(), windows.sum(&core));
            windows.set(&mut core, window, false);
            assert!(core.window() <= before, "{} after {before}", core.window());
        }
    }
}
