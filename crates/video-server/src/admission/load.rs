//! Load of a server: [`TimerMeter`] measures the lateness of a thread's timers, [`LoadMeter`] processor time.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::{MIN_SESSIONS_FOR_COST, TICK};

/// Number of ticks in the window of one second.
const WINDOW: usize = 50;
/// Time between two readings of processor time.
const READING: Duration = Duration::from_secs(1);

/// Lateness of a thread's timers at the last ticks, over one second.
#[derive(Debug, Default)]
pub(super) struct TimerMeter(VecDeque<Duration>);

/// Use of processors over the last seconds.
#[derive(Debug, Default)]
pub(super) struct LoadMeter {
    /// Time of the last reading, and the processor time used by then.
    reading: Option<(Instant, Option<Duration>)>,
    cpu: Option<ProcessorUse>,
    /// Integral of the number of sessions over time since the last reading, in session-seconds.
    session_seconds: f64,
    ticked: Option<Instant>,
    /// Sessions admitted since the last reading.
    admitted: usize,
}

/// Exponential averages over readings; the last reading has a weight of one half.
#[derive(Clone, Copy, Debug)]
struct ProcessorUse {
    /// Used share of all processors' time.
    used: f64,
    /// Number of sessions that used this time. There may be more by now.
    by: f64,
}

impl TimerMeter {
    /// Records that a timer fired late by `lateness`.
    pub(super) fn add_lateness(&mut self, lateness: Duration) {
        // Ticks due in between would have been late as well. Without them, a pause of a second would count as one tick
        // of fifty.
        let mut lateness = lateness;
        for _ in 0..WINDOW {
            self.0.push_front(lateness);
            match lateness.checked_sub(TICK) {
                Some(less) if !less.is_zero() => lateness = less,
                _ => break,
            }
        }
        self.0.truncate(WINDOW);
    }

    /// 90th percentile of the lateness of the last ticks.
    pub(super) fn lag(&self) -> Option<Duration> {
        let mut late: Vec<_> = self.0.iter().copied().collect();
        late.sort_unstable();
        let rank = (late.len() * 9).div_ceil(10).checked_sub(1)?;
        late.get(rank).copied()
    }
}

impl LoadMeter {
    /// Records the processor time `used` up to `now`, with this many sessions since the last call.
    pub(super) fn observe(&mut self, now: Instant, used: Option<Duration>, sessions: usize) {
        let since = now.saturating_duration_since(self.ticked.replace(now).unwrap_or(now));
        self.session_seconds += sessions as f64 * since.as_secs_f64();
        let (at, before) = *self.reading.get_or_insert((now, used));
        let passed = now.saturating_duration_since(at);
        if passed < READING {
            return;
        }
        if let Some((used, before)) = used.zip(before) {
            let mut shares = ProcessorUse {
                used: used.saturating_sub(before).as_secs_f64() / passed.as_secs_f64(),
                by: self.session_seconds / passed.as_secs_f64(),
            };
            // Segments arrive in bursts; over two readings they even out.
            if let Some(earlier) = self.cpu {
                shares.used = f64::midpoint(earlier.used, shares.used);
                shares.by = f64::midpoint(earlier.by, shares.by);
            }
            self.cpu = Some(shares);
        }
        self.reading = Some((now, used));
        self.session_seconds = 0.0;
        self.admitted = 0;
    }

    /// Used share of processor time, between 0 and 1.
    pub(super) fn cpu(&self) -> Option<f64> {
        self.cpu.map(|shares| shares.used)
    }

    /// Expected share with one session more than `sessions`, at the cost measured per session. In a rush, the
    /// measurement covers a fifth fewer sessions than there are now, so the measured share alone would admit too many.
    pub(super) fn cpu_with_one_more(&self, sessions: usize) -> Option<f64> {
        let ProcessorUse { used, by } = self.cpu?;
        if by < MIN_SESSIONS_FOR_COST as f64 {
            return Some(used);
        }
        Some(used / by * (sessions as f64 + 1.0))
    }

    pub(super) fn admitted(&mut self) {
        self.admitted = self.admitted.saturating_add(1);
    }

    /// Sessions admitted since the last reading.
    pub(super) fn just_admitted(&self) -> usize {
        self.admitted
    }
}
