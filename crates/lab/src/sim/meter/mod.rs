//! [`Meter`]: statistics of a connection's congestion control, computed while it runs and in bounded memory.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use playrate_cc::Phase;
use playrate_transport::telemetry::{Sample, Sink};
use playrate_units::Bytes;
use serde::{Deserialize, Serialize};

use super::restarts::{RestartStatistics, Restarts};
use super::spread::{Histogram, Moments};
use crate::rounding::{ratio, seconds, whole};

/// Length of the session's first part, as shown in figures of slow start (P14, figure 4).
const OPENING: Duration = Duration::from_secs(30);
/// Interval for measuring steps of the window: the resolution of the papers' figures.
const STEP: Duration = Duration::from_millis(100);
/// Number of first round trips; the window is recorded after each of them.
const FIRST_ROUND_TRIPS: usize = 20;
/// A window has recovered from a congestion signal at this many tenths of its previous size. Not ten: many algorithms
/// approach their previous window slowly and are cut again shortly below it.
const RECOVERED_TENTHS: u128 = 9;

/// Statistics of one connection's window, RTT and estimates, as in a row (`docs/runs.md` describes the fields). Times
/// are counted from the beginning of the server's connection. A window is weighted by the time it was in force; RTTs
/// are sampled every 20 ms while acknowledgements arrive. Percentiles are accurate to 1.1 %.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "docs/runs.md describes the fields by these names")]
pub struct ControlStatistics {
    pub window_mean_bytes: u64,
    pub window_p05_bytes: u64,
    pub window_p50_bytes: u64,
    pub window_p95_bytes: u64,
    pub window_max_bytes: u64,
    /// Reversals of the window between rising and falling by more than a tenth.
    pub window_swings: u64,
    /// Standard deviation of the window's relative changes from one tenth of a second to the next.
    pub window_step_sd: f64,
    /// Congestion signals after which the window returned to `RECOVERED_TENTHS` of its previous size. Signals before
    /// its first growth by a tenth after slow start are not counted: a window that overshot is not expected to return.
    pub window_recoveries: u64,
    /// Mean time until then; zero if a signal cut less than a tenth of the window.
    pub window_recovery_mean_s: Option<f64>,
    /// Mean ratio of the window after a cut to the window before it, over the congestion signals that cut the window.
    pub window_kept_share: Option<f64>,
    /// Time at which the window first reached the bandwidth-delay product of the path.
    pub window_reached_bdp_s: Option<f64>,
    /// Window after 1, 2, … 20 times the propagation RTT, as far as the session lasted.
    pub window_first_rtts_bytes: Vec<u64>,
    pub window_30s_mean_bytes: u64,
    pub window_30s_p05_bytes: u64,
    pub window_30s_p95_bytes: u64,
    pub window_30s_max_bytes: u64,
    pub window_30s_swings: u64,
    pub window_30s_step_sd: f64,
    /// Time at which slow start was first left; `None` if it never was.
    pub startup_s: Option<f64>,
    pub startup_window_bytes: Option<u64>,
    pub slow_start_entries: u64,
    /// RTT samples include the viewer's acknowledgement delay.
    pub rtt_mean_s: f64,
    pub rtt_sd_s: f64,
    pub rtt_p05_s: f64,
    pub rtt_p50_s: f64,
    pub rtt_p95_s: f64,
    pub rtt_max_s: f64,
    /// Mean estimate of the path's capacity, for controllers that have one.
    pub capacity_mean_bps: Option<u64>,
    pub capacity_sd_bps: Option<u64>,
}

/// Computes [`ControlStatistics`] and [`RestartStatistics`] from a connection's samples.
#[derive(Debug)]
pub(super) struct Meter {
    bdp: Bytes,
    round_trip: Duration,
    state: Mutex<MeterState>,
}

#[derive(Debug, Default)]
struct MeterState {
    last: Option<Sample>,
    whole: Distribution,
    opening: Distribution,
    marks: u32,
    first_round_trips: Vec<u64>,
    reached_bdp: Option<Duration>,
    startup: Option<(Duration, Bytes)>,
    slow_start_entries: u64,
    /// Smallest window since the end of slow start.
    lowest: Option<Bytes>,
    /// True once the window has grown since then.
    settled: bool,
    recovering: Option<Recovering>,
    recoveries: u64,
    recovered: Duration,
    kept: Moments,
    rtt: Histogram,
    rtt_moments: Moments,
    capacity: Moments,
    restarts: Restarts,
}

/// A congestion signal from which the window has not recovered yet.
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
    /// A meter for a path with this bandwidth-delay product, if its rate is limited, and this propagation RTT.
    pub(super) fn new(bdp: Option<Bytes>, round_trip: Duration) -> Self {
        Self {
            bdp: bdp.unwrap_or(Bytes::new(u64::MAX)),
            round_trip,
            state: Mutex::default(),
        }
    }

    /// The statistics so far; `None` before the second sample.
    pub(super) fn statistics(&self) -> Option<(ControlStatistics, Option<RestartStatistics>)> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Some((state.control()?, state.restarts.statistics()))
    }
}

