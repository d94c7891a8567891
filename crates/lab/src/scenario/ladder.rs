//! Titles in several representations, and their players.

use std::path::Path;
use std::time::Duration;

use playrate_media::{FrameTrace, Ladder, MediaError, SegmentSizes};
use toml::Spanned;
use video_client::dash::{Abr, DashOptions, DashPlayer};

use super::error::{Blame, ScenarioError};
use super::file::{TitleTable, ViewerTable};
use super::titles;
use crate::sim::Played;

/// Segment sizes that come with the lab: name, what they are, text.
pub const LADDERS: &[(&str, &str, &str)] = &[(
    "bbb",
    "199 segments of 3 s of Big Buck Bunny",
    include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../assets/ladders/bbb.csv"
    )),
)];

/// The trace whose pattern of frames segments are given.
const FRAMES: &str = "film-1080p";

/// Segment sizes by name, or from a file relative to `base`.
fn sizes(name: &str, base: &Path) -> Result<SegmentSizes, MediaError> {
    if let Some((.., text)) = LADDERS.iter().find(|(known, ..)| *known == name) {
        return text.parse();
    }
    let path = base.join(name);
    let text = std::fs::read_to_string(&path).map_err(|error| MediaError::Ladder {
        problem: format!("{}: {error}", path.display()),
    })?;
    text.parse()
}

/// The ladder that `table` asks for by `name`.
pub(super) fn title(
    blame: Blame<'_>,
    name: &Spanned<String>,
    table: &TitleTable,
    base: &Path,
) -> Result<Played, ScenarioError> {
    if let Some(rate) = &table.rate {
        let problem = "a ladder has several rates: write rates = { 480p = \"0.44Mbit/s\", 720p = \"2.64Mbit/s\" } instead";
        return Err(blame.at(rate.span(), problem));
    }
    let Some(rates) = &table.rates else {
        let problem =
            "a ladder needs rates, such as rates = { 480p = \"0.44Mbit/s\", 720p = \"2.64Mbit/s\" }";
        return Err(blame.at(name.span(), problem));
    };
    let known: Vec<_> = LADDERS.iter().map(|(name, ..)| *name).collect();
    let sizes = sizes(name.get_ref(), base).map_err(|error| {
        let known = known.join(", ");
        blame.at(
            name.span(),
            format!("{error}; a ladder is a file, or one that comes with the lab: {known}"),
        )
    })?;
    let whole = sizes
        .segment_duration()
        .saturating_mul(u32::try_from(sizes.len()).unwrap_or(u32::MAX));
    let duration = table.duration.as_ref().map_or(whole, |time| time.get_ref().0.0);
    let list: Vec<_> = rates
        .get_ref()
        .iter()
        .map(|(name, rate)| (name.clone(), rate.0))
        .collect();
    let wrong = |error: &dyn ToString| blame.at(rates.span(), error.to_string());
    let frames: FrameTrace = titles::trace(FRAMES, base).map_err(|error| wrong(&error))?;
    let ladder = Ladder::generate(&sizes, &frames, &list, duration).map_err(|error| wrong(&error))?;
    let stem = Path::new(name.get_ref())
        .file_stem()
        .and_then(|stem| stem.to_str());
    Played::ladder(stem.unwrap_or("title"), ladder).map_err(|error| wrong(&error))
}

/// The player of a ladder.
pub(super) fn player(
    blame: Blame<'_>,
    table: &ViewerTable,
    title: &Played,
) -> Result<DashOptions, ScenarioError> {
    let mut options = DashOptions::default();
    let Some(presentation) = title.representations() else {
        let spans = [
            table.abr.as_ref().map(Spanned::span),
            table.buffer.as_ref().map(Spanned::span),
            table.buffer_at_top.as_ref().map(Spanned::span),
        ];
        return match spans.into_iter().flatten().next() {
            Some(span) => {
                let problem =
                    "only the player of a ladder has this: leave it out, or play title.ladder = \"bbb\"";
                Err(blame.at(span, problem))
            }
            None => Ok(options),
        };
    };
    let time = |key: &Option<Spanned<super::text::Text<super::text::Time>>>| -> Option<Duration> {
        key.as_ref().map(|time| time.get_ref().0.0)
    };
    if let Some(target) = time(&table.buffer) {
        options.buffer.stable = target;
    }
    if let Some(target) = time(&table.buffer_at_top) {
        options.buffer.top = target;
        options.buffer.top_of_long = target;
    }
    if let Some(abr) = &table.abr {
        options.abr = abr.get_ref().0.clone();
        DashPlayer::new(std::sync::Arc::clone(presentation), &options)
            .map_err(|error| blame.at(abr.span(), error.to_string()))?;
    }
    Ok(options)
}

/// What a player of a ladder does, in words.
pub(super) fn words(options: &DashOptions, title: &Played) -> String {
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
    format!(
        "{choice}; wants {} in its buffer, {} at the top representation; starts with {} segments, goes on after a stall with {}",
        crate::words::time(options.buffer.stable),
        crate::words::time(top),
        options.start_segments,
        options.resume_segments
    )
}
