//! The titles of a library as HTML.

use std::fmt::Write as _;
use std::time::Duration;

use playrate_media::Layout;
use playrate_media::manifest::Component;

use crate::http::path::ResourceName;
use crate::library::{Library, PackagedTitle, RepresentationSummary, TitleSummary};

/// Maximum number of titles on the page, about 200 kB.
const MAX_TITLES: usize = 500;
/// Maximum number of representations that are listed of a title.
const MAX_REPRESENTATIONS: usize = 24;

/// The titles as items of a list, after a line with their number.
pub(super) fn listing(library: &Library) -> String {
    let all = library.title_count();
    let mut html = match all {
        0 => "<p>No titles: the media directory has no <code>.mp4</code>, <code>.mpd</code> or <code>.m3u8</code> \
              that can be played.</p>"
            .to_owned(),
        1 => "<p>1 title</p>".to_owned(),
        2..=MAX_TITLES => format!("<p>{all} titles</p>"),
        _ => format!("<p>The first {MAX_TITLES} of {all} titles</p>"),
    };
    html.push_str("<ul>");
    let packaged = library.packaged().iter().map(packaged);
    let files = library.titles().map(|(name, title)| file(name, title));
    html.extend(packaged.chain(files).take(MAX_TITLES));
    html.push_str("</ul>");
    html
}

fn file(name: &ResourceName, title: &TitleSummary) -> String {
    let mut parts = vec![clock(title.duration)];
    if title.width > 0 {
        parts.push(format!("{}×{}", title.width, title.height));
    }
    parts.push(format!("{:.2} Mbit/s", title.average_rate.as_mbps()));
    parts.push(format!("{:.1} MB", title.size.as_f64() / 1e6));
    parts.push(escape(&title.codecs));
    if title.layout == Layout::ProgressiveMoovLast {
        parts.push("index at the end: starts late".to_owned());
    }
    // A generated payload has no codec, and nothing to show.
    let kind = if title.codecs.is_empty() { "payload" } else { "mp4" };
    item(name, kind, &parts, "")
}

fn packaged(title: &PackagedTitle) -> String {
    let representations = &title.representations;
    let name = title.manifest.as_str();
    let is_dash = name
        .rsplit_once('.')
        .is_some_and(|(_, extension)| extension.eq_ignore_ascii_case("mpd"));
    let (kind, format) = if is_dash { ("dash", "DASH") } else { ("hls", "HLS") };
    let mut parts = Vec::new();
    let durations = representations.iter().map(|one| one.duration);
    parts.extend(durations.max().filter(|time| !time.is_zero()).map(clock));
    parts.push(format.to_owned());
    parts.push(match representations.len() {
        1 => "1 representation".to_owned(),
        count => format!("{count} representations"),
    });
    let mut rows = String::new();
    for one in representations.iter().take(MAX_REPRESENTATIONS) {
        let _ = write!(rows, "<li>{}</li>", escape(&representation(one)));
    }
    if let Some(more @ 1..) = representations.len().checked_sub(MAX_REPRESENTATIONS) {
        let _ = write!(rows, "<li>and {more} more</li>");
    }
    let details = format!("<details><summary>Representations</summary><ul>{rows}</ul></details>");
    item(&title.manifest, kind, &parts, &details)
}

fn representation(one: &RepresentationSummary) -> String {
    let kind = match one.component {
        Component::Video => "video",
        Component::Audio => "audio",
        _ => "other",
    };
    let mut parts = vec![one.id.clone(), kind.to_owned()];
    parts.extend(one.resolution.map(|(width, height)| format!("{width}×{height}")));
    let rate = one.average_rate.or(one.declared_rate);
    parts.extend(rate.map(|rate| format!("{:.2} Mbit/s", rate.as_mbps())));
    parts.extend(one.codecs.clone());
    if one.missing > 0 {
        parts.push(format!("{} segments missing", one.missing));
    }
    parts.join(" · ")
}

/// An item of the list. `parts` and `details` are HTML.
fn item(name: &ResourceName, kind: &str, parts: &[String], details: &str) -> String {
    let parts: Vec<_> = parts.iter().filter(|part| !part.is_empty()).cloned().collect();
    format!(
        "<li class=\"title card\" data-kind=\"{kind}\"><div class=\"poster\"></div>\
         <div><h3><a href=\"{path}\">{name}</a></h3><p>{about}</p>{details}</div></li>",
        path = escape(&name.to_url_path()),
        name = escape(name.as_str()),
        about = parts.join(" · "),
    )
}

/// Playing time as players show it: `1:02:03`, `2:03`, or `9.6 s` below a minute.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, _) => format!("{:.1} s", time.as_secs_f64()),
        (0, minutes, seconds) => format!("{minutes}:{seconds:02}"),
        (hours, minutes, seconds) => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// Text as it may stand in HTML, also within a quoted attribute.
fn escape(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            c => html.push(c),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(9_640, "9.6 s")]
    #[case(60_000, "1:00")]
    #[case(599_999, "9:59")]
    #[case(3_723_000, "1:02:03")]
    fn playing_time_is_written_as_players_show_it(#[case] milliseconds: u64, #[case] text: &str) {
        assert_eq!(clock(Duration::from_millis(milliseconds)), text);
    }

    #[test]
    fn text_cannot_leave_an_element_or_an_attribute() {
        assert_eq!(
            escape("<b a=\"'&'\">ü</b>"),
            "&lt;b a=&quot;&#39;&amp;&#39;&quot;&gt;ü&lt;/b&gt;"
        );
    }
}
