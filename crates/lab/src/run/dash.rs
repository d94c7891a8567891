//! [`Adaptive`]: what a player of a ladder chose and measured, in a row of the results and in series.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use playrate_units::Bitrate;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use video_client::dash::{DashReport, Estimates};

use super::control::ratio;
use super::row::seconds;

/// What a player of a ladder chose and measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as in the client's own report, and in docs/runs.md")]
pub struct Adaptive {
    pub segments: u64,
    pub segments_by_representation: BTreeMap<String, u64>,
    pub switches: u64,
    pub switch_share: f64,
    #[serde(deserialize_with = "sizes")]
    pub switch_sizes: BTreeMap<i64, u64>,
    pub mean_representation_bps: u64,
    pub instant_mean_bps: u64,
    pub instant_sd_bps: u64,
    pub instant_p05_bps: u64,
    pub instant_p50_bps: u64,
    pub instant_p95_bps: u64,
    pub instant_variation: f64,
    pub smoothed_mean_bps: u64,
    pub smoothed_sd_bps: u64,
    pub smoothed_p05_bps: u64,
    pub smoothed_p50_bps: u64,
    pub smoothed_p95_bps: u64,
    pub smoothed_variation: f64,
}

/// Numbers as keys, which JSON has as texts: in a flattened table serde does not turn them into numbers by itself.
fn sizes<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<i64, u64>, D::Error> {
    let read = BTreeMap::<String, u64>::deserialize(from)?;
    let number = |text: String| {
        text.parse()
            .map_err(|error| D::Error::custom(format!("`{text}`: {error}")))
    };
    read.into_iter()
        .map(|(size, count)| Ok((number(size)?, count)))
        .collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates are positive, and the cast saturates"
)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

impl Adaptive {
    /// Of this report; `None` if not one segment came.
    pub(super) fn of(report: &DashReport) -> Option<Self> {
        let (instant, smoothed): (Estimates, Estimates) = (report.instantaneous()?, report.smoothed()?);
        let names = report.representations.iter().map(|(name, _)| name.clone());
        Some(Self {
            segments: report.segments.len() as u64,
            segments_by_representation: names.zip(report.segments_by_representation()).collect(),
            switches: report.switch_count(),
            switch_share: ratio(report.switch_share()?),
            switch_sizes: report.switches(),
            mean_representation_bps: report.mean_rate().map(Bitrate::as_bits_per_second)?,
            instant_mean_bps: whole(instant.mean_bps),
            instant_sd_bps: whole(instant.sd_bps),
            instant_p05_bps: instant.p5_bps,
            instant_p50_bps: instant.p50_bps,
            instant_p95_bps: instant.p95_bps,
            instant_variation: ratio(instant.variation()),
            smoothed_mean_bps: whole(smoothed.mean_bps),
            smoothed_sd_bps: whole(smoothed.sd_bps),
            smoothed_p05_bps: smoothed.p5_bps,
            smoothed_p50_bps: smoothed.p50_bps,
            smoothed_p95_bps: smoothed.p95_bps,
            smoothed_variation: ratio(smoothed.variation()),
        })
    }
}

/// The segments as CSV, a line for each in the order of playing.
pub(super) fn segments(report: &DashReport) -> String {
    let mut text = String::from(
        "at_s,requested_s,first_byte_s,representation,bytes,held_s,instant_bps,counted,smoothed_bps\n",
    );
    for segment in &report.segments {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{},{},{}",
            seconds(segment.finished),
            seconds(segment.requested),
            seconds(segment.first_byte),
            segment.representation,
            segment.bytes.as_u64(),
            seconds(segment.held),
            segment.instantaneous.as_bits_per_second(),
            u8::from(segment.counted),
            segment.smoothed.as_bits_per_second(),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Outer {
        #[serde(flatten)]
        adaptive: Option<Adaptive>,
    }

    #[test]
    fn what_is_written_into_a_row_is_read_from_it_again() {
        let adaptive = Adaptive {
            segments: 60,
            segments_by_representation: [("480p".to_owned(), 60)].into(),
            switches: 3,
            switch_share: 0.05,
            switch_sizes: [(-1, 1), (0, 57), (2, 2)].into(),
            mean_representation_bps: 440_000,
            instant_mean_bps: 9_000_000,
            instant_sd_bps: 1,
            instant_p05_bps: 2,
            instant_p50_bps: 3,
            instant_p95_bps: 4,
            instant_variation: 0.25,
            smoothed_mean_bps: 8_000_000,
            smoothed_sd_bps: 1,
            smoothed_p05_bps: 2,
            smoothed_p50_bps: 3,
            smoothed_p95_bps: 4,
            smoothed_variation: 0.125,
        };
        let outer = Outer {
            adaptive: Some(adaptive),
        };
        let text = serde_json::to_string(&outer).unwrap();
        assert_eq!(serde_json::from_str::<Outer>(&text).unwrap(), outer);
    }
}
