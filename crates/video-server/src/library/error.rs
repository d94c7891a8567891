//! [`LibraryError`]: errors of a media directory.

use std::io;
use std::path::{Path, PathBuf};

use playrate_media::MediaError;
use thiserror::Error;

use crate::http::path::ResourceName;

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
    /// Titles that cannot be played, as files or as ladders of representations, and directories that cannot be read.
    #[error("{}", list(titles, manifests, directories))]
    BadTitles {
        /// Files that cannot be played.
        titles: Vec<BadTitle>,
        /// Manifests that cannot be used.
        manifests: Vec<BadManifest>,
        /// Directories below the media directory that cannot be read.
        directories: Vec<UnreadableDirectory>,
    },
    /// The object store, or an object that is needed, cannot be read.
    #[cfg(feature = "object-store")]
    #[error(transparent)]
    Origin(#[from] playrate_origin::OriginError),
    /// A name that no request can have.
    #[error(
        "invalid title name `{0}`; expected segments joined by `/`, none of them empty or with a leading dot"
    )]
    Name(String),
}

#[cfg(feature = "object-store")]
impl LibraryError {
    /// Returns true if the store may let the same library be read later.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Origin(error) => error.is_temporary(),
            Self::BadTitles {
                titles, manifests, ..
            } => {
                let of_titles = titles.iter().map(|bad| &bad.error);
                let of_manifests = manifests.iter().filter_map(|bad| bad.error.as_ref());
                of_titles.chain(of_manifests).any(|error| {
                    let other = io::ErrorKind::Other;
                    matches!(error.cause(), MediaError::Io { kind, .. } if *kind == other)
                })
            }
            _ => false,
        }
    }
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

/// A manifest that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct BadManifest {
    /// Name of the manifest.
    pub name: ResourceName,
    /// File, line if there is one, problem and correction.
    pub message: String,
    /// Error of reading the manifest; `None` if it was read, and what it says is refused.
    pub error: Option<MediaError>,
}

/// A directory below the media directory that cannot be read. The library has nothing of its contents.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "cannot read {}: {error}; give this user the right to read it, or move it elsewhere",
    path.display()
)]
#[non_exhaustive]
pub struct UnreadableDirectory {
    /// Path of the directory.
    pub path: PathBuf,
    /// Message of the operating system.
    pub error: String,
}

/// Something in a media directory that is left out although no title is bad.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DirectoryWarning {
    /// A file whose name no request can have.
    #[error("{} is not served: its name is hidden or not UTF-8", file.display())]
    Name {
        /// Path of the file.
        file: PathBuf,
    },
    /// A symbolic link that is not followed.
    #[error("{} is not indexed: the link does not lead to a file of the media directory", link.display())]
    Link {
        /// Path of the link.
        link: PathBuf,
    },
    /// A playlist that is missing or unusable.
    #[error("{}: the playlist `{playlist}` that it names is missing or unusable", manifest.display())]
    Playlist {
        /// Path of the main playlist that names it.
        manifest: PathBuf,
        /// Name of the missing playlist; empty if it is not in the media directory.
        playlist: String,
    },
    /// Segments that are missing.
    #[error(
        "{}: {missing} of the {segments} segments that it names are not in the media directory",
        manifest.display()
    )]
    Segments {
        /// Path of the manifest that names them.
        manifest: PathBuf,
        /// Number of missing segments.
        missing: usize,
        /// Number of all of its segments.
        segments: usize,
    },
}

impl DirectoryWarning {
    /// Path and detail that two warnings of the same fault share. Their numbers may differ.
    pub(super) fn subject(&self) -> (u8, &Path, &str) {
        match self {
            Self::Name { file } => (0, file, ""),
            Self::Link { link } => (1, link, ""),
            Self::Playlist { manifest, playlist } => (2, manifest, playlist),
            Self::Segments { manifest, .. } => (3, manifest, ""),
        }
    }
}

/// A message stays readable however bad a directory is.
const SHOWN: usize = 10;

fn list(titles: &[BadTitle], manifests: &[BadManifest], directories: &[UnreadableDirectory]) -> String {
    let all = titles.iter().map(ToString::to_string);
    let all = all.chain(manifests.iter().map(ToString::to_string));
    let all = all.chain(directories.iter().map(ToString::to_string));
    let mut lines: Vec<String> = all.take(SHOWN).collect();
    let count = titles.len() + manifests.len() + directories.len();
    if let Some(more) = count.checked_sub(SHOWN).filter(|&more| more > 0) {
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
        let title = |kind| {
            let path = PathBuf::from("s3://films/a.mp4");
            let error = error(kind).in_file(&path);
            LibraryError::BadTitles {
                titles: vec![BadTitle { path, error }],
                manifests: Vec::new(),
                directories: Vec::new(),
            }
        };
        let manifest = |error: Option<MediaError>| LibraryError::BadTitles {
            titles: Vec::new(),
            manifests: vec![BadManifest {
                name: ResourceName::from_relative(Path::new("film/a.mpd")).expect("a name"),
                message: String::new(),
                error,
            }],
            directories: Vec::new(),
        };
        let cases: [&dyn Fn(io::ErrorKind) -> LibraryError; 2] =
            [&title, &|kind| manifest(Some(error(kind)))];
        for bad in cases {
            assert!(bad(io::ErrorKind::Other).is_temporary());
            assert!(!bad(io::ErrorKind::UnexpectedEof).is_temporary());
            assert!(!bad(io::ErrorKind::PermissionDenied).is_temporary());
        }
        assert!(!manifest(None).is_temporary());
    }
}
