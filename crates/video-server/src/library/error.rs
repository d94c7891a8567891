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
    /// Titles that cannot be played, as files or as ladders of representations.
    #[error("{}", list(titles, manifests))]
    BadTitles {
        /// Files that cannot be played.
        titles: Vec<BadTitle>,
        /// Messages about manifests that cannot be used.
        manifests: Vec<String>,
    },
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

fn list(titles: &[BadTitle], manifests: &[String]) -> String {
    let all = titles.iter().map(ToString::to_string);
    let all = all.chain(manifests.iter().cloned());
    let mut lines: Vec<String> = all.take(SHOWN).collect();
    let count = titles.len() + manifests.len();
    if let Some(more) = count.checked_sub(SHOWN).filter(|&more| more > 0) {
        lines.push(format!("… and {more} more titles that cannot be played"));
    }
    lines.join("\n")
}
