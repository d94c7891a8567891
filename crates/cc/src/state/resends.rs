//! [`Resends`]: data that was lost and sent again, for senders to whom losing it again costs a timeout.

use super::MINIMUM_RTO_NS;
use crate::Timestamp;
use crate::parameter::{Arguments, Parameter, Value};

const TCP: &str = "tcp";

/// The parameter of every algorithm that chooses what it costs to lose data again.
pub(crate) const RECOVERY: Parameter = Parameter::word(
    "recovery",
    "quic",
    &["quic", TCP],
    "data that is lost again after it was sent again: quic takes that for one more loss (RFC 9002 §6); tcp waits for a \
     timeout and begins with the smallest window (RFC 6675 §5.1, RFC 5681 §3.1)",
);

/// Data sent again, and the silence after it was lost once more.
///
/// A transport sends lost data before any other, so that the bytes that leave after a loss are those that were lost.
/// If a packet is lost that left among them, TCP with SACK (RFC 6675) has no second fast retransmission and is silent
/// until its timer fires; `recovery=tcp` keeps the window at its minimum for that time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resends {
    /// Lost bytes that were not sent again yet.
    owed: u64,
    /// Departures of the first and the last burst that carried lost data.
    range: Option<(Timestamp, Timestamp)>,
    /// Time at which the timer would have fired.
    silent_until: Option<Timestamp>,
}

impl Resends {
    /// `None` unless an algorithm's arguments say `tcp`.
    pub(crate) fn from_arguments(arguments: &Arguments) -> Option<Box<Self>> {
        let is_tcp = arguments.value(RECOVERY.name) == Some(Value::Word(TCP));
        is_tcp.then(Box::default)
    }

    /// A burst of `bytes` left; lost data goes first.
    pub(super) fn on_sent(&mut self, now: Timestamp, bytes: u64) {
        if self.owed > 0 {
            let first = self.range.map_or(now, |(first, _)| first);
            self.range = Some((first, now));
            self.owed = self.owed.saturating_sub(bytes);
        }
    }

    /// `bytes` were lost, the newest of them sent at `newest_sent`. Returns true if that was data sent again, which
    /// begins the silence until the timer of `rto_ns` would have fired.
    pub(super) fn on_loss(&mut self, newest_sent: Timestamp, bytes: u64, rto_ns: u64) -> bool {
        let again = self
            .range
            .is_some_and(|(first, last)| (first..=last).contains(&newest_sent));
        if again {
            self.silent_until = Some(newest_sent.plus_nanos(rto_ns.max(MINIMUM_RTO_NS)));
            self.owed = 0;
        }
        if self.owed == 0 {
            self.range = None;
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

    const MS: u64 = 1_000_000;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_nanos(ms * MS)
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
    fn the_silence_ends_when_the_timer_would_have_fired_and_not_before_200_ms() {
        for (rto_ms, silent_ms) in [(50, 200), (300, 300)] {
            let mut resends = Resends::default();
            resends.on_loss(at(5), 1_200, 0);
            resends.on_sent(at(10), 1_200);
            assert!(!resends.is_silent(at(10)));
            assert!(resends.on_loss(at(10), 1_200, rto_ms * MS));
            assert!(resends.is_silent(at(10 + silent_ms - 1)), "{rto_ms}");
            assert!(!resends.is_silent(at(10 + silent_ms)), "{rto_ms}");
        }
    }
}
