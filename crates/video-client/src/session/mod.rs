//! The loop of a session, its connection and its options. It requests what a `TitleSource` decides on.

mod body;
mod driver;
mod link;
mod reconnect;
mod resume;
mod source;

use std::sync::Arc;
use std::time::Duration;

use playrate_transport::Connection;
use tokio::sync::OnceCell;

use crate::cmcd::CmcdOptions;
use crate::error::PlayError;
use crate::report::QualityReport;

pub(crate) use driver::{Driver, Request, Route};
pub(crate) use link::Link;
pub use reconnect::ReconnectOptions;
pub(crate) use source::{NextStep, TitleSource};

/// A jump of the viewer to another position. What is buffered is discarded, and what is on its way is cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "settings are written as literals")]
pub struct Seek {
    /// Time since the session began.
    pub at: Duration,
    /// Position in the title, in media time.
    pub to: Duration,
}

/// A connection that several sessions share. The first of them makes it, and none of them closes it or replaces it when
/// it is lost.
#[derive(Clone, Debug, Default)]
pub struct SharedConnection(Arc<OnceCell<Connection>>);

impl SharedConnection {
    /// Closes the connection, if there is one.
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
    /// Longest wait for a response, and then for the next bytes of it while the player wants them.
    pub timeout: Duration,
    /// CMCD of the requests.
    pub cmcd: CmcdOptions,
    /// Time between calls of [`Observer::progress`](crate::Observer::progress).
    pub progress_interval: Duration,
    /// Jumps of the viewer, in the order of their times. Of a title in one piece only with
    /// [`FrameSource::Index`](crate::FrameSource::Index).
    pub seeks: Vec<Seek>,
    /// Behaviour when the connection is lost. `None`: the session fails then. The first connection is not repeated.
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
    /// The report, of as much as was played.
    pub report: QualityReport,
    /// `Ok` if the whole title arrived.
    pub result: Result<(), PlayError>,
}
