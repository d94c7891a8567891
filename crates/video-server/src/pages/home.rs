//! [`HomePage`]: the page with the titles of a library.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use playrate_media::manifest::Component;
use playrate_units::Bitrate;

use crate::http::path::ResourceName;
use crate::library::{Library, RepresentationSummary};

/// Maximum number of titles on the page, about 200 kB.
const MAX_TITLES: usize = 500;
/// Maximum number of representations listed for a title.
const MAX_REPRESENTATIONS: usize = 24;

/// The page of `library`.
#[derive(Template)]
#[template(path = "index.html")]
pub(super) struct HomePage<'a> {
    pub(super) pin: String,
    /// Names of the manifest players, separated by spaces.
    pub(super) scripts: String,
    pub(super) library: &'a Library,
}

/// Format of a manifest.
fn format_of(manifest: &ResourceName) -> &'static str {
    let extension = manifest.as_str().rsplit_once('.');
    if extension.is_some_and(|(_, extension)| extension.eq_ignore_ascii_case("mpd")) {
        "DASH"
    } else {
        "HLS"
    }
}

/// Duration of the longest of `representations`, if any is known.
fn longest(representations: &[Arc<RepresentationSummary>]) -> Option<Duration> {
    let durations = representations.iter().map(|one| one.duration);
    durations.max().filter(|time| !time.is_zero())
}

/// Average rate, or else the rate declared by the manifest.
fn rate(one: &RepresentationSummary) -> Option<Bitrate> {
    one.average_rate.or(one.declared_rate)
}

fn kind(one: &RepresentationSummary) -> &'static str {
    match one.component {
        Component::Video => "video",
        Component::Audio => "audio",
        _ => "other",
    }
}

/// Playing time in the format of players: `1:02:03`, `2:03`, `9.6 s` below a minute, `40 ms` below a second.
fn clock(time: &Duration) -> String {
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
        assert_eq!(clock(&Duration::from_millis(milliseconds)), text);
    }
}
