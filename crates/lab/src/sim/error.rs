//! [`SimError`]: the errors of a single run.

use playrate_netsim::{ConfigError, RunError, SetupError};
use thiserror::Error;

/// Reason why a run has no result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SimError {
    /// The path's parameters are inconsistent.
    #[error(transparent)]
    Path(#[from] ConfigError),
    /// The simulation has no room for these hosts or links.
    #[error(transparent)]
    Network(#[from] SetupError),
    /// The simulation ended before its viewers finished.
    #[error("the simulation ended too early: {0}")]
    Run(#[from] RunError),
    /// A component could not be set up.
    #[error("cannot set up {component}: {reason}")]
    Setup {
        /// Name of the component, for people.
        component: &'static str,
        /// Its own error message.
        reason: String,
    },
    /// The run was stopped from outside.
    #[error("stopped before the end")]
    Stopped,
}

impl SimError {
    pub(crate) fn setup(component: &'static str, error: &impl ToString) -> Self {
        Self::Setup {
            component,
            reason: error.to_string(),
        }
    }
}
