//! [`LiveError`]: why nothing was compared.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::scenario::ScenarioError;
use crate::sim::SimError;

/// Why nothing was compared.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The scenario is no good.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The scenario has several cases, and none was named.
    #[error("`{scenario}` has the cases {cases}: name one of them with --case, since each takes its time")]
    Cases {
        /// The scenario.
        scenario: String,
        /// Its cases.
        cases: String,
    },
    /// The scenario asks for what cannot be in real time.
    #[error("`{scenario}` cannot be run live: {reason}; `lab run` can")]
    Unfit {
        /// The scenario.
        scenario: String,
        /// What it asks for and why that cannot be.
        reason: String,
    },
    /// There is no directory for the report, or it cannot be written there.
    #[error("cannot write {}: {source}; choose another directory with --out", .path.display())]
    Save {
        /// What cannot be written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A run could not be had.
    #[error(transparent)]
    Run(#[from] SimError),
    /// Virtual runs came to nothing.
    #[error("virtual runs failed: {0}")]
    Virtual(String),
    /// Somebody stopped it.
    #[error("stopped before anything could be compared")]
    Stopped,
    /// The results could not be printed.
    #[error("cannot print the results: {0}")]
    Print(io::Error),
}

impl LiveError {
    /// Whether the user asked for something that cannot be.
    pub fn is_bad_input(&self) -> bool {
        matches!(
            self,
            Self::Scenario(_) | Self::Cases { .. } | Self::Unfit { .. } | Self::Save { .. }
        )
    }
}
