//! [`QueueLimit`]: limit of a link's queue.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use playrate_units::{Bitrate, Bytes};

use crate::ConfigError;

/// Limit of a drop-tail queue. The packet on the wire counts as waiting until its last bit has left.
///
/// Text form: `250kB`, `100packets`, `1bdp`, `0.25bdp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QueueLimit {
    /// Limit in bytes, headers included.
    Bytes(Bytes),
    /// Limit in packets of any size.
    Packets(u32),
    /// Thousandths of the bandwidth-delay product: mean rate × round-trip propagation delay of the path.
    Bdp(u32),
}

impl QueueLimit {
    /// One bandwidth-delay product: mean rate × round-trip propagation delay.
    pub const ONE_BDP: Self = Self::Bdp(1_000);

    /// Limit as `(bytes, packets)` on a link of this rate and a path of this round trip. A rate of `None` is unlimited,
    /// so no packet ever waits.
    pub(crate) fn resolve(self, rate: Option<Bitrate>, round_trip: Duration) -> (u64, u64) {
        match self {
            Self::Bytes(bytes) => (bytes.as_u64(), u64::MAX),
            Self::Packets(packets) => (u64::MAX, u64::from(packets)),
            Self::Bdp(thousandths) => {
                let bytes = rate.map_or(u64::MAX, |rate| {
                    (rate.scaled(u64::from(thousandths), 1_000) * round_trip).as_u64()
                });
                (bytes, u64::MAX)
            }
        }
    }
}

impl Default for QueueLimit {
    fn default() -> Self {
        Self::ONE_BDP
    }
}

impl FromStr for QueueLimit {
    type Err = ConfigError;
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let error = || ConfigError::QueueText(text.to_owned());
        let trimmed = text.trim();
        if let Some(number) = trimmed.strip_suffix("packets").or(trimmed.strip_suffix("packet")) {
            return number.trim().parse().map(Self::Packets).map_err(|_| error());
        }
        if let Some(number) = trimmed.strip_suffix("bdp") {
            return thousandths(number.trim()).map(Self::Bdp).ok_or_else(error);
        }
        trimmed.parse().map(Self::Bytes).map_err(|_| error())
    }
}

/// Reads `1.25` as 1250; `None` if malformed, finer than a thousandth or too large.
fn thousandths(number: &str) -> Option<u32> {
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 3 {
        return None;
    }
    let part: u32 = format!("{part:0<3}").parse().ok()?;
    whole.parse::<u32>().ok()?.checked_mul(1_000)?.checked_add(part)
}

impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Packets(packets) => f.pad(&format!("{packets}packets")),
            Self::Bdp(thousandths) => {
                let (whole, part) = (thousandths / 1_000, thousandths % 1_000);
                if part == 0 {
                    return f.pad(&format!("{whole}bdp"));
                }
                let part = format!("{part:03}");
                f.pad(&format!("{whole}.{}bdp", part.trim_end_matches('0')))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("250kB", QueueLimit::Bytes(Bytes::from_kb(250)), "250kB")]
    #[case("100packets", QueueLimit::Packets(100), "100packets")]
    #[case("1 packet", QueueLimit::Packets(1), "1packets")]
    #[case("1bdp", QueueLimit::ONE_BDP, "1bdp")]
    #[case("0.25bdp", QueueLimit::Bdp(250), "0.25bdp")]
    #[case("2.5 bdp", QueueLimit::Bdp(2_500), "2.5bdp")]
    fn reads_bytes_packets_and_multiples_of_the_bdp(
        #[case] text: &str,
        #[case] limit: QueueLimit,
        #[case] shown: &str,
    ) {
        assert_eq!(text.parse(), Ok(limit));
        assert_eq!(limit.to_string(), shown);
        assert_eq!(shown.parse(), Ok(limit));
    }

    #[rstest]
    #[case("")]
    #[case("100")]
    #[case("-1bdp")]
    #[case("1.bdp")]
    #[case("0.0001bdp")]
    #[case("9999999bdp")]
    #[case("manypackets")]
    fn refuses_other_text_and_shows_an_example(#[case] text: &str) {
        let error = text
            .parse::<QueueLimit>()
            .expect_err("must not parse")
            .to_string();
        assert!(error.contains(&format!("`{text}`")), "{error}");
        assert!(error.contains("1bdp"), "{error}");
    }

    #[test]
    fn a_bdp_is_rate_times_round_trip() {
        let (bytes, packets) =
            QueueLimit::ONE_BDP.resolve(Some(Bitrate::from_mbps(20)), Duration::from_millis(100));
        assert_eq!((bytes, packets), (250_000, u64::MAX));
    }
}
