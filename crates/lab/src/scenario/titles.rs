//! Titles of scenarios: frame traces, MP4 files, and ladders of representations with their adaptive player.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use playrate_media::{FrameTrace, Ladder, MediaError, MemorySource, SegmentSizes, TraceSource, assets};
use playrate_units::Bitrate;
use video_client::dash::{DashOptions, DashPlayer};

use super::error::{ScenarioError, SourceMap};
use super::file::{TitleTable, ViewerTable, time};
use crate::sim::ServedTitle;

/// Name of the built-in frame trace. Segments of a ladder use its pattern of frame sizes too.
const TRACE: &str = "film-1080p";
const TRACE_TEXT: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../assets/traces/film-1080p.csv"
));

/// Name of the built-in segment sizes.
const LADDER: &str = "bbb";
const LADDER_TEXT: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../assets/ladders/bbb.csv"
));

/// Maximum number of titles on one connection: the server adds up the rates of this many.
const MOST_TITLES: u32 = 16;

/// Settings of an adaptive player only.
const OF_LADDERS: [&str; 6] = [
    "viewer.abr",
    "viewer.buffer",
    "viewer.buffer_at_top",
    "viewer.fast_switch",
    "viewer.refetches_last",
    "viewer.start_segments",
];

/// Name of the embedded MP4.
const EMBEDDED: &str = "embedded";

fn stem(name: &str) -> &str {
    let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str());
    stem.unwrap_or("title")
}

/// The title described by a scenario's `title` table; files are relative to `base`.
pub(super) fn title(
    map: SourceMap<'_>,
    table: &TitleTable,
    base: &Path,
) -> Result<ServedTitle, ScenarioError> {
    if table.ladder.is_none() && table.rates.is_some() {
        let problem = "only a ladder has several rates: add ladder = \"bbb\", or write `rate`";
        return Err(map.at_key("title.rates", problem));
    }
    if table.trace.is_none() && table.variability.is_some() {
        let problem =
            "only a trace can be made more or less variable: add trace = \"film-1080p\", or leave this out";
        return Err(map.at_key("title.variability", problem));
    }
    let rate_or_duration = ["title.rate", "title.duration"];
    let rate_or_duration = rate_or_duration.into_iter().find(|key| map.value(key).is_some());
    match (&table.trace, &table.file, &table.ladder) {
        (None, None, Some(name)) => ladder(map, name, table, base),
        (Some(name), None, None) => {
            let mut trace = trace(name, base).map_err(|error| {
                let problem = format!("{error}; expected a file or a built-in trace: {TRACE}");
                map.at_key("title.trace", problem)
            })?;
            if let Some(factor) = table.variability {
                trace = trace.with_variability(factor).map_err(|error| {
                    map.at_key("title.variability", format!("`title.variability`: {error}"))
                })?;
            }
            generated(name, trace, table)
                .map_err(|error| map.at_key(rate_or_duration.unwrap_or("title"), error.to_string()))
        }
        (None, Some(name), None) => match rate_or_duration {
            Some(extra) => {
                let problem = "the rate and duration of an MP4 are fixed: leave this out, or play a `trace`";
                Err(map.at_key(extra, problem))
            }
            None => mp4(name, base).map_err(|error| map.at_key("title.file", error.to_string())),
        },
        _ => {
            let problem = "expected exactly one of `trace`, `file` and `ladder`, such as trace = \"film-1080p\", \
                           file = \"embedded\" or ladder = \"bbb\"";
            Err(map.at_key("title", problem))
        }
    }
}

/// A trace by name, or from a file relative to `base`.
fn trace(name: &str, base: &Path) -> Result<FrameTrace, MediaError> {
    static PARSED: OnceLock<Result<FrameTrace, MediaError>> = OnceLock::new();
    if name == TRACE {
        return PARSED.get_or_init(|| FrameTrace::parse(TRACE_TEXT)).clone();
    }
    FrameTrace::open(base.join(name))
}

/// A title of generated payload: the trace repeated to the table's duration, then scaled to its rate.
fn generated(name: &str, mut trace: FrameTrace, table: &TitleTable) -> Result<ServedTitle, MediaError> {
    if let Some(duration) = table.duration {
        trace = trace.repeat_to(duration.0.0)?;
    }
    if let Some(rate) = table.rate {
        trace = trace.scale_to_rate(rate.0)?;
    }
    Ok(ServedTitle::trace(stem(name), TraceSource::new(&trace)))
}

/// The embedded MP4, or a file relative to `base`.
fn mp4(name: &str, base: &Path) -> Result<ServedTitle, MediaError> {
    if name == EMBEDDED {
        return Ok(ServedTitle::mp4(assets::TITLE_NAME, Arc::new(assets::title()?)));
    }
    let path = base.join(name);
    let source = MemorySource::open(&path)?;
    let file = path.file_name().and_then(|file| file.to_str());
    Ok(ServedTitle::mp4(file.unwrap_or("title.mp4"), Arc::new(source)))
}

