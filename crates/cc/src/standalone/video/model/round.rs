//! [`Round`]: what one round trip showed.

use crate::Timestamp;
use crate::state::{Batch, float};
use crate::timestamp::seconds;

use super::ack_delay::Sample;

/// Sums over the round trip that goes on. Sizes are bytes, times nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::standalone::video) struct OpenRound {
    began: Option<Timestamp>,
    acked: u64,
    /// Acknowledged bytes that left while the window was what limited the sender.
    window_limited: u64,
    lost: u64,
    rtt_min: u64,
    rtt_sum: u64,
    samples: u64,
}

/// A round trip that is over. Sizes are bytes, times nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::standalone::video) struct Round {
    pub(in crate::standalone::video) acked: u64,
    pub(in crate::standalone::video) lost: u64,
    /// The window was what limited the sender for most of it.
    pub(in crate::standalone::video) window_limited: bool,
    /// Smallest and mean RTT.
    pub(in crate::standalone::video) rtt_min: u64,
    pub(in crate::standalone::video) rtt_mean: u64,
    /// Number of RTT samples in the round.
    pub(in crate::standalone::video) samples: u64,
    /// Delivery rate, bytes per second.
    pub(in crate::standalone::video) rate: f64,
}

impl OpenRound {
    pub(in crate::standalone::video) const fn on_lost(&mut self, bytes: u64) {
        self.lost = self.lost.saturating_add(bytes);
    }

    /// Bytes lost so far.
    pub(in crate::standalone::video) const fn lost(&self) -> u64 {
        self.lost
    }

    /// Delivery rate so far, bytes per second; zero in its first millisecond, which says nothing yet.
    pub(in crate::standalone::video) fn rate(&self, now: Timestamp) -> f64 {
        const SHORTEST_NS: u64 = 1_000_000;
        let lasted = self.began.map_or(0, |began| now.nanos_since(began));
        if lasted < SHORTEST_NS {
            return 0.0;
        }
        float(self.acked) / seconds(lasted)
    }

    /// Takes an ACK frame and the RTT sample that is known with it; returns the round that the frame ends, if that had
    /// a sample. A late one is of the frame before, so it belongs to the round that ends.
    pub(in crate::standalone::video) fn on_batch(
        &mut self,
        batch: &Batch,
        sample: Option<Sample>,
    ) -> Option<Round> {
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
    pub(in crate::standalone::video) fn so_far(&self, now: Timestamp) -> Round {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{MS_IN_NS as MS, at};

    fn take(open: &mut OpenRound, batch: &Batch) -> Option<Round> {
        open.on_batch(batch, Sample::of(batch))
    }

    fn frame(ms: u64, rtt_ms: u64, new_round: bool) -> Batch {
        Batch {
            now: at(ms),
            acked: 1_000,
            packets: 1,
            rtt_ns: Some(rtt_ms * MS),
            new_round,
            ..Batch::default()
        }
    }

    #[test]
    fn a_round_counts_what_arrived_after_the_frame_that_began_it() {
        let mut open = OpenRound::default();
        assert_eq!(
            take(&mut open, &frame(100, 100, true)),
            None,
            "nothing was before it"
        );
        assert_eq!(take(&mut open, &frame(110, 120, false)), None);
        open.on_lost(500);
        let round = take(&mut open, &frame(200, 90, true)).unwrap();
        assert_eq!(
            (round.acked, round.lost, round.window_limited),
            (2_000, 500, true)
        );
        assert_eq!((round.rtt_min, round.rtt_mean), (100 * MS, 110 * MS));
        assert!((round.rate - 20_000.0).abs() < 1e-6, "2,000 bytes in 100 ms");
        assert!(
            (open.rate(at(210)) - 0.0).abs() < 1e-9,
            "the frame belongs to the last round"
        );
        assert_eq!(open.lost(), 0);
    }

    #[test]
    fn a_round_in_which_the_application_was_the_limit_for_longer_is_not_window_limited() {
        let mut open = OpenRound::default();
        take(&mut open, &frame(100, 100, true));
        for ms in [110, 120, 130] {
            let limited = ms > 110;
            take(
                &mut open,
                &Batch {
                    limited,
                    ..frame(ms, 100, false)
                },
            );
        }
        let round = take(
            &mut open,
            &Batch {
                limited: true,
                ..frame(200, 100, true)
            },
        );
        assert!(!round.unwrap().window_limited);
    }
}
