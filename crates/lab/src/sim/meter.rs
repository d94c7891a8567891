//! [`Meter`]: a connection's congestion control in a few numbers, counted while it goes on and in bounded memory.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use playrate_cc::Phase;
use playrate_transport::telemetry::{Sample, Sink};
use playrate_units::{Bitrate, Bytes};

use super::restarts::{RestartSpread, Restarts};
use super::spread::{Histogram, Moments};

/// The first part of a session that figures of slow start show (P14, figure 4).
const OPENING: Duration = Duration::from_secs(30);
/// Distance of the marks between which steps of the window are measured: the resolution of the papers' figures.
const STEP: Duration = Duration::from_millis(100);
/// For so many round trips the window is noted after each.
const FIRST_ROUND_TRIPS: usize = 20;

/// What the window and the estimates of one connection did. Times are counted from the beginning of the server's
/// connection. A window counts for as long as it held; an RTT counts once for each moment at which one was looked at
/// (20 ms apart while acknowledgements come).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// The window over the session.
    pub window: WindowSpread,
    /// The same over the first 30 s.
    pub opening: WindowSpread,
    /// The window after 1, 2, … 20 times the propagation RTT, as far as the session went.
    pub first_round_trips: Vec<Bytes>,
    /// When the window first carried the bandwidth-delay product of the path.
    pub reached_bdp: Option<Duration>,
    /// When slow start was first left; `None` if it never was.
    pub startup: Option<Duration>,
    /// The window at that time.
    pub startup_window: Option<Bytes>,
    /// How often the controller returned to slow start.
    pub slow_start_entries: u64,
    /// Congestion signals after which the window came back to 90 % of what it had been. Those before it first grew by a
    /// tenth after slow start are left out: what slow start overshot is not to come back.
    pub recoveries: u64,
    /// How long that took on average: zero where a signal took less than a tenth of the window.
    pub recovery_mean: Option<Duration>,
    /// RTT samples, which contain the viewer's acknowledgement delay.
    pub rtt: RttSpread,
    /// Mean and standard deviation of the estimated capacity, of controllers that estimate it.
    pub capacity: Option<(Bitrate, Bitrate)>,
    /// What happened after pauses, if there were any.
    pub restarts: Option<RestartSpread>,
}

/// A window's distribution over time. Percentiles are right to 1.1 %.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(
    missing_docs,
    reason = "mean, percentiles and largest are what they are called"
)]
pub struct WindowSpread {
    pub mean: Bytes,
    pub p05: Bytes,
    pub p50: Bytes,
    pub p95: Bytes,
    pub max: Bytes,
    /// How often the window turned from rising to falling or back, by more than a tenth.
    pub swings: u64,
    /// Standard deviation of its relative changes from one tenth of a second to the next.
    pub step_sd: f64,
}

/// A distribution of RTTs. Percentiles are right to 1.1 %.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(
    missing_docs,
    reason = "mean, percentiles and largest are what they are called"
)]
pub struct RttSpread {
    pub mean: Duration,
    pub sd: Duration,
    pub p05: Duration,
    pub p50: Duration,
    pub p95: Duration,
    pub max: Duration,
}

/// Counts a connection's samples.
#[derive(Debug)]
pub struct Meter {
    bdp: Bytes,
    round_trip: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last: Option<Sample>,
    whole: Distribution,
    opening: Distribution,
    marks: u32,
    first_round_trips: Vec<Bytes>,
    reached_bdp: Option<Duration>,
    startup: Option<(Duration, Bytes)>,
    slow_start_entries: u64,
    /// The smallest window since slow start was left.
    lowest: Option<Bytes>,
    /// Whether the window has grown since.
    settled: bool,
    recovering: Option<Recovering>,
    recoveries: u64,
    recovered: Duration,
    rtt: Histogram,
    rtt_moments: Moments,
    capacity: Moments,
    restarts: Restarts,
}

/// From a congestion signal until the window is back.
#[derive(Clone, Copy, Debug)]
struct Recovering {
    since: Duration,
    window: Bytes,
}

