//! `pace`: bounds the rate by the player's demand, according to the fill of its buffer.

use playrate_units::Bitrate;

use crate::parameter::{Arguments, Parameter};
use crate::state::{Core, floor_bytes};
use crate::{Facts, Playback};

/// With fewer packets the peer would wait for more before it acknowledges (RFC 9000 §13.2.1), and its delay would set
/// the rate instead of the ceiling.
const LEAST_PACKETS: u64 = 4;
/// The smoothed RTT is capped at this many smallest RTTs. If the link is slower than the rate, a window that follows
/// the RTT raises its own bound, because its queue lengthens the RTT. With two, another flow's queue as long as the
/// pipe costs nothing, and a queue of 2k − 1 times the pipe still leaves the video's rate.
const MOST_SMALLEST_RTTS: u64 = 2;
const SECONDS_PER_NANO: f64 = 1e-9;
const BITS_PER_BYTE: f64 = 8.0;

/// Application-informed pacing (Spang et al., "Sammy", SIGCOMM 2023). The rate is at most k times the video's; k falls
/// linearly from `start` at an empty playout buffer to `full` at a full one. A `full` above `start` counts as `start`:
/// no report of a player raises the bound.
///
/// The defaults, 3.0 and 1.5, are those of the authors' public demonstration
/// (<https://sammy.brucespang.com>).
///
/// NOTE: the authors multiply the title's highest bitrate; here only the average rate of the current stream is known. A
/// player that selects its quality by observed throughput can step up to k times the current rate.
///
/// NOTE: the bound is the window k · rate · min(smoothed RTT, 2 · smallest RTT), as quinn has no pacing hook. quinn's
/// pacer spaces packets at 1.25 windows per smoothed RTT, so bursts shorter than a round trip are up to 25 % faster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    start: f64,
    full: f64,
}

impl Pace {
    /// Facts of the video that it uses.
    pub(crate) const FACTS: Facts = Facts::AVERAGE_RATE
        .union(Facts::BUFFER_SIZE)
        .union(Facts::BUFFERED);

    pub(crate) fn from_arguments(arguments: &Arguments) -> Self {
        Self {
            start: arguments.number("start"),
            full: arguments.number("full").min(arguments.number("start")),
        }
    }

    /// Fill of the player's buffer, from 0 to 1; 0 while unknown. If the player does not report its buffered time, the
    /// deadline of its latest request is used instead.
    fn fill(core: &Core, rate: Bitrate) -> f64 {
        let time = core.known.buffered().or_else(|| core.known.deadline());
        let (Some(time), Some(size)) = (time, core.known.buffer_size()) else {
            return 0.0;
        };
        let held = bytes_in(rate, time.as_secs_f64());
        // A buffer of size zero counts as full.
        (held / size.as_f64().max(1.0)).clamp(0.0, 1.0)
    }

    /// k at this fill.
    fn factor(self, fill: f64) -> f64 {
        (self.full - self.start).mul_add(fill, self.start)
    }

    /// The ceiling in bytes. `None` while the rate or the RTT is unknown, and while the player reports that it starts
    /// up or that its buffer is empty: until playback can start, the buffer is filled as fast as possible.
    fn ceiling(self, core: &Core) -> Option<u64> {
        if core.known.playback() > Some(Playback::Playing) {
            return None;
        }
        let rate = core.known.average_rate()?;
        let smallest = core.rtt.min_ns()?.saturating_mul(MOST_SMALLEST_RTTS);
        let rtt = core.rtt.smoothed_ns()?.min(smallest) as f64 * SECONDS_PER_NANO;
        let factor = self.factor(Self::fill(core, rate));
        let window = floor_bytes(factor * bytes_in(core.known.wire_rate()?, rtt));
        let window = window.saturating_add(core.headroom());
        Some(window.max(core.mtu().saturating_mul(LEAST_PACKETS)))
    }

    /// The window under the ceiling, bytes.
    pub(crate) fn adjust(self, core: &Core, window: u64) -> u64 {
        self.ceiling(core).map_or(window, |ceiling| window.min(ceiling))
    }
}

/// Bytes of media at `rate` in this many seconds.
fn bytes_in(rate: Bitrate, seconds: f64) -> f64 {
    rate.as_bits_per_second() as f64 / BITS_PER_BYTE * seconds
}

pub(crate) const PARAMETERS: &[Parameter] = &[
    Parameter::number("start", 3.0, 1.0..=100.0)
        .about("times the video's average rate at an empty playout buffer, or while its fill is unknown"),
    Parameter::number("full", 1.5, 1.0..=100.0)
        .about("times the video's average rate at a full playout buffer; at most `start`"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;
    use playrate_units::Bytes;
    use rstest::rstest;

    const PACE: Pace = Pace {
        start: 3.0,
        full: 1.5,
    };

    /// 8 Mbit/s and a buffer of 4 MB, which is 4 s; RTT 100 ms.
    fn core() -> Core {
        let core = Core::sample(1_000_000, 100, 100);
        core.known.set_average_rate(Some(Bitrate::from_mbps(8)));
        core.known.set_playout_buffer(Some(Bytes::new(4_000_000)));
        core
    }

    // k · 1 MB/s · 0.1 s; k falls linearly from 3 to 1.5 while the buffer fills.
    #[rstest]
    #[case(0, 300_000)]
    #[case(1_000, 262_500)]
    #[case(2_000, 225_000)]
    #[case(4_000, 150_000)]
    #[case(60_000, 150_000)]
    fn the_ceiling_falls_from_start_to_full_while_the_buffer_fills(#[case] ms: u64, #[case] window: u64) {
        let core = core();
        core.known.set_buffered(Some(Duration::from_millis(ms)));
        assert_eq!(PACE.ceiling(&core), Some(window));
    }

    #[test]
    fn an_unknown_fill_counts_as_empty_and_an_unknown_rate_lifts_the_ceiling() {
        let core = core();
        assert_eq!(PACE.ceiling(&core), Some(300_000));
        core.known.set_playout_buffer(None);
        core.known.set_buffered(Some(Duration::from_secs(4)));
        assert_eq!(PACE.ceiling(&core), Some(300_000));
        core.known.set_reported_buffer(Some(Bytes::new(4_000_000)));
        assert_eq!(PACE.ceiling(&core), Some(150_000), "a report lowers it");
        core.known.set_average_rate(None);
        assert_eq!(PACE.ceiling(&core), None);
    }

    // 3 · 1 MB/s · the smoothed RTT, over a path of 100 ms.
    #[rstest]
    #[case::no_queue(100, 300_000)]
    #[case::a_queue_of_one_product(200, 600_000)]
    #[case::a_longer_queue(900, 600_000)]
    fn a_standing_queue_raises_the_ceiling_no_further_than_one_product(
        #[case] rtt_ms: u64,
        #[case] window: u64,
    ) {
        let core = Core::sample(1_000_000, 100, rtt_ms);
        core.known.set_average_rate(Some(Bitrate::from_mbps(8)));
        assert_eq!(PACE.ceiling(&core), Some(window));
    }

    #[test]
    fn the_ceiling_is_never_below_four_packets() {
        let core = core();
        core.known.set_average_rate(Some(Bitrate::from_kbps(64)));
        assert_eq!(PACE.ceiling(&core), Some(4_800));
    }
}
