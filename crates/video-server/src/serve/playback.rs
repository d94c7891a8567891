//! [`PlaybackTracker`]: derives the state of playback from a connection's requests, for the controller.
//!
//! Reports of players (CMCD) may be false. Only the library and the operator supply values that can raise the
//! controller's window; a report can only lower it: the rate ([`FetchedTitles`]), the size of the buffer
//! ([`VideoKnowledge::reported_buffer`]). There are two exceptions. A player that reports a start or a stall is
//! believed while less than [`URGENT`] was delivered ahead of playback ([`DeliveredAhead`]). A playback speed (`pr`) of
//! up to four times multiplies the library's rate, because the player consumes media at that speed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use playrate_cc::{Playback, VideoKnowledge};
use playrate_media::cmcd::{Cmcd, ObjectType};
use playrate_units::{Bitrate, Bytes};
use quinn::Runtime;

use super::observe::PlayerReport;
use crate::http::path::ResourceName;

/// Maximum number of playback sessions per connection. A browser has one for each of its pages.
const MAX_SESSIONS: usize = 16;
/// Time for which a session counts as live beyond its buffer level at its last request.
const SILENCE: Duration = Duration::from_secs(10);
/// Maximum time for which a session counts as live after its last request.
const MAX_SILENCE: Duration = Duration::from_secs(70);
/// Number of consecutive reports at the maximum level after which a buffer counts as full.
const SETTLED: u32 = 3;
/// Playing time delivered ahead of playback above which no player needs media urgently, whatever it reports.
const URGENT: Duration = Duration::from_secs(5);

/// Maximum number of titles per connection whose rates count at a time.
const MAX_TITLES: usize = 16;

/// Maximum credible playback speed in thousandths: four times, the most that players offer in their menus.
const MAX_SPEED_PER_MILLE: u64 = 4_000;

/// A request for a resource of the library, with the player's report.
#[derive(Clone, Debug)]
pub(super) struct MediaRequest {
    /// Title, and number of the set of representations within it that replace each other.
    pub(super) title: ResourceName,
    pub(super) set: usize,
    /// Average rate of the resource, if the library knows it.
    pub(super) rate: Option<Bitrate>,
    /// Average rate of the best representation of the set, if the library knows it.
    pub(super) highest_rate: Option<Bitrate>,
    /// Report of the player.
    pub(super) cmcd: Option<Cmcd>,
}

/// Playback sessions of one connection.
#[derive(Debug)]
pub(super) struct PlaybackTracker {
    knowledge: Arc<VideoKnowledge>,
    runtime: Arc<dyn Runtime>,
    state: Mutex<PlaybackState>,
}

#[derive(Debug, Default)]
struct PlaybackState {
    titles: FetchedTitles,
    ahead: DeliveredAhead,
    /// Sessions of the players that send reports.
    sessions: BTreeMap<SessionKey, PlaybackSession>,
    /// Worst of the states that players of live sessions reported last.
    playback: Option<Playback>,
    report: PlayerReport,
}

/// Identity of a playback session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SessionKey {
    /// A player without a session identifier, known by the title that it requests.
    Title(ResourceName),
    /// CMCD's session identifier, `sid`.
    Session(String),
}

/// Objects that play together in one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum MediaObject {
    Set(usize),
    Type(ObjectType),
}

#[derive(Debug, Default)]
struct PlaybackSession {
    /// Buffer levels of the player.
    levels: BTreeMap<MediaObject, Duration>,
    /// False for objects that were only requested for a start-up.
    has_played: BTreeMap<MediaObject, bool>,
    deadline: Option<Duration>,
    playback: Option<Playback>,
    /// Highest level of the emptier buffer, and the number of consecutive reports at about this level.
    highest: (Duration, u32),
    responses: usize,
    /// Time of its last request.
    seen: Option<Instant>,
}

impl PlaybackSession {
    fn level(&self) -> Option<Duration> {
        self.levels.values().min().copied()
    }

