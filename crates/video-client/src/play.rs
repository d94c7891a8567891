//! [`Session`]: one title over HTTP/3, in one file or in segments, played by the model.
//!
//! The session loop is in `session`. A `TitleSource` decides what to request: `progressive` for one file,
//! [`crate::dash`] for segments.

use playrate_transport::{Client, Target};

use crate::dash::{DashOptions, DashSource};
use crate::error::SetupError;
use crate::observer::Observer;
use crate::progressive::{PlayOptions, ProgressiveSource};
use crate::session::{Driver, Played, Route, SharedConnection};
use crate::sink::Sink;

/// The player of a [`Session`], depending on the kind of title.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "a title is one file or several segments")]
pub enum Player {
    /// For a title of one file, from its first byte to its last.
    Progressive(PlayOptions),
    /// For a title in segments: one connection, one request at a time. The segments' bytes go to the sink in playing
    /// order, preceded by the initialisation segment whenever another one is needed.
    Adaptive(DashOptions),
}

impl From<PlayOptions> for Player {
    fn from(options: PlayOptions) -> Self {
        Self::Progressive(options)
    }
}

impl From<DashOptions> for Player {
    fn from(options: DashOptions) -> Self {
        Self::Adaptive(options)
    }
}

/// A title, to be played once.
#[derive(Clone, Debug)]
pub struct Session {
    route: Route,
    player: Player,
}

impl Session {
    /// A session for the title at `path` (including its query) on the server at `target`. `player` is [`PlayOptions`]
    /// for a title of one file. It is [`DashOptions`] for a title in segments with its manifest at `path`.
    pub fn new(client: Client, target: Target, path: &str, player: impl Into<Player>) -> Self {
        Self {
            route: Route {
                client,
                target,
                path: path.to_owned(),
                shared: None,
            },
            player: player.into(),
        }
    }

    /// Plays over `connection`, which other sessions may use at the same time.
    #[must_use]
    pub fn over(mut self, connection: &SharedConnection) -> Self {
        self.route.shared = Some(connection.clone());
        self
    }

    /// Plays the title until it has arrived, something fails or `stop` resolves. The session's time begins with this
    /// call.
    ///
    /// Once the title has arrived, nothing can change what the viewer sees, so the report covers the title to its end
    /// without waiting for it. The connection is closed; [`Client::wait_idle`] waits until the server has been
    /// notified.
    ///
    /// # Errors
    /// Only if the player cannot be set up. Later errors are in [`Played::result`], together with the report so far.
    pub async fn play<S: Sink, O: Observer>(
        &self,
        sink: &mut S,
        observer: &mut O,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<Played, SetupError> {
        let (route, path) = (&self.route, &self.route.path);
        // Boxed, so that a session does not reserve room for the other kind of player.
        Ok(match &self.player {
            Player::Progressive(options) => {
                let source = ProgressiveSource::new(options, path)?;
                let driver = Driver::new(source, route, &options.session, observer);
                Box::pin(driver.play(sink, stop)).await
            }
            Player::Adaptive(options) => {
                let source = DashSource::new(options, path)?;
                let driver = Driver::new(source, route, &options.session, observer);
                Box::pin(driver.play(sink, stop)).await
            }
        })
    }
}
