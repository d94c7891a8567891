//! The report as JSON. The format is stable: fields are added, never renamed or removed, within one `version`.
//! `docs/video-client.md` lists them.

use std::num::NonZeroU32;
use std::time::Duration;

use playrate_units::seconds::{self, from_duration};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::{DashReport, NetworkReport, Outcome, PlayerSettings, QualityReport};
use crate::cmsd::CmsdReport;
use crate::columns::{self, Column};
use crate::playout::{PlaybackReport, PlayoutEvent, SeriesPoint};

const FORMAT: &str = "video-client-play";
const VERSION: u32 = 1;

impl QualityReport {
    /// The report as one JSON object, including the time series if `series`. `docs/video-client.md` describes it.
    pub fn to_json(&self, series: bool) -> serde_json::Result<String> {
        let (outcome, error) = match &self.outcome {
            Outcome::Complete => ("complete", None),
            Outcome::Encrypted(_) => ("encrypted", None),
            Outcome::Incomplete(_) => ("incomplete", None),
            Outcome::Stopped => ("stopped", None),
            Outcome::Failed(reason) => ("failed", Some(reason.as_str())),
        };
        serde_json::to_string_pretty(&ReportJson {
            format: FORMAT,
            version: VERSION,
            url: &self.url,
            outcome,
            error,
            title: self.title.as_ref().map(|title| {
                json!({
                    "codecs": title.codecs,
                    "width": NonZeroU32::new(title.width),
                    "height": NonZeroU32::new(title.height),
                    "has_audio": title.has_audio,
                    "duration_s": title.duration.map(from_duration),
                    "average_rate_bps": self.average_rate,
                })
            }),
            player: &self.player,
            viewer: ViewerJson {
                playback: &self.playback,
                frames_remaining: self.playback.frames_remaining(),
                shown: self.shown_time,
            },
            network: &self.network,
            dash: self.dash.as_ref(),
            cmsd: Some(&self.cmsd).filter(|cmsd| !cmsd.samples.is_empty()),
            notes: &self.notes,
            events: &self.events,
            series: series.then_some(SeriesJson(&self.series)),
        })
    }
}

#[derive(Serialize)]
struct ReportJson<'a> {
    format: &'static str,
    version: u32,
    url: &'a str,
    outcome: &'static str,
    error: Option<&'a str>,
    title: Option<Value>,
    player: &'a PlayerSettings,
    viewer: ViewerJson<'a>,
    network: &'a NetworkReport,
    dash: Option<&'a DashReport>,
    cmsd: Option<&'a CmsdReport>,
    notes: &'a [String],
    events: &'a [PlayoutEvent],
    #[serde(skip_serializing_if = "Option::is_none")]
    series: Option<SeriesJson<'a>>,
}

#[derive(Serialize)]
struct ViewerJson<'a> {
    #[serde(flatten)]
    playback: &'a PlaybackReport,
    frames_remaining: u64,
    #[serde(rename = "shown_s", with = "seconds")]
    shown: Duration,
}

struct SeriesJson<'a>(&'a [SeriesPoint]);

impl Serialize for SeriesJson<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        const COLUMNS: [Column<SeriesPoint>; 6] = [
            ("at_s", |it| from_duration(it.at).into()),
            ("held_bytes", |it| it.held.as_u64().into()),
            ("held_s", |it| from_duration(it.held_time).into()),
            ("received_bytes", |it| it.received.as_u64().into()),
            ("frames_shown", |it| it.shown.into()),
            ("frames_discarded", |it| it.discarded.into()),
        ];
        columns::write(self.0, &COLUMNS, to)
    }
}
