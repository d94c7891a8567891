//! [`PlaybackTracker`]: derives the state of playback from the requests on a connection, for its controller.
//!
//! Reports of a player (CMCD) take precedence over the library: its rates, its buffer levels, and whether it
//! starts, plays or stalls. Without reports the requested titles and their rates are all that is known.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use playrate_cc::{Playback, VideoKnowledge};
use playrate_media::cmcd::{Cmcd, ObjectType};
use playrate_units::{Bitrate, Bytes};
use quinn::Runtime;

use super::observe::PlayerReport;
use crate::http::path::ResourceName;

/// Maximum number of playback sessions per connection. A browser has one for each of its pages.
const MAX_SESSIONS: usize = 16;
/// Time for which a session counts as live after its last request, in addition to its buffer level then.
const SILENCE: Duration = Duration::from_secs(10);
/// Maximum time for which a session counts as live after its last request.
const MAX_SILENCE: Duration = Duration::from_secs(70);
/// Number of consecutive reports at the maximum level after which a buffer counts as full.
const SETTLED: u32 = 3;

/// A request for media, with the player's report.
#[derive(Clone, Debug)]
pub(super) struct MediaRequest {
    /// Title, and number of the set of representations within it that replace each other.
    pub(super) title: ResourceName,
    pub(super) set: usize,
    /// Average rate of the resource, if the library knows it.
    pub(super) rate: Option<Bitrate>,
    /// Report of the player.
    pub(super) cmcd: Option<Cmcd>,
}

/// Playback sessions of one connection.
#[derive(Debug)]
pub(super) struct PlaybackTracker {
    knowledge: Arc<VideoKnowledge>,
    runtime: Arc<dyn Runtime>,
    /// The operator configured the size of the players' buffers.
    buffer_is_configured: bool,
    state: Mutex<PlaybackState>,
}

#[derive(Debug, Default)]
struct PlaybackState {
    sessions: BTreeMap<SessionKey, PlaybackSession>,
    report: PlayerReport,
}

/// Identity of a playback session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SessionKey {
    /// A player without reports, known by the title that it requests.
    Title(ResourceName),
    /// CMCD's session identifier, `sid`.
    Session(String),
}

/// Objects that play together in one session: of each one, the last requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum MediaObject {
    Set(usize),
    Type(ObjectType),
}

#[derive(Debug)]
struct PlaybackSession {
    rates: BTreeMap<MediaObject, Bitrate>,
    /// Buffer levels of the player.
    levels: BTreeMap<MediaObject, Duration>,
    deadline: Option<Duration>,
    playback: Option<Playback>,
    /// Highest level of the lowest buffer, and the number of consecutive reports at about this level.
    highest: (Duration, u32),
    responses: usize,
    seen: Instant,
}

impl PlaybackSession {
    fn new(now: Instant) -> Self {
        Self {
            rates: BTreeMap::new(),
            levels: BTreeMap::new(),
            deadline: None,
            playback: None,
            highest: (Duration::ZERO, 0),
            responses: 0,
            seen: now,
        }
    }

    fn rate(&self) -> Bitrate {
        self.rates.values().copied().sum()
    }

    fn level(&self) -> Option<Duration> {
        self.levels.values().min().copied()
    }

    /// Applies a player's report to the session.
    fn apply(&mut self, object: MediaObject, cmcd: &Cmcd) {
        if let Some(level) = cmcd.buffer_length {
            self.levels.insert(object, level);
            // Only the lower of two buffers limits how full both get.
            if self.level() == Some(level) {
                self.track_level(level);
            }
        }
        if cmcd.underflow {
            self.levels.insert(object, Duration::ZERO);
        }
        // dash.js requests an initialisation segment with `su` at every switch, and a manifest without it
        // before it plays.
        let playback = match (cmcd.underflow, cmcd.startup) {
            (true, _) => Some(Playback::Starved),
            (false, true) if has_a_rate(object) || self.playback.is_none() => Some(Playback::Starting),
            (false, false) if has_a_rate(object) => Some(Playback::Playing),
            (false, _) => return,
        };
        self.deadline = cmcd.deadline;
        self.playback = playback;
    }

    /// Follows the lowest buffer until it is full.
    fn track_level(&mut self, level: Duration) {
        let (highest, reports) = self.highest;
        // Within a tenth counts as the same level: a full buffer is refilled as soon as it is slightly less
        // than full.
        let margin = highest / 10;
        self.highest = if level > highest + margin {
            (level, 0)
        } else if level < highest.saturating_sub(margin) {
            // It drains because media arrive too slowly; a size that is known stays.
            (highest, if reports < SETTLED { 0 } else { reports })
        } else {
            (highest.max(level), reports.saturating_add(1))
        };
    }

    /// Size of the player's buffer in bytes, once it has stopped growing.
    fn capacity(&self) -> Option<Bytes> {
        let (time, reports) = self.highest;
        let bytes = self.rate() * time;
        (reports >= SETTLED && bytes > Bytes::ZERO).then_some(bytes)
    }

    fn is_live(&self, now: Instant) -> bool {
        let lasts = (self.level().unwrap_or_default() + SILENCE).min(MAX_SILENCE);
        self.responses > 0 || now.saturating_duration_since(self.seen) < lasts
    }
}

