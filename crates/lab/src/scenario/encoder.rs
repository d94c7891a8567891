//! Encoders of scenarios, whose frames are sent as they are made.

use std::fmt::Write as _;
use std::time::Duration;

use playrate_media::{FrameTrace, MediaError, TraceSource};
use playrate_netsim::Seed;
use playrate_units::Bitrate;
use playrate_units::rounded::rate;

use super::error::{ScenarioError, SourceMap};
use super::file::{EncoderTable, TitleTable, time as time_of};
use super::titles::within;
use super::variation::{MILLION, part};
use crate::controllers::Stack;
use crate::rounding::whole;
use crate::sim::{Encoder, ServedTitle};

/// Bytes of a frame between key frames, before the title is scaled to its rate.
const FRAME: u64 = 10_000;
/// The keys of `viewer` that apply to the receivers of a broadcast.
const OF_RECEIVERS: [&str; 5] = ["count", "joins", "join_every", "ack_packets", "leaves_after"];

/// Frames of an encoder at its highest rate, and its rule for a lower one.
#[derive(Clone, Debug)]
pub(crate) struct FrameSource {
    pub(crate) encoder: Encoder,
    pub(crate) stack: Stack,
    pub(super) highest: Bitrate,
    duration: Duration,
    pub(super) frame_rate: f64,
    /// Frames from one key frame to the next, that one excluded.
    pub(super) group: u64,
    /// Size of key frames before scaling, bytes.
    key_frame: u64,
    /// Largest deviation of a frame's size, in millionths.
    pub(super) variation: u64,
}

impl FrameSource {
    /// The source described by a scenario's `encoder` and `title` tables.
    pub(super) fn new(
        map: SourceMap<'_>,
        table: &EncoderTable,
        title: &TitleTable,
    ) -> Result<Self, ScenarioError> {
        let given = [
            "trace",
            "file",
            "ladder",
            "rates",
            "variability",
            "declared_rate_factor",
        ];
        if let Some(key) = given
            .iter()
            .map(|key| format!("title.{key}"))
            .find(|key| map.value(key).is_some())
        {
            let problem = "an encoder makes its own frames: of `title`, give only `rate` and `duration`";
            return Err(map.at_key(&key, problem));
        }
        let viewer = map.value("viewer").and_then(|table| table.get_ref().as_table());
        let mut keys = viewer
            .into_iter()
            .flat_map(|table| table.keys().map(toml::Spanned::get_ref));
        if let Some(key) = keys.find(|key| !OF_RECEIVERS.contains(&&***key)) {
            let problem = format!(
                "no player watches an encoder: of `viewer`, give only {}",
                OF_RECEIVERS.join(", ")
            );
            return Err(map.at_key(&format!("viewer.{key}"), problem));
        }
        let (Some(highest), Some(duration)) = (title.rate, title.duration) else {
            let problem = "an encoder needs `title.rate`, its highest rate, and `title.duration`";
            return Err(map.at_key("title", problem));
        };
        let number =
            |value: Option<f64>, default, key, allowed| within(map, value.or(Some(default)), key, allowed);
        let frame_rate = number(table.frame_rate, 30.0, "encoder.frame_rate", 1.0..=240.0)?;
        let factor = number(
            table.key_frame_factor,
            6.0,
            "encoder.key_frame_factor",
            1.0..=100.0,
        )?;
        let variation = number(table.variation, 0.2, "encoder.variation", 0.0..=0.9)?;
        let group = time_of(table.group).unwrap_or(Duration::from_secs(1));
        let least = table.least_rate.map_or(Bitrate::from_kbps(300), |rate| rate.0);
        if least > highest.0 {
            let problem = format!(
                "`encoder.least_rate` must be at most `title.rate`, {} (got {})",
                rate(highest.0),
                rate(least)
            );
            return Err(map.at_key("encoder.least_rate", problem));
        }
        Ok(Self {
            stack: table.stack,
            encoder: Encoder {
                rate: table.rate.0,
                least,
                update_every: time_of(table.update_every).unwrap_or(Duration::from_millis(500)),
                latency_bound: time_of(table.latency_bound).unwrap_or(Duration::from_millis(500)),
            },
            highest: highest.0,
            duration: duration.0.0,
            frame_rate,
            group: whole(group.as_secs_f64() * frame_rate).max(1),
            key_frame: whole(factor * FRAME as f64),
            variation: whole(variation * MILLION as f64),
        })
    }

    /// The frames at the highest rate. Their sizes vary as drawn from `seed`, or not at all without one.
    fn frames(&self, seed: Option<Seed>) -> Result<FrameTrace, MediaError> {
        let mut text = String::new();
        for number in 0..whole(self.duration.as_secs_f64() * self.frame_rate) {
            let is_key = number.is_multiple_of(self.group);
            let (mean, flag) = if is_key {
                (self.key_frame, "K")
            } else {
                (FRAME, "_")
            };
            let varied = seed.map_or(MILLION, |seed| {
                part(self.variation, seed.child(&number.to_string()))
            });
            let (at, size) = (number as f64 / self.frame_rate, mean * varied / MILLION);
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{at:.9},{size},{flag}");
        }
        FrameTrace::parse(&text)?.scale_to_rate(self.highest)
    }

    /// The title of all frames at the highest rate, whose sizes vary as drawn from `seed`; without one, all are alike.
    pub(super) fn title(&self, seed: Option<Seed>) -> Result<ServedTitle, MediaError> {
        Ok(ServedTitle::trace(
            "encoder",
            TraceSource::new(&self.frames(seed)?),
        ))
    }
}
