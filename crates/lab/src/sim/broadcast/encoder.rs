//! [`Encoder`]: the rate of frames that are made while they are sent.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use playrate_cc::{Estimate, EstimateSource};
use playrate_units::{Bitrate, Bytes};

use crate::rounding::whole;

/// Factor by which an encoder that follows the estimate grows per update.
const GROWTH: f64 = 1.1;
/// Largest ratio of its rate to the estimate while it grows. Between key frames the estimate is below the mean.
const HEADROOM: f64 = 1.25;

/// An encoder's rate and the latency that its viewers accept. Its highest rate is that of its title.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Encoder {
    /// Rule for the rate.
    pub rate: EncoderRate,
    /// Lowest rate, however slow the path is.
    pub least: Bitrate,
    /// Time from one change of the rate to the next.
    pub update_every: Duration,
    /// Latency behind the source up to which a frame is on time.
    pub latency_bound: Duration,
}

/// Rule for an encoder's rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EncoderRate {
    /// Always the highest rate. Text form: `constant`.
    Constant,
    /// This share of the congestion window over the smoothed RTT. Text form: `0.9window`.
    Window(f64),
    /// Grows while the connection's estimate says that only the application limits the sender, and otherwise stays
    /// below this share of the estimate. Text form: `0.9estimate`.
    Estimate(f64),
    /// This share of the capacity that the controller itself estimates. Text form: `0.9capacity`.
    Capacity(f64),
}

impl FromStr for EncoderRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let share = |share: &str| {
            share
                .trim()
                .parse()
                .ok()
                .filter(|share| (0.01..=2.0).contains(share))
        };
        if text == "constant" {
            return Ok(Self::Constant);
        }
        let rule = |suffix, rule: fn(f64) -> Self| text.strip_suffix(suffix).and_then(share).map(rule);
        rule("window", Self::Window)
            .or_else(|| rule("estimate", Self::Estimate))
            .or_else(|| rule("capacity", Self::Capacity))
            .ok_or_else(|| {
                format!(
                    "invalid encoder rate `{text}`; write constant or a share of 0.01 to 2, such as 0.9window, \
                     0.9estimate or 0.9capacity"
                )
            })
    }
}

impl fmt::Display for EncoderRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant => f.write_str("constant"),
            Self::Window(share) => write!(f, "{share}window"),
            Self::Estimate(share) => write!(f, "{share}estimate"),
            Self::Capacity(share) => write!(f, "{share}capacity"),
        }
    }
}

/// The rates on which an encoder may base its own; `None` if unknown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathRates {
    /// Congestion window over the smoothed RTT.
    pub(super) window: Option<Bitrate>,
    /// Rate that the connection was observed to carry.
    pub(super) estimate: Option<Estimate>,
    /// Rate of the narrowest link as the controller estimates it. Not all controllers do.
    pub(super) capacity: Option<Bitrate>,
}

/// This multiple of `rate`.
fn scaled(rate: Bitrate, factor: f64) -> Bitrate {
    Bitrate::from_bits_per_second(whole(factor * rate.as_bits_per_second() as f64))
}

/// The rate after `current` of an encoder that stays below `share` of the estimate unless it is the bottleneck.
fn next_rate(current: Bitrate, estimate: Estimate, share: f64) -> Bitrate {
    match estimate.source {
        EstimateSource::Application => scaled(current, GROWTH).min(scaled(estimate.rate, HEADROOM)),
        _ => current.min(scaled(estimate.rate, share)),
    }
}

/// The rate of an encoder as it changes.
#[derive(Debug)]
pub(super) struct Pace {
    encoder: Encoder,
    highest: Bitrate,
    current: Bitrate,
    /// Time of the next change.
    due: Duration,
}

impl Pace {
    /// Starts at the lowest rate, unless the rate is constant.
    pub(super) fn new(encoder: Encoder, highest: Bitrate) -> Self {
        Self {
            current: encoder.least,
            due: Duration::ZERO,
            encoder,
            highest,
        }
    }

    /// The rate of a frame made at `now`, for a path with these rates.
    pub(super) fn rate(&mut self, now: Duration, path: PathRates) -> Bitrate {
        let next = match self.encoder.rate {
            EncoderRate::Constant => Some(self.highest),
            EncoderRate::Window(share) => path.window.map(|window| scaled(window, share)),
            EncoderRate::Estimate(share) => path
                .estimate
                .map(|estimate| next_rate(self.current, estimate, share)),
            EncoderRate::Capacity(share) => path.capacity.map(|capacity| scaled(capacity, share)),
        };
        if now >= self.due
            && let Some(next) = next
        {
            self.current = next.clamp(self.encoder.least, self.highest);
            self.due = now.saturating_add(self.encoder.update_every);
        }
        self.current
    }

