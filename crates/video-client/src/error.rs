//! Errors of a session: [`PlayError`], [`ResumeError`]; of adaptive sessions, [`SetupError`], [`TitleError`] and
//! [`PresentationError`].

use std::time::Duration;

use http::{Response, StatusCode};
use playrate_media::MediaError;
use playrate_transport::{ConnectError, ExchangeError};
use playrate_units::Bytes;
use playrate_units::duration::display;
use thiserror::Error;

use crate::playout::ConfigError;

/// Result of a step of a session.
pub(crate) type Result<T, E = PlayError> = std::result::Result<T, E>;

/// Reason why a title was not played to its end.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlayError {
    /// No connection could be made.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The request or its response was interrupted.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// The server answered with an unexpected status.
    #[error("the server answered {status} to {path}{}", hint(*.status, .location.as_deref()))]
    Status {
        /// Status of the response.
        status: StatusCode,
        /// Path of the request.
        path: String,
        /// `Location` of a redirection.
        location: Option<String>,
    },
    /// No bytes arrived for this long.
    #[error("no data from the server for {}", display(*.0))]
    Silent(Duration),
    /// The connection was lost, and reconnecting failed.
    #[error("{lost}; trying again for {} gave: {last}", display(*.tried))]
    GivenUp {
        /// The error that interrupted the session.
        lost: String,
        /// Time since the connection was lost.
        tried: Duration,
        /// The error of the last attempt.
        last: Box<PlayError>,
    },
    /// The file was replaced while one of its responses was interrupted.
    #[error("{path} changed on the server after {received} of it had been received; play it again")]
    Changed {
        /// Path of the request.
        path: String,
        /// Bytes of the previous version.
        received: Bytes,
    },
    /// The server does not deliver the rest of an interrupted response.
    #[error(
        "the response was interrupted after {received} of {path} ({cause}), \
         and the rest cannot be requested: {problem}"
    )]
    NotResumable {
        /// Path of the request.
        path: String,
        /// Bytes of the response that were received.
        received: Bytes,
        /// Error that interrupted the response.
        cause: String,
        /// Reason why the rest is unavailable.
        problem: &'static str,
    },
    /// The length of a response differs from the one declared by its header, or by the header of the response that it
    /// continues.
    #[error("the server declared {declared} of {path} and sent {received}")]
    WrongLength {
        /// Path of the request.
        path: String,
        /// Declared length, of all parts of the response.
        declared: Bytes,
        /// Received bytes; for a response that is too long, up to the time of detection.
        received: Bytes,
    },
    /// The manifest is not valid.
    #[error("the manifest {path} cannot be read: {problem}")]
    Manifest {
        /// Path of the request.
        path: String,
        /// Error of the parser, with its place.
        problem: MediaError,
    },
    /// A manifest that this player does not support, or an invalid segment, initialisation segment or segment index.
    #[error("{path} cannot be played: {problem}")]
    Title {
        /// Path of the request.
        path: String,
        /// Feature that is not supported, or error of the parser.
        problem: TitleError,
    },
    /// The title lacks something that the options name.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A manifest, an initialisation segment or a segment index is too large.
    #[error("{path} is larger than {limit}, the limit for a manifest or an initialisation segment")]
    TooLarge {
        /// Path of the request.
        path: String,
        /// The largest size accepted.
        limit: Bytes,
    },
    /// The response is not a title that can be played.
    #[error("the response cannot be played: {0}")]
    Media(MediaError),
    /// Writing to the sink failed.
    #[error("cannot write the title: {0}")]
    Sink(std::io::Error),
    /// The caller stopped the session.
    #[error("stopped before the end")]
    Stopped,
}

/// Options of an adaptive player that the title cannot satisfy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The presentation has no such representation.
    #[error(transparent)]
    Presentation(#[from] PresentationError),
    /// Playback would begin after the end of the title.
    #[error(
        "the start time ({}) must be less than the title's duration ({})",
        display(*.requested), display(*.duration)
    )]
    StartsBeyond {
        /// The start time of the options.
        requested: Duration,
        /// Duration of the title.
        duration: Duration,
    },
    /// The settings of the modelled player contradict each other.
    #[error(transparent)]
    Playout(#[from] ConfigError),
}

