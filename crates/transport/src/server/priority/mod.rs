//! [`Priority`] of a response, and [`Turns`]: the order of the responses on one connection (RFC 9218).
//!
//! quinn and hyper buffer what a response has written, so a response that has to wait must not write. Before each
//! chunk, it waits for those that precede it.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;
use quinn::Runtime;
use sfv::{BareItem, Dictionary, ListEntry, Parser};
use tokio::sync::Notify;

use crate::time;

const PRIORITY: HeaderName = HeaderName::from_static("priority");
/// Time since the last chunk of a response after which the others no longer wait for it: its content is not there yet,
/// or its client does not read. Waiting for others does not count.
const PATIENCE: Duration = Duration::from_secs(1);
/// Maximum number of priorities that are kept for requests that have not arrived; some may have ended.
const MAX_EARLY: usize = 100;

/// Priority of a response as its client states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// Urgency from 0, the most urgent, to 7 (RFC 9218 §4.1).
    urgency: u8,
    /// True if a part of the response is of use to the client (RFC 9218 §4.2).
    incremental: bool,
}

/// The priority of a response whose client states none. RFC 9218's default would deliver responses one by one, but
/// players without priorities rely on audio and video arriving side by side.
impl Default for Priority {
    fn default() -> Self {
        Self {
            urgency: 3,
            incremental: true,
        }
    }
}

impl Priority {
    /// Reads the field `Priority` of a request; `None` if there is none, or if it is malformed.
    pub fn of_request(headers: &HeaderMap) -> Option<Self> {
        let lines = headers.get_all(PRIORITY).iter();
        let lines: Vec<&[u8]> = lines.map(HeaderValue::as_bytes).collect();
        (!lines.is_empty()).then(|| Self::parse(&lines.join(&b", "[..])))?
    }

    /// Reads a priority such as `u=1, i`. A parameter that is absent, unknown or out of range has its default (RFC 9218
    /// §4). `None` if this is not a dictionary.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let dictionary: Dictionary = Parser::new(text).parse().ok()?;
        let value = |key| match dictionary.get(key) {
            Some(ListEntry::Item(item)) => Some(&item.bare_item),
            _ => None,
        };
        let urgency = value("u").and_then(BareItem::as_integer);
        let urgency = urgency.and_then(|urgency| u8::try_from(i64::from(urgency)).ok());
        Some(Self {
            urgency: urgency.filter(|&urgency| urgency <= 7).unwrap_or(3),
            incremental: value("i").and_then(BareItem::as_boolean).unwrap_or(false),
        })
    }

    /// Position among the responses of a connection, the least first. In each urgency, the `number`th request precedes
    /// later ones unless it is incremental; the incremental ones come after the others, and share.
    fn position(self, number: u64) -> (u8, bool, u64) {
        (
            self.urgency,
            self.incremental,
            if self.incremental { 0 } else { number },
        )
    }

    /// The priority of this response's stream for quinn. It is negative, so that HTTP/3's own streams, which have 0,
    /// precede all responses.
    fn of_stream(self, number: u64) -> i32 {
        const PER_URGENCY: i32 = 1 << 28;
        let later = i32::try_from(number).unwrap_or(i32::MAX).min(PER_URGENCY - 2);
        let place = if self.incremental {
            0
        } else {
            PER_URGENCY - 1 - later
        };
        -PER_URGENCY * (i32::from(self.urgency) + 1) + place
    }
}

