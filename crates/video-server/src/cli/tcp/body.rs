//! [`ResponseBody`]: the body of a response for hyper.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use playrate_transport::{CountedExchange, Turn};
use playrate_units::Bytes as ByteCount;
use video_server::library::CHUNK;
use video_server::site::Content;

use super::connection::TcpConnection;
use crate::serve::PendingRecord;

/// Bytes that all responses of one connection may read ahead together. Over HTTP/2, hyper makes each response read a
/// chunk before it checks whether the client lets it send one.
const READ_AHEAD: ByteCount = ByteCount::new(1 << 20);
/// Size of a response's first chunk: the cost of a response that the client never lets begin.
const FIRST_CHUNK: ByteCount = ByteCount::new(8 << 10);

/// A body that is read chunk by chunk at the client's pace.
pub(super) struct ResponseBody {
    content: Content,
    /// Maximum size of the next chunk.
    next_chunk: ByteCount,
    /// `None` once everything has been read.
    turn: Option<Turn>,
    connection: Arc<TcpConnection>,
    /// `None` on a connection that must end because it has made room for another.
    exchange: Option<CountedExchange>,
    /// Record for the log of responses, if there is one.
    record: Option<PendingRecord>,
}

impl ResponseBody {
    /// Creates the body of a response on `connection`. It counts as the `exchange`, writes in its `turn`, and ends the
    /// `record` when it is dropped.
    pub(super) fn new(
        content: Content,
        turn: Turn,
        connection: Arc<TcpConnection>,
        (exchange, record): (Option<CountedExchange>, Option<PendingRecord>),
    ) -> Self {
        connection.context.running.fetch_add(1, Relaxed);
        connection.open.fetch_add(1, Relaxed);
        Self {
            content,
            next_chunk: FIRST_CHUNK,
            turn: Some(turn),
            exchange,
            record,
            connection,
        }
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        if let Some(record) = &mut self.record {
            record.served.is_complete = self.content.is_empty();
        }
        self.connection.context.running.fetch_sub(1, Relaxed);
        self.connection.open.fetch_sub(1, Relaxed);
        if !self.content.is_empty() {
            self.connection.aborted.fetch_add(1, Relaxed);
        } else if let Some(exchange) = self.exchange.take() {
            self.connection.unsent.add(exchange);
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if let Some(turn) = &mut self.turn {
            ready!(turn.poll(context));
        }
        let most = self.next_chunk;
        let chunk = match &mut self.content {
            Content::Text(text) if text.is_empty() => Ok(None),
            Content::Text(text) => Ok(Some(std::mem::take(text))),
            Content::Resource(body) => ready!(body.poll_chunk(context, most)),
        };
        let share = READ_AHEAD.as_u64() / self.connection.open.load(Relaxed).max(1);
        self.next_chunk = ByteCount::new(share).clamp(FIRST_CHUNK, CHUNK);
        if self.content.is_empty() {
            self.turn = None;
        }
        match &chunk {
            Ok(Some(chunk)) => {
                self.connection.bytes.fetch_add(chunk.len() as u64, Relaxed);
                if let Some(record) = &mut self.record {
                    record.served.sent += ByteCount::from(chunk.len());
                }
            }
            Ok(None) => {}
            Err(error) => tracing::error!(%error, "aborted a response over TCP: cannot read its content"),
        }
        Poll::Ready(chunk.map(|chunk| chunk.map(Frame::data)).transpose())
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.content.len())
    }
}