impl PlaybackTracker {
    pub(super) fn new(knowledge: Arc<VideoKnowledge>, runtime: Arc<dyn Runtime>) -> Self {
        Self {
            runtime,
            buffer_is_configured: knowledge.playout_buffer().is_some(),
            knowledge,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, PlaybackState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports of the players on this connection so far; `None` without any.
    pub(super) fn report(&self) -> Option<PlayerReport> {
        let report = self.state().report.clone();
        (report.requests > 0).then_some(report)
    }

    /// Logs the state that the controller of this connection knows.
    pub(super) fn log(&self, connection: u64) {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        tracing::debug!(
            connection,
            rate = self.knowledge.average_rate().map(Bitrate::as_bits_per_second),
            buffered_ms = self.knowledge.buffered().map(milliseconds),
            deadline_ms = self.knowledge.deadline().map(milliseconds),
            playout_buffer = self.knowledge.playout_buffer().map(Bytes::as_u64),
            playback = self.knowledge.playback().map(tracing::field::debug),
            "the controller knows"
        );
    }

    /// Begins a response, which lasts until the guard is dropped. `None` if it is not part of playback.
    pub(super) fn begin(self: &Arc<Self>, request: &MediaRequest) -> Option<ResponseGuard> {
        self.begin_at(request, self.runtime.now())
    }

    fn begin_at(self: &Arc<Self>, request: &MediaRequest, now: Instant) -> Option<ResponseGuard> {
        let (key, object) = match &request.cmcd {
            None => {
                request.rate?;
                (
                    SessionKey::Title(request.title.clone()),
                    MediaObject::Set(request.set),
                )
            }
            Some(cmcd) => (
                cmcd.session
                    .clone()
                    .map_or_else(|| SessionKey::Title(request.title.clone()), SessionKey::Session),
                cmcd.object_type
                    .map_or(MediaObject::Set(request.set), MediaObject::Type),
            ),
        };
        let mut state = self.state();
        let PlaybackState { sessions, report } = &mut *state;
        if let Some(cmcd) = &request.cmcd {
            report.add(cmcd, sessions.contains_key(&key));
        }
        remove_ended(sessions, &key, now);
        if sessions.len() >= MAX_SESSIONS && !sessions.contains_key(&key) {
            return None;
        }
        let session = sessions
            .entry(key.clone())
            .or_insert_with(|| PlaybackSession::new(now));
        session.responses += 1;
        session.seen = now;
        let reported = request.cmcd.as_ref().and_then(|cmcd| cmcd.bitrate);
        if let Some(rate) = reported.or(request.rate).filter(|_| has_a_rate(object)) {
            match object {
                MediaObject::Type(ObjectType::Muxed) => session.rates.clear(),
                _ => drop(session.rates.remove(&MediaObject::Type(ObjectType::Muxed))),
            }
            session.rates.insert(object, rate);
        }
        if let Some(cmcd) = &request.cmcd {
            session.apply(object, cmcd);
        }
        self.publish(sessions, now);
        Some(ResponseGuard {
            tracker: Arc::clone(self),
            key,
        })
    }

    fn end(&self, key: &SessionKey) {
        let mut state = self.state();
        let sessions = &mut state.sessions;
        if let Some(session) = sessions.get_mut(key) {
            session.responses = session.responses.saturating_sub(1);
        }
        // Of several titles without reports, those whose responses have ended are removed; the last one stays.
        let others = sessions
            .iter()
            .any(|(known, session)| known != key && session.responses > 0);
        let ended = sessions.get(key).is_some_and(|session| session.responses == 0);
        if others && ended && matches!(key, SessionKey::Title(_)) {
            sessions.remove(key);
            self.publish(sessions, self.runtime.now());
        }
    }

    /// Writes the combined state of all live sessions for the controller.
    fn publish(&self, sessions: &BTreeMap<SessionKey, PlaybackSession>, now: Instant) {
        let live: Vec<_> = sessions.values().filter(|session| session.is_live(now)).collect();
        let rate: Bitrate = live.iter().map(|session| session.rate()).sum();
        // A manifest or an initialisation segment has no rate; playback goes on at the known one.
        if rate > Bitrate::ZERO {
            self.knowledge.set_average_rate(Some(rate));
        }
        self.knowledge
            .set_buffered(live.iter().filter_map(|session| session.level()).min());
        self.knowledge
            .set_deadline(live.iter().filter_map(|session| session.deadline).min());
        // The worst state counts.
        self.knowledge
            .set_playback(live.iter().filter_map(|session| session.playback).max());
        if !self.buffer_is_configured {
            let capacities: Option<Vec<_>> = live.iter().map(|session| session.capacity()).collect();
            if let Some(capacities) = capacities.filter(|capacities| !capacities.is_empty()) {
                self.knowledge
                    .set_playout_buffer(Some(capacities.into_iter().sum()));
            }
        }
    }
}

/// Removes sessions other than `key` that have ended: those with an identifier some time after their last
/// request, those without when they have no response in progress.
fn remove_ended(sessions: &mut BTreeMap<SessionKey, PlaybackSession>, key: &SessionKey, now: Instant) {
    sessions.retain(|known, session| {
        known == key
            || match known {
                SessionKey::Title(_) => session.responses > 0,
                SessionKey::Session(_) => session.is_live(now),
            }
    });
}

/// Returns true if an object is media with a rate.
fn has_a_rate(object: MediaObject) -> bool {
    match object {
        MediaObject::Set(_) => true,
        MediaObject::Type(object) => !matches!(
            object,
            ObjectType::Manifest | ObjectType::Initialization | ObjectType::Key
        ),
    }
}

/// A response in progress.
#[derive(Debug)]
pub(super) struct ResponseGuard {
    tracker: Arc<PlaybackTracker>,
    key: SessionKey,
}

impl Drop for ResponseGuard {
    fn drop(&mut self) {
        self.tracker.end(&self.key);
    }
}

#[cfg(test)]
#[path = "playback_tests.rs"]
mod tests;
