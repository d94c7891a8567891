//! Round-trip times from `now − sent` of the newest packet of each ACK batch.
//!
//! The sample contains the peer's acknowledgement delay (25 ms at most by default), because a quinn controller is
//! not shown it. All values are nanoseconds.

use core::time::Duration;

use crate::Timestamp;

/// Granularity of timers: the least that the variance adds to an RTO (RFC 9002 §6.1.2 `kGranularity`).
const GRANULARITY_NS: u64 = 1_000_000;

/// RTT estimator of one path.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rtt {
    own: Option<Measured>,
    /// The transport's smoothed RTT, which leaves the peer's delay out.
    transport_smoothed_ns: Option<u64>,
    /// Largest sample of a batch of two or more packets: a lone packet may have waited for a delayed ACK.
    max_ns: Option<u64>,
    /// Send time of the newest packet sampled; an older packet says nothing about now.
    newest_sent: Timestamp,
    /// A lone packet's sample that may yet count for `max_ns`.
    lone: Option<Lone>,
}

/// A packet that was acknowledged alone.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Lone {
    sent: Timestamp,
    sample_ns: u64,
}

/// A packet that left this soon after a lone one would have been acknowledged together with it, had the peer held the lone
/// one's acknowledgement back.
const COMPANION_NS: u64 = 1_000_000;

/// All in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Measured {
    latest: u64,
    smoothed: u64,
    variance: u64,
    min: u64,
}

impl Rtt {
    /// Takes the sample of one ACK batch. Returns it unless the batch's newest packet is older than one sampled before.
    #[inline]
    pub(crate) fn on_batch(
        &mut self,
        now: Timestamp,
        newest_sent: Timestamp,
        packets: u32,
        transport_smoothed: Option<Duration>,
    ) -> Option<u64> {
        if let Some(smoothed) = transport_smoothed {
            self.transport_smoothed_ns = Some(nanos(smoothed));
        }
        if newest_sent < self.newest_sent {
            return None;
        }
        self.newest_sent = newest_sent;
        let sample = now.nanos_since(newest_sent).max(1);
        self.raise_max(newest_sent, packets, sample);
        self.own = Some(match self.own {
            None => Measured {
                latest: sample,
                smoothed: sample,
                variance: sample / 2,
                min: sample,
            },
            // RFC 9002 §5.3, without the acknowledgement delay.
            Some(old) => Measured {
                latest: sample,
                smoothed: old.smoothed - old.smoothed / 8 + sample / 8,
                variance: old.variance - old.variance / 4 + old.smoothed.abs_diff(sample) / 4,
                min: old.min.min(sample),
            },
        });
        Some(sample)
    }

    /// A lone packet may have waited for the peer's timer. It did not if the next packet left right behind it and was
    /// acknowledged apart from it: then the peer acknowledges every packet.
    #[inline]
    fn raise_max(&mut self, sent: Timestamp, packets: u32, sample_ns: u64) {
        let lone = self.lone;
        if packets >= 2 {
            self.max_ns = self.max_ns.max(Some(sample_ns));
        } else {
            self.lone = Some(Lone { sent, sample_ns });
        }
        let Some(lone) = lone else { return };
        if packets >= 2 {
            self.lone = None;
        }
        if sent.nanos_since(lone.sent) <= COMPANION_NS {
            self.max_ns = self.max_ns.max(Some(lone.sample_ns));
        }
    }

    /// Persistent congestion: the path may have changed, so the extremes are learnt again (RFC 9002 §5.2).
    pub(crate) fn forget_extremes(&mut self) {
        self.max_ns = None;
        if let Some(own) = &mut self.own {
            own.min = own.latest;
        }
    }

    /// Newest sample, ns.
    pub(crate) fn latest_ns(&self) -> Option<u64> {
        self.own.map(|own| own.latest)
    }

    /// Smoothed RTT, ns: the transport's if it told, else this estimator's.
    pub(crate) fn smoothed_ns(&self) -> Option<u64> {
        self.transport_smoothed_ns.or(self.own.map(|own| own.smoothed))
    }