/// The responses in progress on one connection.
pub struct Turns {
    runtime: Arc<dyn Runtime>,
    state: Mutex<TurnsState>,
    changed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct TurnsState {
    open: Vec<OpenResponse>,
    /// Priorities of requests that have not arrived.
    early: VecDeque<(u64, Priority)>,
}

impl TurnsState {
    /// The stream's priority if the `number`th response may write a chunk, which begins `now`.
    ///
    /// # Errors
    /// A response that precedes it may still write: the time to wait, unless anything changes.
    fn next(&mut self, number: u64, now: Instant) -> Result<i32, Duration> {
        let own = self.open.iter().find(|open| open.number == number);
        let position = own.map(OpenResponse::position);
        let preceding = self.open.iter().filter(|open| Some(open.position()) < position);
        let active = preceding.map(|open| open.active).max();
        let time = active.map_or(Duration::ZERO, |active| {
            (active + PATIENCE).saturating_duration_since(now)
        });
        let Some(own) = self.open.iter_mut().find(|open| open.number == number) else {
            return Ok(i32::MIN);
        };
        // Those that follow wait for a response whose turn comes next.
        own.active = now + time.min(PATIENCE);
        if time.is_zero() {
            Ok(own.priority.of_stream(number))
        } else {
            Err(time)
        }
    }
}

#[derive(Debug)]
struct OpenResponse {
    number: u64,
    priority: Priority,
    /// Time of its last chunk or of its beginning; while it waits, the time at which it may write, at most [`PATIENCE`]
    /// ahead.
    active: Instant,
}

impl OpenResponse {
    fn position(&self) -> (u8, bool, u64) {
        self.priority.position(self.number)
    }
}

impl fmt::Debug for Turns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state.lock().fmt(f)
    }
}

impl Turns {
    /// A connection without responses; `runtime` measures the time.
    pub fn new(runtime: Arc<dyn Runtime>) -> Arc<Self> {
        Arc::new(Self {
            runtime,
            state: Mutex::default(),
            changed: Arc::default(),
        })
    }

    /// Adds the response to the connection's `number`th request. `stated` is the priority in the request's header; a
    /// priority from a `PRIORITY_UPDATE` replaces it.
    pub fn begin(self: &Arc<Self>, number: u64, stated: Option<Priority>) -> Turn {
        let mut state = self.state.lock();
        let updated = state.early.iter().position(|(early, _)| *early == number);
        let updated = updated.and_then(|index| state.early.remove(index));
        let updated = updated.map(|(_, priority)| priority);
        let priority = updated.or(stated).unwrap_or_default();
        let active = self.runtime.now();
        state.open.push(OpenResponse {
            number,
            priority,
            active,
        });
        Turn {
            turns: Arc::clone(self),
            number,
            waiting: None,
        }
    }

    /// Changes the priority of the connection's `number`th request, which may not have arrived.
    pub(crate) fn update(&self, number: u64, priority: Priority) {
        let mut state = self.state.lock();
        if let Some(open) = state.open.iter_mut().find(|open| open.number == number) {
            open.priority = priority;
            self.changed.notify_waiters();
        } else {
            state.early.retain(|(early, _)| *early != number);
            state.early.push_back((number, priority));
            if state.early.len() > MAX_EARLY {
                state.early.pop_front();
            }
        }
    }
}

type Waiting = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The place of one response among those of its connection, until this is dropped.
pub struct Turn {
    turns: Arc<Turns>,
    number: u64,
    waiting: Option<Waiting>,
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

impl Turn {
    /// Waits until this response may write a chunk: no response that precedes it has written one in the last second or
    /// waits itself. Returns the priority for its stream in quinn.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<i32> {
        loop {
            if let Some(waiting) = &mut self.waiting {
                ready!(waiting.as_mut().poll(cx));
                self.waiting = None;
            }
            let turns = &self.turns;
            let mut state = turns.state.lock();
            let time = match state.next(self.number, turns.runtime.now()) {
                Ok(priority) => return Poll::Ready(priority),
                Err(time) => time,
            };
            // Created under the lock, so that no change is missed.
            let changed = Arc::clone(&turns.changed).notified_owned();
            let runtime = Arc::clone(&turns.runtime);
            self.waiting = Some(Box::pin(async move {
                let _ = time::timeout(&*runtime, time, changed).await;
            }));
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns
            .state
            .lock()
            .open
            .retain(|open| open.number != self.number);
        self.turns.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
