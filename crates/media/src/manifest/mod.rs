//! Manifests of packaged titles: which files are which piece of which representation, for a server that wants to know what
//! it sends. What a manifest says beyond that (keys, events, live edges) is for players and is passed over.
//!
//! - DASH (ISO/IEC 23009-1): segment templates with and without a timeline, segment lists, single files;
//! - HLS (RFC 8216): main playlists and media playlists.
//!
//! Names are paths below the media directory, so a manifest is read together with its own name.

mod dash;
mod error;
mod hls;
mod location;
mod template;
mod values;

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use playrate_units::{Bitrate, Bytes};

pub use error::ManifestError;

/// Most bytes of a manifest. A ten-hour title in 2 s segments, every one listed, has about 2 MB.
const LARGEST: Bytes = Bytes::new(16 << 20);
/// Longest time believed. Sums over [`SEGMENTS`] of them are far from what a `Duration` can hold.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);
/// Most segments that a manifest may name, over all representations.
const SEGMENTS: usize = 500_000;

/// What a manifest says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Manifest {
    /// A DASH MPD: every representation, with its pieces.
    Dash(Vec<Representation>),
    /// An HLS main playlist: which playlists there are.
    Main(Vec<Variant>),
    /// An HLS media playlist: one representation.
    Media(Representation),
}

/// One encoding of one component of a title.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Representation {
    /// Its name in the manifest: `Representation@id`, or the playlist's file name.
    pub id: String,
    /// Those of one set replace each other while playing; a player plays one of each set. Counts from 0.
    pub set: usize,
    /// What it is, if the manifest says so.
    pub component: Component,
    /// Codecs as RFC 6381 writes them, if said.
    pub codecs: Option<String>,
    /// Width and height of the picture in pixels, if said.
    pub picture: Option<(u32, u32)>,
    /// The rate that the manifest declares: of DASH `@bandwidth`, of HLS the average if there is one. Packagers differ in
    /// whether that is the average or the peak.
    pub declared_rate: Option<Bitrate>,
    /// What must be read before any of its pieces (its `moov` box), if the manifest names it.
    pub initialization: Option<Piece>,
    /// Of a representation that is one file: where in it the segment index (`sidx` box) lies, if said.
    pub index: Option<Range<u64>>,
    /// Which part of the title it encodes, from 0: a player plays one after the other.
    pub period: usize,
    /// Whether the manifest may still grow.
    pub live: bool,
    /// Its media, in playing order. None of a live presentation whose segments the manifest does not list.
    pub pieces: Vec<Piece>,
}

/// What a representation holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Component {
    /// Pictures, alone or with sound.
    Video,
    /// Sound alone.
    Audio,
    /// Subtitles, thumbnails and the like.
    Other,
    /// Not said.
    #[default]
    Unknown,
}

/// One segment, an initialisation segment, or a whole representation that is one file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Piece {
    /// Path below the media directory; `None` if it lies elsewhere.
    pub file: Option<String>,
    /// The query that a request for it carries.
    pub query: Option<Box<str>>,
    /// Its bytes in that file; `None` if it is all of it.
    pub bytes: Option<Range<u64>>,
    /// How long it plays; `None` if the manifest does not say.
    pub duration: Option<Duration>,
}

/// A media playlist, as a main playlist names it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Variant {
    /// Path of the playlist below the media directory; `None` if it lies elsewhere.
    pub file: Option<String>,
    /// The query that a request for it carries.
    pub query: Option<Box<str>>,
    /// What goes for the representation that the playlist is; it has no pieces yet.
    pub representation: Representation,
}

impl Manifest {
    /// Whether a file of this name is read as a manifest: `.mpd` or `.m3u8`.
    pub fn is_named(path: &Path) -> bool {
        let extension = path.extension().and_then(std::ffi::OsStr::to_str);
        extension.is_some_and(|extension| {
            ["mpd", "m3u8"]
                .iter()
                .any(|known| extension.eq_ignore_ascii_case(known))
        })
    }

    /// Reads the manifest at `path`, whose path below the media directory is `name`.
    ///
    /// # Errors
    /// If it cannot be read or understood; the error names file, line and the mend.
    pub fn open(path: &Path, name: &str) -> Result<Self, ManifestError> {
        let read = || {
            let size = std::fs::metadata(path)?.len();
            if size > LARGEST.as_u64() {
                return Err(ManifestError::TooLarge {
                    what: "bytes",
                    limit: LARGEST.as_u64(),
                });
            }
            Self::read(name, &std::fs::read(path)?)
        };
        read().map_err(|error: ManifestError| error.in_file(path))
    }

    /// Reads a manifest whose path below the media directory is `name`; what it is follows from that name.
    ///
    /// # Errors
    /// As [`open`](Self::open), without the file's name.
    pub fn read(name: &str, content: &[u8]) -> Result<Self, ManifestError> {
        let location = location::Location::of(name);
        if Path::new(name)
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("mpd"))
        {
            dash::read(content, &location).map(Self::Dash)
        } else {
            hls::read(content, &location)
        }
    }
}

/// Counts the segments of a manifest.
#[derive(Debug, Default)]
struct Counter(usize);

impl Counter {
    fn one_more(&mut self) -> Result<(), ManifestError> {
        self.0 += 1;
        if self.0 > SEGMENTS {
            return Err(ManifestError::TooLarge {
                what: "segments",
                limit: SEGMENTS as u64,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
