//! The title that comes with the project, embedded in the program (feature `embedded-title`, about 10 MB).
//!
//! What it shows, where it comes from and its licence: `assets/README.md`.

use bytes::Bytes;

use crate::error::MediaError;
use crate::source::MemorySource;

/// The file's name, with which it can be served.
pub const TITLE_NAME: &str = "title-720p.mp4";

/// 27 s of H.264 and AAC at 1280×720, about 2.8 Mbit/s with a variable rate; progressive, `moov` box first.
pub const TITLE: &[u8] = include_bytes!("../assets/title-720p.mp4");

/// The embedded title, ready to be served.
///
/// # Errors
/// None that a build of this crate's own file should see; the file is parsed as any other.
pub fn title() -> Result<MemorySource, MediaError> {
    MemorySource::new(Bytes::from_static(TITLE))
}
