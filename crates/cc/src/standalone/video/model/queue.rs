//! [`Queue`]: the path's queueing delay, and the losses of packets that wait.

use crate::Timestamp;
use crate::estimator::{Largest, Smallest, mean};
use crate::state::{Batch, float, floor_bytes};
use crate::timestamp::seconds;

use super::{Round, Sample};

const SECOND_NS: u64 = 1_000_000_000;
/// Lifetime of the smallest RTT. Until it expires, a longer route looks like a queue of others.
const RTT_WINDOW_NS: u64 = 40 * SECOND_NS;
/// Lifetime of the largest delivery rate.
const RATE_WINDOW_NS: u64 = 15 * SECOND_NS;
/// Lifetime of the longest queue: several cycles of a sender that fills it.
const QUEUE_WINDOW_NS: u64 = 8 * SECOND_NS;
/// Half-life of a loss's weight.
const LOSS_HALF_LIFE_NS: u64 = 2 * SECOND_NS;
/// The least noisy of this many rounds counts.
const ROUNDS: usize = 8;
/// The target queue has room for this many packets: a peer acknowledges every second one.
const PACKETS: f64 = 2.0;
/// Upper bound of their transmission time; slower links are not supported.
const LONGEST_TRANSMISSION_NS: u64 = 100_000_000;

/// The largest of this many consecutive samples counts for the smallest RTT: jitter can make a single one too small.
const LASTING: usize = 4;

/// Bytes acknowledged and lost.
#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    acked: f64,
    lost: f64,
}

impl Fate {
    fn lost_share(self) -> f64 {
        self.lost / (self.acked + self.lost).max(1.0)
    }

    const fn halve(&mut self) {
        self.acked /= 2.0;
        self.lost /= 2.0;
    }
}

/// Queueing delay of the path, its noise, and the fate of packets by the queue length at their departure.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    /// Target queueing delay on a fast path without noise, ns.
    least_target_ns: u64,
    rtt: Smallest,
    /// Time of the last RTT close to the smallest.
    empty_at: Timestamp,
    /// Largest delivery rate, bytes per second.
    rate: Largest,
    longest: Largest,
    latest_rtt: u64,
    noise: [u64; ROUNDS],
    /// Mean difference between one RTT sample and the next (RFC 3550 §6.4.1), ns.
    jitter: u64,
    /// The last samples, ns.
    samples: [u64; LASTING],
    oldest: usize,
    /// Samples in it, up to sixteen.
    steps: u64,
    next: usize,
    in_long: Fate,
    in_short: Fate,
    halved: Timestamp,
}

impl Queue {
    pub(crate) fn new(least_target_ns: u64) -> Self {
        Self {
            least_target_ns,
            ..Self::default()
        }
    }

    /// Smallest RTT of the last 40 s, ns.
    pub(crate) fn min_rtt(&self) -> Option<u64> {
        self.rtt.get()
    }

    /// Largest delivery rate of a round in the last 15 s, bytes per second.
    pub(crate) fn largest_rate(&self) -> f64 {
        float(self.rate.get().unwrap_or(0))
    }

    /// Bytes that the path has carried in `ns` nanoseconds, at the largest delivery rate.
    pub(crate) fn carried_in(&self, ns: u64) -> u64 {
        floor_bytes(self.largest_rate() * seconds(ns))
    }

    /// Queueing delay in an RTT, ns.
    pub(crate) fn within(&self, rtt: u64) -> u64 {
        rtt.saturating_sub(self.min_rtt().unwrap_or(rtt))
    }

    /// Queueing delay in the latest RTT, ns.
    pub(crate) fn latest(&self) -> u64 {
        self.within(self.latest_rtt)
    }

    /// Target queueing delay, ns: the transmission of a few packets, and the noise of the measurement.
    pub(crate) fn target(&self, mtu: u64) -> u64 {
        let rate = self.largest_rate();
        let packets = if rate > 0.0 {
            floor_bytes(PACKETS * float(mtu) / rate * 1e9).min(LONGEST_TRANSMISSION_NS)
        } else {
            0
        };
        let noise = self.noise().min(self.min_rtt().unwrap_or(0));
        self.least_target_ns.max(packets).saturating_add(noise)
    }

