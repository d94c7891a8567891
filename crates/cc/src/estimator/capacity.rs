//! [`Capacity`]: the one estimate that laws use, of trains and delivery rate together.

use playrate_units::{Bitrate, Bytes};

use crate::events::{AckBatch, Acked, Congestion, Sent};

use super::{DeliveryRate, TrainCapacity};

/// Capacity of the path's narrowest link.
///
/// The [train estimate](TrainCapacity), but no less than the largest [delivery rate](DeliveryRate::max) of the last ten seconds.
///
/// A peer that acknowledges so rarely that no train is ever acknowledged in two parts, as Chromium does with every tenth
/// packet, gives no train samples. Then the largest delivery rate measured while the link's queue was never empty
/// ([`DeliveryRate::busy_max`]) stands in. It comes into being when the sender first fills a queue, at the latest in
/// the round trip before its first loss.
///
/// The estimate never expires: it falls only when fresh measurements of the better kind say so.
#[derive(Clone, Debug)]
pub struct Capacity {
    trains: TrainCapacity,
    delivery: DeliveryRate,
    /// The largest lower bound since the train estimate was last fresh.
    bound: Bitrate,
    /// The last busy delivery rate; zero before the first.
    busy: Bitrate,
}

impl Capacity {
    /// Knows nothing yet. `header` is added to each packet: [`Bytes::ZERO`] (what [`Default`] takes) for a rate of QUIC
    /// packets, which is what `rate · RTT` must be in to be a window; [`IPV4_UDP_HEADERS`](super::IPV4_UDP_HEADERS) for the rate of
    /// the link.
    pub fn new(header: Bytes) -> Self {
        Self {
            trains: TrainCapacity::new(header),
            delivery: DeliveryRate::new(header),
            bound: Bitrate::ZERO,
            busy: Bitrate::ZERO,
        }
    }

    /// A burst left.
    #[inline]
    pub fn on_sent(&mut self, event: &Sent) {
        self.delivery.on_sent(event);
    }

    /// Packets were acknowledged.
    #[inline]
    pub fn on_acked(&mut self, event: &Acked) {
        self.trains.on_acked(event);
        self.delivery.on_acked(event);
    }

    /// The ACK frame has been read.
    pub fn on_ack_batch(&mut self, event: &AckBatch) {
        self.trains.on_ack_batch(event);
        self.delivery.on_ack_batch(event);
        let bound = self.delivery.max().unwrap_or(Bitrate::ZERO);
        self.bound = if self.trains.is_fresh() {
            bound
        } else {
            self.bound.max(bound)
        };
        self.busy = self.delivery.busy_max().unwrap_or(self.busy);
    }

    /// Packets were lost.
    pub fn on_congestion(&mut self, event: &Congestion) {
        self.trains.on_congestion(event);
        self.delivery.on_congestion(event);
    }

    /// The estimate, once four train samples or one busy delivery rate have been seen.
    pub fn estimate(&self) -> Option<Bitrate> {
        self.bounded(self.trains.estimate())
    }

    /// The estimate, once any train sample or one busy delivery rate has been seen: what a slow start that ends with
    /// the first estimate waits for.
    pub fn early_estimate(&self) -> Option<Bitrate> {
        self.bounded(self.trains.early_estimate())
    }

    /// The delivery rate that the estimate rests on.
    pub fn delivery(&self) -> &DeliveryRate {
        &self.delivery
    }

    fn bounded(&self, trains: Option<Bitrate>) -> Option<Bitrate> {
        match trains {
            Some(trains) => Some(trains.max(self.bound)),
            None => Some(self.busy).filter(|busy| *busy > Bitrate::ZERO),
        }
    }
}

impl Default for Capacity {
    fn default() -> Self {
        Self::new(Bytes::ZERO)
    }
}
