//! [`Outgoing`]: a response's content as hyper wants it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use video_server::site::Content;

use super::connection::Tally;

/// Content that is read chunk by chunk as the client takes it.
pub(super) struct Outgoing {
    content: Content,
    tally: Arc<Tally>,
}

impl Outgoing {
    /// `content`, for a client whose connection counts in `tally`.
    pub(super) fn new(content: Content, tally: Arc<Tally>) -> Self {
        tally.shared.running.fetch_add(1, Relaxed);
        Self { content, tally }
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.tally.shared.running.fetch_sub(1, Relaxed);
        if !self.content.is_empty() {
            self.tally.aborted.fetch_add(1, Relaxed);
        }
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let chunk = match &mut self.content {
            Content::Text(text) if text.is_empty() => Ok(None),
            Content::Text(text) => Ok(Some(std::mem::take(text))),
            Content::Part(part) => part.next_chunk(),
        };
        match &chunk {
            Ok(Some(chunk)) => {
                self.tally.bytes.fetch_add(chunk.len() as u64, Relaxed);
            }
            Ok(None) => {}
            Err(error) => tracing::error!(%error, "a response over TCP was broken off: cannot read it"),
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
