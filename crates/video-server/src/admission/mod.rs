//! [`Admission`]: whether a server takes one session more.
//!
//! A server that is given more than it can carry is late with everything, and in the end every player runs empty. So it turns new sessions away before the ones it has suffer, with a status that says when to come again.
//!
//! A session is a connection on which media was asked for and answered; it lasts as long as the connection. What was let in is served to its
//! end, whatever the load. Everything else (pages, manifests) is answered in any case.
//!
//! Nothing here reads a clock: what is measured is told to [`Admission::observe`], which is called every [`TICK`].

mod entrance;
mod load;

use core::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use playrate_units::{Bitrate, Probability};

pub use entrance::Entrance;
use load::Measuring;

/// How often [`Admission::observe`] is called.
pub const TICK: Duration = Duration::from_millis(20);
/// Sessions that may be let in within a second, if a quarter of those there are is less. What new ones cost is known only
/// after they have begun.
const LEAST_RAMP: usize = 16;
/// With fewer sessions than this, what one costs cannot be told from what the server costs anyway.
const ENOUGH_TO_TELL: usize = 16;
/// Time between two lines in the log.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// What a server takes. Without any limit it takes everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Sessions at once.
    pub sessions: Option<usize>,
    /// Sum of the rates of what is watched. Media whose rate is unknown count for nothing.
    pub capacity: Option<Bitrate>,
    /// How late timers may fire: the lateness that nine of ten stay below, over the last second.
    pub lag: Option<Duration>,
    /// Share of all the processors' time that the process may use.
    pub cpu: Option<Probability>,
    /// When a client that is turned away is to come again, at the soonest.
    pub retry_after: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: None,
            capacity: None,
            lag: None,
            cpu: None,
            retry_after: Duration::from_secs(10),
        }
    }
}

/// Why a session is turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// As many sessions as may be.
    Sessions,
    /// Its rate and those of the others are more than the capacity.
    Capacity,
    /// Timers fire too late.
    Lag,
    /// Too much processor time is used, or would be with this one.
    Cpu,
    /// Many have just been let in, and what they cost is not known yet.
    Ramp,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Sessions => "as many sessions as it takes",
            Self::Capacity => "the rates of its sessions use up its capacity",
            Self::Lag => "its timers fire too late",
            Self::Cpu => "its processors are busy",
            Self::Ramp => "many sessions have just begun",
        })
    }
}

/// What a server carries, for dashboards and logs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Load {
    /// Sessions now.
    pub sessions: usize,
    /// Sum of their rates, as far as they are known.
    pub rate: Bitrate,
    /// How late timers fire, if that is measured: nine of ten in the last second were no later.
    pub lag: Option<Duration>,
    /// Share of all the processors' time that is used, between 0 and 1, if that is measured.
    pub cpu: Option<f64>,
    /// Requests of new sessions that were turned away so far.
    pub refused: u64,
}

/// Decides which sessions are let in, and counts them.
#[derive(Debug)]
pub struct Admission {
    limits: Limits,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    sessions: usize,
    rate: Bitrate,
    measuring: Measuring,
    refused: u64,
    /// When the log last said that some were, and how many were by then.
    said: Option<(Instant, u64)>,
}

impl Admission {
    /// Nobody is there yet.
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            state: Mutex::default(),
        })
    }

    /// Whether anything has to be [observed](Self::observe).
    pub fn depends_on_load(&self) -> bool {
        self.limits.lag.is_some() || self.limits.cpu.is_some()
    }

    /// When the client that was turned away last is to come again. Those who are turned away together are told times of up to
    /// half of [`Limits::retry_after`] more, in whole seconds, so that they do not come again together.
    pub fn retry_after(&self) -> Duration {
        let least = self.limits.retry_after;
        let others = self.state().refused.saturating_sub(1);
        least + Duration::from_secs(others % (least.as_secs() / 2 + 1))
    }

    /// What the server carries.
    pub fn load(&self) -> Load {
        let state = self.state();
        Load {
            sessions: state.sessions,
            rate: state.rate,
            lag: state.measuring.lag(),
            cpu: state.measuring.cpu(),
            refused: state.refused,
        }
    }

    /// Takes a measurement: a timer that was due at `due` fired at `now`; `used` is the time that the process has used of its processors so
    /// far, divided by their number, if that is known.
    pub fn observe(&self, due: Instant, now: Instant, used: Option<Duration>) {
        let mut state = self.state();
        let sessions = state.sessions;
        state.measuring.observe(due, now, used, sessions);
    }

    /// Lets a session in that begins at `now` with media of `rate`, or says why not.
    ///
    /// # Errors
    /// Why it is turned away.
    pub fn admit(self: &Arc<Self>, rate: Option<Bitrate>, now: Instant) -> Result<Ticket, Refusal> {
        let mut state = self.state();
        let rate = rate.unwrap_or_default();
        match self.limits.refuse(&state, rate) {
            None => {
                state.sessions = state.sessions.saturating_add(1);
                state.rate = state.rate + rate;
                state.measuring.admitted();
                Ok(Ticket {
                    admission: Arc::clone(self),
                    rate,
                })
            }
            Some(why) => {
                state.refused = state.refused.saturating_add(1);
                state.say(why, now);
                Err(why)
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Limits {
    /// Why a session of `rate` is not to be let in.
    fn refuse(&self, state: &State, rate: Bitrate) -> Option<Refusal> {
        let measuring = &state.measuring;
        let checks = [
            (
                self.sessions.is_some_and(|most| state.sessions >= most),
                Refusal::Sessions,
            ),
            (
                self.capacity.is_some_and(|most| state.rate + rate > most),
                Refusal::Capacity,
            ),
            (
                self.lag
                    .zip(measuring.lag())
                    .is_some_and(|(most, lag)| lag > most),
                Refusal::Lag,
            ),
            (
                self.cpu
                    .zip(measuring.cpu_with_one_more(state.sessions))
                    .is_some_and(|(most, share)| share > most.as_f64()),
                Refusal::Cpu,
            ),
            (
                (self.lag.is_some() || self.cpu.is_some())
                    && measuring.just_admitted() >= LEAST_RAMP.max(state.sessions / 4),
                Refusal::Ramp,
            ),
        ];
        checks
            .into_iter()
            .find_map(|(refuses, why)| refuses.then_some(why))
    }
}

impl State {
    /// Says that sessions are turned away; a crowd of clients that try again must not fill the log.
    fn say(&mut self, why: Refusal, now: Instant) {
        let before = match self.said {
            Some((at, _)) if now.saturating_duration_since(at) < LOG_EVERY => return,
            Some((_, refused)) => refused,
            None => 0,
        };
        self.said = Some((now, self.refused));
        tracing::warn!(
            %why,
            refused = self.refused.saturating_sub(before),
            sessions = self.sessions,
            rate = %self.rate,
            lag_ms = self.measuring.lag().map(|lag| lag.as_secs_f64() * 1e3),
            cpu = self.measuring.cpu(),
            "turned new sessions away"
        );
    }
}

/// A session that was let in. It ends when this is dropped.
#[derive(Debug)]
pub struct Ticket {
    admission: Arc<Admission>,
    rate: Bitrate,
}

impl Ticket {
    /// Says that the session now watches media of `rate`.
    pub fn set_rate(&mut self, rate: Bitrate) {
        let mut state = self.admission.state();
        state.rate = state.rate - self.rate + rate;
        self.rate = rate;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.admission.state();
        state.sessions = state.sessions.saturating_sub(1);
        state.rate = state.rate - self.rate;
    }
}

#[cfg(test)]
mod tests;
