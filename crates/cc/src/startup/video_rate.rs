//! `video-rate`: slow start that begins with the window for the video's rate (CCPVS).

use crate::Facts;
use crate::component::{Needs, Step};
use crate::entry::{Entry, Key};
use crate::state::{Batch, Core};

use super::{AnyStartup, Startup, standard, video_window};

/// CCPVS: the window immediately carries the video's rate. Watanabe et al. 2014: it "attempts to set its cwnd to a size
/// such that its resulting throughput (cwnd/rtt) be close to the video average playout rate."
///
/// It follows the smoothed RTT down as well as up and stays until a loss. Once ssthresh is finite (after persistent
/// congestion, after a pause), slow start continues from there to ssthresh.
///
/// NOTE: the 2015 paper prints VR/rtt, which is not a window; throughput = cwnd/rtt gives VR·rtt.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct VideoRate;

impl Startup for VideoRate {
    fn needs(&self) -> Needs {
        Needs::knowledge(Facts::AVERAGE_RATE)
    }

    /// If the video's rate is known, the window carries it from the first RTT on.
    fn doubles(&self, core: &Core) -> bool {
        video_window(core).is_none()
    }

    fn on_batch(&mut self, core: &mut Core, batch: &Batch) -> Step {
        let Some(window) = video_window(core) else {
            return standard::grow(core, batch.allowance);
        };
        match core.ssthresh {
            None => {
                core.set_window(window);
                Step::Stay
            }
            Some(ssthresh) => {
                core.set_window(core.window().max(window.min(ssthresh)));
                standard::grow(core, batch.allowance)
            }
        }
    }
}

pub(crate) fn entry() -> Entry {
    Entry::component(Key::Start, "video-rate", |components, _| {
        components.startup = AnyStartup::VideoRate(VideoRate);
    })
    .about("start with the window that carries the video's average rate, until a loss")
    .defined_in("Watanabe et al. 2014, CCPVS")
    .absolute()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::startup::standard::Standard;
    use crate::tests::MTU;
    use crate::{Bitrate, Reason};
    use rstest::rstest;

    fn core(window: u64, rtt_ms: u64) -> Core {
        let core = Core::sample(window, rtt_ms, rtt_ms);
        core.known
            .set_average_rate(Some(Bitrate::from_bits_per_second(5_243_590)));
        core
    }

    // Watanabe et al. 2014: VR·rtt at 5.24 Mbit/s; below the initial window the initial window.
    #[rstest]
    #[case(100, 65_544)]
    #[case(200, 131_089)]
    #[case(3, 12_000)] // 1966.3
    fn the_window_that_carries_the_video_is_its_rate_times_the_rtt(#[case] rtt_ms: u64, #[case] bytes: u64) {
        let mut core = core(12_000, rtt_ms);
        assert_eq!(video_window(&core), Some(bytes));
        let step = VideoRate.on_batch(&mut core, &Batch::sample(2_000, rtt_ms, true));
        assert_eq!((step, core.window()), (Step::Stay, bytes));
    }

    #[test]
    fn the_window_follows_the_rtt_down() {
        let mut core = core(131_089, 100);
        let _ = VideoRate.on_batch(&mut core, &Batch::sample(2_000, 100, true));
        assert_eq!(core.window(), 65_544);
    }

    #[test]
    fn a_restart_goes_on_from_the_videos_window_to_ssthresh() {
        let mut core = core(2 * MTU, 100);
        core.ssthresh = Some(70_000);
        let allowance = |bytes| Batch::sample(2_000, 100, true).with_allowance(bytes);
        assert_eq!(VideoRate.on_batch(&mut core, &allowance(1_200)), Step::Stay);
        assert_eq!(core.window(), 66_744);
        let left = Step::Leave {
            reason: Reason::ReachedSsthresh,
            unused: 6_744,
        };
        assert_eq!(VideoRate.on_batch(&mut core, &allowance(10_000)), left);
    }

    // 12,000 → 24,000 → 48,000 → crosses 65,544 in the third round trip.
    #[test]
    fn limited_slow_start_doubles_until_it_carries_the_video() {
        let mut core = core(12_000, 100);
        let step = |core: &mut Core| {
            let batch = Batch::sample(2_000, 100, true).with_allowance(core.window());
            Standard::VideoSsthresh.on_batch(core, &batch)
        };
        for window in [24_000, 48_000] {
            assert_eq!((step(&mut core), core.window()), (Step::Stay, window));
        }
        let left = step(&mut core);
        assert!(matches!(left, Step::Leave { reason, .. } if reason == Reason::ReachedSsthresh));
        assert_eq!(core.window(), 65_544);
    }

    #[test]
    fn an_unknown_rate_leaves_standard_slow_start() {
        let mut core = Core::sample(12_000, 100, 100);
        let allowance = Batch::sample(2_000, 100, true).with_allowance(12_000);
        assert_eq!(VideoRate.on_batch(&mut core, &allowance), Step::Stay);
        assert_eq!(
            Standard::VideoSsthresh.on_batch(&mut core, &allowance),
            Step::Stay
        );
        assert_eq!((core.window(), core.ssthresh), (36_000, None));
    }
}
