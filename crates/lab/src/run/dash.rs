//! [`Adaptive`]: what a player of a ladder chose and measured, in a row of the results and in series.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use playrate_units::Bitrate;
use serde::{Deserialize, Serialize};
use video_client::dash::{DashReport, Estimates};

use super::row::seconds;

/// What a player of a ladder chose and measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as in the client's own report, and in docs/runs.md")]
pub struct Adaptive {
    pub segments: u64,
    pub segments_by_representation: BTreeMap<String, u64>,
    pub switches: u64,
    pub switch_share: f64,
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

/// A ratio to the millionth, which prints as short as it is.
fn ratio(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
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
