//! The title that comes with the project, embedded in the program (feature `embedded-title`, about 10 MB).
//!
//! Contents, origin and licence: `assets/README.md`.

use bytes::Bytes;

use crate::error::MediaError;
use crate::source::MemorySource;

/// The file's name, under which it can be served.
pub const TITLE_NAME: &str = "title-720p.mp4";

/// 27 s of H.264 and AAC at 1280×720, about 2.8 Mbit/s with a variable rate; progressive, `moov` box first.
pub const TITLE: &[u8] = include_bytes!("../assets/title-720p.mp4");

/// The embedded title, ready to be served.
///
/// A build with this crate's own file never fails; the file is parsed like any other.
pub fn title() -> Result<MemorySource, MediaError> {
    MemorySource::new(Bytes::from_static(TITLE))
}
