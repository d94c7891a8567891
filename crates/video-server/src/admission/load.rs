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
    cpu: Option<Shares>,
    /// Sessions since the last reading, times the seconds that they were there, and when that was last added to.
    session_seconds: f64,
    ticked: Option<Instant>,
    /// Sessions let in since the last reading.
    admitted: usize,
}

/// Means over the last readings, which are the later ones' by half.
#[derive(Clone, Copy, Debug)]
struct Shares {
    /// Of the processors' time.
    used: f64,
    /// Sessions that used it. More may be there by now.
    by: f64,
}

impl Default for Measuring {
    fn default() -> Self {
        Self {
            late: [Duration::ZERO; WINDOW],
            next: 0,
            filled: 0,
            reading: None,
            cpu: None,
            session_seconds: 0.0,
            ticked: None,
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
        let since = now.saturating_duration_since(self.ticked.replace(now).unwrap_or(now));
        self.session_seconds += sessions as f64 * since.as_secs_f64();
        let (at, before) = *self.reading.get_or_insert((now, used));
        let passed = now.saturating_duration_since(at);
        if passed < READING {
            return;
        }
        if let Some((used, before)) = used.zip(before) {
            let mut shares = Shares {
                used: used.saturating_sub(before).as_secs_f64() / passed.as_secs_f64(),
                by: self.session_seconds / passed.as_secs_f64(),
            };
            // Segments come in bursts; over two readings they are about even.
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
        self.cpu.map(|shares| shares.used)
    }

    /// The share that will be used once those who are there now, `sessions`, and one more cost as much as those did who were there when it
    /// was measured. In a rush these were fewer by a fifth, and a server that took what they used for the whole would let in too many.
    pub(super) fn cpu_with_one_more(&self, sessions: usize) -> Option<f64> {
        let Shares { used, by } = self.cpu?;
        if by < ENOUGH_TO_TELL as f64 {
            return Some(used);
        }
        Some(used / by * (sessions as f64 + 1.0))
    }

    pub(super) fn admitted(&mut self) {
        self.admitted = self.admitted.saturating_add(1);
    }

    /// Sessions let in since the last reading.
    pub(super) fn just_admitted(&self) -> usize {
        self.admitted
    }
}
