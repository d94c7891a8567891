//! Errors of endpoints, connections and exchanges.

use std::sync::Arc;

use quinn::{ConnectionError, TransportErrorCode};

use crate::endpoint::BindError;
use crate::options::OptionsError;
use crate::tls::{Pin, TlsError};

/// HTTP/3's "no error" (RFC 9114 §8.1).
pub(crate) const H3_NO_ERROR: u64 = 0x100;
/// HTTP/3's code for an internal error of the peer (RFC 9114 §8.1).
const H3_INTERNAL_ERROR: u64 = 0x102;
/// HTTP/3's code for a peer that causes too much load (RFC 9114 §8.1).
pub(crate) const H3_EXCESSIVE_LOAD: u64 = 0x107;
/// HTTP/3's code for a request that was not processed (RFC 9114 §8.1).
const H3_REQUEST_REJECTED: u64 = 0x10b;
/// HTTP/3's code for a request or response that was cancelled (RFC 9114 §8.1).
const H3_REQUEST_CANCELLED: u64 = 0x10c;

/// Reasons why an endpoint cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// The socket cannot be opened.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// Some option is impossible.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The certificate, key or trust cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The endpoint's key cannot be used.
    #[error("cannot derive keys from the endpoint's key")]
    Key,
    /// A server needs at least one socket; its connection IDs have room for at most 256 workers. It got this many.
    #[error("a server needs 1 to 256 sockets (got {0})")]
    Workers(usize),
    /// The runtime or the socket failed.
    #[error("cannot start the QUIC endpoint: {0}")]
    Io(#[from] std::io::Error),
}

/// Limit that made a server refuse a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The server has its maximum number of connections.
    #[error("too many connections are open")]
    Connections,
    /// The client's address or /64 network has its maximum number of connections without a request.
    #[error("too many connections without a request are open from its address")]
    Address,
    /// Its handshake was not complete when another client needed the place.
    #[error("its handshake made room for another client")]
    Handshakes,
}

/// Reasons why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionLost {
    /// Nothing was received from the peer for the idle timeout.
    #[error("nothing was received from the peer for the idle timeout")]
    TimedOut,
    /// The peer closed it.
    #[error("the peer closed the connection (code {code:#x}{}{})",
        if .reason.is_some() { ": " } else { "" }, .reason.as_deref().unwrap_or_default())]
    ClosedByPeer {
        /// HTTP/3 error code (RFC 9114 §8.1), or 0 if it closed QUIC itself without an error (RFC 9000 §20.1).
        code: u64,
        /// The peer's reason phrase, if it sent one.
        reason: Option<String>,
    },
    /// This side closed it.
    #[error("this side closed the connection")]
    ClosedHere,
    /// The peer accepts no connection now (`CONNECTION_REFUSED`, RFC 9000 §20.1): it is full or shutting down.
    #[error("the peer refused the connection; it is full or shutting down")]
    RefusedByPeer,
    /// This side refused the peer because of this limit.
    #[error("this side refused the connection: {0}")]
    Refused(Refusal),
    /// The peer closed it before its side of the handshake was complete.
    #[error("the peer closed the connection during the handshake: it took too long, or the peer is full")]
    ClosedInHandshake,
    /// The peer sent a stateless reset: it has lost the connection's state.
    #[error("the peer has lost the connection's state; it was probably restarted")]
    Reset,
    /// TLS, QUIC or HTTP/3 failed with this text.
    #[error("the connection failed: {0}")]
    Broken(String),
}

impl ConnectionLost {
    /// Returns true if the connection was closed without an error.
    pub fn is_orderly(&self) -> bool {
        matches!(
            self,
            Self::ClosedHere
                | Self::ClosedByPeer {
                    code: 0 | H3_NO_ERROR,
                    ..
                }
        )
    }

    /// Returns true if a new connection to the same peer may succeed: the path or the peer failed temporarily, or the
    /// peer closed without an error or because of its load or an internal error.
    pub fn is_temporary(&self) -> bool {
        match self {
            // `h3` closes by itself once the peer has gone away.
            Self::TimedOut
            | Self::Reset
            | Self::RefusedByPeer
            | Self::ClosedInHandshake
            | Self::ClosedHere => true,
            Self::ClosedByPeer { code, .. } => {
                matches!(*code, 0 | H3_NO_ERROR | H3_INTERNAL_ERROR | H3_EXCESSIVE_LOAD)
            }
            Self::Refused(_) | Self::Broken(_) => false,
        }
    }

