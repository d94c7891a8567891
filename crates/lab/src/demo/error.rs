//! [`DemoError`]: why there is no demo to see.

use std::io;
use std::path::PathBuf;

use playrate_netsim::ConfigError;
use thiserror::Error;

use crate::figure::FigureError;
use crate::sim::SimError;

/// Why the demo could not be shown.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DemoError {
    /// There can be no such path.
    #[error(transparent)]
    Path(#[from] ConfigError),
    /// A session could not be had.
    #[error(transparent)]
    Session(#[from] SimError),
    /// A part of it could not be set up.
    #[error("cannot set up {part}: {reason}")]
    Setup {
        /// Which part.
        part: &'static str,
        /// What it says.
        reason: String,
    },
    /// There is no directory for the results, and none can be made.
    #[error("cannot make the directory {}: {source}; choose another with --out", .path.display())]
    Directory {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file of the results could not be written.
    #[error("cannot write {}: {source}; choose another directory with --out", .path.display())]
    Save {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A figure could not be drawn.
    #[error(transparent)]
    Figure(#[from] FigureError),
    /// The records could not be written as JSON.
    #[error("cannot write the records as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The results could not be printed.
    #[error("cannot print the results: {0}")]
    Print(io::Error),
}

impl DemoError {
    pub(super) fn setup(part: &'static str, error: &impl ToString) -> Self {
        Self::Setup {
            part,
            reason: error.to_string(),
        }
    }

    /// Whether the user asked for something that cannot be.
    pub fn is_bad_input(&self) -> bool {
        matches!(
            self,
            Self::Path(_) | Self::Session(SimError::Path(_)) | Self::Directory { .. }
        )
    }
}
