//! [`Encoder`]: the rate of frames that are made while they are sent.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use playrate_units::{Bitrate, Bytes};

use crate::rounding::whole;

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
        let window = text.strip_suffix("window").and_then(share).map(Self::Window);
        window.ok_or_else(|| {
            format!(
                "invalid encoder rate `{text}`; write constant or a share of 0.01 to 2, such as 0.9window"
            )
        })
    }
}

impl fmt::Display for EncoderRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant => f.write_str("constant"),
            Self::Window(share) => write!(f, "{share}window"),
        }
    }
}

/// The rates on which an encoder may base its own; `None` if unknown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathRates {
    /// Congestion window over the smoothed RTT.
    pub(super) window: Option<Bitrate>,
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
        let (share, followed) = match self.encoder.rate {
            EncoderRate::Constant => (1.0, Some(self.highest)),
            EncoderRate::Window(share) => (share, path.window),
        };
        if now >= self.due
            && let Some(followed) = followed
        {
            let rate = whole(share * followed.as_bits_per_second() as f64);
            self.current = Bitrate::from_bits_per_second(rate).clamp(self.encoder.least, self.highest);
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
        }
    }

    #[test]
    fn an_encoder_follows_its_path_within_its_bounds_and_not_more_often_than_it_should() {
        let encoder = Encoder {
            rate: "0.5window".parse().unwrap(),
            least: Bitrate::from_mbps(1),
            update_every: Duration::from_secs(1),
            latency_bound: Duration::from_millis(500),
        };
        let mut pace = Pace::new(encoder, Bitrate::from_mbps(10));
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

    #[rstest]
    #[case("constant")]
    #[case("0.9window")]
    fn a_rate_is_read_as_it_is_written(#[case] text: &str) {
        assert_eq!(text.parse::<EncoderRate>().unwrap().to_string(), text);
    }

    #[rstest]
    #[case("window")]
    #[case("3window")]
    #[case("NaNwindow")]
    #[case("0.9")]
    fn another_rate_is_refused_with_an_example(#[case] text: &str) {
        let error = text.parse::<EncoderRate>().unwrap_err();
        assert!(error.contains(text) && error.contains("0.9window"), "{error}");
    }
}
