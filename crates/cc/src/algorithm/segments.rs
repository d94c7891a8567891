//! A window in segments, for algorithms whose equations count them.

use crate::state::{Core, floor_bytes};

/// The part of a window below one byte: `core.window()` is whole bytes, and an algorithm that adds fractions
/// of a segment must not lose it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Fraction(f64);

impl Fraction {
    /// The whole window, segments.
    pub(crate) fn window(self, core: &Core) -> f64 {
        (core.window() as f64 + self.0) / core.mtu() as f64
    }

    /// Sets the window. One that `may_grow` not stays what it is where `segments` exceeds it: what segments
    /// and back make of its last byte is rounding.
    pub(crate) fn set(&mut self, core: &mut Core, segments: f64, may_grow: bool) {
        let bytes = segments * core.mtu() as f64;
        let whole = floor_bytes(bytes);
        if may_grow || whole <= core.window() {
            self.0 = bytes - whole as f64;
            core.set_window(whole);
        }
    }

    /// The window was set to whole bytes.
    pub(crate) const fn forget(&mut self) {
        self.0 = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bytes;

    #[test]
    fn what_is_below_a_byte_is_kept() {
        let mut core = Core::sample(12_000, 100, 100);
        let mut fraction = Fraction::default();
        for _ in 0..4 {
            let window = fraction.window(&core);
            fraction.set(&mut core, window + 0.25 / 1_200.0, true);
        }
        assert_eq!(core.window(), 12_001);
    }

    // Found by the fuzzer: 14,720 B in segments of 2735 B are 14,719.999… B again, and a change of the MTU
    // leaves the fraction to a larger window.
    #[test]
    fn rounding_does_not_grow_a_window_that_may_not() {
        let mut core = Core::sample(14_720, 100, 100);
        let mut fraction = Fraction::default();
        for mtu in [2_735, 8_778] {
            core.set_mtu(Bytes::new(mtu));
            let (before, window) = (core.window(), fraction.window(&core));
            fraction.set(&mut core, window, false);
            assert!(core.window() <= before, "{} after {before}", core.window());
        }
    }
}
