//! [`Ending`]: the way in which a session ended, by name.

use playrate_transport::{ConnectError, ConnectionLost, ExchangeError};
use video_client::PlayError;

/// The way in which a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ending {
    /// All of the title arrived.
    Completed,
    /// The viewer left before the end.
    Left,
    /// The client crashed, so that nothing is known of its end.
    Vanished,
    /// No connection was made in time, by the measure of either side.
    NoAnswer,
    /// The connection received nothing for the idle timeout.
    TimedOut,
    /// The server had lost the connection's state.
    Reset,
    /// The player received no bytes for its timeout.
    Silent,
    /// The server aborted the response.
    Cancelled,
    /// The server closed the connection without an error, or takes no more requests.
    Closed,
    /// The player tried to connect again for as long as it may.
    GivenUp,
    /// A peer made no progress with one exchange.
    Stalled,
    /// The server refused the connection, or answered with another status.
    Refused,
    /// TLS, QUIC, HTTP/3 or the title were found broken.
    Broken,
    /// The run itself did not come to an end.
    Unended,
}

impl Ending {
    /// All ways, in the order of tables.
    pub(crate) const ALL: [Self; 14] = [
        Self::Completed,
        Self::Left,
        Self::Vanished,
        Self::NoAnswer,
        Self::TimedOut,
        Self::Reset,
        Self::Silent,
        Self::Cancelled,
        Self::Closed,
        Self::GivenUp,
        Self::Stalled,
        Self::Refused,
        Self::Broken,
        Self::Unended,
    ];

    /// The name in tables, of at most nine characters.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Left => "left",
            Self::Vanished => "vanished",
            Self::NoAnswer => "no answer",
            Self::TimedOut => "timed out",
            Self::Reset => "reset",
            Self::Silent => "silent",
            Self::Cancelled => "cancelled",
            Self::Closed => "closed",
            Self::GivenUp => "given up",
            Self::Stalled => "stalled",
            Self::Refused => "refused",
            Self::Broken => "broken",
            Self::Unended => "unended",
        }
    }

    /// The ending of a session with this result.
    pub(crate) fn of(result: &Result<(), PlayError>) -> Self {
        match result {
            Ok(()) => Self::Completed,
            Err(PlayError::Stopped) => Self::Left,
            Err(PlayError::Silent(_)) => Self::Silent,
            Err(PlayError::GivenUp { .. }) => Self::GivenUp,
            Err(PlayError::Status { .. }) => Self::Refused,
            Err(PlayError::Connect(error)) => match error {
                ConnectError::NoAnswer { .. } => Self::NoAnswer,
                ConnectError::Lost(lost) => Self::of_lost(lost),
                _ => Self::Refused,
            },
            Err(PlayError::Exchange(error)) => match error {
                ExchangeError::Connection(lost) => Self::of_lost(lost),
                ExchangeError::Cancelled { .. } => Self::Cancelled,
                ExchangeError::Stalled { .. } => Self::Stalled,
                ExchangeError::GoingAway => Self::Closed,
                _ => Self::Broken,
            },
            Err(_) => Self::Broken,
        }
    }

    fn of_lost(lost: &ConnectionLost) -> Self {
        match lost {
            ConnectionLost::TimedOut => Self::TimedOut,
            ConnectionLost::Reset => Self::Reset,
            ConnectionLost::ClosedInHandshake => Self::NoAnswer,
            lost if lost.is_orderly() => Self::Closed,
            ConnectionLost::RefusedByPeer
            | ConnectionLost::Refused { .. }
            | ConnectionLost::ClosedByPeer { .. } => Self::Refused,
            _ => Self::Broken,
        }
    }
}
