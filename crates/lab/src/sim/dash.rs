//! Ladders in runs: what the server has of one, and what the client is told of it in place of a manifest.

use std::sync::Arc;

use playrate_media::Ladder;
use playrate_transport::{Client, Target};
use quinn::Runtime;
use video_client::dash::{DashSession, MediaSegment, Presentation, PresentationError, Representation};
use video_client::{Discard, PlayOptions, Played, Session};

use super::{SimError, Viewer, Viewing};

/// The name of a representation at the server.
pub(super) fn resource(title: &str, representation: &str) -> String {
    format!("{title}/{representation}")
}

/// What a manifest would say of `ladder`: every representation is one resource, every segment a range of it (DASH's
/// on-demand profile).
pub(super) fn presentation(title: &str, ladder: &Ladder) -> Result<Presentation, PresentationError> {
    let representations = ladder.representations().iter();
    let representations = representations.map(|it| Representation {
        name: it.name().to_owned(),
        rate: it.rate(),
        initialization: None,
        segments: it
            .source()
            .title()
            .segments()
            .into_iter()
            .map(|segment| MediaSegment {
                path: format!("/{}", resource(title, it.name())),
                duration: segment.duration,
                pictures: u32::try_from(segment.frames.len()).unwrap_or(u32::MAX),
                bytes: Some(segment.bytes),
            })
            .collect(),
    });
    Presentation::new(representations.collect())
}

/// A player of either kind.
#[derive(Debug)]
pub(super) enum Player {
    /// Of a title in one piece.
    Progressive(Session),
    /// Of a ladder.
    Dash(DashSession),
}

impl Player {
    /// The player that `viewer` has. `taps` says whether it keeps its time series.
    pub(super) fn new(
        runtime: Arc<dyn Runtime>,
        client: Client,
        target: Target,
        viewer: &Viewer,
        taps: bool,
    ) -> Self {
        let path = format!("/{}", viewer.title.name());
        if let Some(presentation) = viewer.title.representations() {
            let mut options = viewer.dash.clone();
            if !taps {
                options.series_interval = std::time::Duration::ZERO;
            }
            let presentation = Arc::clone(presentation);
            return Self::Dash(DashSession::new(
                runtime,
                client,
                target,
                &path,
                presentation,
                options,
            ));
        }
        let mut options = PlayOptions {
            playout: viewer.playout.clone(),
            frames: viewer.title.frames(),
            ..PlayOptions::default()
        };
        if !taps {
            options.playout.series_interval = std::time::Duration::ZERO;
        }
        Self::Progressive(Session::new(runtime, client, target, &path, options))
    }

    /// Plays the title until it is in or `stop` resolves.
    ///
    /// # Errors
    /// If the player cannot be set up.
    pub(super) async fn play(
        &self,
        viewing: &mut Viewing,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<Played, SimError> {
        match self {
            Self::Progressive(session) => session
                .play(&mut Discard, viewing, stop)
                .await
                .map_err(|error| SimError::setup("the player", &error)),
            Self::Dash(session) => session
                .play(&mut Discard, viewing, stop)
                .await
                .map_err(|error| SimError::setup("the player", &error)),
        }
    }
}