    /// Smallest sample of the connection, ns.
    pub(crate) fn min_ns(&self) -> Option<u64> {
        self.own.map(|own| own.min)
    }

    /// Largest sample of the connection that no delayed ACK inflated, ns.
    pub(crate) fn max_ns(&self) -> Option<u64> {
        self.max_ns
    }

    /// Retransmission timeout, ns: smoothed RTT + max(4 · variance, 1 ms) (RFC 6298, RFC 9002 §6.2.1).
    pub(crate) fn rto_ns(&self) -> Option<u64> {
        self.own.map(|own| {
            own.smoothed
                .saturating_add(own.variance.saturating_mul(4).max(GRANULARITY_NS))
        })
    }
}

#[expect(clippy::cast_possible_truncation, reason = "2⁶⁴ ns are 584 years")]
const fn nanos(time: Duration) -> u64 {
    time.as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    const MS: u64 = 1_000_000;

    #[test]
    fn the_first_sample_sets_everything() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.smoothed_ns(), None);
        assert_eq!(rtt.on_batch(at(100), at(0), 2, None), Some(100 * MS));
        assert_eq!(rtt.latest_ns(), Some(100 * MS));
        assert_eq!(rtt.smoothed_ns(), Some(100 * MS));
        assert_eq!((rtt.min_ns(), rtt.max_ns()), (Some(100 * MS), Some(100 * MS)));
        assert_eq!(rtt.rto_ns(), Some(300 * MS)); // 100 + 4 · 50
    }

    #[test]
    fn smooths_as_rfc_9002_does() {
        let mut rtt = Rtt::default();
        rtt.on_batch(at(100), at(0), 2, None);
        rtt.on_batch(at(280), at(100), 2, None);
        assert_eq!(rtt.smoothed_ns(), Some(110 * MS)); // 7/8 · 100 + 1/8 · 180
        assert_eq!(rtt.rto_ns(), Some((110 + 4 * 57) * MS + 2 * MS)); // variance 3/4 · 50 + 1/4 · 80 = 57.5
    }

    #[test]
    fn a_lone_packet_does_not_raise_the_largest_rtt() {
        let mut rtt = Rtt::default();
        rtt.on_batch(at(100), at(0), 2, None);
        rtt.on_batch(at(325), at(200), 1, None);
        assert_eq!(rtt.max_ns(), Some(100 * MS));
    }

    #[test]
    fn lone_packets_count_when_the_peer_acknowledges_every_packet() {
        let mut rtt = Rtt::default();
        rtt.on_batch(at(100), at(0), 1, None);
        assert_eq!(rtt.max_ns(), None, "it may have waited");
        rtt.on_batch(at(101), at(0), 1, None);
        assert_eq!(rtt.max_ns(), Some(100 * MS), "its companion did not wait with it");
        rtt.on_batch(at(325), at(200), 1, None);
        rtt.on_batch(at(326), at(226), 1, None);
        assert_eq!(
            rtt.max_ns(),
            Some(100 * MS),
            "a packet that left later says nothing"
        );
    }

    #[test]
    fn a_packet_older_than_the_last_sampled_gives_no_sample() {
        let mut rtt = Rtt::default();
        rtt.on_batch(at(150), at(50), 2, None);
        assert_eq!(rtt.on_batch(at(400), at(10), 2, None), None);
        assert_eq!(rtt.max_ns(), Some(100 * MS));
    }

    #[test]
    fn the_transports_smoothed_rtt_wins() {
        let mut rtt = Rtt::default();
        rtt.on_batch(at(125), at(0), 1, Some(Duration::from_millis(100)));
        assert_eq!(rtt.smoothed_ns(), Some(100 * MS));
    }

    #[test]
    fn extremes_are_learnt_again_when_forgotten() {
        let mut rtt = Rtt::default();
        rtt.on_batch(at(50), at(0), 2, None);
        rtt.on_batch(at(200), at(100), 2, None);
        rtt.forget_extremes();
        assert_eq!((rtt.min_ns(), rtt.max_ns()), (Some(100 * MS), None));
    }
}
