//! The titles of scenarios.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use playrate_media::{FileSource, FrameTrace, MediaError, TraceSource, assets};
use playrate_units::Bitrate;

use crate::sim::Played;

/// Frame traces that come with the lab: name, what it is, text.
pub const TRACES: &[(&str, &str, &str)] = &[(
    "film-1080p",
    "60 s of film-like pictures, 1920×1080, 30 frames/s, H.264 at 4.82 Mbit/s",
    include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../assets/traces/film-1080p.csv"
    )),
)];

/// The name by which scenarios ask for the embedded title.
pub(super) const EMBEDDED: &str = "embedded";

/// A trace by name, or from a file relative to `base`.
pub(super) fn trace(name: &str, base: &Path) -> Result<FrameTrace, MediaError> {
    static PARSED: OnceLock<Vec<Result<FrameTrace, MediaError>>> = OnceLock::new();
    let parsed = PARSED.get_or_init(|| TRACES.iter().map(|(.., text)| FrameTrace::parse(text)).collect());
    match TRACES.iter().position(|(known, ..)| *known == name) {
        Some(index) => parsed
            .get(index)
            .cloned()
            .unwrap_or_else(|| FrameTrace::parse("")),
        None => FrameTrace::open(base.join(name)),
    }
}

/// A title of generated payload: `trace` repeated to `duration`, then scaled to `rate`.
pub(super) fn generated(
    name: &str,
    mut trace: FrameTrace,
    rate: Option<Bitrate>,
    duration: Option<Duration>,
) -> Result<Played, MediaError> {
    if let Some(duration) = duration {
        trace = trace.repeat_to(duration)?;
    }
    if let Some(rate) = rate {
        trace = trace.scale_to_rate(rate)?;
    }
    let stem = Path::new(name)
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or("title");
    Ok(Played::trace(stem, TraceSource::new(&trace)))
}

/// A title that is an MP4: the embedded one or a file relative to `base`.
pub(super) fn mp4(name: &str, base: &Path) -> Result<Played, MediaError> {
    if name == EMBEDDED {
        return Ok(Played::mp4(assets::TITLE_NAME, Arc::new(assets::title()?)));
    }
    let path = base.join(name);
    let source = FileSource::open(&path)?;
    let file = path
        .file_name()
        .and_then(|file| file.to_str())
        .unwrap_or("title.mp4");
    Ok(Played::mp4(file, Arc::new(source)))
}
