//! [`Watching`]: from the requests on a connection to what its controller is told of the video.
//!
//! What a player says with CMCD goes before what the library knows: its own rates, its buffer, whether it starts up or has run
//! empty. A player that says nothing is told by what it asks for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use playrate_cc::{Playback, VideoKnowledge};
use playrate_units::{Bitrate, Bytes};
use quinn::Runtime;

use super::observe::PlayerReport;
use crate::cmcd::{Cmcd, ObjectType};
use crate::http::path::ResourceName;

/// Viewings that one connection may have at once. A browser has one for each of its pages.
const VIEWINGS: usize = 16;
/// How long a viewing counts after its last request, beyond what it then had in its buffer.
const SILENCE: Duration = Duration::from_secs(10);
/// And at most after its last request.
const LONGEST_SILENCE: Duration = Duration::from_secs(70);
/// A buffer that this many reports in a row saw at its fullest is as full as it gets.
const SETTLED: u32 = 3;

/// What is asked for.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// The title, and the set of representations within it that replace each other.
    pub(super) title: ResourceName,
    pub(super) set: usize,
    /// The rate that the library knows it by.
    pub(super) rate: Option<Bitrate>,
    /// What the player says.
    pub(super) cmcd: Option<Cmcd>,
}

/// The viewings that a connection carries.
#[derive(Debug)]
pub(super) struct Watching {
    knowledge: Arc<VideoKnowledge>,
    runtime: Arc<dyn Runtime>,
    /// Whether the operator has said how much the players' buffers hold.
    buffer_is_known: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    viewings: BTreeMap<Key, Viewing>,
    report: PlayerReport,
}

/// Who watches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    /// Somebody who does not say: who asks for this title.
    Title(ResourceName),
    /// CMCD's `sid`.
    Session(String),
}

/// What is played together in one viewing: one of each, the last that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Object {
    Set(usize),
    Type(ObjectType),
}

#[derive(Debug)]
struct Viewing {
    rates: BTreeMap<Object, Bitrate>,
    /// Playing time in the player's buffers.
    levels: BTreeMap<Object, Duration>,
    deadline: Option<Duration>,
    playback: Option<Playback>,
    /// The fullest that the emptiest of the buffers was seen, and how many reports in a row saw it so.
    fullest: (Duration, u32),
    responses: usize,
    seen: Instant,
}

