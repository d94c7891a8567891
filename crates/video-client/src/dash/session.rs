//! [`DashSession`]: fetches over HTTP/3 what a [`DashPlayer`](super::DashPlayer) decides on.

use std::sync::Arc;

use playrate_transport::{Client, Target};

use super::player::DashOptions;
use super::presentation::Presentation;
use super::source::DashSource;
use crate::error::SetupError;
use crate::observer::Observer;
use crate::session::{Driver, Played, Route};
use crate::sink::Sink;

/// A title in segments, to be played once: one connection, one request at a time.
#[derive(Clone, Debug)]
pub struct DashSession {
    route: Route,
    /// `None`: read from the manifest.
    presentation: Option<Arc<Presentation>>,
    options: DashOptions,
}

impl DashSession {
    /// A session for the title whose manifest (DASH `.mpd`, HLS `.m3u8`) is at `path` (with its query) on the server
    /// at `target`. The video of one set of representations, H.264 in fMP4, is fetched; the report's notes list what
    /// is left out.
    pub fn new(client: Client, target: Target, path: &str, options: DashOptions) -> Self {
        Self {
            route: Route::new(client, target, path),
            presentation: None,
            options,
        }
    }

    /// Plays `presentation` without fetching a manifest, whose path only names it in the report then.
    #[must_use]
    pub fn with_presentation(mut self, presentation: Arc<Presentation>) -> Self {
        self.presentation = Some(presentation);
        self
    }

    /// Plays the title until it has arrived, something fails or `stop` resolves. The session's time begins now. The
    /// bytes of the segments go to `sink` in playing order, after the initialisation segment whenever another is
    /// needed.
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
    ) -> Result<Played, SetupError> {
        let driver = Driver::new(&self.route, &self.options.session, observer).with_timer();
        let source = DashSource::new(&self.options, &self.route.path, self.presentation.as_ref())?;
        Ok(driver.play(source, sink, stop).await)
    }
}