    /// Applies a player's report to the session. Returns true if it reports a stall.
    fn apply(&mut self, object: MediaObject, cmcd: &Cmcd) -> bool {
        // dash.js also reports an empty buffer at start-up, if playback begins before it has counted its first segment.
        let has_played = self.has_played.entry(object).or_insert(cmcd.underflow);
        *has_played |= !cmcd.startup;
        let stalled = cmcd.underflow && *has_played;
        if let Some(level) = cmcd.buffer_length {
            // Converts `bl`, which is media time, to the time until the buffer is empty, like all times of the
            // controller.
            let level = level.mul_f64(1_000.0 / speed_per_mille(cmcd) as f64);
            self.levels.insert(object, level);
            // Only the emptier of two buffers limits how full both get.
            if self.level() == Some(level) {
                self.track_level(level);
            }
        }
        if stalled {
            self.levels.insert(object, Duration::ZERO);
        }
        // dash.js requests an initialisation segment with `su` at every switch, and a manifest without it before
        // playback.
        let playback = match (stalled, cmcd.startup) {
            (true, _) => Some(Playback::Starved),
            (false, true) if has_a_rate(object) || self.playback.is_none() => Some(Playback::Starting),
            (false, false) if has_a_rate(object) => Some(Playback::Playing),
            (false, _) => return false,
        };
        self.deadline = cmcd.deadline;
        self.playback = playback;
        stalled
    }

    /// Tracks the emptier buffer until it is full.
    fn track_level(&mut self, level: Duration) {
        let (highest, reports) = self.highest;
        // Within a tenth counts as the same level: a full buffer is refilled as soon as it is slightly below full.
        let margin = highest / 10;
        self.highest = if level > highest + margin {
            (level, 0)
        } else if level < highest.saturating_sub(margin) {
            // The buffer drains because media arrives too slowly; a known size stays.
            (highest, if reports < SETTLED { 0 } else { reports })
        } else {
            (highest.max(level), reports.saturating_add(1))
        };
    }

    /// Size of the player's buffer as playing time, once it has stopped growing.
    fn capacity(&self) -> Option<Duration> {
        let (time, reports) = self.highest;
        (reports >= SETTLED && !time.is_zero()).then_some(time)
    }

    fn is_live(&self, now: Instant) -> bool {
        let lasts = (self.level().unwrap_or_default() + SILENCE).min(MAX_SILENCE);
        let is_recent = |seen| now.saturating_duration_since(seen) < lasts;
        self.responses > 0 || self.seen.is_some_and(is_recent)
    }
}

impl PlaybackTracker {
    pub(super) fn new(knowledge: Arc<VideoKnowledge>, runtime: Arc<dyn Runtime>) -> Self {
        Self {
            runtime,
            knowledge,
            state: Mutex::default(),
        }
    }

    /// Reports of the players on this connection so far; `None` without any.
    pub(super) fn report(&self) -> Option<PlayerReport> {
        let report = self.state.lock().report.clone();
        (report.requests > 0).then_some(report)
    }

    /// Number of stalls that the players reported; `None` without reports.
    pub(super) fn stalls(&self) -> Option<u64> {
        let report = &self.state.lock().report;
        (report.requests > 0).then_some(report.stalls)
    }

    /// Worst state that the players reported last, whether believed or not; `None` without reports.
    pub(super) fn reported(&self) -> Option<Playback> {
        self.state.lock().playback
    }

    /// Logs the state that this connection's controller knows.
    pub(super) fn log(&self, connection: u64) {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        tracing::debug!(
            connection,
            rate_bps = self.knowledge.average_rate().map(Bitrate::as_bits_per_second),
            buffered_ms = self.knowledge.buffered().map(milliseconds),
            deadline_ms = self.knowledge.deadline().map(milliseconds),
            playout_buffer_bytes = self.knowledge.buffer_size().map(Bytes::as_u64),
            playback = self.knowledge.playback().map(tracing::field::debug),
            "the controller knows"
        );
    }

    /// Begins a response at `now`, which lasts until the guard is dropped. `None` if it is not part of playback.
    pub(super) fn begin(self: &Arc<Self>, request: &MediaRequest, now: Instant) -> Option<ResponseGuard> {
        let mut state = self.state.lock();
        let is_counted = state.titles.begin(request);
        let report = request.cmcd.as_ref();
        let session = report.and_then(|report| state.apply(request, report, now));
        if !is_counted && session.is_none() {
            return None;
        }
        self.publish(&mut state, now);
        Some(ResponseGuard {
            tracker: Arc::clone(self),
            title: is_counted.then(|| request.title.clone()),
            session,
        })
    }

    /// Counts bytes of content that were handed to the transport at `now`.
    pub(super) fn delivered(&self, bytes: Bytes, now: Instant) {
        let mut state = self.state.lock();
        if let Some(rate) = self.knowledge.average_rate() {
            state.ahead.add(bytes, rate, now);
            self.knowledge.set_playback(state.believed(now));
        }
    }

