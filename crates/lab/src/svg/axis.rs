//! [`Axis`]: positions of values on an axis, and the numbers beside it.

use crate::words::grouped;

/// A range of values on an axis, linear or logarithmic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    from: f64,
    to: f64,
    /// Distance of ticks; the factor between ticks on a logarithmic axis.
    step: f64,
    log: bool,
}

impl Axis {
    /// A linear axis from the round number at or below `from` to the one at or above `to`, with about `ticks` ticks.
    pub fn linear(from: f64, to: f64, ticks: f64) -> Self {
        let step = nice_step((to - from) / ticks);
        let first = (from / step + 1e-9).floor();
        let last = (to / step - 1e-9).ceil().max(first + 1.0);
        Self {
            from: first * step,
            to: last * step,
            step,
            log: false,
        }
    }

    /// A linear axis from exactly `from` to exactly `to`, with about `ticks` ticks.
    pub fn exact(from: f64, to: f64, ticks: f64) -> Self {
        Self {
            from,
            to: if to > from { to } else { from + 1.0 },
            step: nice_step((to - from) / ticks),
            log: false,
        }
    }

    /// A logarithmic axis over the whole decades that contain `from` and `to`, both above zero.
    pub fn log(from: f64, to: f64) -> Self {
        let least = from.max(1e-12).log10().floor();
        let most = to.max(1e-12).log10().ceil().max(least + 1.0);
        Self {
            from: 10_f64.powf(least),
            to: 10_f64.powf(most),
            step: 10.0,
            log: true,
        }
    }

    pub(crate) const fn from(&self) -> f64 {
        self.from
    }

    pub(crate) const fn to(&self) -> f64 {
        self.to
    }

    /// Position of `value`: 0 at the lower end, 1 at the upper end; values beyond an end lie at that end.
    pub fn place(&self, value: f64) -> f64 {
        let share = if self.log {
            (value.max(self.from) / self.from).log10() / (self.to / self.from).log10()
        } else {
            (value - self.from) / (self.to - self.from)
        };
        share.clamp(0.0, 1.0)
    }

    /// Values of the ticks with their numbers as text.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        let mut ticks = Vec::new();
        if self.log {
            let mut value = self.from;
            while value <= self.to * 1.000_001 {
                ticks.push((value, log_number(value)));
                value *= self.step;
            }
            return ticks;
        }
        let mut count = (self.from / self.step - 1e-9).ceil();
        while count * self.step <= self.to + self.step * 1e-6 {
            let value = count * self.step;
            ticks.push((value, axis_number(value, self.step)));
            count += 1.0;
        }
        ticks
    }
}

/// The smallest of 1, 2, 2.5 and 5 times a power of ten that is at least `least`.
fn nice_step(least: f64) -> f64 {
    if !least.is_finite() || least <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|&step| step >= least * 0.999_999)
        .unwrap_or(10.0 * power)
}

/// A number with as many decimals as `step` needs, and separators from ten thousand on.
pub(crate) fn axis_number(value: f64, step: f64) -> String {
    let decimals = (0_usize..8)
        .find(|&decimals| {
            let scaled = step * 10_f64.powi(i32::try_from(decimals).unwrap_or(0));
            (scaled - scaled.round()).abs() < 1e-6
        })
        .unwrap_or(8);
    if decimals == 0 && value.abs() >= 10_000.0 {
        return thousands(value);
    }
    // No negative zero.
    format!("{:.decimals$}", value + 0.0)
}

/// `value` rounded to a whole number, with separators.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value is not negative, and the cast saturates"
)]
pub(crate) fn thousands(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", grouped(value.abs().round() as u64))
}

fn log_number(value: f64) -> String {
    if value >= 1.0 {
        return thousands(value);
    }
    // As many decimals as the first digit above zero needs.
    let mut decimals = 0_usize;
    let mut scaled = value;
    while scaled < 0.999 && decimals < 12 {
        scaled *= 10.0;
        decimals += 1;
    }
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn labels(axis: &Axis) -> Vec<String> {
        axis.ticks().into_iter().map(|tick| tick.1).collect()
    }

    #[test]
    fn a_linear_axis_has_round_ends_and_evenly_spaced_ticks() {
        let axis = Axis::linear(0.0, 2_468.0, 4.0);
        assert_eq!(labels(&axis), ["0", "1000", "2000", "3000"]);
        assert!((axis.place(1_500.0) - 0.5).abs() < 1e-12);
        assert!(axis.place(-7.0).abs() < 1e-12 && (axis.place(9e9) - 1.0).abs() < 1e-12);
        assert_eq!(
            labels(&Axis::linear(0.0, 41_000.0, 4.0)),
            ["0", "20,000", "40,000", "60,000"]
        );
    }

    #[test]
    fn a_logarithmic_axis_has_whole_decades() {
        let axis = Axis::log(0.002, 0.7);
        assert_eq!(labels(&axis), ["0.001", "0.01", "0.1", "1"]);
        assert!((axis.place(0.01) - 1.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn an_empty_range_still_makes_an_axis() {
        assert_eq!(labels(&Axis::linear(0.0, 0.0, 4.0)), ["0", "1"]);
        assert_eq!(labels(&Axis::exact(0.0, 0.0, 4.0)), ["0", "1"]);
    }

    #[rstest]
    #[case(0.3, 0.5)]
    #[case(21.0, 25.0)]
    #[case(2.0, 2.0)]
    #[case(0.0, 1.0)]
    fn ticks_are_round_numbers(#[case] least: f64, #[case] step: f64) {
        assert!((nice_step(least) - step).abs() < 1e-9);
    }
}
