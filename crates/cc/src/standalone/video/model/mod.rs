//! [`Model`]: observations of the path from acknowledgements; [`Demand`]: observations of the player from requests.
//! Neither makes decisions.

mod demand;
mod queue;
#[cfg(test)]
mod tests;

use crate::Timestamp;
use crate::estimator::mean;
use crate::state::{Batch, float, floor_bytes};
use crate::timestamp::seconds;

pub(super) use demand::Demand;
use queue::Queue;

/// An ACK frame, the RTT sample that became known with it, and the round trip that it ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) batch: Batch,
    pub(super) sample: Option<Sample>,
    pub(super) ended: Option<Round>,
}

/// Rate, RTT without a queue, queueing delay and losses of the path. Sizes are bytes, times nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    ack_delay: AckDelay,
    pub(super) queue: Queue,
    pub(super) round: OpenRound,
    /// The last completed round trip.
    ended: Option<Round>,
}

impl Model {
    /// Creates the model of an unknown path. `least_target_ns` is the target queueing delay on a fast path.
    pub(super) fn new(least_target_ns: u64) -> Self {
        Self {
            queue: Queue::new(least_target_ns),
            ..Self::default()
        }
    }

    /// Processes an ACK frame and the transport's smoothed RTT.
    pub(super) fn on_frame(&mut self, batch: Batch, smoothed: Option<u64>) -> Frame {
        let sample = self.ack_delay.without(&batch, smoothed);
        self.queue.on_frame(&batch, sample);
        let ended = self.round.on_batch(&batch, sample);
        if let Some(round) = &ended {
            self.queue.on_round(round, batch.now);
            self.ended = ended;
        }
        Frame { batch, sample, ended }
    }

    /// The current round trip so far, or the last one if the current one has no sample yet.
    pub(super) fn latest_round(&self, now: Timestamp) -> Round {
        let open = self.round.so_far(now);
        self.ended.filter(|_| open.samples == 0).unwrap_or(open)
    }

    /// Notes that the transport received acknowledgements that the controller did not.
    pub(super) const fn lose_track(&mut self) {
        self.ack_delay.lose_track();
    }

    pub(super) fn on_lost(&mut self, bytes: u64) {
        self.round.on_lost(bytes);
        self.queue.on_lost(bytes);
    }

    /// Persistent congestion: discards the current round trip, the fate of its packets and the smallest RTT (RFC 9002
    /// §5.2).
    pub(super) fn restart(&mut self) {
        self.round = OpenRound::default();
        self.queue.forget_min_rtt();
        self.queue.forget_losses();
    }

    /// Mean delay of acknowledgements by the peer, ns.
    pub(super) const fn ack_delay(&self) -> u64 {
        self.ack_delay.mean_ns()
    }

    /// Time from a packet's departure to its acknowledgement without a queue, ns.
    pub(super) fn base_rtt(&self) -> Option<u64> {
        let least = self.queue.min_rtt();
        least.map(|least| least.saturating_add(self.ack_delay()))
    }

    /// Bytes in flight that fill the path without queueing, at the largest recent rate.
    pub(super) fn carried(&self) -> u64 {
        self.queue.carried_in(self.base_rtt().unwrap_or(0))
    }

    /// The largest delivery rate, including the current round's, bytes per second.
    pub(super) fn rate(&self, now: Timestamp) -> f64 {
        self.round.rate(now).max(self.queue.largest_rate())
    }
}

/// Bytes that arrive in `ns` nanoseconds at `rate` bytes per second.
pub(super) fn bytes_in(rate: f64, ns: u64) -> u64 {
    floor_bytes(rate * seconds(ns))
}

/// Longest acknowledgement delay assumed of a peer, ns. RFC 9000 §18.2: "If this value is absent, a default of 25
/// milliseconds is assumed"; timers are late.
const LONGEST_NS: u64 = 30_000_000;
/// quinn's smoothed RTT is rounded down to a nanosecond, so eight of them are up to seven too small.
const ROUNDED_NS: u64 = 8;
/// A sample older than this many smoothed RTTs is from before a pause.
const LATEST_RTTS: u64 = 2;

/// Removes the peer's acknowledgement delay from RTT samples.
///
/// quinn does not pass the delay to a controller, but its smoothed RTT excludes it: s′ = (7·s + sample)/8 (RFC 9002
/// §5.3). Two consecutive values therefore give the sample between them, one ACK frame late. Without this correction a
/// browser, which acknowledges ten packets at once or waits for a quarter of the RTT, makes every small window look
/// like a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckDelay {
    /// The transport's smoothed RTT as of the last frame, ns.
    smoothed: Option<u64>,
    /// That frame's sample, and its arrival.
    pending: Option<(Sample, Timestamp)>,
    mean_ns: u64,
}

/// An RTT sample, with and without the delay, and its ACK frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) rtt_ns: u64,
    /// Packets that its ACK frame acknowledged.
    pub(crate) packets: u32,
    /// It belongs to the previous ACK frame.
    pub(crate) is_late: bool,
}

impl Sample {
    /// The sample of an ACK frame, as the controller sees it.
    pub(crate) fn of(batch: &Batch) -> Option<Self> {
        let packets = batch.packets;
        batch.rtt_ns.map(|rtt_ns| Self {
            rtt_ns,
            packets,
            is_late: false,
        })
    }
}

