//! [`Measuring`]: how busy a server is, from when its timers fire and from the processor time that it uses.

use std::time::{Duration, Instant};

use super::{ENOUGH_TO_TELL, TICK};

/// Ticks that are looked back at: a second.
const WINDOW: usize = 50;
/// How long processor time is measured for one reading.
const READING: Duration = Duration::from_secs(1);

/// What was measured.
#[derive(Debug)]
pub(super) struct Measuring {
    /// Lateness of the last ticks, as a ring.
    late: [Duration; WINDOW],
    next: usize,
    filled: usize,
    /// When the last reading was taken, and the processor time used by then.
    reading: Option<(Instant, Option<Duration>)>,
    cpu: Option<f64>,
    /// Sessions when the last reading was taken, and those let in since.
    sessions: usize,
    admitted: usize,
}

impl Default for Measuring {
    fn default() -> Self {
        Self {
            late: [Duration::ZERO; WINDOW],
            next: 0,
            filled: 0,
            reading: None,
            cpu: None,
            sessions: 0,
            admitted: 0,
        }
    }
}

impl Measuring {
    pub(super) fn observe(&mut self, due: Instant, now: Instant, used: Option<Duration>, sessions: usize) {
        // Ticks that would have been due meanwhile would have been late as well: without them a second of standstill would
        // count as one tick of fifty.
        let mut lateness = now.saturating_duration_since(due);
        for _ in 0..WINDOW {
            self.note(lateness);
            match lateness.checked_sub(TICK) {
                Some(less) if !less.is_zero() => lateness = less,
                _ => break,
            }
        }
        let (at, before) = *self.reading.get_or_insert((now, used));
        let passed = now.saturating_duration_since(at);
        if passed < READING {
            return;
        }
        if let Some((used, before)) = used.zip(before) {
            let share = used.saturating_sub(before).as_secs_f64() / passed.as_secs_f64();
            // Segments come in bursts; over two readings they are about even.
            self.cpu = Some(self.cpu.map_or(share, |earlier| f64::midpoint(earlier, share)));
        }
        self.reading = Some((now, used));
        self.sessions = sessions;
        self.admitted = 0;
    }

    fn note(&mut self, lateness: Duration) {
        if let Some(slot) = self.late.get_mut(self.next) {
            *slot = lateness;
        }
        self.next = (self.next + 1) % WINDOW;
        self.filled = (self.filled + 1).min(WINDOW);
    }

    /// The lateness that nine of ten of the last ticks did not exceed.
    pub(super) fn lag(&self) -> Option<Duration> {
        let mut late = self.late;
        let seen = late.get_mut(..self.filled).filter(|seen| !seen.is_empty())?;
        let rank = (seen.len() * 9).div_ceil(10).saturating_sub(1);
        let (_, lag, _) = seen.select_nth_unstable(rank);
        Some(*lag)
    }

    /// The share of processor time that is used, between 0 and 1.
    pub(super) fn cpu(&self) -> Option<f64> {
        self.cpu
    }

    /// The share that will be used with those that were just let in and one more, if each costs as much as the others do.
    pub(super) fn cpu_with_one_more(&self) -> Option<f64> {
        let share = self.cpu?;
        if self.sessions < ENOUGH_TO_TELL {
            return Some(share);
        }
        let each = share / self.sessions as f64;
        Some(share + each * (self.admitted as f64 + 1.0))
    }

    pub(super) fn admitted(&mut self) {
        self.admitted = self.admitted.saturating_add(1);
    }

    /// Sessions let in since the last reading.
    pub(super) fn just_admitted(&self) -> usize {
        self.admitted
    }
}
