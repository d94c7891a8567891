//! `rate-floor` and `playout-buffer`: congestion avoidance that knows the video (CCPLCA and CCPLB).

use crate::component::{Needs, Traits};
use crate::entry::{Entry, Key, Make};
use crate::parameter::{Arguments, Parameter};
use crate::state::{Core, floor_bytes};

use super::{Adjustment, AnyAdjustment};
use crate::Facts;

/// RTT used as the rate's factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FloorRtt {
    /// The newest sample ("at current packet rtt experienced"): the floor rises with its own queue.
    Latest,
    /// The smoothed RTT of the path.
    Smoothed,
    /// The connection's smallest RTT: the floor itself never causes a queue.
    Min,
}

/// CCPLCA: the window never falls below the one that carries the video's rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateFloor {
    rtt: FloorRtt,
}

impl RateFloor {
    fn from_arguments(arguments: &Arguments) -> Self {
        let rtt = match arguments.word("rtt") {
            "min" => FloorRtt::Min,
            "smoothed" => FloorRtt::Smoothed,
            _ => FloorRtt::Latest,
        };
        Self { rtt }
    }
}

impl Adjustment for RateFloor {
    fn needs(&self) -> Needs {
        Needs::knowledge(Facts::AVERAGE_RATE)
    }

    /// A floor that yielded to every loss would be useless: the papers' algorithms have no recovery, and others enter
    /// it after each loss.
    fn acts_in_recovery(&self) -> bool {
        true
    }

    /// max(VR·rtt, w), bytes. Cavendish et al. 2015, CCPLCA: "The rational is to not allow the regulated throughput to
    /// ever go below the video rendering rate."
    fn adjust(&mut self, core: &Core, window: u64) -> u64 {
        let rtt = match self.rtt {
            FloorRtt::Latest => core.rtt.latest_ns(),
            FloorRtt::Smoothed => core.rtt.smoothed_ns(),
            FloorRtt::Min => core.rtt.min_ns(),
        };
        let floor = rtt.and_then(|rtt| core.video_window(rtt)).unwrap_or(0);
        window.max(floor)
    }
}

/// CCPLB: the player's buffer counts as storage of the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlayoutBuffer {
    /// Divisor of the playout buffer; 0.5 counts it twice.
    rate: f64,
}

impl Adjustment for PlayoutBuffer {
    fn needs(&self) -> Needs {
        Needs::knowledge(Facts::PLAYOUT_BUFFER)
    }

    /// w + POB/r, bytes. Cavendish et al. 2015 eq. (5): "The rational is to use the extra space of the playout buffer
    /// to increase throughput, reducing buffer underflow events".
    ///
    /// A reported buffer does not count: otherwise a player could choose its window.
    fn adjust(&mut self, core: &Core, window: u64) -> u64 {
        let extra = core
            .known
            .playout_buffer()
            .map_or(0, |size| floor_bytes(size.as_f64() / self.rate));
        window.saturating_add(extra)
    }
}

const RATE_FLOOR: &[Parameter] = &[Parameter::word(
    "rtt",
    "latest",
    &["latest", "smoothed", "min"],
    "which RTT the video's rate is multiplied with; with latest the floor rises with the queue it makes",
)];

const PLAYOUT_BUFFER: &[Parameter] = &[Parameter::number(
    "pob_rate",
    1.0,
    0.1..=100.0,
    "the playout buffer is divided by this: 1 counts it in full, 2 half, 0.5 twice",
)];

fn only_if_it_need_not_yield(algorithm: Traits) -> Result<(), &'static str> {
    if algorithm.yields {
        return Err(
            "the algorithm gives way to others above the video's rate; a floor at that rate would keep it from \
             doing so",
        );
    }
    Ok(())
}

/// If the path cannot hold the added window, every round trip would lose packets whatever the algorithm does: with a
/// queue of one bandwidth-delay product, CUBIC lost a fifth of its packets and a third of the link's capacity. The loss
/// guard bounds the sum instead.
fn only_if_it_holds(algorithm: Traits) -> Result<(), &'static str> {
    if algorithm.delay_based {
        return Err(
            "the algorithm would take the queue that the added window makes for congestion and give up all of its own",
        );
    }
    if !algorithm.holds_on_loss {
        return Err(
            "the algorithm would answer losses by its own share of the window while the added one goes on causing \
             them; \
             take ccp or ccpd, whose loss guard bounds both",
        );
    }
    Ok(())
}

pub(crate) fn rate_floor() -> Entry {
    Entry::new(
        "rate-floor",
        Make::Adjustment(Key::Shape, |arguments| {
            AnyAdjustment::RateFloor(RateFloor::from_arguments(arguments))
        }),
    )
    .about(
        "after slow start, never less than the window that carries the video's average rate",
        "Cavendish et al. 2015, CCPLCA",
    )
    .with_parameters(RATE_FLOOR)
    .absolute()
    .fits(only_if_it_need_not_yield)
}

pub(crate) fn playout_buffer() -> Entry {
    Entry::new(
        "playout-buffer",
        Make::Adjustment(Key::Shape, |arguments| {
            AnyAdjustment::PlayoutBuffer(PlayoutBuffer {
                rate: arguments.number("pob_rate"),
            })
        }),
    )
    .about(
        "in congestion avoidance, the algorithm's window and a share of the player's buffer on top",
        "Cavendish et al. 2015 eq. (5), CCPLB",
    )
    .with_parameters(PLAYOUT_BUFFER)
    .absolute()
    .fits(only_if_it_holds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bitrate, Bytes};
    use rstest::rstest;

    const LATEST: RateFloor = RateFloor {
        rtt: FloorRtt::Latest,
    };

    fn shaped(mut shaper: impl Adjustment, core: &Core) -> u64 {
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
        assert_eq!(shaped(RateFloor { rtt: FloorRtt::Min }, &core), 65_544);
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
        assert_eq!(shaped(PlayoutBuffer { rate }, &core), published);
    }

    #[test]
    fn what_is_unknown_shapes_nothing() {
        let core = Core::sample(135_000, 100, 120);
        assert_eq!(shaped(LATEST, &core), 135_000);
        core.known.set_reported_buffer(Some(Bytes::new(672_000)));
        assert_eq!(shaped(PlayoutBuffer { rate: 1.0 }, &core), 135_000);
    }
}
