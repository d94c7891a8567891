//! When the sender has been idle: nothing in flight, nothing heard, for longer than an RTO.

use core::time::Duration;

use crate::Timestamp;
use crate::events::{AckBatch, Congestion, Sent, Signal};

/// The least that counts as an RTO: what Linux takes. RFC 6298 §2.4 says 1 s, which would hide most pauses between video
/// segments.
const MIN_RTO: Duration = Duration::from_millis(200);
/// Any larger burst contains more than an ACK frame, so an acknowledgement will come for it.
const ACK_ONLY: u64 = 256;

/// Notices, when a burst leaves, that it ends a pause. That burst has already left with the old window.
///
/// The transport says what is in flight only in ACK frames. In between, lost bytes are taken off and bursts that surely elicit
/// an acknowledgement are put on, so that a burst whose acknowledgement is late does not pass for a pause. Packets that only
/// acknowledge are never in flight, but they do end a pause.
#[derive(Clone, Copy, Debug)]
pub struct IdleDetector {
    min_rto: Duration,
    in_flight: u64,
    last_activity: Option<Timestamp>,
}

/// A pause that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdlePeriod {
    /// From the last burst or ACK frame to the burst that ended the pause.
    pub length: Duration,
    /// The RTO that it was longer than.
    pub rto: Duration,
}

impl IdlePeriod {
    /// Whole RTOs that the pause lasted, at least 1: how often RFC 2861 halves the window.
    pub fn rtos(&self) -> u32 {
        let rtos = self.length.as_nanos().checked_div(self.rto.as_nanos());
        rtos.map_or(u32::MAX, |rtos| u32::try_from(rtos).unwrap_or(u32::MAX))
    }
}

impl IdleDetector {
    /// A detector that takes no RTO for shorter than `min_rto`; 200 ms, as Linux does, by [`Default`].
    pub const fn new(min_rto: Duration) -> Self {
        Self {
            min_rto,
            in_flight: 0,
            last_activity: None,
        }
    }

    /// A burst left. `rto` is RFC 6298's, smoothed RTT + 4 · variance; `None` before the first RTT sample, when nothing can
    /// be said. Returns the pause that the burst ended, if it did.
    pub fn on_sent(&mut self, event: &Sent, rto: Option<Duration>) -> Option<IdlePeriod> {
        let quiet = self.last_activity.map(|last| event.now.since(last));
        let was_empty = self.in_flight == 0;
        self.last_activity = self.last_activity.max(Some(event.now));
        if event.bytes.as_u64() > ACK_ONLY {
            self.in_flight = self.in_flight.saturating_add(event.bytes.as_u64());
        }
        let (length, rto) = (quiet?, rto?.max(self.min_rto));
        (was_empty && length > rto).then_some(IdlePeriod { length, rto })
    }

    /// An ACK frame has been read.
    pub fn on_ack_batch(&mut self, event: &AckBatch) {
        self.in_flight = event.in_flight.as_u64();
        self.last_activity = self.last_activity.max(Some(event.now));
    }

    /// Packets were lost.
    pub fn on_congestion(&mut self, event: &Congestion) {
        if let Signal::Loss { bytes, .. } = event.signal {
            self.in_flight = self.in_flight.saturating_sub(bytes.as_u64());
        }
    }
}

impl Default for IdleDetector {
    fn default() -> Self {
        Self::new(MIN_RTO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bytes;
    use rstest::rstest;

    const RTO: Option<Duration> = Some(Duration::from_millis(300));

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn sent(ms: u64, bytes: u64) -> Sent {
        Sent {
            now: at(ms),
            bytes: Bytes::new(bytes),
        }
    }

    fn acked(ms: u64, in_flight: u64) -> AckBatch {
        AckBatch {
            now: at(ms),
            in_flight: Bytes::new(in_flight),
            app_limited: true,
            smoothed_rtt: None,
        }
    }

    fn lost(ms: u64, bytes: u64) -> Congestion {
        Congestion {
            now: at(ms),
            newest_sent: at(0),
            signal: Signal::Loss {
                bytes: Bytes::new(bytes),
                persistent: false,
            },
        }
    }

    /// A burst at 0, acknowledged at 100 ms with `left` bytes still out.
    fn after_a_burst(left: u64) -> IdleDetector {
        let mut idle = IdleDetector::default();
        assert_eq!(idle.on_sent(&sent(0, 12_000), RTO), None);
        idle.on_ack_batch(&acked(100, left));
        idle
    }

    #[rstest]
    #[case::at_the_rto(400, None)]
    #[case::just_past_it(401, Some(1))]
    #[case::two(900, Some(2))]
    #[case::three_and_a_half(1_150, Some(3))]
    fn a_pause_is_idle_once_it_exceeds_the_rto(#[case] ms: u64, #[case] rtos: Option<u32>) {
        let mut idle = after_a_burst(0);
        let period = idle.on_sent(&sent(ms, 1_200), RTO);
        assert_eq!(period.map(|period| period.rtos()), rtos);
        if let Some(period) = period {
            assert_eq!(period.length, Duration::from_millis(ms - 100));
        }
    }

    #[test]
    fn a_sender_that_waits_for_an_acknowledgement_is_not_idle() {
        assert_eq!(after_a_burst(1_200).on_sent(&sent(5_000, 1_200), RTO), None);
    }

    #[test]
    fn what_was_lost_is_not_waited_for() {
        let mut idle = after_a_burst(2_400);
        idle.on_congestion(&lost(100, 2_400));
        assert!(idle.on_sent(&sent(5_000, 1_200), RTO).is_some());
    }

    #[test]
    fn the_pause_ends_with_the_first_burst() {
        let mut idle = after_a_burst(0);
        assert!(idle.on_sent(&sent(2_000, 12_000), RTO).is_some());
        assert_eq!(idle.on_sent(&sent(2_001, 12_000), RTO), None);
        assert_eq!(
            idle.on_sent(&sent(2_900, 12_000), RTO),
            None,
            "its acknowledgement is late, which is no pause"
        );
    }

    #[test]
    fn an_acknowledgement_sent_during_the_pause_does_not_hide_the_rest_of_it() {
        let mut idle = after_a_burst(0);
        assert_eq!(idle.on_sent(&sent(150, 45), RTO), None);
        let period = idle.on_sent(&sent(2_150, 12_000), RTO).expect("idle");
        assert_eq!(period.length, Duration::from_secs(2));
    }

    #[test]
    fn short_rtos_are_raised_to_the_least() {
        let mut idle = after_a_burst(0);
        let rto = Some(Duration::from_millis(20));
        assert_eq!(idle.on_sent(&sent(300, 1_200), rto), None);
        let mut quick = IdleDetector::new(Duration::ZERO);
        quick.on_ack_batch(&acked(100, 0));
        let period = quick.on_sent(&sent(300, 1_200), rto).expect("idle");
        assert_eq!(period.rtos(), 10);
    }

    #[test]
    fn nothing_is_idle_before_the_first_rtt() {
        let mut idle = after_a_burst(0);
        assert_eq!(idle.on_sent(&sent(9_000, 1_200), None), None);
        assert_eq!(IdleDetector::default().on_sent(&sent(9_000, 1_200), RTO), None);
    }

    #[test]
    fn no_rto_at_all_is_no_division_by_zero() {
        let period = IdlePeriod {
            length: Duration::from_secs(1),
            rto: Duration::ZERO,
        };
        assert_eq!(period.rtos(), u32::MAX);
    }
}
