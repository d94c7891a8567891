//! [`ResponseBody`]: the body of a response for hyper.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use video_server::site::Content;

use super::connection::TcpConnection;

/// A body that is read chunk by chunk at the pace of the client.
pub(super) struct ResponseBody {
    content: Content,
    connection: Arc<TcpConnection>,
}

impl ResponseBody {
    /// Creates the body of a response on `connection`.
    pub(super) fn new(content: Content, connection: Arc<TcpConnection>) -> Self {
        connection.context.running.fetch_add(1, Relaxed);
        Self { content, connection }
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.connection.context.running.fetch_sub(1, Relaxed);
        if !self.content.is_empty() {
            self.connection.aborted.fetch_add(1, Relaxed);
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let chunk = match &mut self.content {
            Content::Text(text) if text.is_empty() => Ok(None),
            Content::Text(text) => Ok(Some(std::mem::take(text))),
            Content::Resource(body) => body.next_chunk(),
        };
        match &chunk {
            Ok(Some(chunk)) => {
                self.connection.bytes.fetch_add(chunk.len() as u64, Relaxed);
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
