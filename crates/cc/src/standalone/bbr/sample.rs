//! [`Sampler`]: the rate samples of the draft's §4.1, with flight and losses.

use crate::Timestamp;
use crate::estimator::{DeliveryRate, MARKS};
use crate::events::{AckFrame, Congestion, Sent};

/// A rate sample: RS in the draft. Sizes are bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sample {
    /// `RS.delivery_rate`, bytes per second.
    pub(super) delivery_rate: u64,
    /// `RS.delivered`: bytes delivered over the interval.
    pub(super) delivered: u64,
    /// `RS.is_app_limited`: the packet left while the application limited the sender.
    pub(super) app_limited: bool,
    /// `RS.tx_in_flight`: bytes in flight after the packet had left.
    pub(super) tx_in_flight: u64,
    /// `RS.lost`: bytes declared lost since the packet left.
    pub(super) lost: u64,
}

/// The state that the draft keeps for each packet; here for each of the marks of [`DeliveryRate`]. It applies to all
/// packets between the mark and the next.
#[derive(Clone, Copy, Debug, Default)]
struct Departures {
    /// The largest `P.tx_in_flight`, bytes.
    tx_in_flight: u64,
    /// The smallest `P.lost`, bytes.
    lost: u64,
}

/// Makes rate samples out of a connection's events, about eight per round trip.
#[derive(Clone, Debug, Default)]
pub(super) struct Sampler {
    rate: DeliveryRate,
    departures: [Departures; MARKS as usize],
    /// Index of the mark that was the newest one when `departures` was last written.
    mark: usize,
    /// `C.lost`: bytes declared lost so far.
    lost: u64,
}

impl Sampler {
    /// Returns true if nothing is in flight.
    pub(super) const fn is_idle(&self) -> bool {
        self.rate.in_flight() == 0
    }

    pub(super) fn on_sent(&mut self, event: &Sent) {
        self.rate.on_sent(event);
        self.follow();
        let departures = &mut self.departures[self.mark];
        departures.tx_in_flight = departures.tx_in_flight.max(self.rate.in_flight());
    }

    /// Processes an ACK frame. Returns about eight samples per round trip.
    pub(super) fn on_ack_frame(&mut self, event: &AckFrame<'_>) -> Option<Sample> {
        let sample = self.rate.on_ack_frame(event);
        // This comes first, because the new mark replaces the oldest, where the sample may begin.
        let sample = sample.map(|sample| Sample {
            delivery_rate: sample.bytes_per_second.into(),
            delivered: sample.delivered.into(),
            app_limited: sample.app_limited,
            ..self.since(sample.mark)
        });
        self.follow();
        sample
    }

    /// Records that packets were declared lost. Returns the sample of the newest of them, without a rate.
    pub(super) fn on_congestion(&mut self, event: &Congestion) -> Sample {
        self.rate.on_congestion(event);
        self.lost = self.lost.saturating_add(event.lost());
        // A packet that left before all marks has the oldest mark, which follows the newest in the ring.
        let next = self.mark.saturating_add(1);
        let oldest = if next < usize::from(MARKS) { next } else { 0 };
        let mark = self.rate.mark_of(event.now, event.newest_sent).unwrap_or(oldest);
        Sample {
            app_limited: self.rate.is_limited(mark),
            ..self.since(mark)
        }
    }

    /// Marks samples as application-limited, until a packet that leaves after `now` is delivered
    /// (`MarkConnectionAppLimited()` of the draft).
    pub(super) const fn mark_app_limited(&mut self, now: Timestamp) {
        self.rate.mark_limited(now);
    }

    /// Bytes in flight and bytes lost since the mark, without a rate.
    fn since(&self, mark: usize) -> Sample {
        let departures = self.departures[mark];
        Sample {
            tx_in_flight: departures.tx_in_flight,
            lost: self.lost.saturating_sub(departures.lost),
            ..Sample::default()
        }
    }

    /// Begins a new entry if there is a new mark.
    fn follow(&mut self) {
        let mark = self.rate.newest_mark();
        if mark != self.mark {
            self.mark = mark;
            self.departures[mark] = Departures {
                tx_in_flight: self.rate.in_flight(),
                lost: self.lost,
            };
        }
    }
}