    /// Forgets the smallest RTT and the longest queue, because the path may have changed.
    pub(crate) fn forget_min_rtt(&mut self) {
        self.rtt = Smallest::default();
        self.longest = Largest::default();
        self.samples = [0; LASTING];
    }

    /// Sets the RTT without a queue to `rtt`, ns, because the route has become longer.
    pub(crate) fn set_min_rtt(&mut self, rtt: u64, now: Timestamp) {
        self.rtt = Smallest::default();
        self.rtt.insert(now, rtt, RTT_WINDOW_NS);
        self.longest = Largest::default();
        self.empty_at = now;
    }

    /// Noise of the RTT, ns: in the least noisy of the last rounds, or from one sample to the next.
    pub(crate) fn noise(&self) -> u64 {
        let least = self.noise.iter().copied().min().unwrap_or(0);
        least.max(self.jitter())
    }

    /// Noise of the RTT from one sample to the next, ns.
    pub(crate) const fn jitter(&self) -> u64 {
        self.jitter.saturating_mul(3) / 2
    }

    /// Time since the queue was last seen empty, ns.
    pub(crate) const fn since_empty(&self, now: Timestamp) -> u64 {
        now.nanos_since(self.empty_at)
    }

    /// Records that everything possible was done to empty the queue.
    pub(crate) const fn drained(&mut self, now: Timestamp) {
        self.empty_at = now;
    }

    pub(crate) fn on_frame(&mut self, batch: &Batch, sample: Option<Sample>) {
        let Some(sample) = sample else { return };
        let rtt = sample.rtt_ns;
        let close = self
            .min_rtt()
            .map(|least| least.saturating_add(least.min(64_000_000) / 64));
        if close.is_none_or(|close| rtt <= close) {
            self.empty_at = batch.now;
        }
        self.samples[self.oldest] = rtt;
        self.oldest = self.oldest.wrapping_add(1) % LASTING;
        let lasting = self.samples.iter().copied().max().unwrap_or(rtt);
        self.rtt.insert(batch.now, lasting, RTT_WINDOW_NS);
        if self.latest_rtt > 0 {
            let step = rtt.abs_diff(self.latest_rtt);
            self.steps = self.steps.saturating_add(1).min(16);
            self.jitter = mean(self.jitter, step, self.steps);
        }
        self.latest_rtt = rtt;
        // The peer may have delayed the acknowledgement of a lone packet.
        if sample.packets >= 2 {
            let queue = self.within(rtt);
            self.longest.insert(batch.now, queue, QUEUE_WINDOW_NS);
        }
        self.fate().acked += float(batch.acked);
        if batch.now.nanos_since(self.halved) > LOSS_HALF_LIFE_NS {
            self.halved = batch.now;
            self.in_long.halve();
            self.in_short.halve();
        }
    }

    pub(crate) fn on_round(&mut self, round: &Round, now: Timestamp) {
        self.rate.insert(now, floor_bytes(round.rate), RATE_WINDOW_NS);
        self.noise[self.next] = round.rtt_mean.saturating_sub(round.rtt_min);
        self.next = self.next.wrapping_add(1) % ROUNDS;
    }

    /// Losses show that the path carries less than estimated: sets its rate to `rate`, bytes per second.
    pub(crate) fn forget_rate(&mut self, rate: f64, now: Timestamp) {
        self.rate = Largest::default();
        self.rate.insert(now, floor_bytes(rate), RATE_WINDOW_NS);
    }

    pub(crate) fn on_lost(&mut self, bytes: u64) {
        self.fate().lost += float(bytes);
    }

    /// Returns true if packets now find at least half of the longest queue of the last seconds.
    pub(crate) fn is_long(&self) -> bool {
        let longest = self.longest.get().unwrap_or(0);
        self.latest() >= longest / 2
    }

