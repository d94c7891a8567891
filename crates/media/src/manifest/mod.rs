//! Manifests of packaged titles: the files and pieces of each representation, for servers and players. `docs/media.md`
//! lists the supported parts. Parts known to change the segments without being supported end in an error that names
//! them. Other contents (keys, events, live edges) are skipped.
//!
//! - DASH (ISO/IEC 23009-1): segment templates with and without a timeline, segment lists, single files;
//! - HLS (RFC 8216): main playlists and media playlists.
//!
//! Names are paths below the media directory, so reading a manifest requires its own name.

mod counter;
mod dash;
mod hls;
mod location;
mod scope;
mod template;
mod values;
mod xml;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use playrate_units::{Bitrate, Bytes};
use url::Url;

pub use counter::SEGMENT_LIMIT;

use crate::error::MediaError;

/// Maximum size of a manifest. A ten-hour title that lists every 2 s segment has about 2 MB.
pub const LARGEST: Bytes = Bytes::new(16 << 20);
/// Longest time accepted. Sums over all segments of a manifest fit into a `Duration`.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// Result of reading a part of a manifest.
type Result<T, E = MediaError> = std::result::Result<T, E>;

/// The contents of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Manifest {
    /// A DASH MPD: every representation, with its pieces.
    Dash(Vec<ManifestRepresentation>),
    /// An HLS main playlist: references to media playlists.
    Main(Vec<Variant>),
    /// An HLS media playlist: one representation.
    Media(Box<ManifestRepresentation>),
}

/// One encoding of one component of a title.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ManifestRepresentation {
    /// Its name in the manifest: `Representation@id`, or the playlist's file name.
    pub id: String,
    /// Representations of one set replace each other during playback; a player plays one of each set. Counts from 0.
    pub set: usize,
    /// Kind of media, if declared.
    pub component: Component,
    /// Codecs as RFC 6381 writes them, if declared.
    pub codecs: Option<String>,
    /// Width and height of the video in pixels, if declared.
    pub resolution: Option<(u32, u32)>,
    /// Declared rate: `@bandwidth` of DASH, the average of HLS if there is one. Some packagers declare the average,
    /// others the peak.
    pub declared_rate: Option<Bitrate>,
    /// Initialisation segments (their `moov` boxes), each with the index of the first piece that needs it. Empty if
    /// none is named in the manifest.
    pub initializations: Vec<(usize, Piece)>,
    /// Encryption of the media: the method of HLS, or the scheme of DASH.
    pub encryption: Option<String>,
    /// Media time at which the period begins (`@presentationTimeOffset`), for a representation with an index.
    pub offset: Duration,
    /// True if it has the role `main`, false if it has only other roles, such as `alternate` or `commentary`.
    pub is_main: Option<bool>,
    /// True if it refers to variables of a main playlist.
    pub has_imports: bool,
    /// Byte range of the segment index (`sidx` box) of a representation in one file, if declared.
    pub index: Option<Range<u64>>,
    /// Index of its period: a player plays one period after the other.
    pub period: usize,
    /// True if the manifest may still grow.
    pub live: bool,
    /// Its media, in playing order. Empty for a live presentation whose segments the manifest does not list, and if no
    /// segment lies in the period.
    pub pieces: Vec<Piece>,
    /// Problems that were resolved, for operators.
    pub warnings: Vec<String>,
}

/// Kind of media in a representation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Component {
    /// Video, alone or with audio.
    Video,
    /// Audio, without any video.
    Audio,
    /// Captions or subtitles, which players show on demand.
    Text,
    /// Thumbnails, trick modes and other parts that a player does not choose.
    Other,
    /// The manifest does not declare it.
    #[default]
    Unknown,
}

/// One segment, an initialisation segment, or a representation that is one whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Piece {
    /// Path below the root of its server; `None` if it has none or leads out.
    pub file: Option<String>,
    /// Path and query of a request for it, as a URL has them; `None` if its reference is not a URL.
    pub path: Option<Box<str>>,
    /// True if its URL has another origin than the manifest. A server that does not know its own names may still have
    /// the file.
    pub is_foreign: bool,
    /// Its bytes in that file; `None` for the whole file.
    pub bytes: Option<Range<u64>>,
    /// Time for which it plays within its period; `None` if the manifest does not declare it.
    pub duration: Option<Duration>,
    /// Part of its media that lies outside its period and is not shown.
    pub hidden: Duration,
    /// True if the manifest declares it absent (`EXT-X-GAP`): it must not be requested.
    pub is_gap: bool,
}

