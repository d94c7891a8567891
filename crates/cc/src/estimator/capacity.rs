//! [`Capacity`]: the one estimate that algorithms use, from trains and delivery rate together.

use playrate_units::Bitrate;

use crate::events::{AckFrame, Congestion, Sent};

use super::{DeliveryRate, TrainCapacity};

/// Capacity of the path's narrowest link.
///
/// The [train estimate](TrainCapacity), but no less than the largest [delivery rate](DeliveryRate::max) of
/// the last ten seconds.
///
/// If a peer acknowledges so rarely that no train is ever acknowledged in two parts, there are no train samples;
/// Chromium acknowledges every tenth packet. Then the estimate is the largest delivery rate measured while the link's
/// queue was never empty ([`DeliveryRate::busy_max`]). It exists once the sender has filled a queue, at the latest in
/// the round trip before its first loss.
///
/// The estimate never expires: it falls only when new measurements of the better kind say so.
#[derive(Clone, Debug, Default)]
pub(crate) struct Capacity {
    trains: TrainCapacity,
    pub(super) delivery: DeliveryRate,
    /// The largest lower bound since the train estimate was last fresh.
    bound: Bitrate,
    /// The last busy delivery rate; zero before the first.
    busy: Bitrate,
}

impl Capacity {
    #[inline]
    pub(crate) fn on_sent(&mut self, event: &Sent) {
        self.delivery.on_sent(event);
    }

    pub(crate) fn on_ack_frame(&mut self, event: &AckFrame<'_>) {
        self.trains.on_ack_frame(event);
        self.delivery.on_ack_frame(event);
        let bound = self.delivery.max().unwrap_or(Bitrate::ZERO);
        self.bound = if self.trains.is_fresh() {
            bound
        } else {
            self.bound.max(bound)
        };
        self.busy = self.delivery.busy_max().unwrap_or(self.busy);
    }

    pub(crate) fn on_congestion(&mut self, event: &Congestion) {
        self.trains.on_congestion(event);
        self.delivery.on_congestion(event);
    }

    /// The estimate, after at least this many train samples or one busy delivery rate.
    pub(crate) fn estimate(&self, least_samples: u8) -> Option<Bitrate> {
        match self.trains.estimate(least_samples) {
            Some(trains) => Some(trains.max(self.bound)),
            None => Some(self.busy).filter(|busy| *busy > Bitrate::ZERO),
        }
    }
}
