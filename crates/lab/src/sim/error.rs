//! [`SimError`]: why there is no result.

use playrate_netsim::{ConfigError, RunError, SetupError};
use thiserror::Error;

/// A run that came to nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SimError {
    /// The path cannot be built as it was asked for.
    #[error(transparent)]
    Path(#[from] ConfigError),
    /// The simulation has no room for it.
    #[error(transparent)]
    Network(#[from] SetupError),
    /// The simulation ended before the viewers did.
    #[error("the simulation ended too early: {0}")]
    Run(#[from] RunError),
    /// A part could not be set up.
    #[error("cannot set up {part}: {reason}")]
    Setup {
        /// Which part.
        part: &'static str,
        /// What it says.
        reason: String,
    },
    /// It was stopped from outside.
    #[error("stopped before the end")]
    Stopped,
}

impl SimError {
    pub(crate) fn setup(part: &'static str, error: &impl ToString) -> Self {
        Self::Setup {
            part,
            reason: error.to_string(),
        }
    }
}
