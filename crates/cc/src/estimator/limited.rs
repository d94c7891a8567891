//! Time that does not count: the sender did not use the window that it had.
//!
//! RFC 9438 §4.2: an epoch's elapsed time MUST NOT include periods in which cwnd was not updated because of
//! application-limited behaviour.

use crate::Timestamp;

/// Adds up the time in which the application, not the window, held the sender back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LimitedTime {
    total_ns: u64,
    /// Time with nothing in flight since the last batch.
    quiet_ns: u64,
    was_limited: bool,
    /// Nothing has been in flight since the last batch.
    is_quiet: bool,
}

impl LimitedTime {
    /// A burst left: if nothing was in flight, nothing had been since the last batch, which arrived at `last`.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Timestamp, last: Option<Timestamp>) {
        if self.is_quiet {
            self.is_quiet = false;
            self.quiet_ns = last.map_or(0, |last| now.nanos_since(last));
        }
    }

    /// An ACK batch arrived. The time since the last one, at `last`, counts as limited if the sender was limited at either
    /// end, else as far as nothing was in flight.
    #[inline]
    pub(crate) fn on_batch(
        &mut self,
        now: Timestamp,
        last: Option<Timestamp>,
        limited: bool,
        in_flight: u64,
    ) {
        if let Some(last) = last {
            let excluded = if limited || self.was_limited {
                now.nanos_since(last)
            } else {
                self.quiet_ns
            };
            self.total_ns = self.total_ns.saturating_add(excluded);
        }
        self.quiet_ns = 0;
        self.is_quiet = in_flight == 0;
        self.was_limited = limited;
    }

    /// All limited time of the connection so far, ns. It never falls.
    pub(crate) const fn total_ns(&self) -> u64 {
        self.total_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn a_busy_sender_accumulates_nothing() {
        let mut time = LimitedTime::default();
        for ms in 0..100 {
            let now = at(ms);
            time.on_batch(now, Some(at(ms.saturating_sub(1))), false, 12_000);
            time.on_sent(now, Some(now));
        }
        assert_eq!(time.total_ns(), 0);
    }

    #[test]
    fn intervals_that_begin_or_end_limited_are_left_out() {
        let mut time = LimitedTime::default();
        time.on_batch(at(0), None, false, 12_000);
        time.on_batch(at(10), Some(at(0)), true, 12_000);
        time.on_batch(at(30), Some(at(10)), false, 12_000);
        time.on_batch(at(31), Some(at(30)), false, 12_000);
        assert_eq!(time.total_ns(), 30 * MS);
    }

    #[test]
    fn an_idle_gap_that_no_flag_marks_is_left_out() {
        let mut time = LimitedTime::default();
        time.on_batch(at(0), None, false, 0);
        time.on_sent(at(5_000), Some(at(0)));
        time.on_sent(at(5_050), Some(at(0)));
        time.on_batch(at(5_100), Some(at(0)), false, 0);
        assert_eq!(time.total_ns(), 5_000 * MS);
    }
}
