//! The tables of a scenario file as TOML types, and the quantities in them; `docs/scenarios.md` describes every key.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use playrate_cc::SpecError;
use playrate_netsim::{Aqm, CrossTraffic, DelaySchedule, Loss, Policer, QueueLimit, Rate, Reordering, Seed};
use playrate_transport::LossDetection;
use playrate_units::{Bitrate, Bytes, duration};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use video_client::Seek;
use video_client::dash::Abr;
use video_client::playout::ClockKind;

use super::link_rate::LinkRate;
use crate::controllers::{Controller, Stack};
use crate::sim::{EncoderRate, TransportProfile, Window};

/// A scenario with one case's values applied.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScenarioFile {
    pub(super) about: String,
    pub(super) source: Option<String>,
    pub(crate) controllers: Vec<Text<Controller>>,
    pub(super) trials: Option<u32>,
    pub(super) seed: Option<u64>,
    #[serde(default)]
    pub(super) vary: Vary,
    pub(crate) ideal: Option<bool>,
    pub(super) title: TitleTable,
    pub(super) encoder: Option<EncoderTable>,
    pub(super) path: PathTable,
    #[serde(default)]
    pub(super) transport: TransportTable,
    #[serde(default)]
    pub(super) viewer: ViewerTable,
    #[serde(default)]
    pub(super) bulk: Option<BulkTable>,
    #[serde(default)]
    pub(crate) measure: MeasureTable,
}

/// The key `vary` of a scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Vary {
    /// Each trial draws its title's beginning, RTT, queue and start times from its seed.
    #[default]
    Trials,
    /// Trials differ only in random events within a run, such as losses.
    None,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TitleTable {
    pub(super) trace: Option<String>,
    pub(super) file: Option<String>,
    pub(super) ladder: Option<String>,
    pub(super) rates: Option<BTreeMap<String, Text<Bitrate>>>,
    pub(super) rate: Option<Text<Bitrate>>,
    pub(super) duration: Option<Text<Time>>,
    /// Factor of the deviation of a trace's rate from its mean.
    pub(super) variability: Option<f64>,
    /// The server's library knows this multiple of the title's rate.
    pub(super) declared_rate_factor: Option<f64>,
}

/// An encoder whose frames are sent as they are made.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EncoderTable {
    /// Frames per second of the encoder.
    pub(super) frame_rate: Option<f64>,
    /// Time from one key frame to the next.
    pub(super) group: Option<Text<Time>>,
    /// Mean size of a key frame over that of the other frames.
    pub(super) key_frame_factor: Option<f64>,
    /// Largest deviation of a frame's size from its mean, as a share.
    pub(super) variation: Option<f64>,
    /// QUIC implementation of both ends.
    #[serde(default)]
    pub(super) stack: Stack,
    /// Rule for the encoder's rate.
    pub(super) rate: Text<EncoderRate>,
    pub(super) least_rate: Option<Text<Bitrate>>,
    /// Time from one change of the rate to the next.
    pub(super) update_every: Option<Text<Time>>,
    /// Latency behind the source up to which a frame is on time.
    pub(super) latency_bound: Option<Text<Time>>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PathTable {
    pub(super) rate: Text<LinkRate>,
    pub(super) rtt: Text<DelaySchedule>,
    pub(super) queue: Option<Text<QueueLimit>>,
    /// Minimum size of a queue given in multiples of the bandwidth-delay product.
    pub(super) least_queue: Option<Text<Bytes>>,
    pub(super) loss: Option<Text<Loss>>,
    /// Factor by which `loss` is multiplied.
    pub(super) loss_scale: Option<f64>,
    /// Random loss in the direction back to the server.
    pub(super) ack_loss: Option<Text<Loss>>,
    /// Rate of the direction back to the server.
    pub(super) uplink: Option<Text<Rate>>,
    /// Limit of the queue in that direction.
    pub(super) uplink_queue: Option<Text<QueueLimit>>,
    /// Packets back to the server are sent on together at multiples of this time.
    pub(super) ack_batches: Option<Text<Time>>,
    /// Parameters of a Wi-Fi hop that override those of `rate`, by the names of its text form.
    pub(super) wifi: Option<BTreeMap<String, Amount>>,
    pub(super) aqm: Option<Text<Aqm>>,
    /// Limit of the rate in front of the queue, enforced by drops.
    pub(super) policer: Option<Text<Policer>>,
    pub(super) jitter: Option<Text<Time>>,
    pub(super) reordering: Option<Text<Reordering>>,
    /// Propagation delay between the bottleneck and each end of every flow, one way.
    pub(super) access_delay: Option<Text<TimeRange>>,
    #[serde(default)]
    pub(super) cross_traffic: Vec<Text<CrossTraffic>>,
}