/// Representations that cannot be played together, or an unknown name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PresentationError {
    /// No representation, or one without segments.
    #[error("a presentation needs at least one representation with at least one segment")]
    Empty,
    /// Two representations have the same name.
    #[error("two representations are called `{0}`: each needs a name of its own")]
    SameName(String),
    /// The player can switch only between representations whose segments begin at the same times.
    #[error(
        "the segments of `{0}` and `{1}` begin at different times: encode both with equal segment durations"
    )]
    Unaligned(String, String),
    /// A segment that would never be shown.
    #[error(
        "segment {segment} of `{representation}` has no frames, no duration or no bytes: package it again"
    )]
    EmptySegment {
        /// Name of the representation.
        representation: String,
        /// Index of the segment.
        segment: usize,
    },
    /// No representation has this name.
    #[error("unknown representation `{name}`; expected one of: {}", .known.join(", "))]
    Unknown {
        /// The name in the options.
        name: String,
        /// Names of all representations.
        known: Vec<String>,
    },
}

/// Feature of a title that this player does not support, or an error in one of its files.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TitleError {
    /// The manifest is still being written.
    #[error("it is live, and this player plays complete titles only: play its recording")]
    Live,
    /// No segment plays in its period.
    #[error("no segment of `{0}` lies in its period: correct the period's times or @presentationTimeOffset")]
    NoSegments(String),
    /// A segment that the playlist declares absent.
    #[error("the playlist declares it absent (#EXT-X-GAP)")]
    Gap,
    /// The media is encrypted, by a method of HLS or a scheme of DASH.
    #[error("`{0}` is encrypted ({1}), and this player has no keys: package it without encryption")]
    Encrypted(String, String),
    /// Neither video nor sound.
    #[error("it has neither video nor sound, only {0}: add a representation made with `ffmpeg -c:v libx264`")]
    NoMedia(String),
    /// Media is on another host.
    #[error("`{0}` has segments on another host: put them beside the manifest")]
    Elsewhere(String),
    /// One file without a declared segment index.
    #[error(
        "`{0}` is one file, and the manifest does not say where its segments are: \
         package it with SegmentBase@indexRange, or with a file for each segment"
    )]
    NoIndex(String),
    /// A segment index in a file without a declared initialisation segment.
    #[error("`{0}` has an indexRange but no Initialization: add the range of its initialisation segment")]
    NoInitialization(String),
    /// A segment without frames.
    #[error("the segment has no frames: package the title again")]
    Empty,
    /// There is no rate to choose by.
    #[error("`{0}` has no rate: write the manifest again with @bandwidth")]
    NoRate(String),
    /// A main playlist has too many playlists.
    #[error("it names {0} video playlists: at most 64 are played")]
    Playlists(usize),
    /// Its representations cannot be played together.
    #[error(transparent)]
    Presentation(#[from] PresentationError),
    /// The parser's error. Offsets count from the beginning of the initialisation segment.
    #[error(transparent)]
    Media(#[from] MediaError),
}

impl PlayError {
    /// Returns true if only this file is missing or broken, so that another one may be played in its place.
    pub(crate) fn is_of_file(&self) -> bool {
        match self {
            Self::Status { status, .. } => {
                (status.is_client_error() || status.is_server_error()) && !is_temporary(*status)
            }
            Self::Manifest { .. } | Self::Title { .. } => true,
            _ => false,
        }
    }
}

/// Advice for an unexpected status.
fn hint(status: StatusCode, location: Option<&str>) -> String {
    match (status, location) {
        (StatusCode::NOT_FOUND, _) => ": the title does not exist; check the path".to_owned(),
        (_, Some(location)) => format!(": the title is at {location}; play that URL"),
        (StatusCode::SERVICE_UNAVAILABLE, _) => {
            ": it is overloaded or shutting down; try again later".to_owned()
        }
        _ => String::new(),
    }
}

/// Returns true if the same request can succeed later: 408, 425, 429 and 503.
pub(crate) fn is_temporary(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 425 | 429 | 503)
}

/// The error for a title whose file `path` cannot be played.
pub(crate) fn unplayable(path: &str, problem: impl Into<TitleError>) -> PlayError {
    PlayError::Title {
        path: path.to_owned(),
        problem: problem.into(),
    }
}

/// The error for a response to a request for `path` with an unexpected status.
pub(crate) fn status_error(response: &Response<()>, path: &str) -> PlayError {
    let location = response.headers().get(http::header::LOCATION);
    PlayError::Status {
        status: response.status(),
        path: path.to_owned(),
        location: location.and_then(|value| value.to_str().ok()).map(str::to_owned),
    }
}
