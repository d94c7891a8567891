//! [`RateEstimator`]: measures the rate that a path carries, from ACK frames alone.
//!
//! Time is divided into slots. The rate is a number of bytes over a time. Both are counted from the least delayed ACK
//! frame of the oldest slot to the most delayed one of the newest, as they arrived. With this choice, jitter and
//! batches of ACK frames make the interval longer and the estimate lower, never the opposite.
//!
//! Acknowledgements that waited for their uplink and then arrive faster than the link delivers look like a faster link.
//! So an estimate rises only as far as the rate of sending permits (draft-cheng-iccrg-delivery-rate-estimation §2.2).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use playrate_cc::{Estimate, EstimateSource};
use playrate_units::Bitrate;

/// Number of slots that an estimate spans.
const SLOTS: u64 = 8;
/// Divisor of the span that gives the shortest interval of an estimate after a pause.
const SHORTEST_SHARE: u64 = 4;
/// Shortest span of an estimate, in nanoseconds. Together with a slot and the delay of ACK frames it remains below a
/// second, so that a second after a step of the link nothing older is included.
#[expect(clippy::cast_possible_truncation, reason = "less than a second")]
const SHORTEST_SPAN_NS: u64 = Estimate::SHORTEST_SPAN.as_nanos() as u64;
/// Shortest wait at the link that counts. An ACK path that always delays frames looks like a queue; timers, interrupts
/// and most uplinks delay them by less.
const LEAST_WAIT_NS: u64 = 12_000_000;
/// Delay of ACK frames for which every interval is made longer: a slot may have a single frame, and nothing shows the
/// delay of that one. It lowers an estimate over the whole span by 1.5 %.
const JITTER_NS: u64 = 10_000_000;
/// Smallest share of the highest rate that the arrivals of ACK frames permit, for a rate that counts as the link's.
const CLEAR: f64 = 0.94;
/// Time after which a shortest RTT is forgotten, at the latest after twice as long. A longer route then no longer
/// counts as a wait.
const FLOOR_NS: u64 = 10_000_000_000;

/// An ACK frame, as the estimator reads it. Times count from the path's beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Frame {
    /// Arrival of the frame, in nanoseconds.
    pub(crate) at: u64,
    /// Departure of the newest packet that it acknowledged, in nanoseconds.
    pub(crate) sent: u64,
    /// Bytes delivered so far.
    pub(crate) delivered: u64,
}

/// One slot of time: its frames with the extreme delays, and what shows whether the link was busy.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// The least and the most delayed frame, each with its lag in nanoseconds: its arrival less the time that its bytes
    /// take at the last estimated rate.
    earliest: (f64, Frame),
    latest: (f64, Frame),
    /// Shortest time from the newest packet's departure to its acknowledgement.
    min_rtt: u64,
    /// Bytes of the largest frame.
    largest: u64,
    app_limited: bool,
}

/// A measured rate, before its age is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Measurement {
    pub(crate) rate: Bitrate,
    pub(crate) source: EstimateSource,
    /// Arrival of the newest ACK frame that it includes.
    pub(crate) at: Instant,
    /// Time that the rate was measured over.
    pub(crate) span: Duration,
}

impl Measurement {
    /// The estimate as of `now`.
    pub(crate) fn estimate(&self, now: Instant) -> Estimate {
        let age = now.saturating_duration_since(self.at);
        Estimate::new(self.rate, self.source, age).with_span(self.span)
    }
}

/// Measures the rate that a path carries. An ACK frame costs a few additions and comparisons; a rate is computed at
/// the end of a slot.
#[derive(Clone, Debug)]
pub(crate) struct RateEstimator {
    began: Instant,
    /// Complete slots since the last pause, oldest first.
    slots: VecDeque<Slot>,
    /// The slot under way, and its end; zero before the first frame.
    current: Slot,
    slot_ends: u64,
    /// Arrival of the last frame, and the bytes delivered until then.
    last: (u64, u64),
    /// Time per byte at the last estimated rate, in nanoseconds; zero before the first estimate.
    ns_per_byte: f64,
    /// Shortest RTTs of the current period of [`FLOOR_NS`] and of the one before.
    floors: [u64; 2],
    floor_ends: u64,
}

impl RateEstimator {
    pub(crate) fn new(began: Instant) -> Self {
        Self {
            began,
            slots: VecDeque::new(),
            current: Slot::default(),
            slot_ends: 0,
            last: (0, 0),
            ns_per_byte: 0.0,
            floors: [u64::MAX; 2],
            floor_ends: FLOOR_NS,
        }
    }

