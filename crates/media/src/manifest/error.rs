//! [`ManifestError`]: what is wrong with a manifest, where, and the mend.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a manifest cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// Something in it is wrong.
    #[error("line {line}: {problem}; {mend}")]
    Malformed {
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        problem: String,
        /// What to do about it.
        mend: &'static str,
    },
    /// It goes beyond what is taken in.
    #[error("it holds more than {limit} {what}; split the title into several")]
    TooLarge {
        /// What is limited.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// It cannot be read.
    #[error("{problem}")]
    Io {
        /// The kind of the operating system's error.
        kind: io::ErrorKind,
        /// The operating system's words.
        problem: String,
    },
    /// Any of the above, with the file it happened in.
    #[error("{}: {source}", path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<ManifestError>,
    },
}

impl ManifestError {
    /// This error, naming the file it happened in.
    #[must_use]
    pub fn in_file(self, path: &Path) -> Self {
        match self {
            Self::InFile { .. } => self,
            other => Self::InFile {
                path: path.to_owned(),
                source: Box::new(other),
            },
        }
    }
}

impl From<io::Error> for ManifestError {
    fn from(error: io::Error) -> Self {
        Self::Io {
            kind: error.kind(),
            problem: error.to_string(),
        }
    }
}
