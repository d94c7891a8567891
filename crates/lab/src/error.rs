//! [`CommandError`]: the reason why a command failed or stopped early.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::scenario::ScenarioError;
use crate::sim::SimError;

/// Reason why a command failed or stopped early.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CommandError {
    /// A scenario is invalid.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A single run could not be made.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// A mistake in the arguments, or in the contents of the directories that they name.
    #[error("{0}")]
    BadInput(String),
    /// Results cannot be read.
    #[error("cannot read results in {}: {error}; expected a directory of `lab run`", .directory.display())]
    Read {
        /// Directory of the results.
        directory: PathBuf,
        /// The error of the operating system, or of an unreadable row.
        error: io::Error,
    },
    /// Rows cannot be written.
    #[error("cannot store results in {}: {error}", .directory.display())]
    Store {
        /// Directory of the results.
        directory: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// A file made from results cannot be written; the results themselves are stored.
    #[error("cannot write {}: {error}", .file.display())]
    Write {
        /// File that could not be written.
        file: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The results cannot be printed.
    #[error("cannot print the results: {0}")]
    Print(io::Error),
    /// The runs were interrupted.
    #[error("stopped after {done} of {all} runs, which are kept in {}; --resume makes the rest", .directory.display())]
    Stopped {
        /// Number of finished runs.
        done: usize,
        /// Number of all runs.
        all: usize,
        /// Directory of the results.
        directory: PathBuf,
    },
    /// Single runs failed; the others are stored.
    #[error("{} of {all} runs failed: {}", .failed.len(), .failed.join("; "))]
    Runs {
        /// Name and error message of each.
        failed: Vec<String>,
        /// Number of all runs.
        all: usize,
    },
}

impl CommandError {
    /// Returns true if different arguments would help.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Scenario(_) | Self::BadInput(_) | Self::Sim(SimError::Path(_)) => true,
            Self::Read { error, .. } => error.kind() == io::ErrorKind::NotFound,
            _ => false,
        }
    }

    /// The error of a file or directory below `--out` that cannot be written.
    pub(crate) fn cannot_write(path: &Path, error: &impl Display) -> Self {
        Self::BadInput(format!(
            "cannot write {}: {error}; choose another directory with --out",
            path.display()
        ))
    }

    /// The error of storing results in `directory`; `advice` applies if the directory already has some.
    pub(crate) fn store(directory: &Path, error: io::Error, advice: &str) -> Self {
        match error.kind() {
            io::ErrorKind::AlreadyExists => {
                Self::BadInput(format!("{} already holds results; {advice}", directory.display()))
            }
            _ => Self::Store {
                directory: directory.to_owned(),
                error,
            },
        }
    }
}
