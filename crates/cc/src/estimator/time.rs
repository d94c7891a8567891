//! Round-trip times, round trips counted by time (QUIC's packet numbers restart in every packet number space), and the
//! time during which the sender did not use its window.
//!
//! RTTs are `now − sent` of the newest packet of each ACK batch.
//!
//! The sample contains the peer's acknowledgement delay (25 ms at most by default), because quinn does not pass it to a
//! controller. All values are nanoseconds.

use core::time::Duration;

use crate::Timestamp;
use crate::timestamp::nanos;

use super::{PromptSamples, SlotMax, mean};

/// Granularity of timers: the least variance term in an RTO (RFC 9002 §6.1.2: "The RECOMMENDED value of the timer
/// granularity (kGranularity) is 1 millisecond.").
const GRANULARITY_NS: u64 = 1_000_000;

/// RTT estimator of one path.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rtt {
    own: Option<RttSamples>,
    /// The transport's smoothed RTT, without the peer's delay.
    transport_smoothed_ns: Option<u64>,
    /// Largest sample of a batch of two or more packets: a lone packet may have waited for a delayed ACK.
    max_ns: Option<u64>,
    /// The same over a window of time, used instead of the connection's.
    windowed_max: Option<Box<WindowedMax>>,
    /// Send time of the newest sampled packet; an older packet does not show the current RTT.
    newest_sent: Timestamp,
    /// Decides which samples count for `max_ns`.
    prompt: PromptSamples,
}

/// Estimates of the sender, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct RttSamples {
    latest: u64,
    smoothed: u64,
    variance: u64,
    min: u64,
}

/// Largest sample (ns) of a window of time, with a resolution of an eighth of the window.
#[derive(Clone, Debug, PartialEq)]
struct WindowedMax {
    part_ns: u64,
    max: SlotMax<u64, 8>,
}

impl Rtt {
    /// An estimator that forgets a largest RTT after `window_ns`; zero never forgets it.
    pub(crate) fn remembering(window_ns: u64) -> Self {
        Self {
            windowed_max: (window_ns > 0).then(|| {
                Box::new(WindowedMax {
                    part_ns: (window_ns / 8).max(1),
                    max: SlotMax::default(),
                })
            }),
            ..Self::default()
        }
    }

    /// Records the transport's smoothed RTT, if it has one.
    #[inline]
    pub(crate) fn set_transport_smoothed(&mut self, rtt: Option<Duration>) {
        if let Some(rtt) = rtt {
            self.transport_smoothed_ns = Some(nanos(rtt));
        }
    }

    /// Records the sample of one ACK batch. Returns it unless the batch's newest packet is older than a packet sampled
    /// before.
    #[inline]
    pub(crate) fn on_batch(&mut self, now: Timestamp, newest_sent: Timestamp, packets: u32) -> Option<u64> {
        if newest_sent < self.newest_sent {
            return None;
        }
        self.newest_sent = newest_sent;
        let sample = now.nanos_since(newest_sent).max(1);
        let prompt = self.prompt.on_sample(newest_sent, packets, sample);
        if let Some(WindowedMax { part_ns, max }) = self.windowed_max.as_deref_mut() {
            max.advance_to(now, *part_ns);
            max.insert(prompt.unwrap_or(0));
        } else {
            self.max_ns = self.max_ns.max(prompt);
        }
        self.own = Some(match self.own {
            None => RttSamples {
                latest: sample,
                smoothed: sample,
                variance: sample / 2,
                min: sample,
            },
            // RFC 9002 §5.3, without the acknowledgement delay.
            Some(old) => RttSamples {
                latest: sample,
                smoothed: mean(old.smoothed, sample, 8),
                variance: mean(old.variance, old.smoothed.abs_diff(sample), 4),
                min: old.min.min(sample),
            },
        });
        Some(sample)
    }

    /// Forgets the extremes after persistent congestion, because the path may have changed (RFC 9002 §5.2).
    pub(crate) fn forget_extremes(&mut self) {
        self.set_max(None);
        if let Some(own) = &mut self.own {
            own.min = own.latest;
        }
    }

    /// Raises the smallest sample to `min_ns`, after the path has become longer.
    pub(crate) fn raise_min(&mut self, min_ns: u64) {
        if let Some(own) = &mut self.own {
            own.min = own.min.max(min_ns);
        }
    }

    /// Replaces the largest sample (ns), when earlier samples belong to another state of the path.
    pub(crate) fn set_max(&mut self, max_ns: Option<u64>) {
        self.max_ns = max_ns;
        if let Some(window) = &mut self.windowed_max {
            window.max.forget();
            window.max.insert(max_ns.unwrap_or(0));
        }
    }

    /// Newest sample of the connection, ns.
    pub(crate) fn latest_ns(&self) -> Option<u64> {
        self.own.map(|own| own.latest)
    }

