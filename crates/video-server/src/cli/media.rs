//! [`MediaLocation`]: the directory or object store that `--media` names.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use video_server::library::{Library, LibraryError};

use super::Failure;

/// Place of the titles.
#[derive(Clone, Debug)]
pub(super) enum MediaLocation {
    Directory(PathBuf),
    #[cfg(feature = "object-store")]
    Store(String),
}

impl From<OsString> for MediaLocation {
    fn from(text: OsString) -> Self {
        #[cfg(feature = "object-store")]
        if let Some(location) = text.to_str()
            && playrate_origin::is_location(location)
        {
            return Self::Store(location.to_owned());
        }
        Self::Directory(text.into())
    }
}

impl fmt::Display for MediaLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(directory) => directory.display().fmt(f),
            #[cfg(feature = "object-store")]
            Self::Store(location) => f.write_str(location),
        }
    }
}

impl MediaLocation {
    /// Returns true if a request can name something in the directory `name`.
    pub(super) fn contains(&self, name: &str, library: &Library) -> bool {
        match self {
            Self::Directory(directory) => {
                // Each request looks up its files, including those that no library has.
                let _ = library;
                directory.join(name).exists()
            }
            #[cfg(feature = "object-store")]
            Self::Store(_) => {
                let manifests = library.packaged().iter().map(|title| &title.manifest);
                let mut names = library.titles().map(|(name, _)| name).chain(manifests);
                names.any(|known| known.below(name).is_some())
            }
        }
    }
}

/// The failure of reading `--media`. A store that does not answer may do so later; other faults persist.
pub(super) fn failure(error: LibraryError) -> Failure {
    #[cfg(feature = "object-store")]
    if error.is_temporary() {
        return Failure::Run(anyhow::Error::new(error).context("--media"));
    }
    Failure::Input(anyhow::Error::new(error).context("--media"))
}