impl Piece {
    /// Path and query of a request at the server of the manifest; `None` if it is elsewhere.
    pub fn own_path(&self) -> Option<&str> {
        let path = self.path.as_deref();
        path.filter(|_| self.file.is_some() && !self.is_foreign)
    }
}

/// A media playlist named by a main playlist.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Variant {
    /// Place of the media playlist.
    pub playlist: Piece,
    /// The representation of the playlist as described by the main playlist; it has no pieces yet.
    pub representation: ManifestRepresentation,
    /// The variables of the main playlist.
    pub variables: Arc<Variables>,
}

/// Variables of a main playlist (`EXT-X-DEFINE`): their values by name.
pub type Variables = BTreeMap<String, String>;

impl Manifest {
    /// Returns true if files of this name are read as manifests: `.mpd` or `.m3u8`.
    pub fn is_named(path: &Path) -> bool {
        has_extension(path, "mpd") || has_extension(path, "m3u8")
    }

    /// Reads the manifest at `path`, whose path below the media directory is `name`. A media playlist may refer to
    /// `variables` of the main playlist that names it.
    ///
    /// # Errors
    /// If it cannot be read or is not valid; the error names the file, the line and the fix.
    pub fn open(path: &Path, name: &str, variables: &Variables) -> Result<Self> {
        let read = || {
            let size = Bytes::new(std::fs::metadata(path)?.len());
            counter::bounded(size.as_usize(), LARGEST.as_usize(), "bytes")?;
            Self::read(name, &std::fs::read(path)?, variables)
        };
        read().map_err(|error: MediaError| error.in_file(path))
    }

    /// Reads a manifest whose path below the media directory is `name`; the name determines its kind. A piece has no
    /// `file` if its path has a parameter of the manifest's query, or an unknown variable of the main playlist.
    ///
    /// # Errors
    /// As [`open`](Self::open), without the file's name.
    pub fn read(name: &str, content: &[u8], variables: &Variables) -> Result<Self> {
        let mut site = Url::parse(location::SITE).map_err(std::io::Error::other)?;
        site.set_path(&name.replace('%', "%25"));
        Self::read_at(&site, content, variables)
    }

    /// Reads a manifest at this URL. Its variables may refer to the URL's query and to `variables`, those of
    /// the main playlist.
    ///
    /// # Errors
    /// As [`open`](Self::open), without the file's name.
    pub fn read_at(url: &Url, content: &[u8], variables: &Variables) -> Result<Self> {
        let text = std::str::from_utf8(content).map_err(|error| {
            let line = line_at(content, error.valid_up_to());
            MediaError::manifest(line, "it is not UTF-8", scope::FIX)
        })?;
        let text = text.trim_start_matches('\u{feff}');
        let location = location::Location::of(url);
        if has_extension(Path::new(url.path()), "mpd") {
            dash::read(text, &location).map(Self::Dash)
        } else {
            hls::read(text, &location, variables)
        }
    }

    /// Paths of the playlists, segments and initialisation segments that it names, as in [`Piece::file`].
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let (playlists, representations) = match self {
            Self::Dash(all) => (&[][..], &all[..]),
            Self::Main(variants) => (&variants[..], &[][..]),
            Self::Media(one) => (&[][..], std::slice::from_ref(&**one)),
        };
        let playlists = playlists.iter().map(|variant| &variant.playlist);
        let initializations = representations.iter().flat_map(|one| &one.initializations);
        let media = representations.iter().flat_map(|one| &one.pieces);
        let pieces = playlists
            .chain(initializations.map(|(_, piece)| piece))
            .chain(media);
        pieces.filter_map(|piece| piece.file.as_deref())
    }
}

fn has_extension(path: &Path, known: &str) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case(known))
}

/// The line that contains the byte `at` of a manifest, counted from 1.
fn line_at(text: &[u8], at: usize) -> usize {
    let before = text.get(..at).unwrap_or_default();
    before.split(|&byte| byte == b'\n').count()
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod segments_tests;
#[cfg(test)]
mod tests;