    fn end(&self, guard: &ResponseGuard) {
        let mut state = self.state.lock();
        let session = guard.session.as_ref();
        if let Some(session) = session.and_then(|key| state.sessions.get_mut(key)) {
            session.responses = session.responses.saturating_sub(1);
        }
        if guard.title.as_ref().is_some_and(|title| state.titles.end(title)) {
            self.publish(&mut state, self.runtime.now());
        }
    }

    /// Writes the combined state of all titles and live sessions for the controller.
    fn publish(&self, state: &mut PlaybackState, now: Instant) {
        // A manifest has no rate: playback goes on at the known one.
        if let Some(rate) = state.titles.rate() {
            self.knowledge.set_average_rate(Some(rate));
            self.knowledge.set_highest_rate(state.titles.highest_rate());
        }
        let live = state.sessions.values();
        let live: Vec<_> = live.filter(|session| session.is_live(now)).collect();
        self.knowledge
            .set_buffered(live.iter().filter_map(|session| session.level()).min());
        self.knowledge
            .set_deadline(live.iter().filter_map(|session| session.deadline).min());
        let capacities: Option<Vec<_>> = live.iter().map(|session| session.capacity()).collect();
        let capacity = capacities.and_then(|capacities| capacities.into_iter().min());
        if let Some((capacity, rate)) = capacity.zip(self.knowledge.average_rate()) {
            self.knowledge.set_reported_buffer(Some(rate * capacity));
        }
        // The worst state counts.
        let playback = live.iter().filter_map(|session| session.playback).max();
        state.playback = playback;
        self.knowledge.set_playback(state.believed(now));
    }
}

impl PlaybackState {
    /// Applies the report of a request to its session. Returns the session; `None` if there are too many.
    fn apply(&mut self, request: &MediaRequest, report: &Cmcd, now: Instant) -> Option<SessionKey> {
        let sessions = &mut self.sessions;
        let identifier = report.session.clone();
        let key = identifier.map_or_else(|| SessionKey::Title(request.title.clone()), SessionKey::Session);
        self.report.add(report, sessions.contains_key(&key));
        remove_ended(sessions, &key, now);
        if sessions.len() >= MAX_SESSIONS && !sessions.contains_key(&key) {
            self.report.stalls += u64::from(report.underflow);
            return None;
        }
        let object = report.object_type;
        let object = object.map_or(MediaObject::Set(request.set), MediaObject::Type);
        let session = sessions.entry(key.clone()).or_default();
        session.responses += 1;
        session.seen = Some(now);
        let stalled = session.apply(object, report);
        self.report.stalls += u64::from(stalled);
        Some(key)
    }

    /// The state reported by the players, as far as it is believed.
    fn believed(&self, now: Instant) -> Option<Playback> {
        let is_urgent = self.ahead.level(now) < URGENT;
        self.playback
            .map(|playback| if is_urgent { playback } else { Playback::Playing })
    }
}

/// Removes sessions other than `key` that have ended. Those with an identifier end some time after their last request,
/// those without one end with their last response.
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
        MediaObject::Type(object) => is_media(object),
    }
}

/// A response in progress.
#[derive(Debug)]
pub(super) struct ResponseGuard {
    tracker: Arc<PlaybackTracker>,
    /// Title whose rate it counts for.
    title: Option<ResourceName>,
    /// Session of the reporting player.
    session: Option<SessionKey>,
}

impl Drop for ResponseGuard {
    fn drop(&mut self) {
        self.tracker.end(self);
    }
}

/// Titles being fetched on one connection, and the last one whose responses have ended.
///
/// Every object of a title counts once, at the rate at which its player consumes it: the library's rate times the
/// playback speed that the player reports. A report can raise the sum by that speed only, at most
/// [`MAX_SPEED_PER_MILLE`]; in all other respects each object counts at most as much as it would without a report.
#[derive(Debug, Default)]
struct FetchedTitles(BTreeMap<ResourceName, FetchedTitle>);

#[derive(Debug, Default)]
struct FetchedTitle {
    /// Objects that play together: the last requested one of each set of representations.
    objects: BTreeMap<usize, FetchedObject>,
    responses: usize,
}

#[derive(Clone, Copy, Debug)]
struct FetchedObject {
    rate: Bitrate,
    /// Rate of the best representation that could replace it.
    highest: Bitrate,
    /// Type of the object according to its player.
    object_type: Option<ObjectType>,
}

