//! [`Session`]: one title from one file, progressively, over HTTP/3, played by the model.
//!
//! The session loop is in `driver` and `link`. A `TitleSource` decides what it requests: `progressive` for one file,
//! [`crate::dash`] for segments.

mod body;
mod driver;
mod link;
mod progressive;
mod reconnect;
mod resume;
mod source;

use std::sync::Arc;
use std::time::Duration;

use playrate_media::Limits;
use playrate_transport::{Client, Connection, Target};
use tokio::sync::OnceCell;

use crate::cmcd::CmcdOptions;
use crate::error::PlayError;
use crate::frames::FrameSource;
use crate::observer::Observer;
use crate::playout::{ConfigError, PlayoutConfig};
use crate::report::QualityReport;
use crate::sink::Sink;

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
    /// Time between calls of [`Observer::progress`].
    pub progress_interval: Duration,
    /// Jumps of the viewer, in the order of their times. Of a title in one piece only with [`FrameSource::Index`].
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

/// Options of a [`Session`].
///
/// ```
/// let mut options = video_client::PlayOptions::default();
/// options.session.timeout = std::time::Duration::from_secs(5);
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct PlayOptions {
    /// Settings of the modelled player.
    pub playout: PlayoutConfig,
    /// Origin of the title's frame index.
    pub frames: FrameSource,
    /// Bounds on an untrusted MP4 file.
    pub limits: Limits,
    /// Timeout, CMCD and progress. One response carries the whole title, so CMCD's buffer length, which would be true
    /// only at the beginning, is left out.
    pub session: SessionOptions,
}

/// A title of one file, to be played once.
#[derive(Clone, Debug)]
pub struct Session {
    route: Route,
    options: PlayOptions,
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

impl Session {
    /// A session for `path` (with its query) on the server at `target`.
    pub fn new(client: Client, target: Target, path: &str, options: PlayOptions) -> Self {
        let route = Route::new(client, target, path);
        Self { route, options }
    }

    /// Plays over `connection`, which other sessions may use at the same time.
    #[must_use]
    pub fn over(mut self, connection: &SharedConnection) -> Self {
        self.route.shared = Some(connection.clone());
        self
    }

    /// Plays the title until it has arrived, something fails or `stop` resolves. The session's time begins now.
    ///
    /// Once the title has arrived nothing can change what the viewer sees, so the report covers the title to its end
    /// without waiting for it. The connection is closed; [`Client::wait_idle`] waits until the server can know.
    ///
    /// # Errors
    /// Only if the player cannot be set up. Later errors are in [`Played::result`], beside the report so far.
    pub async fn play<S: Sink, O: Observer>(
        &self,
        sink: &mut S,
        observer: &mut O,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<Played, ConfigError> {
        let driver = Driver::new(&self.route, &self.options.session, observer);
        let source = progressive::ProgressiveSource::new(&self.options, &self.route.path)?;
        Ok(driver.play(source, sink, stop).await)
    }
}
