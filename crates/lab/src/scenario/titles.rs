//! Titles of scenarios: frame traces, MP4 files, and ladders of representations with their adaptive player.

use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use playrate_media::{FileSource, FrameTrace, Ladder, MediaError, SegmentSizes, TraceSource, assets};
use playrate_units::{Bitrate, rounded};
use toml::Spanned;
use video_client::dash::{Abr, DashOptions, DashPlayer};

use super::error::{ScenarioError, SourceMap};
use super::file::{Text, Time, TitleTable, ViewerTable};
use crate::sim::ServedTitle;
use crate::words::count;

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

/// Name of the embedded MP4.
const EMBEDDED: &str = "embedded";

fn stem(name: &str) -> &str {
    let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str());
    stem.unwrap_or("title")
}

/// The title described by a scenario's `title` table; files are relative to `base`.
pub(super) fn title(
    map: SourceMap<'_>,
    table: &Spanned<TitleTable>,
    base: &Path,
) -> Result<ServedTitle, ScenarioError> {
    let (span, table) = (table.span(), table.get_ref());
    if let (None, Some(rates)) = (&table.ladder, &table.rates) {
        let problem = "only a ladder has several rates: add ladder = \"bbb\", or write `rate`";
        return Err(map.at(rates.span(), problem));
    }
    if let (None, Some(variability)) = (&table.trace, &table.variability) {
        let problem =
            "only a trace can be made more or less variable: add trace = \"film-1080p\", or leave this out";
        return Err(map.at(variability.span(), problem));
    }
    let rate = table.rate.as_ref().map(Spanned::span);
    let rate_or_duration = rate.or(table.duration.as_ref().map(Spanned::span));
    match (&table.trace, &table.file, &table.ladder) {
        (None, None, Some(name)) => ladder(map, name, table, base),
        (Some(name), None, None) => {
            let trace = trace(name.get_ref(), base).map_err(|error| {
                let problem = format!("{error}; expected a file or a built-in trace: {TRACE}");
                map.at(name.span(), problem)
            })?;
            let trace = varied(trace, table.variability.as_ref())
                .map_err(|(span, error)| map.at(span, format!("`title.variability`: {error}")))?;
            generated(name.get_ref(), trace, table)
                .map_err(|error| map.at(rate_or_duration.unwrap_or(span), error.to_string()))
        }
        (None, Some(name), None) => match rate_or_duration {
            Some(extra) => {
                let problem = "the rate and duration of an MP4 are fixed: leave this out, or play a `trace`";
                Err(map.at(extra, problem))
            }
            None => mp4(name.get_ref(), base).map_err(|error| map.at(name.span(), error.to_string())),
        },
        _ => {
            let problem = "expected exactly one of `trace`, `file` and `ladder`, such as trace = \"film-1080p\", \
                           file = \"embedded\" or ladder = \"bbb\"";
            Err(map.at(span, problem))
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

/// The trace with its variability scaled, or the position of the factor and the error.
fn varied(
    trace: FrameTrace,
    factor: Option<&Spanned<f64>>,
) -> Result<FrameTrace, (Range<usize>, MediaError)> {
    match factor {
        None => Ok(trace),
        Some(factor) => trace
            .with_variability(*factor.get_ref())
            .map_err(|error| (factor.span(), error)),
    }
}

/// A title of generated payload: the trace repeated to the table's duration, then scaled to its rate.
fn generated(name: &str, mut trace: FrameTrace, table: &TitleTable) -> Result<ServedTitle, MediaError> {
    if let Some(duration) = &table.duration {
        trace = trace.repeat_to(duration.get_ref().0.0)?;
    }
    if let Some(rate) = &table.rate {
        trace = trace.scale_to_rate(rate.get_ref().0)?;
    }
    Ok(ServedTitle::trace(stem(name), TraceSource::new(&trace)))
}

/// The embedded MP4, or a file relative to `base`.
fn mp4(name: &str, base: &Path) -> Result<ServedTitle, MediaError> {
    if name == EMBEDDED {
        return Ok(ServedTitle::mp4(assets::TITLE_NAME, Arc::new(assets::title()?)));
    }
    let path = base.join(name);
    let source = FileSource::open(&path)?;
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
    name: &Spanned<String>,
    table: &TitleTable,
    base: &Path,
) -> Result<ServedTitle, ScenarioError> {
    if let Some(rate) = &table.rate {
        let problem = "a ladder has several rates: write rates = { 480p = \"0.44Mbit/s\", 720p = \"2.64Mbit/s\" } \
                       instead";
        return Err(map.at(rate.span(), problem));
    }
    let Some(rates) = &table.rates else {
        let problem =
            "a ladder needs rates, such as rates = { 480p = \"0.44Mbit/s\", 720p = \"2.64Mbit/s\" }";
        return Err(map.at(name.span(), problem));
    };
    let sizes = segment_sizes(name.get_ref(), base).map_err(|error| {
        let problem = format!("{error}; expected a file or a built-in ladder: {LADDER}");
        map.at(name.span(), problem)
    })?;
    let segments = u32::try_from(sizes.len()).unwrap_or(u32::MAX);
    let whole = sizes.segment_duration().saturating_mul(segments);
    let duration = table.duration.as_ref().map_or(whole, |time| time.get_ref().0.0);
    let list: Vec<(String, Bitrate)> = rates
        .get_ref()
        .iter()
        .map(|(name, rate)| (name.clone(), rate.0))
        .collect();
    let wrong = |error: &dyn ToString| map.at(rates.span(), error.to_string());
    let frames = trace(TRACE, base).map_err(|error| wrong(&error))?;
    let ladder = Ladder::generate(&sizes, &frames, &list, duration).map_err(|error| wrong(&error))?;
    ServedTitle::ladder(stem(name.get_ref()), ladder).map_err(|error| wrong(&error))
}

/// Number of copies of `title` on each viewer's connection.
pub(super) fn per_connection(
    map: SourceMap<'_>,
    table: &ViewerTable,
    title: &ServedTitle,
) -> Result<u32, ScenarioError> {
    let Some(number) = &table.titles_per_connection else {
        return Ok(1);
    };
    match *number.get_ref() {
        2.. if title.representations().is_some() => {
            let problem =
                "`viewer.titles_per_connection` must be left out: only titles in one piece share one";
            Err(map.at(number.span(), problem))
        }
        number @ 1..=MOST_TITLES => Ok(number),
        wrong => {
            let problem = format!("`viewer.titles_per_connection` must be 1 to {MOST_TITLES} (got {wrong})");
            Err(map.at(number.span(), problem))
        }
    }
}

/// The factor of the optional key `name`, 1 if it is left out.
pub(super) fn within(
    map: SourceMap<'_>,
    value: Option<&Spanned<f64>>,
    name: &str,
    allowed: RangeInclusive<f64>,
) -> Result<f64, ScenarioError> {
    let Some(value) = value else { return Ok(1.0) };
    let number = *value.get_ref();
    if allowed.contains(&number) {
        return Ok(number);
    }
    let (least, most) = (allowed.start(), allowed.end());
    let problem = format!("`{name}` must be {least} to {most} (got {number})");
    Err(map.at(value.span(), problem))
}

/// The settings of a ladder's adaptive player.
pub(super) fn player(
    map: SourceMap<'_>,
    table: &ViewerTable,
    title: &ServedTitle,
) -> Result<DashOptions, ScenarioError> {
    let mut options = DashOptions::default();
    let Some(presentation) = title.representations() else {
        let spans = [
            table.abr.as_ref().map(Spanned::span),
            table.buffer.as_ref().map(Spanned::span),
            table.buffer_at_top.as_ref().map(Spanned::span),
            table.fast_switch.as_ref().map(Spanned::span),
            table.refetches_last.as_ref().map(Spanned::span),
            table.start_segments.as_ref().map(Spanned::span),
        ];
        return match spans.into_iter().flatten().next() {
            Some(span) => {
                let problem = "only the player of a ladder has this setting: leave it out, or play \
                               title.ladder = \"bbb\"";
                Err(map.at(span, problem))
            }
            None => Ok(options),
        };
    };
    let time = |key: &Option<Spanned<Text<Time>>>| -> Option<Duration> {
        key.as_ref().map(|time| time.get_ref().0.0)
    };
    if let Some(target) = time(&table.buffer) {
        options.buffer.stable = target;
    }
    if let Some(target) = time(&table.buffer_at_top) {
        options.buffer.top = target;
        options.buffer.top_of_long = target;
    }
    let is_set = |key: &Option<Spanned<bool>>| key.as_ref().is_some_and(|key| *key.get_ref());
    options.fast_switch = is_set(&table.fast_switch);
    options.refetches_last = is_set(&table.refetches_last);
    if let Some(segments) = &table.start_segments {
        if *segments.get_ref() == 0 {
            return Err(map.at(segments.span(), "a player starts with at least 1 segment"));
        }
        options.start_segments = *segments.get_ref();
    }
    if let Some(abr) = &table.abr {
        options.abr = abr.get_ref().0.clone();
        DashPlayer::new(Arc::clone(presentation), &options)
            .map_err(|error| map.at(abr.span(), error.to_string()))?;
    }
    Ok(options)
}

/// The settings of a ladder's player in words.
pub(super) fn player_words(options: &DashOptions, title: &ServedTitle) -> String {
    let long = title
        .representations()
        .is_some_and(|presentation| presentation.duration() >= options.buffer.long);
    let top = if long {
        options.buffer.top_of_long
    } else {
        options.buffer.top
    };
    let choice = match &options.abr {
        Abr::Fixed(name) => format!("always {name}"),
        abr => format!("chooses by {abr}"),
    };
    let again = match (options.fast_switch, options.refetches_last) {
        (true, true) => "; replaces buffered segments after a switch up, and the last one after any switch",
        (true, false) => "; replaces buffered segments after a switch up",
        (false, true) => "; replaces the last buffered segment after a switch",
        (false, false) => "",
    };
    format!(
        "{choice}; buffer target {}, {} at the top representation; starts with {}, resumes after a stall with \
         {}{again}",
        rounded::time(options.buffer.stable),
        rounded::time(top),
        count(options.start_segments.into(), "segment", "segments"),
        options.resume_segments
    )
}
