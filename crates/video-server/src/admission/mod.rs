//! [`Admission`]: limits on the number of sessions that a server carries.
//!
//! An overloaded server is late with everything until every player's buffer runs empty. So it turns new sessions away
//! before the existing ones suffer, with a status that says when to retry.
//!
//! A session is a connection whose first media request was admitted, before anything is opened; it lasts as long as the
//! connection. An admitted session is served to its end, whatever the load. The transport may end it only while it has
//! no request in progress; its limits are those of [`ServerOptions`](playrate_transport::ServerOptions). All other
//! requests (pages, manifests) are always answered.
//!
//! This module reads no clock: [`Admission::observe`], called every [`TICK`], passes measurements in.

mod load;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use playrate_transport::LogLimit;
use playrate_units::{Bitrate, Probability};
use thiserror::Error;

use load::{LoadMeter, TimerMeter};

/// Interval between calls of [`Admission::observe`].
pub const TICK: Duration = Duration::from_millis(20);
/// Number of sessions that may be admitted per second, or a quarter of the present ones if that is more. The cost of
/// new sessions is known only after they have begun.
const MIN_RAMP: usize = 16;
/// Number of sessions below which the cost of one cannot be distinguished from the server's base load.
const MIN_SESSIONS_FOR_COST: usize = 16;
/// Number of sets of representations whose rates are remembered per connection: video, audio, subtitles, and
/// some more.
const SETS: usize = 8;

/// Limits of a server. Without any limit every session is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum number of sessions.
    pub sessions: Option<usize>,
    /// Maximum sum of the media rates of all sessions. Media of unknown rate count as zero.
    pub capacity: Option<Bitrate>,
    /// Maximum timer lateness of the client's thread: nine of ten timers must stay below it over the last second.
    pub lag: Option<Duration>,
    /// Maximum share of the server's processor time that the process may use.
    pub cpu: Option<Probability>,
    /// Minimum time before a refused client should retry.
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

/// Reason of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The number of sessions is at its limit.
    #[error("the number of sessions is at its limit")]
    Sessions,
    /// The sum of media rates would exceed the capacity.
    #[error("the media rates of the sessions use up the capacity")]
    Capacity,
    /// Timers fire too late.
    #[error("timers fire too late")]
    Lag,
    /// The server uses too much processor time, or would with this session.
    #[error("the processors are busy")]
    Cpu,
    /// Many sessions were just admitted, and their cost is not known yet.
    #[error("many sessions were just admitted")]
    Ramp,
}

/// Load of a server, for dashboards and logs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Load {
    /// Number of sessions now.
    pub sessions: usize,
    /// Sum of their known media rates.
    pub rate: Bitrate,
    /// Timer lateness that nine of ten timers stayed within over the last second, if measured; the highest of all
    /// threads.
    pub lag: Option<Duration>,
    /// Used share of the server's processor time, between 0 and 1, if measured.
    pub cpu: Option<f64>,
    /// Number of requests for new sessions refused so far.
    pub refused: u64,
}

/// Admits and counts sessions within limits. Each one serves the clients of one thread; those of a server's other
/// threads [share its sessions](Self::of_another_thread).
#[derive(Debug)]
pub struct Admission {
    limits: Limits,
    state: Arc<Mutex<AdmissionState>>,
    /// Position of the thread's meter.
    thread: usize,
}

#[derive(Debug, Default)]
struct AdmissionState {
    sessions: usize,
    rate: Bitrate,
    load_meter: LoadMeter,
    /// Meters of the lateness of timers, one for each thread.
    timers: Vec<TimerMeter>,
    refused: u64,
    refusal_log: LogLimit,
}

impl Admission {
    /// Creates an admission without sessions.
    pub fn new(limits: Limits) -> Arc<Self> {
        Self::on(limits, Arc::default())
    }

    /// Creates an admission with the same sessions and limits for the clients of another thread. Timers of that thread
    /// may be late while they are punctual here.
    pub fn of_another_thread(&self) -> Arc<Self> {
        Self::on(self.limits, Arc::clone(&self.state))
    }

    fn on(limits: Limits, state: Arc<Mutex<AdmissionState>>) -> Arc<Self> {
        let thread = {
            let mut state = state.lock();
            state.timers.push(TimerMeter::default());
            state.timers.len() - 1
        };
        Arc::new(Self {
            limits,
            state,
            thread,
        })
    }

    /// Time after which the most recently refused client should retry. Clients refused together get up to half of
    /// [`Limits::retry_after`] more, in whole seconds, so that they do not all retry at once.
    pub fn retry_after(&self) -> Duration {
        let least = self.limits.retry_after;
        let others = self.state.lock().refused.saturating_sub(1);
        least + Duration::from_secs(others % (least.as_secs() / 2 + 1))
    }

    /// Present load of the server.
    pub fn load(&self) -> Load {
        let state = self.state.lock();
        Load {
            sessions: state.sessions,
            rate: state.rate,
            lag: state.timers.iter().filter_map(TimerMeter::lag).max(),
            cpu: state.load_meter.cpu(),
            refused: state.refused,
        }
    }

