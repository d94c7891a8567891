//! What a run's time series say in numbers: the measured quantities that tables and explanations use.

use std::time::Duration;

use playrate_units::{Bitrate, Bytes};

use crate::record::{Comparison, PathFacts, RunRecord};

/// Measured quantities of one run. All are over the time during which data was still arriving.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Delivered bytes of the title over the time they took.
    pub throughput: Bitrate,
    /// Mean congestion window.
    pub mean_window: Bytes,
    /// Share of the time with a window smaller than the title's average rate needs at the path's RTT.
    pub starved: f64,
    /// How often the window was cut after a congestion signal.
    pub cuts: usize,
    /// Mean of window after a cut over window before it.
    pub kept: Option<f64>,
    /// Mean time from a cut until the window was back within 5 % of its size before the cut, over the cuts for which
    /// it came back before the next.
    pub recovery: Option<Duration>,
    /// How many cuts the window had come back from before the next one.
    pub recovered: usize,
    /// Median of the smoothed RTT.
    pub median_rtt: Option<Duration>,
    /// 95th percentile of the smoothed RTT.
    pub high_rtt: Option<Duration>,
    /// Median of the smoothed RTT beyond propagation: waiting in queues and at the hosts.
    pub queueing: Option<Duration>,
    /// When the first cut came.
    pub first_cut: Option<Duration>,
    /// Largest window before the first cut, or of the whole run if there was none.
    pub startup_peak: Bytes,
    /// Packets declared lost over packets sent.
    pub lost_share: f64,
}

/// Bytes that must be in flight for the title to arrive at its average rate, when no queue delays it.
pub fn needed_window(comparison: &Comparison) -> Bytes {
    comparison.title.average_rate * comparison.path.rtt
}

impl Facts {
    /// Measures `run`, which is one of `comparison`.
    pub fn of(run: &RunRecord, comparison: &Comparison) -> Self {
        let end = run.viewer.receiving;
        let samples: Vec<_> = run.transport.iter().filter(|sample| sample.at <= end).collect();
        let windows: Vec<f64> = samples
            .iter()
            .map(|sample| sample.window.as_u64() as f64)
            .collect();
        let mut rtts: Vec<Duration> = samples.iter().filter_map(|sample| sample.rtt).collect();
        rtts.sort_unstable();
        let cuts: Vec<_> = run.cuts.iter().filter(|cut| cut.at <= end).collect();
        let needed = needed_window(comparison).as_u64() as f64;
        let kept: Vec<f64> = cuts
            .iter()
            .filter(|cut| cut.before > Bytes::ZERO)
            .map(|cut| cut.after.as_u64() as f64 / cut.before.as_u64() as f64)
            .collect();
        let recoveries = recoveries(run, end);
        let first_cut = cuts.first().map(|cut| cut.at);
        let startup_peak = samples
            .iter()
            .filter(|sample| first_cut.is_none_or(|first| sample.at <= first))
            .map(|sample| sample.window)
            .chain(cuts.first().map(|cut| cut.before))
            .max();
        Self {
            throughput: run.viewer.throughput(),
            mean_window: mean(&windows).map_or(Bytes::ZERO, whole_bytes),
            starved: share(&windows, |window| window < needed),
            cuts: cuts.len(),
            kept: mean(&kept),
            recovered: recoveries.len(),
            recovery: average(&recoveries),
            median_rtt: percentile(&rtts, 0.5),
            high_rtt: percentile(&rtts, 0.95),
            queueing: percentile(&rtts, 0.5).map(|rtt| rtt.saturating_sub(comparison.path.rtt)),
            first_cut,
            startup_peak: startup_peak.unwrap_or(Bytes::ZERO),
            lost_share: run.sender.lost as f64 / run.sender.packets.max(1) as f64,
        }
    }
}

/// A window this close to its former size has come back: it never meets the byte it was cut at again.
const BACK: f64 = 0.95;

/// For every cut after which the window came [back](BACK) to its former size before the next cut, how long that took.
fn recoveries(run: &RunRecord, end: Duration) -> Vec<Duration> {
    let mut times = Vec::new();
    for (i, cut) in run.cuts.iter().enumerate().filter(|(_, cut)| cut.at <= end) {
        let until = run.cuts.get(i + 1).map_or(end, |next| next.at.min(end));
        let from = run.transport.partition_point(|sample| sample.at <= cut.at);
        let back = run.transport[from..]
            .iter()
            .take_while(|sample| sample.at <= until)
            .find(|sample| sample.window.as_u64() as f64 >= BACK * cut.before.as_u64() as f64);
        times.extend(back.map(|sample| sample.at.saturating_sub(cut.at)));
    }
    times
}