/// Segment sizes by name, or from a file relative to `base`.
fn segment_sizes(name: &str, base: &Path) -> Result<SegmentSizes, MediaError> {
    if name == LADDER {
        return LADDER_TEXT.parse();
    }
    let path = base.join(name);
    let text = std::fs::read_to_string(&path).map_err(|error| MediaError::Ladder {
        problem: format!("{}: {error}", path.display()),
    })?;
    text.parse()
}

fn ladder(
    map: SourceMap<'_>,
    name: &str,
    table: &TitleTable,
    base: &Path,
) -> Result<ServedTitle, ScenarioError> {
    if table.rate.is_some() {
        let problem = "a ladder has several rates: write rates = { 480p = \"0.44Mbit/s\", 720p = \"2.64Mbit/s\" } \
                       instead";
        return Err(map.at_key("title.rate", problem));
    }
    let Some(rates) = &table.rates else {
        let problem =
            "a ladder needs rates, such as rates = { 480p = \"0.44Mbit/s\", 720p = \"2.64Mbit/s\" }";
        return Err(map.at_key("title.ladder", problem));
    };
    let sizes = segment_sizes(name, base).map_err(|error| {
        let problem = format!("{error}; expected a file or a built-in ladder: {LADDER}");
        map.at_key("title.ladder", problem)
    })?;
    let segments = u32::try_from(sizes.len()).unwrap_or(u32::MAX);
    let whole = sizes.segment_duration().saturating_mul(segments);
    let duration = table.duration.map_or(whole, |time| time.0.0);
    let list = rates.iter().map(|(name, rate)| (name.clone(), rate.0));
    let list: Vec<(String, Bitrate)> = list.collect();
    let wrong = |error: &dyn ToString| map.at_key("title.rates", error.to_string());
    let frames = trace(TRACE, base).map_err(|error| wrong(&error))?;
    let ladder = Ladder::generate(&sizes, &frames, &list, duration).map_err(|error| wrong(&error))?;
    ServedTitle::ladder(stem(name), ladder).map_err(|error| wrong(&error))
}

/// Number of copies of `title` on each viewer's connection.
pub(super) fn per_connection(
    map: SourceMap<'_>,
    table: &ViewerTable,
    title: &ServedTitle,
) -> Result<u32, ScenarioError> {
    let problem = match table.titles_per_connection.unwrap_or(1) {
        2.. if title.representations().is_some() => {
            "`viewer.titles_per_connection` must be left out: only titles in one piece share one".to_owned()
        }
        number @ 1..=MOST_TITLES => return Ok(number),
        wrong => format!("`viewer.titles_per_connection` must be 1 to {MOST_TITLES} (got {wrong})"),
    };
    Err(map.at_key("viewer.titles_per_connection", problem))
}

/// The factor given by the optional key `key`; 1 if the key is missing.
pub(super) fn within(
    map: SourceMap<'_>,
    value: Option<f64>,
    key: &str,
    allowed: RangeInclusive<f64>,
) -> Result<f64, ScenarioError> {
    let number = value.unwrap_or(1.0);
    if allowed.contains(&number) {
        return Ok(number);
    }
    let (least, most) = (allowed.start(), allowed.end());
    let problem = format!("`{key}` must be {least} to {most} (got {number})");
    Err(map.at_key(key, problem))
}

/// The settings of a ladder's adaptive player.
pub(super) fn player(
    map: SourceMap<'_>,
    table: &ViewerTable,
    title: &ServedTitle,
) -> Result<DashOptions, ScenarioError> {
    let mut options = DashOptions::default();
    let Some(presentation) = title.representations() else {
        return match OF_LADDERS.into_iter().find(|key| map.value(key).is_some()) {
            Some(key) => {
                let problem = "only the player of a ladder has this setting: leave it out, or play \
                               title.ladder = \"bbb\"";
                Err(map.at_key(key, problem))
            }
            None => Ok(options),
        };
    };
    if let Some(target) = time(table.buffer) {
        options.buffer.stable = target;
    }
    if let Some(target) = time(table.buffer_at_top) {
        options.buffer.top = target;
        options.buffer.top_of_long = target;
    }
    options.fast_switch = table.fast_switch;
    options.refetches_last = table.refetches_last;
    if let Some(segments) = table.start_segments {
        if segments == 0 {
            return Err(map.at_key("viewer.start_segments", "a player starts with at least 1 segment"));
        }
        options.start_segments = segments;
    }
    if let Some(abr) = &table.abr {
        options.abr = abr.0.clone();
        DashPlayer::new(Arc::clone(presentation), &options)
            .map_err(|error| map.at_key("viewer.abr", error.to_string()))?;
    }
    Ok(options)
}
