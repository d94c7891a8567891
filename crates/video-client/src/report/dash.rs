//! [`DashReport`]: the segments of an adaptive session, their representations and the player's throughput estimates.

use std::collections::BTreeMap;
use std::time::Duration;

use playrate_units::Bitrate;
use playrate_units::seconds::from_duration;
use serde::{Serialize, Serializer};

use crate::columns::{self, Column};
use crate::estimates::Estimates;
use crate::transfer::Transfer;

/// Measurements of one fetched segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentRecord {
    /// Index of the segment in the title, from 0.
    pub segment: usize,
    /// Index of its representation, the lowest rate being 0.
    pub representation: usize,
    /// Times and size of its transfer.
    pub transfer: Transfer,
    /// Playing time in the buffer at the request.
    pub held: Duration,
    /// Size over the time from the first to the last byte.
    pub instantaneous: Bitrate,
    /// True if the average includes this segment.
    pub counted: bool,
    /// The player's estimate after the segment: mean of the last throughputs, less a tenth.
    pub smoothed: Bitrate,
}

/// A segment that could not be fetched or parsed, or that the manifest declares absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PassedOver {
    /// Time since the session began.
    #[serde(rename = "at_s", serialize_with = "playrate_units::seconds::serialize")]
    pub at: Duration,
    /// Index of the segment in the title, from 0.
    pub segment: usize,
    /// Index of its representation, the lowest rate being 0.
    pub representation: usize,
    /// Error of the request or the parser.
    pub reason: String,
}

/// A representation of an adaptive title, and how much a session used it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RepresentationRecord {
    /// Name in the manifest or the presentation.
    pub name: String,
    /// Declared rate, by which the player chooses.
    #[serde(rename = "rate_bps")]
    pub rate: Bitrate,
    /// Number of its segments that were fetched.
    pub segments: u64,
}

/// The segments of an adaptive session, and statistics of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DashReport {
    /// The representations, the lowest rate first.
    pub representations: Vec<RepresentationRecord>,
    /// Number of segments of the title.
    #[serde(rename = "segments")]
    pub segment_count: usize,
    /// Number of segments fetched.
    pub segments_fetched: usize,
    /// Segments that could not be fetched or parsed, or that the manifest declares absent. Playback went on after them.
    pub passed_over: Vec<PassedOver>,
    /// Index of the first segment fetched, from 0.
    pub first_segment: usize,
    /// Number of changes of the representation.
    pub switches: u64,
    /// Changes of the representation over segments fetched; `None` without any.
    pub switch_share: Option<f64>,
    /// Number of changes of the representation index from one segment to the next, by size (0 is no change).
    pub switch_sizes: BTreeMap<i64, u64>,
    /// Mean rate of the representations of the fetched segments; `None` without any.
    #[serde(rename = "mean_representation_bps")]
    pub mean_rate: Option<Bitrate>,
    /// Distribution of the segments' instantaneous throughput.
    pub instantaneous: Option<Estimates>,
    /// Distribution of the player's estimates.
    pub smoothed: Option<Estimates>,
    /// The segments in fetching order; one that was replaced by a better representation occurs twice.
    #[serde(rename = "series", serialize_with = "series")]
    pub segments: Vec<SegmentRecord>,
}

impl DashReport {
    /// The report on `segments`, in fetching order, for a title whose representations have these names and rates.
    pub(crate) fn new(
        representations: impl Iterator<Item = (String, Bitrate)>,
        segment_count: usize,
        first_segment: usize,
        segments: Vec<SegmentRecord>,
    ) -> Self {
        let of_representation =
            |index| segments.iter().filter(|it| it.representation == index).count() as u64;
        let representations: Vec<_> = (0..)
            .zip(representations)
            .map(|(index, (name, rate))| RepresentationRecord {
                name,
                rate,
                segments: of_representation(index),
            })
            .collect();
        let mut switch_sizes = BTreeMap::new();
        for (before, after) in segments.iter().zip(segments.iter().skip(1)) {
            let [before, after] =
                [before, after].map(|it| i64::try_from(it.representation).unwrap_or(i64::MAX));
            *switch_sizes.entry(after.saturating_sub(before)).or_insert(0) += 1;
        }
        let changes = switch_sizes.iter().filter(|(size, _)| **size != 0);
        let switches: u64 = changes.map(|(_, count)| count).sum();
        let rates = representations
            .iter()
            .map(|it| u128::from(it.rate.as_bits_per_second()) * u128::from(it.segments));
        let mean_rate = rates.sum::<u128>().checked_div(segments.len() as u128);
        Self {
            segment_count,
            segments_fetched: segments.len(),
            passed_over: Vec::new(),
            first_segment,
            switches,
            switch_share: (!segments.is_empty()).then(|| switches as f64 / segments.len() as f64),
            switch_sizes,
            mean_rate: mean_rate
                .and_then(|mean| u64::try_from(mean).ok())
                .map(Bitrate::from_bits_per_second),
            instantaneous: Estimates::of(segments.iter().map(|it| it.instantaneous)),
            smoothed: Estimates::of(segments.iter().map(|it| it.smoothed)),
            representations,
            segments,
        }
    }
}

fn series<S: Serializer>(segments: &[SegmentRecord], to: S) -> Result<S::Ok, S::Error> {
    const COLUMNS: [Column<SegmentRecord>; 10] = [
        ("segment", |it| it.segment.into()),
        ("representation", |it| it.representation.into()),
        ("requested_s", |it| from_duration(it.transfer.requested).into()),
        ("first_byte_s", |it| from_duration(it.transfer.first_byte).into()),
        ("finished_s", |it| from_duration(it.transfer.finished).into()),
        ("bytes", |it| it.transfer.bytes.as_u64().into()),
        ("held_s", |it| from_duration(it.held).into()),
        ("instantaneous_bps", |it| {
            it.instantaneous.as_bits_per_second().into()
        }),
        ("counted", |it| it.counted.into()),
        ("smoothed_bps", |it| it.smoothed.as_bits_per_second().into()),
    ];
    columns::write(segments, &COLUMNS, to)
}