    /// Processes an ACK frame. Returns a measurement if the frame ends a slot.
    #[inline]
    pub(crate) fn on_ack_frame(&mut self, frame: Frame, app_limited: bool) -> Option<Measurement> {
        let bytes = frame.delivered.saturating_sub(self.last.1);
        let lag = frame.lag(self.ns_per_byte);
        let rtt = frame.at.saturating_sub(frame.sent);
        if frame.at >= self.slot_ends {
            let slot = Slot {
                earliest: (lag, frame),
                latest: (lag, frame),
                min_rtt: rtt,
                largest: bytes,
                app_limited,
            };
            return self.begin_slot(slot);
        }
        self.last = (frame.at, frame.delivered);
        let slot = &mut self.current;
        if lag < slot.earliest.0 {
            slot.earliest = (lag, frame);
        }
        if lag >= slot.latest.0 {
            slot.latest = (lag, frame);
        }
        slot.min_rtt = slot.min_rtt.min(rtt);
        slot.largest = slot.largest.max(bytes);
        slot.app_limited |= app_limited;
        None
    }

    /// Ends the slot under way and begins `slot` with its first frame.
    #[inline(never)]
    fn begin_slot(&mut self, mut slot: Slot) -> Option<Measurement> {
        let frame = slot.earliest.1;
        let span = SHORTEST_SPAN_NS.max(self.floor().unwrap_or(0));
        let measured = if self.slot_ends == 0 || frame.at.saturating_sub(self.last.0) > span {
            // The interval must not contain a pause.
            self.slots.clear();
            None
        } else {
            self.end_slot(span)
        };
        self.last = (frame.at, frame.delivered);
        self.slot_ends = frame.at + span / SLOTS;
        let lag = frame.lag(self.ns_per_byte);
        (slot.earliest.0, slot.latest.0) = (lag, lag);
        self.current = slot;
        measured
    }

    /// Ends the slot under way and measures the rate over it and the slots before. After a fall of the RTT, the slot
    /// may be longer than what an estimate now spans; then nothing is measured.
    fn end_slot(&mut self, span: u64) -> Option<Measurement> {
        let slot = self.current;
        if slot.earliest.1.at >= self.floor_ends {
            self.floors = [u64::MAX, self.floors[0]];
            self.floor_ends = slot.earliest.1.at + FLOOR_NS;
        }
        self.floors[0] = self.floors[0].min(slot.min_rtt);
        self.slots.push_back(slot);
        let end = slot.latest.1.at;
        let is_old = |slot: &Slot| slot.earliest.1.at + span + span / SLOTS < end;
        while self.slots.front().is_some_and(is_old) {
            self.slots.pop_front();
        }
        let first = *self.slots.front()?;
        let interval = end.saturating_sub(first.earliest.1.at);
        if interval < span / SHORTEST_SHARE {
            return None;
        }
        let (by_acks, by_sends) = first.earliest.1.ns_per_byte_until(&slot.latest.1)?;
        let mut ns_per_byte = by_acks.max(by_sends);
        if self.ns_per_byte > 0.0 {
            ns_per_byte = by_acks.max(by_sends.min(self.ns_per_byte));
        }
        self.ns_per_byte = ns_per_byte;
        // The highest rate that the arrivals of ACK frames permit.
        let highest = first.latest.1.ns_per_byte_until(&slot.earliest.1);
        let is_clear = highest.is_some_and(|(by_acks, _)| by_acks >= ns_per_byte * CLEAR);
        let floor = self.floor().unwrap_or(u64::MAX);
        let waited = |slot: &Slot| {
            let jitter = slot.latest.0 - slot.earliest.0;
            let wait = LEAST_WAIT_NS as f64 + 2.0 * slot.largest as f64 * ns_per_byte + jitter;
            slot.min_rtt.saturating_sub(floor) as f64 >= wait
        };
        let source = if self.slots.iter().any(|slot| slot.app_limited) {
            EstimateSource::Application
        } else if is_clear && self.slots.iter().all(waited) {
            EstimateSource::BusyLink
        } else {
            EstimateSource::Window
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a positive rate, which saturates"
        )]
        let rate = {
            let lengthened = interval.saturating_add(JITTER_NS) as f64 / interval as f64;
            Bitrate::from_bits_per_second((8e9 / (ns_per_byte * lengthened)) as u64)
        };
        Some(Measurement {
            rate,
            source,
            at: self.began + Duration::from_nanos(end),
            span: Duration::from_nanos(span),
        })
    }

    /// Shortest RTT of the last ten to twenty seconds; `None` before the first slot has ended.
    fn floor(&self) -> Option<u64> {
        Some(self.floors[0].min(self.floors[1])).filter(|&floor| floor < u64::MAX)
    }
}

