//! The scenario file as it is written.

use std::collections::BTreeMap;

use playrate_netsim::{Aqm, CrossTraffic, Loss, QueueLimit};
use playrate_transport::ControllerChoice;
use playrate_units::{Bitrate, Bytes};
use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;
use video_client::dash::Abr;
use video_client::playout::ClockKind;

use super::text::{LinkRate, SameOr, Text, Time, Times};
use crate::sim::Window;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) about: String,
    /// Where it comes from, such as `P13, figure 9`.
    pub(super) source: Option<String>,
    /// The claims it decides.
    #[serde(default)]
    pub(super) claims: Vec<String>,
    pub(super) controllers: Spanned<Vec<Text<ControllerChoice>>>,
    pub(super) trials: Option<Spanned<u32>>,
    pub(super) seed: Option<u64>,
    /// Whether there is a row for the best that any sender could do.
    pub(super) ideal: Option<bool>,
    pub(super) title: Spanned<TitleTable>,
    pub(super) path: Spanned<PathTable>,
    #[serde(default)]
    pub(super) viewer: Option<Spanned<ViewerTable>>,
    #[serde(default)]
    pub(super) bulk: Option<BulkTable>,
    #[serde(default)]
    pub(super) measure: MeasureTable,
    /// Read before, as the cases are told apart.
    #[expect(dead_code, reason = "a known key that this reader has no use for")]
    quick: Option<IgnoredAny>,
    /// As `quick`.
    #[expect(dead_code, reason = "a known key that this reader has no use for")]
    case: Option<IgnoredAny>,
    /// As `quick`.
    #[expect(dead_code, reason = "a known key that this reader has no use for")]
    figure: Option<IgnoredAny>,
    /// What it states of its results: read by `claims`.
    #[expect(dead_code, reason = "a known key that this reader has no use for")]
    claim: Option<IgnoredAny>,
    /// As `claim`.
    #[expect(dead_code, reason = "a known key that this reader has no use for")]
    groups: Option<IgnoredAny>,
    /// As `claim`.
    #[expect(dead_code, reason = "a known key that this reader has no use for")]
    beside: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TitleTable {
    /// A trace that comes with the lab, or the path of one.
    pub(super) trace: Option<Spanned<String>>,
    /// The path of an MP4, or `embedded`.
    pub(super) file: Option<Spanned<String>>,
    /// Segment sizes that come with the lab, or the path of such a file.
    pub(super) ladder: Option<Spanned<String>>,
    /// Representations of the ladder: name and rate.
    pub(super) rates: Option<Spanned<BTreeMap<String, Text<Bitrate>>>>,
    /// Average rate to scale the trace to.
    pub(super) rate: Option<Spanned<Text<Bitrate>>>,
    /// Playing time to repeat the trace to.
    pub(super) duration: Option<Spanned<Text<Time>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PathTable {
    pub(super) rate: Text<LinkRate>,
    pub(super) rtt: Text<Time>,
    pub(super) queue: Option<Spanned<Text<QueueLimit>>>,
    /// No queue in multiples of the bandwidth-delay product is smaller than this.
    pub(super) least_queue: Option<Text<Bytes>>,
    pub(super) loss: Option<Text<Loss>>,
    pub(super) aqm: Option<Text<Aqm>>,
    pub(super) jitter: Option<Text<Time>>,
    /// How far both ends of every flow are from the path, each way.
    pub(super) access_delay: Option<Text<Times>>,
    /// What else goes through the bottleneck.
    #[serde(default)]
    pub(super) cross_traffic: Vec<Text<CrossTraffic>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ViewerTable {
    pub(super) playout_buffer: Option<Text<Bytes>>,
    pub(super) receive_buffer: Option<Text<Bytes>>,
    pub(super) clock: Option<Text<ClockKind>>,
    pub(super) late: Option<Text<Time>>,
    pub(super) max_jitter: Option<Text<Time>>,
    pub(super) catch_up_percent: Option<u32>,
    /// Playback starts after this time instead of when the playout buffer is full.
    pub(super) start_after: Option<Text<Time>>,
    /// How much must be in to go on after a stall.
    pub(super) resume: Option<Text<Time>>,
    /// How the player of a ladder chooses representations.
    pub(super) abr: Option<Spanned<Text<Abr>>>,
    /// Playing time that it wants in its buffer below the top representation.
    pub(super) buffer: Option<Spanned<Text<Time>>>,
    /// The same at the top representation.
    pub(super) buffer_at_top: Option<Spanned<Text<Time>>>,
    pub(super) count: Option<Spanned<u32>>,
    pub(super) joins: Option<Text<Times>>,
    pub(super) join_every: Option<Text<Time>>,
    pub(super) leaves_after: Option<Text<Time>>,
    pub(super) server_knows_buffer: Option<bool>,
}

/// Downloads beside the viewers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BulkTable {
    /// A spec, or `same` as the viewers'.
    pub(super) controller: Text<SameOr<ControllerChoice>>,
    pub(super) count: Option<Spanned<u32>>,
    pub(super) joins: Option<Text<Times>>,
    pub(super) join_every: Option<Text<Time>>,
    pub(super) leaves_after: Option<Text<Time>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct MeasureTable {
    /// Parts of the run in which flows are counted apart.
    pub(super) windows: Vec<Text<Window>>,
}
