//! [`Claim`]: fetches chunks from the store, each once for all readers that wait for it.

use std::ops::Range;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use object_store::Error as StoreError;
use playrate_units::Bytes as ByteCount;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::error::OriginError;
use crate::shared::{Fetched, Fetching, Shared};
use crate::version::ObjectVersion;
use crate::{CHUNK, ChunkKey, ChunkNumber, WINDOW};

/// Time after which a request that has no answer, or delivered fewer than [`LEAST`] bytes, is replaced by another one;
/// at most a quarter of the timeout. The other one has the rest of the timeout, so a slow store can answer.
const SLOW: Duration = Duration::from_secs(2);
/// Minimum number of bytes of a request per period, until all have arrived.
const LEAST: u64 = 2 * CHUNK as u64;

/// A chunk for a reader.
pub(crate) enum Chunk {
    /// It is in the cache.
    Found(Bytes),
    /// It is on its way.
    Coming(oneshot::Receiver<Fetched>),
}

/// Numbers of the chunks that contain `bytes`.
pub(crate) fn chunks_of(bytes: &Range<u64>) -> Range<ChunkNumber> {
    bytes.start / CHUNK as u64..bytes.end.div_ceil(CHUNK as u64)
}

impl Shared {
    /// The next of the `left` bytes of `version` that `stream` still has to deliver.
    pub(crate) async fn next_piece(
        &self,
        version: &ObjectVersion,
        stream: &mut BoxStream<'_, Result<Bytes, StoreError>>,
        left: u64,
    ) -> Result<Bytes, OriginError> {
        let next = async { stream.next().await.transpose() };
        let Some(piece) = self.within(self.timeout, &version.url, next).await? else {
            let problem = format!("the store sent {left} bytes too few").into();
            let url = version.url.clone();
            return Err(OriginError::Unavailable { url, problem });
        };
        self.counters.lock().bytes += ByteCount::from(piece.len());
        Ok(piece)
    }

    /// The chunk `number` of `version`, for a reader that will read up to the byte `end`.
    pub(crate) fn chunk(
        self: &Arc<Self>,
        version: &Arc<ObjectVersion>,
        number: ChunkNumber,
        end: u64,
    ) -> Chunk {
        let key = (version.key, number);
        if let Some(chunk) = self.cache.get(&key) {
            return Chunk::Found(chunk);
        }
        let (sender, receiver) = oneshot::channel();
        let claim = {
            let mut fetching = self.fetching.lock();
            if let Some(waiting) = fetching.get_mut(&key) {
                waiting.push(sender);
                self.counters.lock().coalesced += 1;
                None
            } else if self.cache.contains(&key)
                && let Some(chunk) = self.cache.get(&key)
            {
                // It has arrived since the first lookup.
                return Chunk::Found(chunk);
            } else {
                let claimed = self.claim(&mut fetching, version, number..chunks_of(&(0..end)).end);
                fetching.entry(key).or_default().push(sender);
                Some(claimed)
            }
        };
        self.counters.lock().misses += 1;
        if let Some(claim) = claim {
            self.handle.spawn(claim.fetch(None));
        }
        Chunk::Coming(receiver)
    }

    /// Returns true if all of `chunks` are in the cache.
    pub(crate) fn has_all(&self, version: &ObjectVersion, mut chunks: Range<ChunkNumber>) -> bool {
        chunks.all(|number| self.cache.contains(&(version.key, number)))
    }

    /// Claims the first of `chunks` that is neither cached nor on its way, and those after it up to `end`; `None` if
    /// there is none.
    pub(crate) fn claim_missing(
        self: &Arc<Self>,
        version: &Arc<ObjectVersion>,
        mut chunks: Range<ChunkNumber>,
        end: ChunkNumber,
    ) -> Option<Claim> {
        let mut fetching = self.fetching.lock();
        let is_there = |key: &ChunkKey| fetching.contains_key(key) || self.cache.contains(key);
        let first = chunks.find(|&number| !is_there(&(version.key, number)))?;
        Some(self.claim(&mut fetching, version, first..end))
    }

