//! [`Model`]: what acknowledgements show of the path. It decides nothing.

mod ack_delay;
mod queue;
mod round;

use crate::Timestamp;
use crate::state::{Batch, floor_bytes};
use crate::timestamp::seconds;

use ack_delay::AckDelay;
use queue::Queue;
use round::OpenRound;

use ack_delay::Sample;
pub(super) use round::Round;

/// An ACK frame, the RTT sample that is known with it, and the round trip that it ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) batch: Batch,
    pub(super) sample: Option<Sample>,
    pub(super) ended: Option<Round>,
}

/// Rate, RTT without a queue, queueing delay and losses of the path. Sizes are bytes, times nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct Model {
    ack_delay: AckDelay,
    pub(super) queue: Queue,
    pub(super) round: OpenRound,
    /// The last round trip that is over.
    ended: Option<Round>,
}

impl Model {
    /// Creates the model of an unknown path. `least_target_ns` is the queueing delay that is aimed at on a fast path.
    pub(super) fn new(least_target_ns: u64) -> Self {
        Self {
            ack_delay: AckDelay::default(),
            queue: Queue::new(least_target_ns),
            round: OpenRound::default(),
            ended: None,
        }
    }

    /// Takes an ACK frame and the transport's smoothed RTT.
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

    /// The open round trip so far, or the last one if it has no sample yet.
    pub(super) fn latest_round(&self, now: Timestamp) -> Round {
        let open = self.round.so_far(now);
        self.ended.filter(|_| open.samples == 0).unwrap_or(open)
    }

    /// The transport received acknowledgements that are not seen here.
    pub(super) const fn lose_track(&mut self) {
        self.ack_delay.lose_track();
    }

    pub(super) fn on_lost(&mut self, bytes: u64) {
        self.round.on_lost(bytes);
        self.queue.on_lost(bytes);
    }

    /// Persistent congestion: the open round trip and the fate of its packets do not count, nor does the smallest RTT
    /// (RFC 9002 §5.2).
    pub(super) fn restart(&mut self) {
        self.round = OpenRound::default();
        self.queue.forget_min_rtt();
        self.queue.forget_losses();
    }

    /// Mean time for which the peer holds acknowledgements back, ns.
    pub(super) const fn ack_delay(&self) -> u64 {
        self.ack_delay.mean_ns()
    }

    /// Time from a packet's departure to its acknowledgement without a queue, ns.
    pub(super) fn base_rtt(&self) -> Option<u64> {
        let least = self.queue.min_rtt();
        least.map(|least| least.saturating_add(self.ack_delay()))
    }

    /// Bytes in flight with which the path is full and no packet waits, at the largest rate of the last seconds.
    pub(super) fn carried(&self) -> u64 {
        self.queue.carried_in(self.base_rtt().unwrap_or(0))
    }

    /// The largest delivery rate, with that of the open round, bytes per second.
    pub(super) fn rate(&self, now: Timestamp) -> f64 {
        self.round.rate(now).max(self.queue.largest_rate())
    }
}

/// Bytes that arrive in `ns` nanoseconds at `rate` bytes per second.
pub(super) fn bytes_in(rate: f64, ns: u64) -> u64 {
    floor_bytes(rate * seconds(ns))
}
