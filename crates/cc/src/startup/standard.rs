//! `standard`, and its variants `short`, `video-rate` and `video-ssthresh` with other beginnings and ends.

use crate::component::{Bursts, Needs};
use crate::state::{Batch, Core};
use crate::{Facts, Reason};

use super::Startup;

/// Grows the window by the acknowledged bytes until it reaches ssthresh (RFC 9002 §7.3.1).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Standard {
    /// Slow start has no other end.
    #[default]
    Plain,
    /// CCPSSS: the first sample that gives a capacity estimate ends slow start, too. Watanabe et al. 2014: "the scheme
    /// waits until a first capacity estimate is available to transition out of slow start."
    ///
    /// After persistent congestion or a pause, slow start ends immediately if the capacity is known by then.
    Short,
    /// CCPVS: the window immediately carries the video's rate. Watanabe et al. 2014: it "attempts to set its cwnd to a
    /// size such that its resulting throughput (cwnd/rtt) be close to the video average playout rate."
    ///
    /// It follows the smoothed RTT down as well as up and stays until a loss. Once ssthresh is finite (after persistent
    /// congestion, after a pause), slow start continues from there to ssthresh.
    ///
    /// NOTE: the 2015 paper prints VR/rtt, which is not a window; throughput = cwnd/rtt gives VR·rtt.
    VideoRate,
    /// CCPLSS: ssthresh is the window that carries the video's rate. Watanabe et al. 2014: ssthresh "is adjusted to
    /// correspond to the average video playout rate."
    VideoSsthresh,
}

impl Startup for Standard {
    fn add_needs(&self, needs: &mut Needs) {
        match self {
            Self::Plain => {}
            Self::Short => needs.bursts = Bursts::Capacity,
            Self::VideoRate | Self::VideoSsthresh => {
                needs.knowledge = needs.knowledge.union(Facts::AVERAGE_RATE);
            }
        }
    }

    /// If the video's rate is known, the window of `video-rate` carries it from the first RTT on.
    fn doubles(&self, core: &Core) -> bool {
        !matches!(self, Self::VideoRate) || video_window(core).is_none()
    }

    fn on_batch(&mut self, core: &mut Core, batch: &mut Batch) -> Option<Reason> {
        match self {
            Self::Short if core.capacity_after(1).is_some() => return Some(Reason::CapacityKnown),
            Self::Plain | Self::Short => {}
            Self::VideoSsthresh => core.ssthresh = video_window(core).or(core.ssthresh),
            Self::VideoRate => {
                if let Some(window) = video_window(core) {
                    let Some(ssthresh) = core.ssthresh else {
                        core.set_window(window);
                        return None;
                    };
                    core.set_window(core.window().max(window.min(ssthresh)));
                }
            }
        }
        grow(core, batch)
    }
}

/// max(VR·srtt, initial window), bytes; `None` until rate and RTT are known.
fn video_window(core: &Core) -> Option<u64> {
    let rtt = core.rtt.smoothed_ns()?;
    Some(core.video_window(rtt)?.max(core.initial_window()))
}

/// Grows the window by the allowance, up to ssthresh, and leaves the rest of the allowance in `batch`.
pub(super) fn grow(core: &mut Core, batch: &mut Batch) -> Option<Reason> {
    let ssthresh = core.ssthresh.unwrap_or(u64::MAX);
    let room = ssthresh.saturating_sub(core.window());
    let ends = room <= batch.allowance;
    core.grow(batch.allowance.min(room));
    batch.allowance = batch.allowance.saturating_sub(room);
    ends.then_some(Reason::ReachedSsthresh)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bitrate;
    use crate::tests::MTU;
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
        let end = Standard::VideoRate.on_batch(&mut core, &mut Batch::sample(2_000, rtt_ms, true));
        assert_eq!((end, core.window()), (None, bytes));
    }

    #[test]
    fn the_window_follows_the_rtt_down() {
        let mut core = core(131_089, 100);
        let _ = Standard::VideoRate.on_batch(&mut core, &mut Batch::sample(2_000, 100, true));
        assert_eq!(core.window(), 65_544);
    }

    #[test]
    fn a_restart_goes_on_from_the_videos_window_to_ssthresh() {
        let mut core = core(2 * MTU, 100);
        core.ssthresh = Some(70_000);
        let mut step = |bytes| {
            let mut batch = Batch::sample(2_000, 100, true).with_allowance(bytes);
            let end = Standard::VideoRate.on_batch(&mut core, &mut batch);
            (end, core.window(), batch.allowance)
        };
        assert_eq!(step(1_200), (None, 66_744, 0));
        assert_eq!(step(10_000), (Some(Reason::ReachedSsthresh), 70_000, 6_744));
    }

    // 12,000 → 24,000 → 48,000 → crosses 65,544 in the third round trip.
    #[test]
    fn limited_slow_start_doubles_until_it_carries_the_video() {
        let mut core = core(12_000, 100);
        let step = |core: &mut Core| {
            let mut batch = Batch::sample(2_000, 100, true).with_allowance(core.window());
            Standard::VideoSsthresh.on_batch(core, &mut batch)
        };
        for window in [24_000, 48_000] {
            assert_eq!((step(&mut core), core.window()), (None, window));
        }
        assert_eq!(step(&mut core), Some(Reason::ReachedSsthresh));
        assert_eq!(core.window(), 65_544);
    }

    #[test]
    fn an_unknown_rate_leaves_standard_slow_start() {
        let mut core = Core::sample(12_000, 100, 100);
        let allowance = || Batch::sample(2_000, 100, true).with_allowance(12_000);
        for mut startup in [Standard::VideoRate, Standard::VideoSsthresh] {
            assert_eq!(startup.on_batch(&mut core, &mut allowance()), None);
        }
        assert_eq!((core.window(), core.ssthresh), (36_000, None));
    }
}