impl FetchedTitles {
    /// Begins the response to a request. Returns false if it is not counted because its rate is unknown or there are
    /// too many titles.
    fn begin(&mut self, request: &MediaRequest) -> bool {
        let Some(rate) = request.rate else {
            return false;
        };
        let (title, report) = (&request.title, request.cmcd.as_ref());
        self.0
            .retain(|known, fetched| known == title || fetched.responses > 0);
        if self.0.len() >= MAX_TITLES && !self.0.contains_key(title) {
            return false;
        }
        let fetched = self.0.entry(title.clone()).or_default();
        fetched.responses += 1;
        let object_type = report.and_then(|report| report.object_type);
        // The player may know better which objects replace each other: it knows the languages, for example.
        fetched
            .objects
            .retain(|_, other| !is_replaced(other.object_type, object_type));
        let reported = report.and_then(|report| report.bitrate);
        let at_speed = |rate: Bitrate| rate.scaled(report.map_or(1_000, speed_per_mille), 1_000);
        let object = FetchedObject {
            rate: at_speed(lowered(rate, reported)),
            highest: at_speed(request.highest_rate.unwrap_or(rate).max(rate)),
            object_type,
        };
        fetched.objects.insert(request.set, object);
        true
    }

    /// Ends a response of `title`. Returns true if this removes the title: its responses have ended while those of
    /// other titles are in progress.
    fn end(&mut self, title: &ResourceName) -> bool {
        if let Some(fetched) = self.0.get_mut(title) {
            fetched.responses = fetched.responses.saturating_sub(1);
        }
        let others = self
            .0
            .iter()
            .any(|(known, fetched)| known != title && fetched.responses > 0);
        let ended = self.0.get(title).is_some_and(|fetched| fetched.responses == 0);
        if others && ended {
            self.0.remove(title);
        }
        others && ended
    }

    /// Sum of the rates; `None` if no rate is known.
    fn rate(&self) -> Option<Bitrate> {
        self.sum_of(|object| object.rate)
    }

    /// Sum of the highest rates; `None` if no rate is known.
    fn highest_rate(&self) -> Option<Bitrate> {
        self.sum_of(|object| object.highest)
    }

    fn sum_of(&self, rate: fn(&FetchedObject) -> Bitrate) -> Option<Bitrate> {
        let objects = self.0.values().flat_map(|fetched| fetched.objects.values());
        let sum: Bitrate = objects.map(rate).sum();
        Some(sum).filter(|&sum| sum > Bitrate::ZERO)
    }
}

/// The library's rate, or the player's if that is lower. A reported rate of zero counts as absent: it would hide the
/// library's rate.
fn lowered(rate: Bitrate, reported: Option<Bitrate>) -> Bitrate {
    reported
        .filter(|&reported| reported > Bitrate::ZERO)
        .map_or(rate, |reported| reported.min(rate))
}

/// Playback speed (`pr`) in thousandths, as far as it is credible. A player that is paused or slower than real time
/// still counts at normal speed: it may resume at once.
fn speed_per_mille(report: &Cmcd) -> u64 {
    let speed = report.playback_rate.unwrap_or(1.0) * 1_000.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of thousandths, from 0 to 100,000"
    )]
    let speed = speed.round() as u64;
    speed.clamp(1_000, MAX_SPEED_PER_MILLE)
}

/// Returns true if an object of the type `new` replaces one of the type `other`, instead of playing together with it.
fn is_replaced(other: Option<ObjectType>, new: Option<ObjectType>) -> bool {
    let is_muxed = |object| object == Some(ObjectType::Muxed);
    is_muxed(new) || is_muxed(other) || (other == new && new.is_some_and(is_media))
}

/// Returns true if objects of this type are played and so have a rate.
fn is_media(object: ObjectType) -> bool {
    !matches!(
        object,
        ObjectType::Manifest | ObjectType::Initialization | ObjectType::Key
    )
}

/// Buffer level of a modelled player that plays from the first byte on and never pauses: the delivered playing time,
/// less the time since.
#[derive(Debug, Default)]
struct DeliveredAhead {
    level: Duration,
    /// Time at which the level applies; `None` before anything was delivered.
    at: Option<Instant>,
}

impl DeliveredAhead {
    /// Playing time that the modelled player has left at `now`.
    fn level(&self, now: Instant) -> Duration {
        let since = self.at.map(|at| now.saturating_duration_since(at));
        self.level.saturating_sub(since.unwrap_or_default())
    }

    /// Adds `bytes` of media of this rate.
    fn add(&mut self, bytes: Bytes, rate: Bitrate, now: Instant) {
        let time = rate.time_for(bytes).unwrap_or_default();
        self.level = self.level(now).saturating_add(time);
        self.at = self.at.max(Some(now));
    }
}

#[cfg(test)]
#[path = "playback_tests.rs"]
mod tests;