/// Share of a session that was spoiled for its viewer, as time: frozen, plus what the discarded pictures would
/// have been shown for.
pub fn spoiled(run: &RunRecord, comparison: &Comparison) -> Duration {
    let pictures = u32::try_from(comparison.title.pictures)
        .unwrap_or(u32::MAX)
        .max(1);
    let discarded = u32::try_from(run.viewer.discarded).unwrap_or(u32::MAX);
    let picture = comparison.title.duration / pictures;
    run.viewer
        .frozen
        .saturating_add(picture.saturating_mul(discarded))
}

/// Whether the bottleneck alone could carry the title at its average rate, headers included (about 4 %).
pub fn path_suffices(path: &PathFacts, average_rate: Bitrate) -> bool {
    path.rate >= average_rate.scaled(104, 100)
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn share(values: &[f64], holds: impl Fn(f64) -> bool) -> f64 {
    let count = values.iter().filter(|&&value| holds(value)).count();
    count as f64 / values.len().max(1) as f64
}

fn average(times: &[Duration]) -> Option<Duration> {
    let count = u32::try_from(times.len()).ok().filter(|&count| count > 0)?;
    Some(times.iter().sum::<Duration>() / count)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a list's length is an index into it"
)]
fn percentile(sorted: &[Duration], share: f64) -> Option<Duration> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last as f64 * share).round() as usize).copied()
}

/// A computed size, rounded to whole bytes.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a mean or share of byte counts is a byte count"
)]
pub(crate) fn whole_bytes(value: f64) -> Bytes {
    Bytes::new(value.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::WindowCut;
    use crate::samples::{comparison, run};

    #[test]
    fn measures_cuts_and_how_long_the_window_took_to_come_back() {
        // The sample run climbs 10 kB/s from 50 kB and is cut from 100 kB to 50 kB every 5 s.
        let sample = run("reno", 0.5);
        let facts = Facts::of(&sample, &comparison());
        assert_eq!(facts.kept, Some(0.5));
        assert_eq!(facts.cuts, sample.cuts.len());
        let recovery = facts.recovery.expect("it came back at least once");
        assert!(
            recovery.abs_diff(Duration::from_millis(4_500)) < Duration::from_millis(200),
            "{recovery:?}"
        );
    }

    #[test]
    fn a_cut_that_was_never_made_good_has_no_recovery_time() {
        let mut sample = run("reno", 0.5);
        sample.cuts = vec![WindowCut {
            at: Duration::from_secs(1),
            before: Bytes::from_kb(9_000),
            after: Bytes::from_kb(50),
        }];
        let facts = Facts::of(&sample, &comparison());
        assert_eq!((facts.cuts, facts.recovered, facts.recovery), (1, 0, None));
    }

    #[test]
    fn what_happens_after_the_last_byte_does_not_count() {
        let mut sample = run("reno", 0.5);
        let facts = Facts::of(&sample, &comparison());
        let mut late = *sample.transport.last().unwrap();
        late.at = sample.viewer.receiving + Duration::from_secs(3);
        late.window = Bytes::from_kb(100_000);
        sample.transport.push(late);
        assert_eq!(Facts::of(&sample, &comparison()).mean_window, facts.mean_window);
    }

    #[test]
    fn a_run_without_any_sample_is_measured_without_a_fuss() {
        let mut sample = run("reno", 0.5);
        sample.transport.clear();
        sample.cuts.clear();
        let facts = Facts::of(&sample, &comparison());
        assert_eq!((facts.mean_window, facts.median_rtt), (Bytes::ZERO, None));
    }

    #[test]
    fn a_discarded_picture_spoils_as_much_as_a_freeze_of_its_length() {
        let mut sample = run("reno", 0.5);
        sample.viewer.frozen = Duration::ZERO;
        sample.viewer.discarded = 30;
        let spoiled = spoiled(&sample, &comparison());
        assert!(
            spoiled.abs_diff(Duration::from_secs(1)) < Duration::from_millis(1),
            "{spoiled:?}"
        );
    }
}
