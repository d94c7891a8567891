//! [`ObjectReader`]: reads a part of an object for one response.

use std::future::poll_fn;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::error::OriginError;
use crate::fetch::Chunk;
use crate::object::Object;
use crate::shared::Fetched;
use crate::windows::ReadWindow;
use crate::{CHUNK, ChunkNumber, WINDOW};

/// Number of chunks requested ahead of the reader's position.
const AHEAD: ChunkNumber = 16;
/// Maximum attempts to read a chunk if other readers cancel its fetch.
const ATTEMPTS: u32 = 3;

/// Reads a part of an object from start to end.
#[derive(Debug)]
pub struct ObjectReader {
    object: Object,
    /// Chunk that is awaited.
    coming: Option<(ChunkNumber, oneshot::Receiver<Fetched>)>,
    /// Chunk that was read last, until all of it has been taken.
    held: Option<(ChunkNumber, Bytes)>,
    cancelled: u32,
    window: Option<ReadWindow>,
}

impl Object {
    /// Reader of its bytes, from the cache or the store.
    pub fn reader(&self) -> ObjectReader {
        ObjectReader {
            object: self.clone(),
            coming: None,
            held: None,
            cancelled: 0,
            window: None,
        }
    }
}

impl ObjectReader {
    /// The object that it reads.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// Reads the first of `bytes`: at least one, at most `most`, and not beyond the end of the chunk; none at the end
    /// of the object. The others will be read next, so requests to the store cover them too.
    ///
    /// # Errors
    /// The store does not answer or refuses, or the object was replaced.
    pub async fn read(&mut self, bytes: Range<u64>, most: usize) -> Result<Bytes, OriginError> {
        poll_fn(|context| self.poll_read(context, bytes.clone(), most)).await
    }

    /// As [`read`](Self::read). The task in `context` is woken when trying again may succeed.
    pub fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        bytes: Range<u64>,
        most: usize,
    ) -> Poll<Result<Bytes, OriginError>> {
        let (offset, end) = (bytes.start, bytes.end.min(self.object.len()));
        if offset >= end {
            return Poll::Ready(Ok(Bytes::new()));
        }
        let number = offset / CHUNK as u64;
        let chunk = match self.held.take() {
            Some((held, chunk)) if held == number => chunk,
            _ => ready!(self.poll_chunk(context, offset, end))?,
        };
        let from = usize::try_from(offset % CHUNK as u64)
            .unwrap_or(usize::MAX)
            .min(chunk.len());
        let left = usize::try_from(end - offset).unwrap_or(usize::MAX);
        let to = from.saturating_add(most.min(left)).min(chunk.len());
        let bytes = chunk.slice(from..to);
        self.held = (to < chunk.len()).then_some((number, chunk));
        Poll::Ready(Ok(bytes))
    }

    /// Reads the chunk at `offset`, for a part of the object up to `end`.
    fn poll_chunk(&mut self, context: &mut Context<'_>, offset: u64, end: u64) -> Poll<Fetched> {
        let number = offset / CHUNK as u64;
        let chunk = loop {
            match &mut self.coming {
                Some((awaited, receiver)) if *awaited == number => {
                    let fetched = ready!(Pin::new(receiver).poll(context));
                    self.coming = None;
                    match fetched.unwrap_or(Err(OriginError::Cancelled)) {
                        Err(OriginError::Cancelled) if self.cancelled < ATTEMPTS => self.cancelled += 1,
                        fetched => break fetched?,
                    }
                }
                _ => {
                    self.enter(offset);
                    let shared = &self.object.origin.shared;
                    match shared.chunk(&self.object.version, number, end) {
                        Chunk::Found(chunk) => break chunk,
                        Chunk::Coming(receiver) => self.coming = Some((number, receiver)),
                    }
                }
            }
        };
        self.cancelled = 0;
        self.read_ahead(number, end);
        Poll::Ready(Ok(chunk))
    }

    /// Marks the part of the object that is being read.
    fn enter(&mut self, offset: u64) {
        let key = (self.object.version.key, offset / WINDOW);
        if self.window.as_ref().is_none_or(|window| window.key != key) {
            self.window = Some(self.object.origin.shared.windows.enter(key));
        }
    }

    /// Requests bytes some way ahead, so that a long sequence of reads need not wait for the store at the end of each
    /// request.
    fn read_ahead(&self, number: ChunkNumber, end: u64) {
        if !number.is_multiple_of(AHEAD / 2) {
            return;
        }
        let end = end.div_ceil(CHUNK as u64);
        let look = number + 1..(number + AHEAD).min(end);
        let shared = &self.object.origin.shared;
        if let Some(claim) = shared.claim_missing(&self.object.version, look, end) {
            shared.handle.spawn(claim.fetch(None));
        }
    }
}
