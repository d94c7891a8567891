//! What can go wrong on a connection or in one exchange.

use std::sync::Arc;

use quinn::{ConnectionError, TransportErrorCode};

use crate::endpoint::BindError;
use crate::options::OptionsError;
use crate::tls::{Pin, TlsError};

/// An endpoint that cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// No socket.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// Impossible options.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// No usable certificate, key or trust.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The runtime or the socket refused.
    #[error("cannot start the QUIC endpoint: {0}")]
    Io(#[from] std::io::Error),
}

/// Why a connection is no more.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionLost {
    /// Nothing was heard of the peer for the idle timeout.
    #[error("nothing was heard of the peer for too long")]
    TimedOut,
    /// The peer closed it.
    #[error("the peer closed the connection (code {code:#x}{})", .reason.as_deref().map(|text| format!(": {text}")).unwrap_or_default())]
    ClosedByPeer {
        /// HTTP/3 error code (RFC 9114 §8.1), or 0 if it closed QUIC beneath without an error (RFC 9000 §20.1).
        code: u64,
        /// What the peer said about it.
        reason: Option<String>,
    },
    /// This side closed it.
    #[error("this side closed the connection")]
    ClosedHere,
    /// The peer restarted and knows nothing of it.
    #[error("the peer does not know the connection any more; it was probably restarted")]
    Reset,
    /// TLS, QUIC or HTTP/3 failed.
    #[error("the connection broke: {reason}")]
    Broken {
        /// What broke.
        reason: String,
    },
}

impl ConnectionLost {
    /// Whether the peer left in good order.
    pub fn is_orderly(&self) -> bool {
        const H3_NO_ERROR: u64 = 0x100;
        matches!(
            self,
            Self::ClosedHere
                | Self::ClosedByPeer {
                    code: 0 | H3_NO_ERROR,
                    ..
                }
        )
    }

    /// What h3 made of `connection`'s end, with what quinn says of it.
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
                // Closed on this side meanwhile, which took the place of the peer's own words.
                _ => Self::ClosedByPeer {
                    code: *error_code,
                    reason: None,
                },
            },
            H3Error::Remote {
                0: ConnectionErrorIncoming::Undefined(error),
                ..
            } => error.downcast_ref::<ConnectionError>().map_or_else(
                || Self::Broken {
                    reason: error.to_string(),
                },
                |error| error.clone().into(),
            ),
            _ if error.is_h3_no_error() => Self::ClosedHere,
            other => Self::Broken {
                reason: other.to_string(),
            },
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
            // As Chromium does when its page is closed.
            ConnectionError::ConnectionClosed(close) if close.error_code == TransportErrorCode::NO_ERROR => {
                Self::ClosedByPeer {
                    code: 0,
                    reason: text(&close.reason),
                }
            }
            other => Self::Broken {
                reason: other.to_string(),
            },
        }
    }
}

/// A connection that did not come to be.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The server showed another key than the pinned one.
    #[error("wrong certificate: expected pin {expected}, the server's is {seen}")]
    WrongPin {
        /// The pin given.
        expected: Pin,
        /// The pin of the certificate that came.
        seen: Pin,
    },
    /// The certificate does not satisfy the trust asked for.
    #[error("the server's certificate is not trusted: {reason}; give its CA, or its pin")]
    Untrusted {
        /// What is wrong with it.
        reason: String,
    },
    /// The name has no address.
    #[error("cannot find the address of `{host}`: {reason}")]
    Name {
        /// The name as given.
        host: String,
        /// Why not.
        reason: String,
    },
    /// Nobody answered.
    #[error("no answer from {address} within {}", playrate_units::duration::display(*.waited))]
    NoAnswer {
        /// The last address tried.
        address: std::net::SocketAddr,
        /// How long it was tried.
        waited: std::time::Duration,
    },
    /// quinn refused to try.
    #[error("cannot connect: {0}")]
    Refused(#[from] quinn::ConnectError),
    /// The options or the trust given cannot be used.
    #[error("cannot connect: {0}")]
    Setup(Arc<EndpointError>),
    /// The handshake failed otherwise.
    #[error(transparent)]
    Lost(#[from] ConnectionLost),
}

/// One request and its response that came to no good end. The connection may well live on.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExchangeError {
    /// The peer cancelled it.
    #[error("the peer cancelled the exchange (code {code:#x})")]
    Cancelled {
        /// HTTP/3 error code (RFC 9114 §8.1), or 0 if it closed QUIC beneath without an error (RFC 9000 §20.1).
        code: u64,
    },
    /// The peer neither read nor answered for too long.
    #[error("the peer did nothing for {}", playrate_units::duration::display(*.waited))]
    Stalled {
        /// How long nothing moved.
        waited: std::time::Duration,
    },
    /// A body ended before the length its header promised.
    #[error("the body ended after {received} of {promised} bytes")]
    Truncated {
        /// Bytes received.
        received: u64,
        /// `Content-Length`.
        promised: u64,
    },
    /// A request or header larger than is taken.
    #[error("larger than is accepted: {what}")]
    TooLarge {
        /// What is too large.
        what: String,
    },
    /// A request that cannot be sent.
    #[error("not a request that can be sent: {reason}")]
    BadRequest {
        /// Why not.
        reason: String,
    },
    /// The peer is going away and takes no more requests.
    #[error("the peer is shutting down and takes no more requests")]
    GoingAway,
    /// The peer sent something that is not HTTP/3.
    #[error("malformed: {reason}")]
    Malformed {
        /// What is wrong with it.
        reason: String,
    },
    /// The whole connection is gone.
    #[error(transparent)]
    Connection(#[from] ConnectionLost),
}

impl ExchangeError {
    pub(crate) fn of(connection: &quinn::Connection, error: h3::error::StreamError) -> Self {
        use h3::error::StreamError;
        match error {
            StreamError::RemoteTerminate { code, .. } => Self::Cancelled { code: code.value() },
            StreamError::ConnectionError { 0: error, .. } => {
                Self::Connection(ConnectionLost::of(connection, &error))
            }
            StreamError::HeaderTooBig {
                actual_size,
                max_size,
                ..
            } => Self::TooLarge {
                what: format!("header of {actual_size} bytes, at most {max_size}"),
            },
            StreamError::RemoteClosing { .. } => Self::GoingAway,
            StreamError::Undefined { 0: error, .. } if error.is::<crate::quic::TooMuch>() => Self::TooLarge {
                what: error.to_string(),
            },
            other => Self::Malformed {
                reason: other.to_string(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quinn::ConnectionClose;

    #[test]
    fn a_browser_whose_page_is_closed_leaves_in_good_order() {
        let close = |error_code| ConnectionClose {
            error_code,
            frame_type: None,
            reason: "70:net error".into(),
        };
        let lost = |code| ConnectionLost::from(ConnectionError::ConnectionClosed(close(code)));
        assert!(lost(TransportErrorCode::NO_ERROR).is_orderly());
        let broken = lost(TransportErrorCode::INTERNAL_ERROR);
        assert!(
            matches!(&broken, ConnectionLost::Broken { reason } if reason.contains("net error")),
            "{broken}"
        );
    }
}