impl Sink for Meter {
    fn take(&self, sample: &Sample) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.take(sample, self.bdp, self.round_trip);
    }
}

impl MeterState {
    fn take(&mut self, sample: &Sample, bdp: Bytes, round_trip: Duration) {
        let window = sample.snapshot.window;
        let last = self.last.unwrap_or_else(|| {
            // Before the first sample, the window had the value in the first sample.
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
        self.cut(&last, sample);
        self.recovery(&last, sample);
        self.restarts.see(&last, sample, round_trip);
        self.last = Some(*sample);
    }

    /// Records the window at the marks up to `now`.
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
            self.first_round_trips.push(window.as_u64());
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

    fn cut(&mut self, last: &Sample, sample: &Sample) {
        let (before, after) = (last.snapshot.window, sample.snapshot.window);
        if sample.congestion_events > last.congestion_events && after < before {
            self.kept.add(after.as_u64() as f64 / before.as_u64() as f64, 1.0);
        }
    }

    /// Tracks the window from a congestion signal back to its previous size, once it has grown after slow start.
    fn recovery(&mut self, last: &Sample, sample: &Sample) {
        let window = sample.snapshot.window;
        // quinn's controllers have no phases; their first signal ends slow start.
        let slow_start = if last.snapshot.algorithm_window.is_some() {
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
        let signalled = sample.congestion_events > last.congestion_events;
        if signalled && self.recovering.is_none() {
            self.recovering = Some(Recovering {
                since: sample.at,
                window: last.snapshot.window,
            });
        }
        if let Some(open) = self.recovering
            && times(window, 10) >= times(open.window, RECOVERED_TENTHS)
        {
            self.recoveries += 1;
            self.recovered = self
                .recovered
                .saturating_add(sample.at.saturating_sub(open.since));
            self.recovering = None;
        }
    }

    fn control(&self) -> Option<ControlStatistics> {
        let (window, opening, rtt) = (&self.whole.window, &self.opening.window, &self.rtt);
        let recoveries = u32::try_from(self.recoveries).unwrap_or(u32::MAX);
        let nanos = |nanos: Option<u64>| seconds(nanos.map_or(Duration::ZERO, Duration::from_nanos));
        let rtt_sd = Duration::try_from_secs_f64(self.rtt_moments.sd().unwrap_or_default());
        Some(ControlStatistics {
            window_mean_bytes: window.mean()?,
            window_p05_bytes: window.percentile(5)?,
            window_p50_bytes: window.percentile(50)?,
            window_p95_bytes: window.percentile(95)?,
            window_max_bytes: window.max(),
            window_swings: self.whole.swings.count,
            window_step_sd: ratio(self.whole.steps.sd().unwrap_or_default()),
            window_recoveries: self.recoveries,
            window_recovery_mean_s: self.recovered.checked_div(recoveries).map(seconds),
            window_kept_share: self.kept.mean().map(ratio),
            window_reached_bdp_s: self.reached_bdp.map(seconds),
            window_first_rtts_bytes: self.first_round_trips.clone(),
            window_30s_mean_bytes: opening.mean()?,
            window_30s_p05_bytes: opening.percentile(5)?,
            window_30s_p95_bytes: opening.percentile(95)?,
            window_30s_max_bytes: opening.max(),
            window_30s_swings: self.opening.swings.count,
            window_30s_step_sd: ratio(self.opening.steps.sd().unwrap_or_default()),
            startup_s: self.startup.map(|(at, _)| seconds(at)),
            startup_window_bytes: self.startup.map(|(_, window)| window.as_u64()),
            slow_start_entries: self.slow_start_entries,
            rtt_mean_s: nanos(rtt.mean()),
            rtt_sd_s: seconds(rtt_sd.unwrap_or_default()),
            rtt_p05_s: nanos(rtt.percentile(5)),
            rtt_p50_s: nanos(rtt.percentile(50)),
            rtt_p95_s: nanos(rtt.percentile(95)),
            rtt_max_s: nanos(Some(rtt.max())),
            capacity_mean_bps: self.capacity.mean().map(whole),
            capacity_sd_bps: self.capacity.sd().map(whole),
        })
    }
}

fn times(window: Bytes, factor: u128) -> u128 {
    u128::from(window.as_u64()) * factor
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
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
}

/// Counts reversals of the window by more than a tenth.
#[derive(Debug, Default)]
struct Swings {
    count: u64,
    /// Smallest window since the last reversal, or since the beginning; `highest` likewise.
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
