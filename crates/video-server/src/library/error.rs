//! [`LibraryError`]: why there is nothing to serve, and the mend.

use std::io;
use std::path::PathBuf;

use playrate_media::MediaError;
use thiserror::Error;

/// Why a library cannot be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// The directory, or something in it, cannot be read.
    #[error("cannot read {}: {error}; name a directory that this user may read", path.display())]
    Unreadable {
        /// What cannot be read.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A file was named in place of a directory.
    #[error("{} is not a directory; name the directory that the titles are in", path.display())]
    NotADirectory {
        /// What was named.
        path: PathBuf,
    },
    /// More than a server takes in.
    #[error(
        "{} holds more than {limit} {what}; serve a smaller directory, or several servers one each",
        path.display()
    )]
    TooLarge {
        /// The directory.
        path: PathBuf,
        /// The limit.
        limit: usize,
        /// What is limited.
        what: &'static str,
    },
    /// Titles that cannot be played.
    #[error("{}", list(.0))]
    BadTitles(Vec<BadTitle>),
    /// There is nothing to watch: manifests that cannot be used, and no title beside them.
    #[error("nothing to serve: {}", list(.0))]
    BadManifests(Vec<String>),
    /// A name under which nothing can be asked for.
    #[error(
        "`{name}` cannot name a title: use segments joined by `/`, none of them empty or with a leading dot"
    )]
    Name {
        /// The name as given.
        name: String,
    },
}

/// A title that cannot be played.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{error}")]
pub struct BadTitle {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it: file, box and offset.
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