impl AckDelay {
    /// Processes an ACK frame and the transport's smoothed RTT in ns, which does not contain the frame's sample yet.
    /// Returns the previous frame's sample without its delay, or this frame's sample as it is if the transport has
    /// measured no RTT.
    pub(crate) fn without(&mut self, batch: &Batch, smoothed: Option<u64>) -> Option<Sample> {
        let sample = Sample::of(batch);
        let before = core::mem::replace(&mut self.smoothed, smoothed);
        let pending = core::mem::replace(&mut self.pending, sample.map(|sample| (sample, batch.now)));
        let Some(after) = smoothed else { return sample };
        let (sample, at) = pending?;
        if batch.now.nanos_since(at) > LATEST_RTTS.saturating_mul(after) {
            return None;
        }
        // If the transport has not taken the sample, the smoothed RTT is the sample itself.
        let prompt = before.map(|before| after.saturating_mul(8).saturating_sub(before.saturating_mul(7)));
        let least = sample.rtt_ns.saturating_sub(LONGEST_NS + ROUNDED_NS);
        let rtt_ns = prompt.filter(|prompt| (least..=sample.rtt_ns).contains(prompt));
        let rtt_ns = rtt_ns.unwrap_or(sample.rtt_ns);
        let delay = sample.rtt_ns.saturating_sub(rtt_ns);
        self.mean_ns = mean(self.mean_ns, delay, 8);
        Some(Sample {
            rtt_ns,
            is_late: true,
            ..sample
        })
    }

    /// Notes that the transport may have taken samples that the controller did not see, so the next two smoothed RTTs
    /// may enclose more than one frame.
    pub(crate) const fn lose_track(&mut self) {
        self.smoothed = None;
        self.pending = None;
    }

    /// Mean of the last delays, ns: bytes that wait this long for their acknowledgement also count as in flight.
    pub(crate) const fn mean_ns(&self) -> u64 {
        self.mean_ns
    }
}

/// Sums over the current round trip. Sizes are bytes, times nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpenRound {
    began: Option<Timestamp>,
    acked: u64,
    /// Acknowledged bytes that left while the window limited the sender.
    window_limited: u64,
    lost: u64,
    rtt_min: u64,
    rtt_sum: u64,
    samples: u64,
}

/// A completed round trip. Sizes are bytes, times nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Round {
    pub(crate) acked: u64,
    pub(crate) lost: u64,
    /// The window limited the sender for most of it.
    pub(crate) window_limited: bool,
    /// Smallest and mean RTT.
    pub(crate) rtt_min: u64,
    pub(crate) rtt_mean: u64,
    /// Number of RTT samples in the round.
    pub(crate) samples: u64,
    /// Delivery rate, bytes per second.
    pub(crate) rate: f64,
}

impl OpenRound {
    pub(crate) const fn on_lost(&mut self, bytes: u64) {
        self.lost = self.lost.saturating_add(bytes);
    }

    /// Bytes lost so far.
    pub(crate) const fn lost(&self) -> u64 {
        self.lost
    }

    /// Delivery rate so far, bytes per second; zero in the first millisecond, which is too short to measure.
    pub(crate) fn rate(&self, now: Timestamp) -> f64 {
        const SHORTEST_NS: u64 = 1_000_000;
        let lasted = self.began.map_or(0, |began| now.nanos_since(began));
        if lasted < SHORTEST_NS {
            return 0.0;
        }
        float(self.acked) / seconds(lasted)
    }

    /// Processes an ACK frame and the RTT sample known with it. Returns the round that the frame ends, if that had a
    /// sample. A late sample is the previous frame's, so it belongs to the round that ends.
    pub(crate) fn on_batch(&mut self, batch: &Batch, sample: Option<Sample>) -> Option<Round> {
        if let Some(sample) = sample.filter(|sample| sample.is_late) {
            self.take(sample.rtt_ns);
        }
        self.acked = self.acked.saturating_add(batch.acked);
        if !batch.limited {
            self.window_limited = self.window_limited.saturating_add(batch.acked);
        }
        let mut ended = None;
        if batch.new_round {
            ended = self.end(batch.now);
            *self = Self {
                began: Some(batch.now),
                ..Self::default()
            };
        }
        if let Some(sample) = sample.filter(|sample| !sample.is_late) {
            self.take(sample.rtt_ns);
        }
        ended
    }

    fn take(&mut self, rtt: u64) {
        self.rtt_min = if self.samples == 0 {
            rtt
        } else {
            self.rtt_min.min(rtt)
        };
        self.rtt_sum = self.rtt_sum.saturating_add(rtt);
        self.samples = self.samples.saturating_add(1);
    }

    /// The round trip as if it ended at `now`, after at least one sample.
    pub(crate) fn so_far(&self, now: Timestamp) -> Round {
        Round {
            acked: self.acked,
            lost: self.lost,
            window_limited: self.window_limited >= self.acked / 2,
            rtt_min: self.rtt_min,
            rtt_mean: self.rtt_sum.checked_div(self.samples).unwrap_or(0),
            samples: self.samples,
            rate: self.rate(now),
        }
    }

    fn end(&self, now: Timestamp) -> Option<Round> {
        let length = now.nanos_since(self.began?).max(1);
        (self.samples > 0).then(|| Round {
            rate: float(self.acked) / seconds(length),
            ..self.so_far(now)
        })
    }
}