    /// The reason why `connection` ended, from h3's error and quinn's close reason.
    pub(crate) fn of(connection: &quinn::Connection, error: &h3::error::ConnectionError) -> Self {
        use h3::error::ConnectionError as H3Error;
        use h3::quic::ConnectionErrorIncoming;
        match error {
            H3Error::Timeout { .. } => Self::TimedOut,
            H3Error::Remote {
                0: ConnectionErrorIncoming::ApplicationClose { error_code },
                ..
            } => match connection.close_reason().map(Self::from) {
                Some(lost @ Self::ClosedByPeer { .. }) => lost,
                // This side has closed it in the meantime, which replaced the peer's reason phrase.
                _ => Self::ClosedByPeer {
                    code: *error_code,
                    reason: None,
                },
            },
            H3Error::Remote {
                0: ConnectionErrorIncoming::Undefined(error),
                ..
            } => match error.downcast_ref::<ConnectionError>() {
                Some(error) => error.clone().into(),
                None => Self::Broken(error.to_string()),
            },
            _ if error.is_h3_no_error() => Self::ClosedHere,
            other => Self::Broken(other.to_string()),
        }
    }
}

impl From<ConnectionError> for ConnectionLost {
    fn from(error: ConnectionError) -> Self {
        let text =
            |bytes: &[u8]| Some(String::from_utf8_lossy(bytes).into_owned()).filter(|text| !text.is_empty());
        match error {
            ConnectionError::TimedOut => Self::TimedOut,
            ConnectionError::LocallyClosed => Self::ClosedHere,
            ConnectionError::Reset => Self::Reset,
            ConnectionError::ApplicationClosed(close) => Self::ClosedByPeer {
                code: close.error_code.into_inner(),
                reason: text(&close.reason),
            },
            // Chromium does this when its page is closed.
            ConnectionError::ConnectionClosed(close) if close.error_code == TransportErrorCode::NO_ERROR => {
                Self::ClosedByPeer {
                    code: 0,
                    reason: text(&close.reason),
                }
            }
            ConnectionError::ConnectionClosed(close)
                if close.error_code == TransportErrorCode::CONNECTION_REFUSED =>
            {
                Self::RefusedByPeer
            }
            // An application's reason is not sent before the keys are known (RFC 9000 §10.2.3).
            ConnectionError::ConnectionClosed(close)
                if close.error_code == TransportErrorCode::APPLICATION_ERROR =>
            {
                Self::ClosedInHandshake
            }
            other => Self::Broken(other.to_string()),
        }
    }
}