    fn fate(&mut self) -> &mut Fate {
        if self.is_long() {
            &mut self.in_long
        } else {
            &mut self.in_short
        }
    }

    /// Returns true if packets that find a long queue are lost much more often than others: the queue overflows.
    pub(crate) fn overflows(&self, mtu: u64) -> bool {
        /// Packets that must be lost, and acknowledged from a short queue, for the shares to be significant.
        const LOST: f64 = 6.0;
        const ACKED: f64 = 100.0;
        /// Minimum share of lost packets in a long queue, absolute and as a multiple of that in a short one.
        const SHARE: f64 = 0.003;
        const TIMES: f64 = 3.0;
        let (long, short, mtu) = (self.in_long, self.in_short, float(mtu));
        long.lost >= LOST * mtu
            && short.acked > ACKED * mtu
            && long.lost_share() > SHARE.max(TIMES * short.lost_share())
    }

    /// Forgets the fate of packets so far: their losses have been explained.
    pub(crate) fn forget_losses(&mut self) {
        self.in_long = Fate::default();
        self.in_short = Fate::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{MS_IN_NS as MS, at};

    const MTU: u64 = 1_000;

    fn queue() -> Queue {
        Queue::new(4 * MS)
    }

    fn take(queue: &mut Queue, batch: &Batch) {
        queue.on_frame(batch, Sample::of(batch));
    }

    fn frame(ms: u64, rtt_ms: u64) -> Batch {
        Batch {
            now: at(ms),
            acked: 2 * MTU,
            packets: 2,
            rtt_ns: Some(rtt_ms * MS),
            ..Batch::default()
        }
    }

    #[test]
    fn the_queueing_delay_is_what_an_rtt_has_beyond_the_smallest_of_forty_seconds() {
        let mut queue = queue();
        take(&mut queue, &frame(0, 40));
        take(&mut queue, &frame(39_000, 90));
        assert_eq!((queue.min_rtt(), queue.within(90 * MS)), (Some(40 * MS), 50 * MS));
        take(&mut queue, &frame(41_000, 90));
        assert_eq!((queue.min_rtt(), queue.within(90 * MS)), (Some(90 * MS), 0));
    }

    #[test]
    fn the_target_has_room_for_two_packets_and_for_the_least_noise_of_eight_rounds() {
        let mut queue = queue();
        take(&mut queue, &frame(0, 100));
        assert_eq!(queue.target(MTU), 4 * MS);
        // 200 kB/s: two packets of 1,000 bytes take 10 ms.
        for noise in [9, 3, 7] {
            queue.on_round(&Round::sample(100, 100 + noise, 200_000.0), at(0));
        }
        assert_eq!(queue.target(MTU), 10 * MS, "five rounds are to come");
        for _ in 0..5 {
            queue.on_round(&Round::sample(100, 108, 100_000.0), at(0));
        }
        assert_eq!(queue.target(MTU), 13 * MS);
        assert_eq!(queue.carried_in(100 * MS), 20_000);
    }

    #[test]
    fn a_queue_overflows_if_those_who_find_it_long_are_lost_and_others_are_not() {
        let mut queue = queue();
        for ms in 0..100 {
            take(&mut queue, &frame(ms, 40));
            take(&mut queue, &frame(ms, 60));
        }
        assert!(queue.is_long() && !queue.overflows(MTU));
        queue.on_lost(6 * MTU);
        assert!(queue.overflows(MTU));
        take(&mut queue, &frame(101, 41));
        queue.on_lost(6 * MTU);
        assert!(!queue.overflows(MTU), "random loss affects both");
        queue.forget_losses();
        assert!(!queue.overflows(MTU));
    }

    #[test]
    fn lone_packets_do_not_make_the_queue_long() {
        let mut queue = queue();
        take(&mut queue, &frame(0, 40));
        take(&mut queue, &frame(1, 50));
        let mut lone = frame(2, 65);
        lone.packets = 1;
        take(&mut queue, &lone);
        take(&mut queue, &frame(3, 45));
        assert!(queue.is_long(), "5 ms is half of 10, not of 25");
    }
}
