//! [`Resends`]: lost data that was resent (`recovery=tcp`): losing it once more costs a timeout.

use super::MINIMUM_RTO_NS;
use crate::Timestamp;
use crate::parameter::Parameter;

pub(super) const TCP: &str = "tcp";

/// The parameter of every algorithm that selects the cost of losing data again (feature `papers`).
pub(crate) const RECOVERY: Parameter = Parameter::word("recovery", "quic", &["quic", TCP]).about(
    "resent data that is lost again: quic counts this as one more loss (RFC 9002 §6); tcp \
     waits for a timeout and begins with the smallest window (RFC 6675 §5.1, RFC 5681 §3.1)",
);

/// Number of ranges that are remembered; older ones are forgotten.
const RANGES: usize = 32;

/// Resent data, and the silence after its second loss.
///
/// A transport sends lost data first, so the bytes that leave after a loss are the lost ones. If a packet that left
/// among them is lost, TCP with SACK (RFC 6675) has no second fast retransmission and is silent until its timer fires;
/// `recovery=tcp` keeps the window at its minimum for that time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resends {
    /// Lost bytes that have not been resent.
    owed: u64,
    /// Departures of the first and last burst of each run of bursts that carried lost data.
    ranges: [Option<(Timestamp, Timestamp)>; RANGES],
    /// Place of the newest range.
    newest: usize,
    /// True if the last burst carried lost data.
    in_range: bool,
    /// Time when the timer would have fired.
    silent_until: Option<Timestamp>,
}

impl Resends {
    /// Counts a burst of `bytes` that left; lost data goes first.
    pub(super) fn on_sent(&mut self, now: Timestamp, bytes: u64) {
        if self.owed == 0 {
            self.in_range = false;
            return;
        }
        self.owed = self.owed.saturating_sub(bytes);
        if !core::mem::replace(&mut self.in_range, true) {
            self.newest = self.newest.wrapping_add(1) % RANGES;
            self.ranges[self.newest] = None;
        }
        let first = self.ranges[self.newest].map_or(now, |(first, _)| first);
        self.ranges[self.newest] = Some((first, now));
    }

    /// Records that `bytes` were lost; the newest of them were sent at `newest_sent`. Returns true if they were resent
    /// data. This begins the silence, until the timer of `rto_ns` would have fired.
    pub(super) fn on_loss(&mut self, newest_sent: Timestamp, bytes: u64, rto_ns: u64) -> bool {
        let again = self
            .ranges
            .iter()
            .flatten()
            .any(|(first, last)| (*first..=*last).contains(&newest_sent));
        if again {
            *self = Self {
                silent_until: Some(newest_sent.plus_nanos(rto_ns.max(MINIMUM_RTO_NS))),
                ..Self::default()
            };
        }
        self.owed = self.owed.saturating_add(bytes);
        again
    }

    /// Returns true while the sender waits for its timer.
    pub(super) fn is_silent(&self, now: Timestamp) -> bool {
        self.silent_until.is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::tests::{MS_IN_NS as MS, at};

    /// One packet was lost at 5 ms, and packets left at these times (ms).
    fn resent(times: &[u64]) -> Resends {
        let mut resends = Resends::default();
        resends.on_loss(at(5), 1_200, 0);
        for &ms in times {
            resends.on_sent(at(ms), 1_200);
        }
        resends
    }

    #[test]
    fn only_a_packet_that_left_among_data_sent_again_is_lost_again() {
        for (sent, again) in [(9, false), (10, true), (20, true), (21, false)] {
            let mut resends = Resends::default();
            assert!(!resends.on_loss(at(5), 3_000, 0));
            resends.on_sent(at(10), 1_200);
            resends.on_sent(at(20), 2_400);
            resends.on_sent(at(30), 1_200);
            assert_eq!(resends.on_loss(at(sent), 1_200, 0), again, "sent at {sent} ms");
        }
    }

    #[test]
    fn further_losses_of_the_first_flight_do_not_hide_what_was_sent_again() {
        let mut resends = resent(&[10]);
        assert!(!resends.on_loss(at(6), 1_200, 0));
        for ms in [15, 16, 20] {
            resends.on_sent(at(ms), 1_200);
        }
        assert!(resends.on_loss(at(10), 1_200, 0));
    }

    #[test]
    fn new_data_between_two_runs_of_lost_data_is_not_lost_again() {
        let mut resends = resent(&[10, 11]);
        resends.on_loss(at(6), 1_200, 0);
        resends.on_sent(at(12), 1_200);
        assert!(!resends.on_loss(at(11), 1_200, 0));
        assert!(resends.on_loss(at(12), 1_200, 0));
    }

    #[test]
    fn only_the_newest_ranges_are_remembered() {
        let mut resends = Resends::default();
        for number in 0..40 {
            resends.on_loss(at(5), 1_200, 0);
            resends.on_sent(at(10 + 2 * number), 1_200);
            resends.on_sent(at(11 + 2 * number), 1_200);
        }
        assert!(!resends.on_loss(at(10), 1_200, 0));
        assert!(resends.on_loss(at(88), 1_200, 0));
    }

    #[test]
    fn the_silence_ends_when_the_timer_would_have_fired_and_not_before_200_ms() {
        for (rto_ms, silent_ms) in [(50, 200), (300, 300)] {
            let mut resends = resent(&[10]);
            assert!(!resends.is_silent(at(10)));
            assert!(resends.on_loss(at(10), 1_200, rto_ms * MS));
            assert!(resends.is_silent(at(10 + silent_ms - 1)), "{rto_ms}");
            assert!(!resends.is_silent(at(10 + silent_ms)), "{rto_ms}");
        }
    }
}