#[derive(Debug, Default)]
struct Distribution {
    window: Histogram,
    swings: Swings,
    steps: Moments,
    before: Option<Bytes>,
}

impl Meter {
    /// For a connection over a path with this bandwidth-delay product, if it has one, and propagation RTT.
    pub fn new(bdp: Option<Bytes>, round_trip: Duration) -> Self {
        Self {
            bdp: bdp.unwrap_or(Bytes::new(u64::MAX)),
            round_trip,
            state: Mutex::default(),
        }
    }

    /// What has been counted so far; `None` before the second sample.
    pub fn measured(&self) -> Option<Measured> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.measured()
    }
}

impl Sink for Meter {
    fn take(&self, sample: &Sample) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.take(sample, self.bdp, self.round_trip);
    }
}

impl State {
    fn take(&mut self, sample: &Sample, bdp: Bytes, round_trip: Duration) {
        let window = sample.snapshot.window;
        let last = self.last.unwrap_or_else(|| {
            // Before the first sample the window was what the first sample shows.
            let mut first = *sample;
            first.at = Duration::ZERO;
            first
        });
        let held = sample.at.saturating_sub(last.at);
        self.whole.held(last.snapshot.window, held);
        self.whole.swings.see(window);
        if last.at < OPENING {
            self.opening
                .held(last.snapshot.window, held.min(OPENING.saturating_sub(last.at)));
            self.opening.swings.see(window);
        }
        self.mark(last.snapshot.window, sample.at, round_trip);
        if self.reached_bdp.is_none() && window >= bdp {
            self.reached_bdp = Some(sample.at);
        }
        if let Some(capacity) = last.snapshot.capacity {
            self.capacity
                .add(capacity.as_bits_per_second() as f64, held.as_secs_f64());
        }
        if let Some(rtt) = sample.latest_rtt
            && (!held.is_zero() || self.last.is_none())
        {
            self.rtt.add(nanos(rtt), 1);
            self.rtt_moments.add(rtt.as_secs_f64(), 1.0);
        }
        self.phases(&last, sample);
        self.recovery(&last, sample);
        self.restarts.see(&last, sample, round_trip);
        self.last = Some(*sample);
    }

    /// Notes the window at the marks that lie before `now`.
    fn mark(&mut self, window: Bytes, now: Duration, round_trip: Duration) {
        while STEP.saturating_mul(self.marks) <= now {
            let at = STEP.saturating_mul(self.marks);
            self.whole.step(window);
            if at <= OPENING {
                self.opening.step(window);
            }
            self.marks = self.marks.saturating_add(1);
        }
        while self.first_round_trips.len() < FIRST_ROUND_TRIPS {
            let number = u32::try_from(self.first_round_trips.len() + 1).unwrap_or(u32::MAX);
            if round_trip.saturating_mul(number) > now {
                break;
            }
            self.first_round_trips.push(window);
        }
    }

    fn phases(&mut self, last: &Sample, sample: &Sample) {
        let (before, after) = (last.snapshot.phase, sample.snapshot.phase);
        if before == Phase::Startup && after != Phase::Startup && self.startup.is_none() {
            self.startup = Some((sample.at, last.snapshot.window));
        }
        if before != after && matches!(after, Phase::AfterPersistentCongestion | Phase::AfterIdle) {
            self.slow_start_entries += 1;
        }
    }

    /// Follows the window from a congestion signal to where it was. What slow start overshot is not to come back, so this
    /// begins when the window has grown for the first time after slow start.
    fn recovery(&mut self, last: &Sample, sample: &Sample) {
        let window = sample.snapshot.window;
        // A controller that is not composed of parts has no phases; its first signal ends its slow start.
        let slow_start = if last.snapshot.law_window.is_some() {
            last.snapshot.phase == Phase::Startup
        } else {
            last.congestion_events == 0
        };
        if slow_start {
            return;
        }
        let lowest = self.lowest.map_or(window, |lowest| lowest.min(window));
        self.lowest = Some(lowest);
        self.settled |= times(window, 10) > times(lowest, 11);
        if !self.settled {
            return;
        }
        if sample.congestion_events > last.congestion_events && self.recovering.is_none() {
            self.recovering = Some(Recovering {
                since: sample.at,
                window: last.snapshot.window,
            });
        }
        if let Some(open) = self.recovering
            && times(window, 10) >= times(open.window, 9)
        {
            self.recoveries += 1;
            self.recovered = self
                .recovered
                .saturating_add(sample.at.saturating_sub(open.since));
            self.recovering = None;
        }
    }