    /// Size of a frame at the current rate that has `size` at the highest rate.
    pub(super) fn size(&self, size: Bytes) -> u32 {
        let (current, highest) = (
            self.current.as_bits_per_second(),
            self.highest.as_bits_per_second(),
        );
        let bytes = u128::from(size.as_u64()) * u128::from(current);
        let bytes = bytes.checked_div(highest.into()).unwrap_or_default();
        u32::try_from(bytes).unwrap_or(u32::MAX).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn path(mbps: u64) -> PathRates {
        PathRates {
            window: Some(Bitrate::from_mbps(mbps)),
            capacity: Some(Bitrate::from_mbps(2 * mbps)),
            estimate: None,
        }
    }

    /// An encoder between 1 and 10 Mbit/s that changes its rate once per second.
    fn pace(rate: &str) -> Pace {
        let encoder = Encoder {
            rate: rate.parse().unwrap(),
            least: Bitrate::from_mbps(1),
            update_every: Duration::from_secs(1),
            latency_bound: Duration::from_millis(500),
        };
        Pace::new(encoder, Bitrate::from_mbps(10))
    }

    #[test]
    fn an_encoder_follows_its_path_within_its_bounds_and_not_more_often_than_it_should() {
        let mut pace = pace("0.5window");
        let steps = [
            (0, PathRates::default(), 1),
            (100, path(6), 3),
            (1_099, path(8), 3),
            (1_100, path(8), 4),
            (2_100, path(1), 1),
            (3_100, path(50), 10),
            (4_100, PathRates::default(), 10),
        ];
        for (at, rates, mbps) in steps {
            let rate = pace.rate(Duration::from_millis(at), rates);
            assert_eq!(rate, Bitrate::from_mbps(mbps), "{at} ms");
        }
        assert_eq!(pace.size(Bytes::new(5_000)), 5_000);
    }

    #[test]
    fn an_encoder_without_its_controllers_capacity_keeps_its_rate() {
        let mut pace = pace("0.5capacity");
        let unknown = PathRates {
            capacity: None,
            ..path(6)
        };
        let rates = [(0, unknown), (100, path(6)), (1_100, unknown), (2_100, path(2))];
        let rates = rates.map(|(at, rates)| pace.rate(Duration::from_millis(at), rates));
        assert_eq!(rates, [1, 6, 6, 2].map(Bitrate::from_mbps));
    }

    #[rstest]
    #[case::nothing_known(2_000, None, 2_000)]
    #[case::grows_while_it_is_the_bottleneck(2_000, Some((2_000, EstimateSource::Application)), 2_200)]
    #[case::not_beyond_a_quarter_above(4_000, Some((3_400, EstimateSource::Application)), 4_250)]
    #[case::falls_if_less_arrives(4_000, Some((2_000, EstimateSource::Application)), 2_500)]
    #[case::by_a_tenth_at_most(2_000, Some((8_000, EstimateSource::Application)), 2_200)]
    #[case::below_a_busy_link(5_000, Some((5_000, EstimateSource::BusyLink)), 4_000)]
    #[case::stays_below_a_busy_link(3_000, Some((5_000, EstimateSource::BusyLink)), 3_000)]
    #[case::below_the_window(5_000, Some((2_000, EstimateSource::Window)), 1_600)]
    #[case::stays_below_the_window(1_500, Some((2_000, EstimateSource::Window)), 1_500)]
    #[case::not_below_the_lowest_rate(5_000, Some((500, EstimateSource::BusyLink)), 1_000)]
    #[case::not_above_the_highest_rate(9_500, Some((9_500, EstimateSource::Application)), 10_000)]
    fn an_encoder_grows_only_while_it_is_the_bottleneck(
        #[case] current_kbps: u64,
        #[case] estimate: Option<(u64, EstimateSource)>,
        #[case] next_kbps: u64,
    ) {
        let mut pace = pace("0.8estimate");
        pace.current = Bitrate::from_kbps(current_kbps);
        let rates = PathRates {
            // Ignored: the window says too much in slow start.
            window: Some(Bitrate::from_mbps(20)),
            estimate: estimate
                .map(|(kbps, source)| Estimate::new(Bitrate::from_kbps(kbps), source, Duration::ZERO)),
            ..PathRates::default()
        };
        assert_eq!(pace.rate(Duration::ZERO, rates), Bitrate::from_kbps(next_kbps));
    }

    #[test]
    fn an_encoder_without_an_estimate_starts_at_its_lowest_rate_and_changes_with_the_first() {
        let mut pace = pace("0.9estimate");
        let estimate = Estimate::new(Bitrate::from_mbps(4), EstimateSource::Application, Duration::ZERO);
        let known = PathRates {
            estimate: Some(estimate),
            ..PathRates::default()
        };
        let rates = [
            (0, path(6)),
            (33, path(6)),
            (66, known),
            (99, known),
            (1_066, known),
        ];
        let rates = rates.map(|(at, rates)| pace.rate(Duration::from_millis(at), rates));
        let bits_per_second = rates.map(Bitrate::as_bits_per_second);
        assert_eq!(
            bits_per_second,
            [1_000_000, 1_000_000, 1_100_000, 1_100_000, 1_210_000]
        );
    }

    #[rstest]
    #[case("constant")]
    #[case("0.9window")]
    #[case("0.75estimate")]
    #[case("0.9capacity")]
    fn a_rate_is_read_as_it_is_written(#[case] text: &str) {
        assert_eq!(text.parse::<EncoderRate>().unwrap().to_string(), text);
    }

    #[rstest]
    #[case("window")]
    #[case("3window")]
    #[case("NaNwindow")]
    #[case("estimate")]
    #[case("3estimate")]
    #[case("0capacity")]
    #[case("0.9")]
    fn another_rate_is_refused_with_an_example(#[case] text: &str) {
        let error = text.parse::<EncoderRate>().unwrap_err();
        assert!(
            error.contains(text) && error.contains("0.9estimate or 0.9capacity"),
            "{error}"
        );
    }
}
