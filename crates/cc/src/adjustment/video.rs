//! Congestion avoidance that knows the video: `rate-floor` and `playout-buffer` (CCPLCA and CCPLB).

use crate::Facts;
use crate::estimator::Rtt;
use crate::parameter::{Arguments, Parameter};
use crate::state::{Core, floor_bytes};

/// Change of the window according to facts of the video.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shaper {
    /// CCPLCA: the window never falls below the one that carries the video's rate over this RTT (ns).
    RateFloor(fn(&Rtt) -> Option<u64>),
    /// CCPLB: the player's buffer, divided by this number, counts as storage of the path.
    PlayoutBuffer(f64),
}

impl Shaper {
    /// The component `rate-floor`, by its parameter [`RTT`].
    pub(crate) fn rate_floor(arguments: &Arguments) -> Self {
        Self::RateFloor(match arguments.word(RTT.name) {
            // The floor itself never causes a queue.
            "min" => Rtt::min_ns,
            "smoothed" => Rtt::smoothed_ns,
            // "at current packet rtt experienced": the floor rises with its own queue.
            _ => Rtt::latest_ns,
        })
    }

    /// The component `playout-buffer`, by its parameter [`POB_RATE`].
    pub(crate) fn playout_buffer(arguments: &Arguments) -> Self {
        Self::PlayoutBuffer(arguments.number(POB_RATE.name))
    }

    /// Facts of the video that it uses.
    pub(crate) const fn facts(self) -> Facts {
        match self {
            Self::RateFloor(_) => Facts::AVERAGE_RATE,
            Self::PlayoutBuffer(_) => Facts::PLAYOUT_BUFFER,
        }
    }

    /// Returns true if it shapes in recovery, and not only in congestion avoidance. The papers shape in no other phase.
    ///
    /// A floor that yielded to every loss would be useless: the papers' algorithms have no recovery, and others enter
    /// it after each loss.
    pub(crate) const fn acts_in_recovery(self) -> bool {
        matches!(self, Self::RateFloor(_))
    }

    /// The window in bytes that replaces the algorithm's `window`. The caller keeps the result within its bounds.
    pub(crate) fn adjust(self, core: &Core, window: u64) -> u64 {
        match self {
            // max(VR·rtt, w). Cavendish et al. 2015, CCPLCA: "The rational is to not allow the regulated throughput to
            // ever go below the video rendering rate."
            Self::RateFloor(rtt) => {
                let floor = rtt(&core.rtt).and_then(|rtt| core.video_window(rtt));
                window.max(floor.unwrap_or(0))
            }
            // w + POB/r. Cavendish et al. 2015 eq. (5): "The rational is to use the extra space of the playout buffer
            // to increase throughput, reducing buffer underflow events". A reported buffer does not count: otherwise a
            // player could choose its window.
            Self::PlayoutBuffer(rate) => {
                let extra = core.known.playout_buffer();
                window.saturating_add(extra.map_or(0, |size| floor_bytes(size.as_f64() / rate)))
            }
        }
    }
}

pub(crate) const RTT: Parameter = Parameter::word("rtt", "latest", &["latest", "smoothed", "min"])
    .about("RTT by which the video's rate is multiplied; with latest, the floor rises with its own queue");

pub(crate) const POB_RATE: Parameter = Parameter::number("pob_rate", 1.0, 0.1..=100.0)
    .about("the playout buffer is divided by this: 1 counts it in full, 2 half, 0.5 twice");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bitrate, Bytes};
    use rstest::rstest;

    const LATEST: Shaper = Shaper::RateFloor(Rtt::latest_ns);

    fn shaped(shaper: Shaper, core: &Core) -> u64 {
        shaper.adjust(core, core.window())
    }

    // Cavendish et al. 2015, CCPLCA at 5.24 Mbit/s and 100 ms: 65,544 B.
    #[rstest]
    #[case(10_000, 65_544)]
    #[case(200_000, 200_000)]
    fn the_window_never_falls_below_the_videos(#[case] algorithm: u64, #[case] published: u64) {
        let core = Core::sample(algorithm, 100, 100);
        core.known
            .set_average_rate(Some(Bitrate::from_bits_per_second(5_243_590)));
        assert_eq!(shaped(LATEST, &core), published);
    }

    #[test]
    fn the_floor_by_the_smallest_rtt_does_not_rise_with_the_queue() {
        let core = Core::sample(10_000, 100, 200);
        core.known
            .set_average_rate(Some(Bitrate::from_bits_per_second(5_243_590)));
        assert_eq!(shaped(LATEST, &core), 131_089);
        assert_eq!(shaped(Shaper::RateFloor(Rtt::min_ns), &core), 65_544);
    }

    // Cavendish et al. 2015 eq. (5): POB 672,000 B on an algorithm's window of 135,000 B.
    #[rstest]
    #[case(1.0, 807_000)]
    #[case(2.0, 471_000)]
    #[case(0.5, 1_479_000)]
    fn a_share_of_the_playout_buffer_is_added(#[case] rate: f64, #[case] published: u64) {
        let core = Core::sample(135_000, 100, 120);
        core.known.set_playout_buffer(Some(Bytes::new(672_000)));
        core.known.set_reported_buffer(Some(Bytes::new(6_000_000)));
        assert_eq!(shaped(Shaper::PlayoutBuffer(rate), &core), published);
    }

    #[test]
    fn what_is_unknown_shapes_nothing() {
        let core = Core::sample(135_000, 100, 120);
        assert_eq!(shaped(LATEST, &core), 135_000);
        core.known.set_reported_buffer(Some(Bytes::new(672_000)));
        assert_eq!(shaped(Shaper::PlayoutBuffer(1.0), &core), 135_000);
    }
}