    /// Claims the first of `chunks`, which is missing, and the missing ones after it, up to the limit of one request.
    fn claim(
        self: &Arc<Self>,
        fetching: &mut Fetching,
        version: &Arc<ObjectVersion>,
        chunks: Range<ChunkNumber>,
    ) -> Claim {
        let run = self.windows.run(self.cache.capacity()) / CHUNK as u64;
        let window = WINDOW / CHUNK as u64;
        let whole = chunks_of(&(0..version.length)).end;
        let most = (chunks.start + run).min((chunks.start / window + 1) * window);
        let end = chunks.end.min(whole).min(most);
        let mut claimed = chunks.start..chunks.start;
        for number in chunks.start..end.max(chunks.start + 1) {
            let key = (version.key, number);
            if number > chunks.start && (fetching.contains_key(&key) || self.cache.contains(&key)) {
                break;
            }
            fetching.insert(key, Vec::new());
            claimed.end = number + 1;
        }
        Claim {
            shared: Arc::clone(self),
            version: Arc::clone(version),
            chunks: claimed,
            is_joined: false,
        }
    }
}

/// Chunks that one task fetches. Chunks that it has not delivered when it ends are no longer on their way.
pub(crate) struct Claim {
    shared: Arc<Shared>,
    version: Arc<ObjectVersion>,
    /// Chunks still to fetch.
    chunks: Range<ChunkNumber>,
    /// True once a reader has waited for one of the chunks.
    is_joined: bool,
}

impl Claim {
    /// Fetches the chunks. A fetch ahead of readers goes on only while a client holds the value behind `wanted`.
    /// Returns true if all of them have arrived.
    pub(crate) async fn fetch(mut self, wanted: Option<&Weak<()>>) -> bool {
        let shared = Arc::clone(&self.shared);
        if let Err(error) = self.stream(wanted).await {
            if matches!(error, OriginError::Changed { .. } | OriginError::Missing { .. }) {
                shared.confirm(&self.version, false);
            }
            tracing::debug!(%error, "a fetch failed");
            self.end(&error);
            return false;
        }
        true
    }

    async fn stream(&mut self, wanted: Option<&Weak<()>>) -> Result<(), OriginError> {
        let (shared, version) = (Arc::clone(&self.shared), Arc::clone(&self.version));
        let _permit = match wanted {
            None => Some(shared.permit(&shared.gets, &version.url, shared.timeout).await?),
            // Fetches ahead have their own limit.
            Some(_) => None,
        };
        let begin = self.chunks.start * CHUNK as u64;
        let end = (self.chunks.end * CHUNK as u64).min(version.length);
        if begin >= end {
            return Ok(());
        }
        let mut chunk = BytesMut::new();
        let mut left = end - begin;
        let first = SLOW.min(shared.timeout / 4);
        let periods = [first, shared.timeout.saturating_sub(first)].into_iter();
        let mut next_periods = periods.clone();
        while let Some(period) = next_periods.next() {
            let before = left;
            let since = Instant::now();
            let request = shared.get(&version, end - left..end);
            let Ok(answer) = timeout(period, request).await else {
                if self.cancel(wanted) {
                    return Ok(());
                }
                tracing::debug!(url = version.url, left, "the answer to a request is too slow");
                continue;
            };
            let answer = answer?;
            shared.confirm(&version, true);
            let mut stream = answer.into_stream();
            let mut is_first = true;
            // The present period began at this time, with this many bytes left.
            let mut mark = (Instant::now(), left);
            while left > 0 {
                let rest = period.saturating_sub(mark.0.elapsed());
                let Ok(piece) = timeout(rest, shared.next_piece(&version, &mut stream, left)).await else {
                    if self.cancel(wanted) {
                        return Ok(());
                    }
                    if mark.1 - left < LEAST {
                        break;
                    }
                    mark = (Instant::now(), left);
                    continue;
                };
                let mut piece = piece?;
                if std::mem::take(&mut is_first) {
                    shared.counters.lock().add_first_byte(since.elapsed());
                }
                piece.truncate(usize::try_from(left).unwrap_or(usize::MAX));
                while !piece.is_empty() {
                    let size = usize::try_from(left + chunk.len() as u64)
                        .unwrap_or(usize::MAX)
                        .min(CHUNK);
                    chunk.reserve(size - chunk.len());
                    let part = piece.split_to(piece.len().min(size - chunk.len()));
                    left -= part.len() as u64;
                    chunk.extend_from_slice(&part);
                    if chunk.len() == size {
                        self.deliver(&std::mem::take(&mut chunk).freeze());
                    }
                }
                if self.cancel(wanted) {
                    return Ok(());
                }
            }
            if left == 0 {
                return Ok(());
            }
            tracing::debug!(url = version.url, left, "a request for bytes is too slow");
            if before - left >= LEAST {
                next_periods = periods.clone();
            }
        }
        shared.counters.lock().errors += 1;
        let problem = format!(
            "the store sent less than {LEAST} bytes within {:?}",
            shared.timeout
        );
        Err(OriginError::Unavailable {
            url: version.url.clone(),
            problem: problem.into(),
        })
    }

