//! [`PlayError`]: why a title was not played to its end.

use std::time::Duration;

use http::{Response, StatusCode};
use playrate_media::MediaError;
use playrate_media::manifest::ManifestError;
use playrate_transport::{ConnectError, ExchangeError};
use playrate_units::Bytes;
use thiserror::Error;

use crate::dash::{SetupError, TitleError};
use crate::playout::ConfigError;

/// Why a title was not played to its end.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlayError {
    /// The player cannot be set up like this.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The request or its response broke off.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// The server answered, but not with the title.
    #[error("the server answered {status} to {path}{}", hint(*.status, .location.as_deref()))]
    Status {
        /// What it answered.
        status: StatusCode,
        /// What was asked for.
        path: String,
        /// Where it sent the client to, if it did.
        location: Option<String>,
    },
    /// The server fell silent.
    #[error("nothing came from the server for {}", playrate_units::duration::display(*.0))]
    Silent(Duration),
    /// What came as the manifest is none.
    #[error("the manifest {path} cannot be read: {problem}")]
    Manifest {
        /// What was asked for.
        path: String,
        /// What is wrong with it, and where.
        problem: ManifestError,
    },
    /// The manifest says something that this player does not play.
    #[error("{path} cannot be played: {problem}")]
    Title {
        /// The manifest.
        path: String,
        /// Why not.
        problem: TitleError,
    },
    /// The title has not what was asked for.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A segment, or what goes with it, cannot be read.
    #[error("{path} cannot be played: {problem}")]
    Segment {
        /// What was asked for.
        path: String,
        /// What is wrong with it. Offsets count from the beginning of the initialisation segment.
        problem: MediaError,
    },
    /// A manifest or an initialisation segment is larger than any should be.
    #[error("{path} has more than {limit}, which no manifest or initialisation segment needs")]
    TooLarge {
        /// What was asked for.
        path: String,
        /// What is taken.
        limit: Bytes,
    },
    /// What came is not a title that can be played.
    #[error("what the server sent cannot be played: {0}")]
    Media(MediaError),
    /// The bytes could not be written where they should go.
    #[error("cannot write the title: {0}")]
    Sink(std::io::Error),
    /// The caller stopped it.
    #[error("stopped before the end")]
    Stopped,
}

// Written out rather than derived, since their texts contain the cause, and a source would say it a second time.
impl From<MediaError> for PlayError {
    fn from(error: MediaError) -> Self {
        Self::Media(error)
    }
}

impl From<std::io::Error> for PlayError {
    fn from(error: std::io::Error) -> Self {
        Self::Sink(error)
    }
}

/// The mend for an answer that is no title.
fn hint(status: StatusCode, location: Option<&str>) -> String {
    match (status, location) {
        (StatusCode::NOT_FOUND, _) => ": there is no such title; check the path".to_owned(),
        (_, Some(location)) => format!(": the title is at {location}; ask for it there"),
        (StatusCode::SERVICE_UNAVAILABLE, _) => {
            ": it is overloaded or shutting down; try again later".to_owned()
        }
        _ => String::new(),
    }
}

/// What an answer to a request for `path` that is not the one asked for comes to.
pub(crate) fn status_error(response: &Response<()>, path: &str) -> PlayError {
    let location = response.headers().get(http::header::LOCATION);
    PlayError::Status {
        status: response.status(),
        path: path.to_owned(),
        location: location.and_then(|value| value.to_str().ok()).map(str::to_owned),
    }
}
