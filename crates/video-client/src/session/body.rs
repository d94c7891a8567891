//! [`BodyReader`]: the body of a response, possibly in several parts over several connections.

use http::{HeaderValue, Response, StatusCode};
use playrate_transport::Body;
use playrate_units::Bytes;

use super::driver::Request;
use super::resume::{ContentRange, Rest, strong_tag};
use crate::error::{PlayError, Result};

/// Maximum number of bytes that go to the player and the sink in one piece. A read may return more if the reader was
/// slow, and the player must not count bytes as delivered that a slow sink has not been offered.
const PIECE: usize = 16 << 10;

/// A body, with bytes that have been read but not taken.
pub(super) struct BodyReader {
    pub(super) request: Box<Request>,
    /// The present body: the response's, or the rest of it.
    pub(super) body: Body,
    pending: bytes::Bytes,
    /// True if the last chunk was the whole body.
    pub(super) at_once: bool,
    /// Bytes read from earlier bodies of the same response.
    before: u64,
    /// Bytes of the whole response, if the server declared them.
    length: Option<u64>,
    /// Bytes of the file that the response is a part of, if the server declared them.
    complete: Option<u64>,
    /// Strong entity tag of the response.
    tag: Option<HeaderValue>,
}

impl BodyReader {
    pub(super) fn new(request: Box<Request>, response: &Response<()>, body: Body) -> Self {
        let is_part = response.status() == StatusCode::PARTIAL_CONTENT;
        let range = ContentRange::of(response.headers())
            .filter(|range| is_part && range.first == first_position(&request));
        let length = range.as_ref().and_then(ContentRange::length);
        Self {
            request,
            length: body.promised().or(length),
            complete: match range {
                Some(range) => range.complete,
                None => body.promised().filter(|_| !is_part),
            },
            body,
            pending: bytes::Bytes::new(),
            at_once: false,
            before: 0,
            tag: strong_tag(response.headers()),
        }
    }

    /// Bytes read so far, including pending ones.
    pub(super) fn received(&self) -> u64 {
        self.before.saturating_add(self.body.received())
    }

    /// Returns true if all of the declared bytes have been read and taken.
    pub(super) fn is_complete(&self) -> bool {
        self.pending.is_empty() && self.length == Some(self.received())
    }

    /// The next bytes that have been read, at most [`PIECE`].
    pub(super) fn take(&mut self) -> Option<bytes::Bytes> {
        let length = self.pending.len().min(PIECE);
        (length > 0).then(|| self.pending.split_to(length))
    }

    /// Accepts the result of a read: bytes, or the end. Returns false at the end.
    ///
    /// # Errors
    /// The response is longer or shorter than declared.
    pub(super) fn accept(&mut self, chunk: Option<bytes::Bytes>) -> Result<bool> {
        let received = self.received();
        if let Some(declared) = self.length
            && (received > declared || (received < declared && chunk.is_none()))
        {
            return Err(PlayError::WrongLength {
                path: self.request.path.clone(),
                declared: Bytes::new(declared),
                received: Bytes::new(received),
            });
        }
        let Some(chunk) = chunk else {
            return Ok(false);
        };
        self.at_once = self.before == 0 && self.body.promised() == Some(chunk.len() as u64);
        self.pending = chunk;
        Ok(true)
    }

    /// The unread part of a response interrupted by `cause`.
    ///
    /// # Errors
    /// The response has no strong entity tag.
    pub(super) fn rest(&self, cause: String) -> Result<Rest> {
        let (first, received) = (first_position(&self.request), self.received());
        let path = self.request.path.clone();
        let Some(tag) = self.tag.clone() else {
            return Err(PlayError::NotResumable {
                path,
                received: Bytes::new(received),
                cause,
                problem: "the server gives no strong ETag",
            });
        };
        let requested = self.request.bytes.as_ref();
        Ok(Rest {
            path,
            first: first.saturating_add(received),
            last: requested.map(|bytes| bytes.end.saturating_sub(1)),
            end: self.length.map(|length| first.saturating_add(length)),
            complete: self.complete,
            tag,
            received: Bytes::new(received),
            cause,
        })
    }

    /// Continues with `body`, the rest, which ends before the position `end` of the file.
    pub(super) fn go_on(&mut self, body: Body, end: u64) {
        self.before = self.received();
        self.length = Some(end.saturating_sub(first_position(&self.request)));
        self.body = body;
        self.at_once = false;
    }
}

/// Position in the file of the first byte that `request` asks for.
fn first_position(request: &Request) -> u64 {
    request.bytes.as_ref().map_or(0, |bytes| bytes.start)
}