/// Transport parameters of all endpoints that differ from the product's.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TransportTable {
    loss_thresholds: LossThresholds,
    mtu_discovery: Option<bool>,
}

impl TransportTable {
    pub(super) fn profile(&self) -> TransportProfile {
        let product = TransportProfile::default();
        TransportProfile {
            loss_detection: match self.loss_thresholds {
                LossThresholds::Product => product.loss_detection,
                LossThresholds::Rfc9002 => LossDetection::RFC_9002,
            },
            mtu_discovery: self.mtu_discovery.unwrap_or(product.mtu_discovery),
        }
    }
}

/// Thresholds of loss detection by name.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum LossThresholds {
    #[default]
    Product,
    Rfc9002,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent switches of players and servers"
)]
pub(super) struct ViewerTable {
    pub(super) playout_buffer: Option<Text<Bytes>>,
    pub(super) receive_buffer: Option<Text<Bytes>>,
    pub(super) clock: Option<Text<ClockKind>>,
    pub(super) late: Option<Text<Time>>,
    pub(super) max_jitter: Option<Text<Time>>,
    pub(super) catch_up_percent: Option<u32>,
    pub(super) start_after: Option<Text<Time>>,
    /// Playing time that must be buffered before playback resumes after a stall.
    pub(super) resume: Option<Text<Time>>,
    pub(super) abr: Option<Text<Abr>>,
    /// Buffer target of an adaptive player below the top representation.
    pub(super) buffer: Option<Text<Time>>,
    /// Buffer target of an adaptive player at the top representation.
    pub(super) buffer_at_top: Option<Text<Time>>,
    /// True if a switch up replaces an adaptive player's buffered segments.
    pub(super) fast_switch: bool,
    /// True if a switch makes an adaptive player fetch the last buffered segment again.
    pub(super) refetches_last: bool,
    /// Number of segments that an adaptive player needs to start.
    pub(super) start_segments: Option<u32>,
    pub(super) count: Option<u32>,
    pub(super) joins: Option<Text<TimeRange>>,
    pub(super) join_every: Option<Text<Time>>,
    pub(super) leaves_after: Option<Text<Time>>,
    pub(super) server_knows_buffer: Option<bool>,
    pub(super) ack_packets: Option<NonZeroU32>,
    pub(super) receive_autotuning: bool,
    /// Playback speed; 1 is normal.
    pub(super) speed: Option<f64>,
    /// Copies of the title that each viewer's connection carries at once.
    pub(super) titles_per_connection: Option<u32>,
    /// Jumps of the viewer, such as `20s->80s`.
    pub(super) seeks: Vec<Text<SeekText>>,
    /// True if the requests have CMCD, including the playback speed unless it is normal.
    pub(super) reports_speed: bool,
    /// True if the servers' hosts remember ssthresh of the previous connection.
    pub(super) remembers_ssthresh: bool,
}

/// Controller of downloads: a spec, or `same` for that of the viewers.
#[derive(Clone, Debug)]
pub(super) enum BulkController {
    Same,
    Own(Controller),
}

impl FromStr for BulkController {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        match text.trim() {
            "same" => Ok(Self::Same),
            spec => spec.parse().map(Self::Own),
        }
    }
}

/// Downloads that share the bottleneck with the viewers.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BulkTable {
    pub(super) controller: Text<BulkController>,
    pub(super) count: Option<u32>,
    pub(super) joins: Option<Text<TimeRange>>,
    pub(super) join_every: Option<Text<Time>>,
    pub(super) leaves_after: Option<Text<Time>>,
    pub(super) stays: Option<Text<Time>>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct MeasureTable {
    /// Time ranges of a run with separate counts of every flow's traffic.
    pub(crate) windows: Vec<Text<Window>>,
}

/// A value that a scenario writes as a string, parsed by the type's own [`FromStr`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Text<T>(pub(crate) T);