    /// Smoothed RTT, ns: the transport's if it reports one, else this estimator's.
    pub(crate) fn smoothed_ns(&self) -> Option<u64> {
        self.transport_smoothed_ns.or(self.own.map(|own| own.smoothed))
    }

    /// Smallest sample of the connection, ns.
    pub(crate) fn min_ns(&self) -> Option<u64> {
        self.own.map(|own| own.min)
    }

    /// Largest sample that no delayed ACK inflated, ns: of the connection, or of the window of time.
    pub(crate) fn max_ns(&self) -> Option<u64> {
        match &self.windowed_max {
            Some(window) => Some(window.max.max()).filter(|&max| max > 0),
            None => self.max_ns,
        }
    }

    /// Retransmission timeout, ns: smoothed RTT + max(4 · variance, 1 ms) (RFC 6298, RFC 9002 §6.2.1).
    pub(crate) fn rto_ns(&self) -> Option<u64> {
        self.own.map(|own| {
            own.smoothed
                .saturating_add(own.variance.saturating_mul(4).max(GRANULARITY_NS))
        })
    }
}

/// Counts round trips. A round ends when a packet that left in it is acknowledged; the next one begins then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rounds {
    start: Timestamp,
}

impl Rounds {
    /// Begins a round now. It ends when a packet that leaves from now on is acknowledged.
    pub(crate) const fn restart(&mut self, now: Timestamp) {
        self.start = now;
    }

    /// An ACK batch whose newest packet left at `newest_sent` arrived. Returns true if it ended a round; the batch
    /// itself then belongs to the new one.
    #[inline]
    pub(crate) fn on_batch(&mut self, now: Timestamp, newest_sent: Timestamp) -> bool {
        let ended = newest_sent >= self.start;
        if ended {
            self.start = now;
        }
        ended
    }
}

/// Adds up the time during which the application, not the window, limited the sender.
///
/// RFC 9438 §4.2: an epoch's elapsed time MUST NOT include periods when an application-limited sender left cwnd
/// unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LimitedTime {
    total_ns: u64,
    /// Time with nothing in flight since the last batch.
    quiet_ns: u64,
    was_limited: bool,
    /// Nothing has been in flight since the last batch.
    is_quiet: bool,
}