/// Reasons why a connection cannot be established.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The server's key is not the pinned one.
    #[error("wrong certificate: expected pin {expected}, the server's is {seen}")]
    WrongPin {
        /// The pin that was given.
        expected: Pin,
        /// The pin of the server's certificate.
        seen: Pin,
    },
    /// The certificate does not satisfy the requested [`Trust`](crate::Trust), for the verifier's reason.
    #[error("the server's certificate is not trusted: {0}; pass its CA or its pin")]
    Untrusted(String),
    /// The name has no address.
    #[error("cannot find the address of `{host}`: {reason}")]
    Name {
        /// The name that was given.
        host: String,
        /// The resolver's error text.
        reason: String,
    },
    /// No address answered in time.
    #[error("no answer from {address} within {}", playrate_units::duration::display(*.waited))]
    NoAnswer {
        /// The last address that was tried.
        address: std::net::SocketAddr,
        /// Duration of the attempt.
        waited: std::time::Duration,
    },
    /// quinn cannot start the connection.
    #[error("cannot connect: {0}")]
    Refused(#[from] quinn::ConnectError),
    /// The options or the trust cannot be used.
    #[error("cannot connect: {0}")]
    Setup(Arc<EndpointError>),
    /// The connection was lost during the handshake.
    #[error(transparent)]
    Lost(#[from] ConnectionLost),
}

impl ConnectError {
    /// The reason why a handshake failed with `error`. `wrong_pin` contains the expected pin and the server's, if these
    /// differ.
    pub(crate) fn in_handshake(error: ConnectionError, wrong_pin: Option<&(Pin, Pin)>) -> Self {
        if let Some(&(expected, seen)) = wrong_pin {
            return Self::WrongPin { expected, seen };
        }
        match error {
            ConnectionError::TransportError(broken)
                if broken.reason.starts_with("invalid peer certificate") =>
            {
                Self::Untrusted(broken.reason)
            }
            error => Self::Lost(error.into()),
        }
    }
}

/// Errors of one request and its response. Most leave the connection usable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExchangeError {
    /// The peer cancelled it with this HTTP/3 error code (RFC 9114 §8.1).
    #[error("the peer cancelled the exchange (code {0:#x})")]
    Cancelled(u64),
    /// The peer neither answered nor acknowledged anything but keep-alives for too long.
    #[error("no progress by the peer for {}", playrate_units::duration::display(*.0))]
    Stalled(std::time::Duration),
    /// A body ended before the length its header promised.
    #[error("the body ended after {received} of {promised} bytes")]
    Truncated {
        /// Bytes of the body that arrived.
        received: u64,
        /// The response's `Content-Length` in bytes.
        promised: u64,
    },
    /// A request or header section over the limit: its name, size and limit.
    #[error("over the limit: {0}")]
    TooLarge(String),
    /// The request cannot be sent, because this part of it is invalid.
    #[error("invalid request: {0}")]
    BadRequest(String),
    /// The peer is going away and accepts no more requests.
    #[error("the peer is shutting down and accepts no more requests")]
    GoingAway,
    /// The peer sent a malformed HTTP/3 message, with this error.
    #[error("malformed HTTP/3 message: {0}")]
    Malformed(String),
    /// The connection was lost.
    #[error(transparent)]
    Connection(#[from] ConnectionLost),
}

impl ExchangeError {
    /// Returns true if the request may succeed on a new connection, but not on this one: it was lost temporarily
    /// ([`ConnectionLost::is_temporary`]), or the peer accepts no more requests on it.
    pub fn needs_new_connection(&self) -> bool {
        match self {
            Self::Connection(lost) => lost.is_temporary(),
            Self::Cancelled(code) => *code == H3_REQUEST_REJECTED,
            Self::GoingAway => true,
            _ => false,
        }
    }

    /// Returns true if the peer abandoned this exchange, possibly for an internal error, and the connection is still
    /// usable.
    pub fn was_given_up(&self) -> bool {
        const CODES: [u64; 3] = [H3_REQUEST_CANCELLED, H3_EXCESSIVE_LOAD, H3_INTERNAL_ERROR];
        matches!(self, Self::Cancelled(code) if CODES.contains(code))
    }

    pub(crate) fn of(connection: &quinn::Connection, error: h3::error::StreamError) -> Self {
        use h3::error::StreamError;
        match error {
            StreamError::RemoteTerminate { code, .. } => Self::Cancelled(code.value()),
            StreamError::ConnectionError { 0: error, .. } => {
                Self::Connection(ConnectionLost::of(connection, &error))
            }
            StreamError::HeaderTooBig {
                actual_size,
                max_size,
                ..
            } => Self::TooLarge(format!("header of {actual_size} bytes, at most {max_size} bytes")),
            StreamError::RemoteClosing { .. } => Self::GoingAway,
            StreamError::Undefined { 0: error, .. } if error.is::<crate::quic::TooManyBytes>() => {
                Self::TooLarge(error.to_string())
            }
            other => Self::Malformed(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quinn::ConnectionClose;

    #[test]
    fn a_browser_that_closes_its_page_ends_the_connection_without_an_error() {
        let close = |error_code| ConnectionClose {
            error_code,
            frame_type: None,
            reason: "70:net error".into(),
        };
        let lost = |code| ConnectionLost::from(ConnectionError::ConnectionClosed(close(code)));
        assert!(lost(TransportErrorCode::NO_ERROR).is_orderly());
        let broken = lost(TransportErrorCode::INTERNAL_ERROR);
        assert!(
            matches!(&broken, ConnectionLost::Broken(reason) if reason.contains("net error")),
            "{broken}"
        );
    }
}
