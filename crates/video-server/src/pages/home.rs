//! [`HomePage`]: the page with the titles of a library.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use playrate_media::manifest::Component;

use crate::http::path::ResourceName;
use crate::library::{Library, PackagedTitle, RepresentationSummary, TitleSummary};

/// Maximum number of titles on the page, about 200 kB.
const MAX_TITLES: usize = 500;
/// Maximum number of representations listed for a title.
const MAX_REPRESENTATIONS: usize = 24;
/// Maximum number of manifests of a film, and of captions of a title.
const MAX_COMPANIONS: usize = 24;

/// The page of a library.
#[derive(Template)]
#[template(path = "index.html")]
pub(super) struct HomePage<'a> {
    pub(super) pin: String,
    /// Names of the manifest players, separated by spaces.
    pub(super) scripts: String,
    count: usize,
    cards: Vec<Card<'a>>,
}

/// A title on the page: one file, or all manifests of one film.
#[derive(Default)]
struct Card<'a> {
    /// Files that players are given, each with its format.
    sources: Vec<(&'static str, &'a ResourceName)>,
    is_live: bool,
    facts: Vec<String>,
    representations: &'a [Arc<RepresentationSummary>],
    picture: Option<&'a ResourceName>,
    /// Files of captions, each with its language if its name has one.
    captions: Vec<(&'a str, &'a ResourceName)>,
}

impl<'a> HomePage<'a> {
    pub(super) fn new(pin: String, scripts: String, library: &'a Library) -> Self {
        let mut films: BTreeMap<&str, Vec<&PackagedTitle>> = BTreeMap::new();
        for title in library.packaged() {
            let first = title.same_as.as_ref().unwrap_or(&title.manifest);
            films.entry(first.stem()).or_default().push(title);
        }
        let count = films.len() + library.titles().count();
        let films = films.into_values().map(|film| Card::of_film(&film));
        let single = library.titles().map(|(name, title)| Card::of_file(name, title));
        let cards = films.chain(single).take(MAX_TITLES);
        Self {
            pin,
            scripts,
            count,
            cards: cards.map(|card| card.with_companions(library)).collect(),
        }
    }
}

impl<'a> Card<'a> {
    fn of_film(manifests: &[&'a PackagedTitle]) -> Self {
        let names = manifests.iter().map(|title| &title.manifest);
        let sources = names.take(MAX_COMPANIONS);
        let sources: Vec<_> = sources.map(|name| (format_of(name), name)).collect();
        let first = manifests.first().map(|title| &*title.representations);
        let representations = first.unwrap_or_default();
        let formats: BTreeSet<_> = sources.iter().map(|(format, _)| *format).collect();
        let formats: Vec<_> = formats.into_iter().collect();
        let mut all = manifests.iter().flat_map(|title| &title.representations);
        let is_live = all.any(|one| one.live);
        let durations = representations.iter().map(|one| one.duration);
        let longest = durations.max().filter(|time| !time.is_zero() && !is_live);
        let count = representations.len();
        let plural = if count == 1 { "" } else { "s" };
        let number = format!("{count} representation{plural}");
        let facts = [longest.map(clock), Some(formats.join(" and ")), Some(number)];
        Self {
            sources,
            is_live,
            facts: facts.into_iter().flatten().collect(),
            representations,
            ..Self::default()
        }
    }

    fn of_file(name: &'a ResourceName, title: &TitleSummary) -> Self {
        let is_payload = title.codecs.is_empty();
        let size = title.width.zip(title.height);
        let facts = [
            Some(clock(title.duration)),
            size.map(|(width, height)| format!("{width}×{height}")),
            Some(format!("{:.2} Mbit/s", title.average_rate.as_mbps())),
            Some(format!("{:.1} MB", title.size.as_f64() / 1_000_000.0)),
            Some(title.codecs.clone()).filter(|_| !is_payload),
        ];
        Self {
            sources: vec![(if is_payload { "payload" } else { "mp4" }, name)],
            facts: facts.into_iter().flatten().collect(),
            ..Self::default()
        }
    }

    /// Adds the picture and the captions that `library` has for the title.
    fn with_companions(mut self, library: &'a Library) -> Self {
        let stems: BTreeSet<&str> = self.sources.iter().map(|(_, name)| name.stem()).collect();
        for stem in stems {
            for name in library.companions(stem) {
                let language = name.stem().trim_start_matches(stem).trim_start_matches('.');
                if name.content_type().starts_with("text/vtt") {
                    if self.captions.len() < MAX_COMPANIONS && is_language(language) {
                        self.captions.push((language, name));
                    }
                } else if language.is_empty() {
                    self.picture.get_or_insert(name);
                }
            }
        }
        self
    }
}

/// Returns true for nothing and for what may be a language tag (RFC 5646), unlike the end of another title's name.
fn is_language(text: &str) -> bool {
    let primary = text.split('-').next().unwrap_or_default();
    matches!(primary.len(), 0 | 2 | 3) && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// Format of a manifest.
fn format_of(manifest: &ResourceName) -> &'static str {
    if manifest.content_type() == "application/dash+xml" {
        "DASH"
    } else {
        "HLS"
    }
}

fn kind(one: &RepresentationSummary) -> &'static str {
    match one.component {
        Component::Video => "video",
        Component::Audio => "audio",
        Component::Text => "captions",
        _ => "other",
    }
}

/// Playing time in the format of players: `1:02:03`, `2:03`, `9.6 s` below a minute, `40 ms` below a second.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0) => format!("{} ms", time.as_millis()),
        (0, 0, _) => format!("{:.1} s", time.as_secs_f64()),
        (0, minutes, seconds) => format!("{minutes}:{seconds:02}"),
        (hours, minutes, seconds) => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(40, "40 ms")]
    #[case(9_640, "9.6 s")]
    #[case(60_000, "1:00")]
    #[case(599_999, "9:59")]
    #[case(3_723_000, "1:02:03")]
    fn playing_time_is_written_as_players_show_it(#[case] milliseconds: u64, #[case] text: &str) {
        assert_eq!(clock(Duration::from_millis(milliseconds)), text);
    }
}