impl<'de, T> Deserialize<'de> for Text<T>
where
    T: FromStr,
    T::Err: fmt::Display,
{
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct TextVisitor<T>(PhantomData<T>);
        impl<T: FromStr> Visitor<'_> for TextVisitor<T>
        where
            T::Err: fmt::Display,
        {
            type Value = Text<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string in quotes, quantities with their unit, such as \"20Mbit/s\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text<T>, E> {
                text.parse().map(Text).map_err(E::custom)
            }
        }
        from.deserialize_str(TextVisitor(PhantomData))
    }
}

/// A quantity to be parsed later, written as a string with its unit or, without a unit, as a whole number.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(
    untagged,
    expecting = "expected a string in quotes, such as \"150kB\", or a whole number"
)]
pub(crate) enum Amount {
    Text(String),
    Number(i64),
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => number.fmt(f),
        }
    }
}

/// A duration such as `100ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Time(pub(crate) Duration);

impl FromStr for Time {
    type Err = playrate_units::ParseUnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        duration::parse(text).map(Self)
    }
}

/// The duration of an optional key.
pub(super) fn time(text: Option<Text<Time>>) -> Option<Duration> {
    text.map(|time| time.0.0)
}

/// A jump of the viewer. Text form: `20s->80s`, the time since the request and the position in the title.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeekText(pub(super) Seek);

impl FromStr for SeekText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let time = |text: &str| duration::parse(text.trim()).ok();
        let seek = text.split_once("->");
        let seek = seek.and_then(|(at, to)| Some((time(at)?, time(to)?)));
        let (at, to) =
            seek.ok_or_else(|| format!("invalid seek `{text}`; write TIME->POSITION, such as 20s->80s"))?;
        Ok(Self(Seek { at, to }))
    }
}

/// A duration, or a range to draw one from, both ends included. Text form: `10ms`, `5ms..15ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeRange {
    pub(crate) from: Duration,
    pub(crate) to: Duration,
}

impl TimeRange {
    pub(crate) const ZERO: Self = Self {
        from: Duration::ZERO,
        to: Duration::ZERO,
    };

    /// A uniformly distributed duration in the range; the same seed gives the same duration.
    pub(super) fn draw(self, seed: Seed) -> Duration {
        let span = self.to.saturating_sub(self.from).as_nanos();
        // A child's number is uniformly distributed over 64 bits.
        let drawn = (span * u128::from(seed.number())) >> 64;
        let drawn = Duration::from_nanos(u64::try_from(drawn).unwrap_or(u64::MAX));
        self.from.saturating_add(drawn)
    }
}

impl FromStr for TimeRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let time = |text: &str| {
            duration::parse(text.trim())
                .map_err(|error| format!("{error}; a range of times is written such as 5ms..15ms"))
        };
        let (from, to) = match text.split_once("..") {
            Some((from, to)) => (time(from)?, time(to)?),
            None => (time(text)?, time(text)?),
        };
        if to < from {
            return Err(format!(
                "invalid range `{text}`: write the shorter time first, such as 5ms..15ms"
            ));
        }
        Ok(Self { from, to })
    }
}

impl fmt::Display for TimeRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", duration::display(self.from))?;
        if self.from < self.to {
            write!(f, "..{}", duration::display(self.to))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_time_is_between_its_bounds_and_the_same_for_the_same_seed() {
        let times: TimeRange = "5ms..15ms".parse().unwrap();
        assert_eq!(times.to_string(), "5ms..15ms");
        let drawn: Vec<Duration> = (0..1_000)
            .map(|number| times.draw(Seed::new(7).child(&number.to_string())))
            .collect();
        assert!(drawn.iter().all(|time| (times.from..=times.to).contains(time)));
        let mean = drawn.iter().sum::<Duration>() / 1_000;
        assert!(
            mean.abs_diff(Duration::from_millis(10)) < Duration::from_micros(500),
            "{mean:?}"
        );
        assert_eq!(drawn[3], times.draw(Seed::new(7).child("3")));
        let fixed: TimeRange = "40s".parse().unwrap();
        assert_eq!(fixed.draw(Seed::new(1)), Duration::from_secs(40));
        for wrong in ["15ms..5ms", "5..15", "soon"] {
            assert!(wrong.parse::<TimeRange>().unwrap_err().contains("5ms..15ms"));
        }
    }
}