impl Frame {
    /// Arrival less the time that the delivered bytes take at a rate.
    #[inline]
    fn lag(&self, ns_per_byte: f64) -> f64 {
        self.at as f64 - self.delivered as f64 * ns_per_byte
    }

    /// Times per byte from this frame to `later`, in nanoseconds: of acknowledging and of sending. `None` if nothing
    /// was delivered or no time passed.
    fn ns_per_byte_until(&self, later: &Self) -> Option<(f64, f64)> {
        let bytes = later.delivered.saturating_sub(self.delivered);
        let [acked_in, sent_in] = [
            later.at.saturating_sub(self.at),
            later.sent.saturating_sub(self.sent),
        ];
        (bytes > 0 && acked_in > 0).then(|| (acked_in as f64 / bytes as f64, sent_in as f64 / bytes as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::origin;
    use proptest::prelude::*;

    /// Size of every packet, in bytes.
    const PACKET: u64 = 1_200;
    const SECOND: u64 = 1_000_000_000;

    /// A sender and a link whose rate changes once.
    #[derive(Clone, Debug)]
    struct World {
        /// Rates in bytes per second, before and after the step.
        rates: [u64; 2],
        /// Time of the step, in nanoseconds.
        step: u64,
        /// Propagation delay in each direction, in nanoseconds.
        delay: u64,
        /// Packets per ACK frame.
        per_frame: u64,
        /// Largest additional delay of an ACK frame, in nanoseconds.
        /// `draws` are the delays of successive frames in parts of 255.
        jitter: u64,
        draws: Vec<u8>,
        /// Packets per burst, and the time between bursts in nanoseconds.
        /// Zero keeps 20 packets more in flight than the path stores.
        bursts: (u64, u64),
        /// Every packet whose number is a multiple of this is lost.
        lost: u64,
    }

    impl World {
        /// Runs the sender for `seconds`; returns each measurement with the current rate, settled ones only.
        fn run(&self, seconds: u64) -> Vec<(Measurement, Bitrate)> {
            let mut estimator = RateEstimator::new(origin());
            let (mut free, mut last_arrival, mut delivered) = (0, 0, 0);
            let mut unacked = 0;
            let mut measured = Vec::new();
            let settling = SECOND.max(8 * self.delay);
            let mut departures = VecDeque::new();
            let mut sent = 0;
            for number in 1.. {
                let rate = self.rates[usize::from(free.max(sent) >= self.step)];
                if self.bursts.1 > 0 {
                    sent = (number / self.bursts.0) * self.bursts.1;
                } else if departures.len() as u64 >= 20 + 2 * self.delay * self.rates[0] / SECOND / PACKET {
                    // The window has room once an acknowledgement arrives.
                    sent = sent.max(departures.pop_front().unwrap_or(0) + 2 * self.delay);
                }
                if sent > seconds * SECOND {
                    break;
                }
                free = free.max(sent) + PACKET * SECOND / rate;
                departures.push_back(free);
                if number % self.lost == 0 {
                    continue;
                }
                delivered += PACKET;
                unacked += 1;
                if unacked < self.per_frame {
                    continue;
                }
                unacked = 0;
                let draw = self.draws[usize::try_from(number).unwrap() % self.draws.len()];
                let arrival = free + 2 * self.delay + self.jitter * u64::from(draw) / 255;
                last_arrival = arrival.max(last_arrival);
                let frame = Frame {
                    at: last_arrival,
                    sent,
                    delivered,
                };
                if let Some(measurement) = estimator.on_ack_frame(frame, false) {
                    let since = if last_arrival < self.step { 0 } else { self.step };
                    if last_arrival >= since + settling {
                        let rate = self.rates[usize::from(last_arrival >= self.step)];
                        measured.push((measurement, Bitrate::from_bytes_per_second(rate)));
                    }
                }
            }
            measured
        }
    }

    /// Frames of 1,250 bytes arrive at 1 Mbit/s, each one RTT after the departure of its packet.
    #[test]
    fn a_fall_of_a_long_rtt_ends_estimates_over_more_than_the_new_span() {
        let began = origin();
        let mut estimator = RateEstimator::new(began);
        let mut measured = Vec::new();
        for number in 1..=6_000 {
            let at = number * SECOND / 100;
            let rtt = if at > 40 * SECOND { SECOND / 20 } else { 7 * SECOND };
            let frame = Frame {
                at,
                sent: at.saturating_sub(rtt),
                delivered: 1_250 * number,
            };
            measured.extend(estimator.on_ack_frame(frame, false));
        }
        let last = measured.last().expect("a measurement after the fall");
        assert!(last.estimate(began + Duration::from_secs(60)).age < Duration::from_millis(200));
        let rates = Bitrate::from_kbps(950)..=Bitrate::from_mbps(1);
        assert!(rates.contains(&last.rate), "{last:?}");
    }

    #[test]
    fn an_estimate_is_as_old_as_the_newest_frame_that_it_includes() {
        let began = origin();
        let mut estimator = RateEstimator::new(began);
        let mut measure = |millis, delivered| {
            let frame = Frame {
                at: millis * 1_000_000,
                sent: (millis - 50) * 1_000_000,
                delivered,
            };
            let measured = estimator.on_ack_frame(frame, false)?;
            Some(measured.estimate(began + Duration::from_millis(millis)).age)
        };
        for number in 1..=100 {
            measure(100 + number * 10, number * 1_250);
        }
        // Nothing arrives for half a second; the frame that ends this outage is not included.
        assert_eq!(measure(1_600, 101 * 1_250), Some(Duration::from_millis(500)));
    }

    /// One frame per 100 ms; the RTT varies between 6 and 6.2 s, so that a slot takes longer than the shortest span.
    #[test]
    fn estimates_of_a_path_with_a_long_rtt_stay_current_until_the_next_one() {
        let began = origin();
        let mut estimator = RateEstimator::new(began);
        let mut last: Option<Measurement> = None;
        let mut oldest = Duration::ZERO;
        for number in 1..=600 {
            let at = number * SECOND / 10;
            let frame = Frame {
                at,
                sent: at.saturating_sub(6 * SECOND + number % 3 * SECOND / 10),
                delivered: 12_500 * number,
            };
            if let Some(last) = last.filter(|_| at > 30 * SECOND) {
                let estimate = last.estimate(began + Duration::from_nanos(at));
                assert!(estimate.is_current(), "at {number}: {estimate:?}");
                oldest = oldest.max(estimate.age);
            }
            last = estimator.on_ack_frame(frame, false).or(last);
        }
        assert!(oldest > Estimate::SHORTEST_SPAN, "{oldest:?}");
        let later = began + Duration::from_secs(60 + 8);
        assert!(!last.unwrap().estimate(later).is_current());
    }

    /// In these two worlds the ACK path delays every frame after the first few, as a queue at the link does. The link
    /// is idle for a part of the time, so the rate is more than a tenth below it.
    #[test]
    fn a_delay_on_the_ack_path_alone_does_not_count_as_a_queue_at_the_link() {
        let held_back = World {
            rates: [4_408_378, 5_337_695],
            step: 2 * SECOND,
            delay: 26_899_634,
            per_frame: 1,
            jitter: 11_111_725,
            draws: vec![0, 0, 201, 0, 0, 0, 0, 0, 0, 0, 160, 207, 0, 0, 0, 0],
            bursts: (1, 0),
            lost: 227,
        };
        let in_bursts = World {
            rates: [3_271_122, 4_329_506],
            step: 2_367_000_000,
            delay: 23_100_000,
            per_frame: 4,
            jitter: 8_500_000,
            draws: vec![2, 204, 17, 97],
            bursts: (40, 13_300_000),
            lost: 7_560,
        };
        for world in [held_back, in_bursts] {
            let mut below = 0;
            for (measured, rate) in world.run(8) {
                if measured.rate < rate.scaled(90, 100) {
                    below += 1;
                    assert_eq!(measured.source, EstimateSource::Window, "{world:?}");
                }
            }
            assert!(below > 10, "{world:?}");
        }
    }

    prop_compose! {
        fn worlds()(
            rates in prop::array::uniform2(125_000_u64..6_250_000),
            step in 2_000_000_000_u64..4_000_000_000,
            delay in 5_000_000_u64..100_000_000,
            per_frame in 1_u64..=10,
            jitter in 0_u64..12_000_000,
            draws in prop::collection::vec(any::<u8>(), 1..500),
            bursts in (1_u64..50, prop_oneof![Just(0_u64), 1_000_000_u64..100_000_000]),
            lost in 100_u64..10_000,
        ) -> World {
            World { rates, step, delay, per_frame, jitter, draws, bursts, lost }
        }
    }

    proptest! {
        #[test]
        fn no_sender_and_no_jitter_make_it_exceed_the_link(world in worlds()) {
            for (measured, rate) in world.run(8) {
                let limit = rate.scaled(102, 100);
                prop_assert!(measured.rate <= limit, "{measured:?} on a link of {rate}");
            }
        }

        #[test]
        fn a_rate_that_counts_as_the_links_is_within_a_tenth_of_it(world in worlds()) {
            for (measured, rate) in world.run(8) {
                if measured.source == EstimateSource::BusyLink {
                    let least = rate.scaled(90, 100);
                    prop_assert!(measured.rate >= least, "{measured:?} on a link of {rate}");
                }
            }
        }
    }
}