impl LimitedTime {
    /// Counts a burst that left. If nothing was in flight, nothing has been since the last batch, which arrived at
    /// `last`.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Timestamp, last: Option<Timestamp>) {
        if self.is_quiet {
            self.is_quiet = false;
            self.quiet_ns = last.map_or(0, |last| now.nanos_since(last));
        }
    }

    /// Processes an ACK frame. If the sender was limited at the start or the end, the whole time since the last frame,
    /// `elapsed_ns`, counts as limited. Otherwise only the time with nothing in flight counts.
    #[inline]
    pub(crate) fn on_batch(&mut self, elapsed_ns: Option<u64>, limited: bool, in_flight: u64) {
        if let Some(elapsed_ns) = elapsed_ns {
            let excluded = if limited || self.was_limited {
                elapsed_ns
            } else {
                self.quiet_ns
            };
            self.total_ns = self.total_ns.saturating_add(excluded);
        }
        self.quiet_ns = 0;
        self.is_quiet = in_flight == 0;
        self.was_limited = limited;
    }

    /// All limited time of the connection so far, ns. It never decreases.
    pub(crate) const fn total_ns(&self) -> u64 {
        self.total_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{MS_IN_NS as MS, at};
    use rstest::rstest;

    #[test]
    fn the_first_sample_sets_everything() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.smoothed_ns(), None);
        assert_eq!(rtt.on_batch(at(100), at(0), 2), Some(100 * MS));
        assert_eq!(rtt.latest_ns(), Some(100 * MS));
        assert_eq!(rtt.smoothed_ns(), Some(100 * MS));
        assert_eq!((rtt.min_ns(), rtt.max_ns()), (Some(100 * MS), Some(100 * MS)));
        assert_eq!(rtt.rto_ns(), Some(300 * MS)); // 100 + 4 · 50
    }

    #[test]
    fn smooths_as_rfc_9002_does() {
        let mut rtt = Rtt::default();
        rtt.on_batch(at(100), at(0), 2);
        rtt.on_batch(at(280), at(100), 2);
        assert_eq!(rtt.smoothed_ns(), Some(110 * MS)); // 7/8 · 100 + 1/8 · 180
        assert_eq!(rtt.rto_ns(), Some((110 + 4 * 57) * MS + 2 * MS)); // variance 3/4 · 50 + 1/4 · 80 = 57.5
    }

    // Each frame: its time, the departure of its newest packet (ms), and its packets.
    #[rstest]
    #[case::a_lone_packet_does_not_raise_it(&[(100, 0, 2), (325, 200, 1)], Some(100))]
    #[case::a_lone_first_packet_may_have_waited(&[(100, 0, 1)], None)]
    #[case::its_companion_did_not_wait_with_it(&[(100, 0, 1), (101, 0, 1)], Some(100))]
    #[case::one_that_left_later_says_nothing(&[(100, 0, 1), (101, 0, 1), (325, 200, 1), (326, 226, 1)], Some(100))]
    fn the_largest_rtt_contains_no_acknowledgement_delay(
        #[case] frames: &[(u64, u64, u32)],
        #[case] max_ms: Option<u64>,
    ) {
        let mut rtt = Rtt::default();
        for &(now, sent, packets) in frames {
            rtt.on_batch(at(now), at(sent), packets);
        }
        assert_eq!(rtt.max_ns(), max_ms.map(|ms| ms * MS));
    }

    #[test]
    fn a_packet_older_than_the_last_sampled_gives_no_sample() {
        let mut rtt = Rtt::default();
        rtt.on_batch(at(150), at(50), 2);
        assert_eq!(rtt.on_batch(at(400), at(10), 2), None);
        assert_eq!(rtt.max_ns(), Some(100 * MS));
    }

    #[test]
    fn the_transports_smoothed_rtt_wins() {
        let mut rtt = Rtt::default();
        rtt.set_transport_smoothed(Some(Duration::from_millis(100)));
        rtt.on_batch(at(125), at(0), 1);
        assert_eq!(rtt.smoothed_ns(), Some(100 * MS));
    }

    #[test]
    fn extremes_are_learnt_again_when_forgotten() {
        let mut rtt = Rtt::default();
        rtt.on_batch(at(50), at(0), 2);
        rtt.on_batch(at(200), at(100), 2);
        rtt.forget_extremes();
        assert_eq!((rtt.min_ns(), rtt.max_ns()), (Some(100 * MS), None));
    }

    #[test]
    fn a_largest_rtt_is_forgotten_after_its_window_and_not_before() {
        let (mut windowed, mut whole) = (Rtt::remembering(800 * MS), Rtt::default());
        for rtt in [&mut windowed, &mut whole] {
            rtt.on_batch(at(300), at(0), 2);
            for ms in [400, 700, 1_000] {
                rtt.on_batch(at(ms), at(ms - 100), 2);
            }
            assert_eq!(rtt.max_ns(), Some(300 * MS));
            rtt.on_batch(at(1_100), at(1_000), 2);
        }
        assert_eq!(windowed.max_ns(), Some(100 * MS));
        assert_eq!(whole.max_ns(), Some(300 * MS));
    }

    #[test]
    fn a_round_ends_with_the_first_packet_sent_in_it() {
        let mut rounds = Rounds::default();
        assert!(rounds.on_batch(at(100), at(0)));
        assert!(!rounds.on_batch(at(101), at(1)), "sent before the round began");
        assert!(rounds.on_batch(at(200), at(100)));
        assert!(!rounds.on_batch(at(290), at(199)));
    }

    #[test]
    fn a_round_that_is_begun_anew_ends_with_what_leaves_after_that() {
        let mut rounds = Rounds::default();
        rounds.on_batch(at(100), at(0));
        rounds.restart(at(150));
        assert!(!rounds.on_batch(at(200), at(120)));
        assert!(rounds.on_batch(at(260), at(160)));
    }

    #[test]
    fn a_busy_sender_accumulates_nothing() {
        let mut time = LimitedTime::default();
        for ms in 0..100 {
            let now = at(ms);
            time.on_batch(Some(now.nanos_since(at(ms.saturating_sub(1)))), false, 12_000);
            time.on_sent(now, Some(now));
        }
        assert_eq!(time.total_ns(), 0);
    }

    #[test]
    fn intervals_that_begin_or_end_limited_are_left_out() {
        let mut time = LimitedTime::default();
        time.on_batch(None, false, 12_000);
        time.on_batch(Some(at(10).nanos_since(at(0))), true, 12_000);
        time.on_batch(Some(at(30).nanos_since(at(10))), false, 12_000);
        time.on_batch(Some(at(31).nanos_since(at(30))), false, 12_000);
        assert_eq!(time.total_ns(), 30 * MS);
    }

    #[test]
    fn an_idle_gap_that_no_flag_marks_is_left_out() {
        let mut time = LimitedTime::default();
        time.on_batch(None, false, 0);
        time.on_sent(at(5_000), Some(at(0)));
        time.on_sent(at(5_050), Some(at(0)));
        time.on_batch(Some(at(5_100).nanos_since(at(0))), false, 0);
        assert_eq!(time.total_ns(), 5_000 * MS);
    }
}