    fn measured(&self) -> Option<Measured> {
        let recoveries = u32::try_from(self.recoveries).unwrap_or(u32::MAX);
        let duration = |nanos: Option<u64>| nanos.map_or(Duration::ZERO, Duration::from_nanos);
        Some(Measured {
            window: self.whole.spread()?,
            opening: self.opening.spread()?,
            first_round_trips: self.first_round_trips.clone(),
            reached_bdp: self.reached_bdp,
            startup: self.startup.map(|(at, _)| at),
            startup_window: self.startup.map(|(_, window)| window),
            slow_start_entries: self.slow_start_entries,
            recoveries: self.recoveries,
            recovery_mean: self.recovered.checked_div(recoveries),
            rtt: RttSpread {
                mean: duration(self.rtt.mean()),
                sd: Duration::try_from_secs_f64(self.rtt_moments.sd().unwrap_or_default())
                    .unwrap_or_default(),
                p05: duration(self.rtt.percentile(5)),
                p50: duration(self.rtt.percentile(50)),
                p95: duration(self.rtt.percentile(95)),
                max: Duration::from_nanos(self.rtt.max()),
            },
            capacity: self.capacity.mean().zip(self.capacity.sd()).map(rates),
            restarts: self.restarts.spread(),
        })
    }
}

fn times(window: Bytes, factor: u128) -> u128 {
    u128::from(window.as_u64()) * factor
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn rates((mean, sd): (f64, f64)) -> (Bitrate, Bitrate) {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "casts saturate, and neither is negative"
    )]
    let rate = |bits: f64| Bitrate::from_bits_per_second(bits.round() as u64);
    (rate(mean), rate(sd))
}

impl Distribution {
    fn held(&mut self, window: Bytes, time: Duration) {
        self.window.add(window.as_u64(), nanos(time));
    }

    fn step(&mut self, window: Bytes) {
        if let Some(before) = self.before.replace(window)
            && before > Bytes::ZERO
        {
            let (from, to) = (before.as_u64() as f64, window.as_u64() as f64);
            self.steps.add((to - from) / from, 1.0);
        }
    }

    fn spread(&self) -> Option<WindowSpread> {
        let percentile = |percent| self.window.percentile(percent).map(Bytes::new);
        Some(WindowSpread {
            mean: Bytes::new(self.window.mean()?),
            p05: percentile(5)?,
            p50: percentile(50)?,
            p95: percentile(95)?,
            max: Bytes::new(self.window.max()),
            swings: self.swings.count,
            step_sd: self.steps.sd().unwrap_or_default(),
        })
    }
}

/// Counts turns of more than a tenth.
#[derive(Debug, Default)]
struct Swings {
    count: u64,
    /// Since the last turn, or since the beginning.
    lowest: Bytes,
    highest: Bytes,
    rising: Option<bool>,
}

impl Swings {
    fn see(&mut self, window: Bytes) {
        if self.highest == Bytes::ZERO {
            (self.lowest, self.highest) = (window, window);
        }
        self.lowest = self.lowest.min(window);
        self.highest = self.highest.max(window);
        let well_below = |low: Bytes, high: Bytes| times(low, 10) < times(high, 9);
        let fell = self.rising != Some(false) && well_below(window, self.highest);
        let rose = self.rising != Some(true) && well_below(self.lowest, window);
        if fell || rose {
            self.count += u64::from(self.rising.is_some());
            self.rising = Some(rose);
            (self.lowest, self.highest) = (window, window);
        }
    }
}

#[cfg(test)]
mod tests;
