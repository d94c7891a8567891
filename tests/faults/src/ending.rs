//! [`Ending`]: how a session ended, by name.

use playrate_transport::{ConnectError, ConnectionLost, ExchangeError};
use video_client::PlayError;

/// The outcome of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ending {
    /// The whole title arrived.
    Completed,
    /// The viewer left before the end.
    Left,
    /// The client crashed, so its ending is unknown.
    Vanished,
    /// No connection was made within either side's time limit.
    NoAnswer,
    /// The connection received nothing for the idle timeout.
    TimedOut,
    /// The server had lost the connection's state.
    Reset,
    /// The player received no bytes for its timeout.
    Silent,
    /// The server aborted the response.
    Cancelled,
    /// The server closed the connection without an error, or accepts no more requests.
    Closed,
    /// The player tried to reconnect until its time limit.
    GivenUp,
    /// A peer made no progress with one exchange.
    Stalled,
    /// The server refused the connection, or answered with another status.
    Refused,
    /// TLS, QUIC, HTTP/3 or the title was invalid.
    Broken,
    /// The run itself did not end.
    Unended,
}

impl Ending {
    /// The name in tables.
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