    /// Caches the next chunk and passes it to all readers that wait for it.
    fn deliver(&mut self, chunk: &Bytes) {
        let key = (self.version.key, self.chunks.start);
        // The cache comes first: a reader that no longer finds the chunk on its way looks there.
        self.shared.cache.insert(key, chunk);
        let waiting = self.shared.fetching.lock().remove(&key);
        self.chunks.start += 1;
        self.is_joined |= waiting.as_ref().is_some_and(|waiting| !waiting.is_empty());
        for sender in waiting.into_iter().flatten() {
            // Ignore the error: the reader may have left.
            let _ = sender.send(Ok(chunk.clone()));
        }
    }

    /// Gives up the remaining chunks if neither a client expects them nor a reader waits for them or is about to reach
    /// them; returns true if it did.
    fn cancel(&mut self, wanted: Option<&Weak<()>>) -> bool {
        if wanted.is_some_and(|wanted| wanted.strong_count() > 0) || self.chunks.is_empty() {
            return false;
        }
        let shared = Arc::clone(&self.shared);
        let key = self.version.key;
        let part = self.chunks.start / (WINDOW / CHUNK as u64);
        // A reader requests the next part before it enters it. Near a fetch ahead, it may never come to its bytes.
        let has_reader = if wanted.is_some() {
            self.is_joined && shared.windows.is_read((key, part))
        } else {
            shared.windows.is_read((key, part)) || shared.windows.is_read((key, part.saturating_sub(1)))
        };
        if has_reader {
            return false;
        }
        let mut fetching = shared.fetching.lock();
        let is_awaited = |number| {
            let waiting = fetching.get(&(key, number));
            waiting.is_some_and(|waiting| waiting.iter().any(|sender| !sender.is_closed()))
        };
        if self.chunks.clone().any(is_awaited) {
            return false;
        }
        for number in self.chunks.clone() {
            fetching.remove(&(key, number));
        }
        self.chunks.start = self.chunks.end;
        if wanted.is_some() {
            shared.counters.lock().ahead_cancelled += 1;
        }
        true
    }

    /// Answers all readers that wait for the remaining chunks with `error`.
    fn end(&mut self, error: &OriginError) {
        let waiting: Vec<_> = {
            let mut fetching = self.shared.fetching.lock();
            let left = self.chunks.clone();
            left.filter_map(|number| fetching.remove(&(self.version.key, number)))
                .collect()
        };
        self.chunks.start = self.chunks.end;
        for sender in waiting.into_iter().flatten() {
            // Ignore the error: the reader may have left.
            let _ = sender.send(Err(error.clone()));
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.end(&OriginError::Cancelled);
    }
}
