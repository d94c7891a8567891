//! [`RisenFloor`]: recognizes that the path itself has become longer.

use crate::state::Batch;

use super::Rtt;

/// Round trips with a smaller flight: the first still shows the RTT of the larger flight, the queue drains in the
/// second, and the third is compared.
const ROUNDS: u8 = 3;
/// Differences below this are not significant: `kGranularity` (RFC 9002 §6.1.2), ns.
const GRANULARITY_NS: u64 = 1_000_000;

/// Raises a connection's smallest RTT if the flight has fallen by a quarter without shortening the RTT.
///
/// A queue of the sender's own shrinks with its flight. If the RTT stays, the path is longer, or other flows keep the
/// queue full; yielding further would not help in either case. Without this, a controller that mistakes the rise for
/// its own queue stays small for ever. If the smallest RTT was raised by mistake, the next shorter RTT lowers it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RisenFloor {
    /// Smallest RTT (ns) and largest flight (bytes) of the current round trip.
    rtt_ns: Option<u64>,
    flight: u64,
    /// Largest flight of the previous round trips in bytes, and the largest of their smallest RTTs in ns.
    before: Option<(u64, u64)>,
    /// Consecutive round trips with a smaller flight.
    smaller: u8,
}

impl RisenFloor {
    /// Processes an ACK frame, and raises the smallest RTT if necessary.
    pub(crate) fn on_batch(&mut self, rtt: &mut Rtt, batch: &Batch) {
        if batch.new_round
            && let Some(floor_ns) = self.end_round()
        {
            // The frame belongs to the next round trip.
            rtt.raise_min(batch.rtt_ns.map_or(floor_ns, |ns| ns.min(floor_ns)));
        }
        self.rtt_ns = self.rtt_ns.into_iter().chain(batch.rtt_ns).min();
        self.flight = self.flight.max(batch.prior_in_flight());
    }

    /// Ends a round trip. Returns its smallest RTT if that did not fall with the flight.
    fn end_round(&mut self) -> Option<u64> {
        let rtt_ns = self.rtt_ns.take()?;
        let flight = core::mem::take(&mut self.flight);
        let (larger, before_ns) = match self.before {
            Some((larger, before_ns)) if flight <= larger => (larger, before_ns),
            _ => (flight, rtt_ns),
        };
        self.before = Some((larger, before_ns.max(rtt_ns)));
        if flight > (larger / 4).saturating_mul(3) {
            self.smaller = 0;
            return None;
        }
        self.smaller = self.smaller.saturating_add(1);
        if self.smaller < ROUNDS {
            return None;
        }
        self.before = Some((flight, rtt_ns));
        self.smaller = 0;
        (rtt_ns.saturating_add(GRANULARITY_NS) > before_ns).then_some(rtt_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{MS_IN_NS as MS, at};
    use rstest::rstest;

    /// Smallest RTT (ms) after round trips with these RTTs (ms) and flights (packets), the first with 50 ms.
    fn floor_after(rounds: &[(u64, u64)]) -> Option<u64> {
        let (mut rtt, mut floor) = (Rtt::default(), RisenFloor::default());
        let mut now_ms = 0;
        for &(rtt_ms, packets) in [(50, 40)].iter().chain(rounds).chain(&[(500, 0)]) {
            now_ms += rtt_ms;
            rtt.on_batch(at(now_ms), at(now_ms - rtt_ms), 2);
            let in_flight = packets * 1_200;
            floor.on_batch(
                &mut rtt,
                &Batch {
                    in_flight,
                    ..Batch::sample(now_ms, rtt_ms, true)
                },
            );
        }
        rtt.min_ns().map(|ns| ns / MS)
    }

    #[rstest]
    #[case::the_rtt_stays(&[(80, 40), (80, 28), (80, 28), (80, 28)], 80)]
    #[case::the_queue_shrinks(&[(80, 40), (80, 28), (70, 28), (68, 28)], 50)]
    #[case::the_queue_shrinks_to_where_it_began(&[(70, 20), (70, 40), (90, 20), (80, 20), (70, 20)], 50)]
    #[case::the_flight_stays(&[(80, 40), (80, 36), (80, 36), (80, 36)], 50)]
    #[case::too_few_rounds(&[(80, 40), (80, 28), (80, 28)], 50)]
    #[case::a_shorter_rtt_follows(&[(80, 40), (80, 28), (80, 28), (80, 28), (60, 28)], 60)]
    fn a_floor_has_risen_if_the_rtt_does_not_fall_with_the_flight(
        #[case] rounds: &[(u64, u64)],
        #[case] floor_ms: u64,
    ) {
        assert_eq!(floor_after(rounds), Some(floor_ms));
    }
}
