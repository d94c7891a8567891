//! Numbers and errors of quinn in the form that `h3` requires.

use std::sync::Arc;

use h3::quic::{ConnectionErrorIncoming, StreamErrorIncoming, StreamId};
use quinn::{ConnectionError, VarInt};

/// An error code of HTTP/3 in quinn's form.
pub(crate) fn var_int(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::MAX)
}

/// `h3`'s form of a stream number, which is the same 62-bit integer (RFC 9000 §2.1).
pub(super) fn stream_id(id: quinn::StreamId) -> Result<StreamId, ConnectionErrorIncoming> {
    StreamId::try_from(u64::from(id))
        .map_err(|error| ConnectionErrorIncoming::InternalError(format!("stream number {id}: {error}")))
}

pub(super) fn on_stream(connection_error: ConnectionErrorIncoming) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming { connection_error }
}

pub(super) fn stream_lost(error: ConnectionError) -> StreamErrorIncoming {
    on_stream(connection_error(error))
}

pub(super) fn connection_error(error: ConnectionError) -> ConnectionErrorIncoming {
    match error {
        ConnectionError::ApplicationClosed(close) => ConnectionErrorIncoming::ApplicationClose {
            error_code: close.error_code.into_inner(),
        },
        ConnectionError::TimedOut => ConnectionErrorIncoming::Timeout,
        other => ConnectionErrorIncoming::Undefined(Arc::new(other)),
    }
}