impl Viewing {
    fn new(now: Instant) -> Self {
        Self {
            rates: BTreeMap::new(),
            levels: BTreeMap::new(),
            deadline: None,
            playback: None,
            fullest: (Duration::ZERO, 0),
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

    /// Takes what the player says.
    fn hear(&mut self, object: Object, cmcd: &Cmcd) {
        if let Some(level) = cmcd.buffer_length {
            self.levels.insert(object, level);
            // The fuller of two buffers says nothing of how full both get.
            if self.level() == Some(level) {
                self.watch(level);
            }
        }
        if cmcd.starved {
            self.levels.insert(object, Duration::ZERO);
        }
        // dash.js asks for an initialisation segment with `su` at every switch, and for a manifest without it before it plays.
        let heard = match (cmcd.starved, cmcd.startup) {
            (true, _) => Some(Playback::Starved),
            (false, true) if has_a_rate(object) || self.playback.is_none() => Some(Playback::Starting),
            (false, false) if has_a_rate(object) => Some(Playback::Playing),
            (false, _) => return,
        };
        self.deadline = cmcd.deadline;
        self.playback = heard;
    }

    /// Watches the emptiest buffer get full.
    fn watch(&mut self, level: Duration) {
        let (fullest, reports) = self.fullest;
        // Within a tenth counts as the same: a full buffer is filled again as soon as it is a little less than full.
        let margin = fullest / 10;
        self.fullest = if level > fullest + margin {
            (level, 0)
        } else if level < fullest.saturating_sub(margin) {
            // It drains, for want of media: that says nothing new of one that is known.
            (fullest, if reports < SETTLED { 0 } else { reports })
        } else {
            (fullest.max(level), reports.saturating_add(1))
        };
    }

    /// How much the player's buffer holds, once it is seen to grow no more.
    fn capacity(&self) -> Option<Bytes> {
        let (time, reports) = self.fullest;
        let bytes = self.rate() * time;
        (reports >= SETTLED && bytes > Bytes::ZERO).then_some(bytes)
    }

    fn is_live(&self, now: Instant) -> bool {
        let lasts = (self.level().unwrap_or_default() + SILENCE).min(LONGEST_SILENCE);
        self.responses > 0 || now.saturating_duration_since(self.seen) < lasts
    }
}

impl Watching {
    pub(super) fn new(knowledge: Arc<VideoKnowledge>, runtime: Arc<dyn Runtime>) -> Self {
        Self {
            runtime,
            buffer_is_known: knowledge.playout_buffer().is_some(),
            knowledge,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the players of this connection have said so far.
    pub(super) fn report(&self) -> Option<PlayerReport> {
        let report = self.state().report.clone();
        (report.requests > 0).then_some(report)
    }

    /// Logs what the controller of this connection has been told.
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

    /// A response begins; it lasts until the guard is dropped. `None` if it is nothing to watch.
    pub(super) fn begin(self: &Arc<Self>, asked: &Asked) -> Option<Guard> {
        self.begin_at(asked, self.runtime.now())
    }

    fn begin_at(self: &Arc<Self>, asked: &Asked, now: Instant) -> Option<Guard> {
        let (key, object) = match &asked.cmcd {
            None => {
                asked.rate?;
                (Key::Title(asked.title.clone()), Object::Set(asked.set))
            }
            Some(cmcd) => (
                cmcd.session
                    .clone()
                    .map_or_else(|| Key::Title(asked.title.clone()), Key::Session),
                cmcd.object_type.map_or(Object::Set(asked.set), Object::Type),
            ),
        };
        let mut state = self.state();
        let State { viewings, report } = &mut *state;
        if let Some(cmcd) = &asked.cmcd {
            report.take(cmcd, viewings.contains_key(&key));
        }
        forget(viewings, &key, now);
        if viewings.len() >= VIEWINGS && !viewings.contains_key(&key) {
            return None;
        }
        let viewing = viewings.entry(key.clone()).or_insert_with(|| Viewing::new(now));
        viewing.responses += 1;
        viewing.seen = now;
        let said = asked.cmcd.as_ref().and_then(|cmcd| cmcd.bitrate);
        if let Some(rate) = said.or(asked.rate).filter(|_| has_a_rate(object)) {
            match object {
                Object::Type(ObjectType::Muxed) => viewing.rates.clear(),
                _ => drop(viewing.rates.remove(&Object::Type(ObjectType::Muxed))),
            }
            viewing.rates.insert(object, rate);
        }
        if let Some(cmcd) = &asked.cmcd {
            viewing.hear(object, cmcd);
        }
        self.tell(viewings, now);
        Some(Guard {
            watching: Arc::clone(self),
            key,
        })
    }

    fn end(&self, key: &Key) {
        let mut state = self.state();
        let viewings = &mut state.viewings;
        if let Some(viewing) = viewings.get_mut(key) {
            viewing.responses = viewing.responses.saturating_sub(1);
        }
        // Of titles fetched side by side, one that has ended counts no longer; the last one goes on being watched.
        let others = viewings
            .iter()
            .any(|(known, viewing)| known != key && viewing.responses > 0);
        let ended = viewings.get(key).is_some_and(|viewing| viewing.responses == 0);
        if others && ended && matches!(key, Key::Title(_)) {
            viewings.remove(key);
            self.tell(viewings, self.runtime.now());
        }
    }

    fn tell(&self, viewings: &BTreeMap<Key, Viewing>, now: Instant) {
        let live: Vec<_> = viewings.values().filter(|viewing| viewing.is_live(now)).collect();
        let rate: Bitrate = live.iter().map(|viewing| viewing.rate()).sum();
        // A manifest or an initialisation segment says nothing of a rate; the viewer goes on watching.
        if rate > Bitrate::ZERO {
            self.knowledge.set_average_rate(Some(rate));
        }
        self.knowledge
            .set_buffered(live.iter().filter_map(|viewing| viewing.level()).min());
        self.knowledge
            .set_deadline(live.iter().filter_map(|viewing| viewing.deadline).min());
        // The one that is worst off decides.
        self.knowledge
            .set_playback(live.iter().filter_map(|viewing| viewing.playback).max());
        if !self.buffer_is_known {
            let capacities: Option<Vec<_>> = live.iter().map(|viewing| viewing.capacity()).collect();
            if let Some(capacities) = capacities.filter(|capacities| !capacities.is_empty()) {
                self.knowledge
                    .set_playout_buffer(Some(capacities.into_iter().sum()));
            }
        }
    }
}

/// Forgets viewings that are over, as `key` goes on: those that say who they are some time after their last request, others as soon as
/// something else is asked for.
fn forget(viewings: &mut BTreeMap<Key, Viewing>, key: &Key, now: Instant) {
    viewings.retain(|known, viewing| {
        known == key
            || match known {
                Key::Title(_) => viewing.responses > 0,
                Key::Session(_) => viewing.is_live(now),
            }
    });
}

/// Whether an object is part of what is played.
fn has_a_rate(object: Object) -> bool {
    match object {
        Object::Set(_) => true,
        Object::Type(object) => !matches!(
            object,
            ObjectType::Manifest | ObjectType::Initialization | ObjectType::Key
        ),
    }
}

/// Stands for one response.
#[derive(Debug)]
pub(super) struct Guard {
    watching: Arc<Watching>,
    key: Key,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.watching.end(&self.key);
    }
}

#[cfg(test)]
#[path = "watching_tests.rs"]
mod tests;