    /// Records a measurement: this thread's timer, due at `due`, fired at `now`. `used` is the processor time of the
    /// process so far, divided by the number of its processors, if known; only the first thread's counts.
    pub fn observe(&self, due: Instant, now: Instant, used: Option<Duration>) {
        let mut state = self.state.lock();
        if let Some(timers) = state.timers.get_mut(self.thread) {
            timers.add_lateness(now.saturating_duration_since(due));
        }
        if self.thread == 0 {
            let sessions = state.sessions;
            state.load_meter.observe(now, used, sessions);
        }
    }

    /// Admits a session that begins at `now` with media of `rate`.
    ///
    /// # Errors
    /// The reason of the refusal.
    pub fn admit(self: &Arc<Self>, rate: Option<Bitrate>, now: Instant) -> Result<Ticket, Refusal> {
        let mut state = self.state.lock();
        let rate = rate.unwrap_or_default();
        let lag = state.timers.get(self.thread).and_then(TimerMeter::lag);
        match self.limits.refuse(&state, lag, rate) {
            None => {
                state.sessions = state.sessions.saturating_add(1);
                state.rate = state.rate + rate;
                state.load_meter.admitted();
                Ok(Ticket {
                    admission: Arc::clone(self),
                    rate,
                })
            }
            Some(why) => {
                state.refused = state.refused.saturating_add(1);
                state.log_refusals(why, lag, now);
                Err(why)
            }
        }
    }
}

impl Limits {
    /// Returns true if a limit needs [measurements](Admission::observe).
    pub fn depend_on_load(&self) -> bool {
        self.lag.is_some() || self.cpu.is_some()
    }

    /// Reason to refuse a session of `rate` on a thread with this `lag`, if any.
    fn refuse(&self, state: &AdmissionState, lag: Option<Duration>, rate: Bitrate) -> Option<Refusal> {
        let load_meter = &state.load_meter;
        let is_full = self.sessions.is_some_and(|most| state.sessions >= most);
        let is_used_up = self.capacity.is_some_and(|most| state.rate + rate > most);
        let is_late = self.lag.zip(lag).is_some_and(|(most, lag)| lag > most);
        let cpu = self.cpu.zip(load_meter.cpu_with_one_more(state.sessions));
        let is_busy = cpu.is_some_and(|(most, share)| share > most.as_f64());
        let ramp = MIN_RAMP.max(state.sessions / 4);
        let is_rushed = self.depend_on_load() && load_meter.just_admitted() >= ramp;
        let reached = [
            (is_full, Refusal::Sessions),
            (is_used_up, Refusal::Capacity),
            (is_late, Refusal::Lag),
            (is_busy, Refusal::Cpu),
            (is_rushed, Refusal::Ramp),
        ];
        let first = reached.into_iter().find(|(is_reached, _)| *is_reached);
        first.map(|(_, refusal)| refusal)
    }
}

impl AdmissionState {
    /// Logs refusals at a limited rate.
    fn log_refusals(&mut self, why: Refusal, lag: Option<Duration>, now: Instant) {
        let Some(refused) = self.refusal_log.count(now) else {
            return;
        };
        tracing::warn!(
            %why,
            refused,
            sessions = self.sessions,
            rate = %self.rate,
            lag_ms = lag.map(|lag| lag.as_secs_f64() * 1e3),
            cpu = self.load_meter.cpu(),
            "turned new sessions away"
        );
    }
}

/// An admitted session. It ends when this is dropped.
#[derive(Debug)]
pub struct Ticket {
    admission: Arc<Admission>,
    rate: Bitrate,
}

impl Ticket {
    /// Sets the media rate of the session to `rate`.
    pub fn set_rate(&mut self, rate: Bitrate) {
        let mut state = self.admission.state.lock();
        state.rate = state.rate - self.rate + rate;
        self.rate = rate;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.admission.state.lock();
        state.sessions = state.sessions.saturating_sub(1);
        state.rate = state.rate - self.rate;
    }
}

/// Admission of one connection. Its first media request asks for a session.
#[derive(Debug)]
pub struct AdmissionSlot {
    admission: Arc<Admission>,
    session: Mutex<Option<AdmittedSession>>,
}

/// An admitted session of this connection.
#[derive(Debug)]
struct AdmittedSession {
    ticket: Ticket,
    /// Last requested rate in each set of interchangeable representations.
    rates: BTreeMap<usize, Bitrate>,
}

impl AdmissionSlot {
    /// Creates the slot of a connection that has not requested media yet.
    pub fn new(admission: Arc<Admission>) -> Self {
        Self {
            admission,
            session: Mutex::new(None),
        }
    }

    /// Admits a request at `now` for media of this set of representations, and of this rate if known.
    ///
    /// # Errors
    /// There is no room for the session that the request would begin. Returns the time after which to retry.
    pub fn admit(&self, set: usize, rate: Option<Bitrate>, now: Instant) -> Result<(), Duration> {
        let mut session = self.session.lock();
        let AdmittedSession { ticket, rates } = match &mut *session {
            Some(session) => session,
            none => {
                let ticket = self.admission.admit(rate, now);
                none.insert(AdmittedSession {
                    ticket: ticket.map_err(|_| self.admission.retry_after())?,
                    rates: BTreeMap::new(),
                })
            }
        };
        if let Some(rate) = rate
            && rates.get(&set) != Some(&rate)
            && (rates.len() < SETS || rates.contains_key(&set))
        {
            rates.insert(set, rate);
            ticket.set_rate(rates.values().copied().sum());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
