//! [`LibraryError`]: errors of a media directory.

use std::io;
use std::path::PathBuf;

use playrate_media::MediaError;
use thiserror::Error;

/// Error of reading a media directory.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// The directory, or something in it, cannot be read.
    #[error("cannot read {}: {error}; expected a directory that this user may read", path.display())]
    Unreadable {
        /// File or directory that cannot be read.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The path is not a directory.
    #[error("{} is not a directory; expected the directory of the titles", .0.display())]
    NotADirectory(PathBuf),
    /// A directory beyond a limit.
    #[error(
        "{} holds more than {limit} {what}; serve a smaller directory, or split it among several servers",
        path.display()
    )]
    TooLarge {
        /// Path of the directory.
        path: PathBuf,
        /// The limit that is exceeded.
        limit: usize,
        /// Kind of the limited items.
        what: &'static str,
    },
    /// Titles that cannot be played.
    #[error("{}", list(.0))]
    BadTitles(Vec<BadTitle>),
    /// There is nothing to watch: manifests that cannot be used, and no title beside them.
    #[error("nothing to serve: {}", list(.0))]
    BadManifests(Vec<String>),
    /// A name that no request can have.
    #[error(
        "invalid title name `{0}`; expected segments joined by `/`, none of them empty or with a leading dot"
    )]
    Name(String),
}

/// A title that cannot be played.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{error}")]
#[non_exhaustive]
pub struct BadTitle {
    /// Path of the file.
    pub path: PathBuf,
    /// Fault in the file, with box and offset.
    pub error: MediaError,
}

/// A message stays readable however bad a directory is.
const SHOWN: usize = 10;

fn list(titles: &[impl ToString]) -> String {
    let mut lines: Vec<String> = titles.iter().take(SHOWN).map(ToString::to_string).collect();
    if let Some(more) = titles.len().checked_sub(SHOWN).filter(|&more| more > 0) {
        lines.push(format!("… and {more} more titles that cannot be played"));
    }
    lines.join("\n")
}
