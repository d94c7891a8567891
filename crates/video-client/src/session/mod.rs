//! The loop of a session, its connection and its options. It requests what a `TitleSource` chooses.

mod body;
mod driver;
mod reconnect;
mod requests;
mod resume;

use std::sync::Arc;
use std::time::Duration;

use playrate_transport::Connection;
use tokio::sync::OnceCell;

use crate::cmcd::CmcdOptions;
use crate::error::PlayError;
use crate::report::QualityReport;

pub(crate) use driver::{Driver, NextStep, Request, Route, TitleSource};
pub use reconnect::ReconnectOptions;

/// A jump of the viewer to another position. Discards the buffer and cancels the response in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "settings are written as literals")]
pub struct Seek {
    /// Time since the session began.
    pub at: Duration,
    /// Position in the title, in media time.
    pub to: Duration,
}

/// A connection shared by several sessions. The first one establishes it; none of them closes it, or replaces it when
/// it is lost.
#[derive(Clone, Debug, Default)]
pub struct SharedConnection(Arc<OnceCell<Connection>>);

impl SharedConnection {
    /// Closes the connection, if any.
    pub fn close(&self) {
        if let Some(connection) = self.0.get() {
            connection.clone().close();
        }
    }
}

/// Options of a session with any kind of title.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionOptions {
    /// Maximum wait for a response, and then for its next bytes while the player needs them.
    pub timeout: Duration,
    /// CMCD of the requests.
    pub cmcd: CmcdOptions,
    /// Time between calls of [`Observer::progress`](crate::Observer::progress).
    pub progress_interval: Duration,
    /// Jumps of the viewer, in order of their times. For a title in one file, requires
    /// [`FrameSource::Index`](crate::FrameSource::Index).
    pub seeks: Vec<Seek>,
    /// Behaviour after a loss of the connection. If `None`, the session fails. The first connection is not retried.
    pub reconnect: Option<ReconnectOptions>,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            cmcd: CmcdOptions::default(),
            progress_interval: Duration::from_millis(100),
            seeks: Vec::new(),
            reconnect: None,
        }
    }
}

/// Outcome of a session.
#[derive(Debug)]
#[non_exhaustive]
pub struct Played {
    /// The report on what was played.
    pub report: QualityReport,
    /// `Ok` if the whole title arrived.
    pub result: Result<(), PlayError>,
}
