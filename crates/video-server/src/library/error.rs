//! [`LibraryError`]: errors of a media directory.

use std::io;
use std::path::{Path, PathBuf};

use playrate_media::MediaError;
use serde::{Serialize, Serializer};
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
    /// A directory that exceeds a limit.
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
    /// Titles that cannot be played, as files or as ladders of representations, and directories that cannot be read.
    #[error("{}", list(.0))]
    BadTitles(Vec<Fault>),
    /// The object store, or an object that is needed, cannot be read.
    #[cfg(feature = "object-store")]
    #[error(transparent)]
    Origin(#[from] playrate_origin::OriginError),
    /// A name that a request cannot have.
    #[error(
        "invalid title name `{0}`; expected segments joined by `/`, none of them empty or with a leading dot"
    )]
    Name(String),
}

impl LibraryError {
    /// Makes an error of the system the reason why `path` cannot be read.
    pub(super) fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Unreadable {
            path: path.to_owned(),
            error,
        }
    }

    /// `path` holds more than `limit` items of the kind `what`.
    pub(super) fn too_large(path: &Path, limit: usize, what: &'static str) -> Self {
        let path = path.to_owned();
        Self::TooLarge { path, limit, what }
    }

    /// Returns true if the same library may be readable later because the store recovers.
    #[cfg(feature = "object-store")]
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Origin(error) => error.is_temporary(),
            Self::BadTitles(faults) => faults.iter().any(|fault| fault.is_temporary),
            _ => false,
        }
    }
}

/// Kind of a [`Fault`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum FaultKind {
    /// A title that cannot be played. Its file is served unchanged, and its rate is unknown.
    Title,
    /// A manifest that cannot be used. Its files are served, and their rates are unknown.
    Manifest,
    /// A directory below the media directory that cannot be read. Its titles are not served.
    Directory,
    /// Anything else that is left out, or a contradiction in a title that is served.
    Warning,
}

/// Something in a media directory that cannot be used, or is left out.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize)]
// A line break in a file name must not look like the end of the message.
#[error("{}", .message.replace(char::is_control, "\u{FFFD}"))]
#[non_exhaustive]
pub struct Fault {
    /// Kind of the fault.
    pub kind: FaultKind,
    /// Path of the file or directory.
    #[serde(serialize_with = "lossily")]
    pub path: PathBuf,
    /// Place, problem and correction.
    pub message: String,
    /// Detail that identifies the same fault in another reading. Numbers in the message may differ.
    #[serde(skip)]
    pub(super) subject: String,
    /// True if the store may deliver it later.
    #[serde(skip)]
    is_temporary: bool,
}

/// Serializes a path that need not be UTF-8.
fn lossily<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&path.display())
}

impl Fault {
    /// Creates a fault that its path and `message` identify in another reading.
    pub(crate) fn new(kind: FaultKind, path: &Path, message: String) -> Self {
        Self {
            kind,
            path: path.to_owned(),
            subject: message.clone(),
            message,
            is_temporary: false,
        }
    }

    /// A title or manifest that cannot be read.
    pub(crate) fn of_media(kind: FaultKind, path: &Path, error: &MediaError) -> Self {
        let other = io::ErrorKind::Other;
        Self {
            is_temporary: matches!(error.cause(), MediaError::Io { kind, .. } if *kind == other),
            ..Self::new(kind, path, error.to_string())
        }
    }

    /// Creates a warning that its path and `subject` identify in another reading, whatever its message.
    pub(super) fn warning(path: &Path, subject: &str, message: String) -> Self {
        Self {
            subject: subject.to_owned(),
            ..Self::new(FaultKind::Warning, path, message)
        }
    }

    /// A file whose name a request cannot have.
    pub(super) fn unnamed(path: &Path) -> Self {
        let message = format!(
            "{} is not served: its name is hidden, not UTF-8 or has a control character",
            path.display()
        );
        Self::warning(path, "name", message)
    }
}

/// Maximum number of faults in a message, to keep it readable.
const SHOWN: usize = 10;

fn list(faults: &[Fault]) -> String {
    let mut lines: Vec<String> = faults.iter().take(SHOWN).map(ToString::to_string).collect();
    if let Some(more @ 1..) = faults.len().checked_sub(SHOWN) {
        lines.push(format!("… and {more} more titles that cannot be played"));
    }
    lines.join("\n")
}

#[cfg(all(test, feature = "object-store"))]
mod tests {
    use super::*;

    #[test]
    fn titles_and_manifests_that_the_store_did_not_deliver_may_be_read_later_and_damaged_ones_may_not() {
        let error = |kind| MediaError::from(io::Error::new(kind, "503 Slow Down"));
        let path = Path::new("s3://films/a");
        for of in [FaultKind::Title, FaultKind::Manifest] {
            let bad = |kind| LibraryError::BadTitles(vec![Fault::of_media(of, path, &error(kind))]);
            assert!(bad(io::ErrorKind::Other).is_temporary());
            assert!(!bad(io::ErrorKind::UnexpectedEof).is_temporary());
            assert!(!bad(io::ErrorKind::PermissionDenied).is_temporary());
        }
        let refused = Fault::new(FaultKind::Manifest, path, String::new());
        assert!(!LibraryError::BadTitles(vec![refused]).is_temporary());
    }
}
