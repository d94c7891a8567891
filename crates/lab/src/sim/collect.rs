//! From what a session told to a [`RunRecord`].

use std::time::Duration;

use playrate_netsim::{LinkSeries, LinkStats};
use playrate_transport::telemetry::Sample;
use video_client::report::{Outcome as Ending, QualityReport};

use super::Viewing;
use super::ends::Ended;
use crate::record::{
    LinkCounts, Outcome, PlayoutSample, QueueSample, RunRecord, Sender, TransportSample, Viewer, WindowCut,
};

/// What the bottleneck tells of a run.
#[derive(Clone, Copy, Debug)]
pub struct LinkTap<'a> {
    /// Its counters.
    pub stats: LinkStats,
    /// Its series, if it kept one, on the clock of the run.
    pub series: Option<&'a LinkSeries>,
    /// Worst delay of a packet beyond what the model asked for.
    pub lateness: Duration,
    /// Why the path was not what it was asked to be, in words.
    pub flaws: &'a [String],
}

/// The record of a session under the controller `spec`. What the link counted is of all viewers together.
pub fn record(spec: &str, ended: &Ended, link: &LinkTap<'_>) -> RunRecord {
    let (transport, cuts) = transport(&ended.samples);
    RunRecord {
        spec: spec.to_owned(),
        viewer: viewer(&ended.report, &ended.viewing),
        sender: ended.totals.map_or_else(Sender::default, |totals| Sender {
            packets: totals.sent_packets,
            lost: totals.lost_packets,
        }),
        link: LinkCounts {
            forwarded: link.stats.delivered.packets,
            overflowed: link.stats.dropped.queue_full.packets,
            lost: link.stats.dropped.loss.packets + link.stats.dropped.retries.packets,
            lateness: link.lateness,
            flaws: link.flaws.to_vec(),
        },
        playout: playout(&ended.report),
        transport,
        queue: link
            .series
            .map_or_else(Vec::new, |series| queue(series, ended.joined)),
        cuts,
    }
}

pub(super) fn viewer(report: &QualityReport, viewing: &Viewing) -> Viewer {
    let seen = &report.playout;
    let (freezes, discard_times) = viewing.parts();
    Viewer {
        startup: seen.startup_delay,
        pictures: seen.frames,
        discarded: seen.discarded,
        underflows: seen.underflows,
        frozen: seen.frozen,
        freezes: freezes.to_vec(),
        discard_times: discard_times.to_vec(),
        rebases: seen.rebases,
        delivered: report.network.received,
        receiving: report.network.ended,
        length: seen.ended.unwrap_or(seen.at),
        outcome: match &report.outcome {
            Ending::Complete => Outcome::Played,
            Ending::Stopped => Outcome::Stopped,
            Ending::Failed(reason) => Outcome::Failed(reason.clone()),
            other => Outcome::Failed(format!("{other:?}")),
        },
    }
}

fn playout(report: &QualityReport) -> Vec<PlayoutSample> {
    let points = report.series.iter();
    points
        .map(|point| PlayoutSample {
            at: point.at,
            ahead: point.held_time,
            delivered: point.received,
        })
        .collect()
}

/// The samples of telemetry as records; where the window shrank at a congestion signal, a cut.
pub(super) fn transport(samples: &[(Duration, Sample)]) -> (Vec<TransportSample>, Vec<WindowCut>) {
    let records = samples.iter().map(|(at, sample)| TransportSample {
        at: *at,
        window: sample.snapshot.window,
        ssthresh: sample.snapshot.ssthresh,
        rtt: sample.smoothed_rtt,
        latest_rtt: sample.latest_rtt,
        capacity: sample.snapshot.capacity,
    });
    let pairs = samples.iter().zip(samples.iter().skip(1));
    let cuts = pairs.filter_map(|((_, before), (at, after))| {
        let signalled = after.congestion_events > before.congestion_events;
        (signalled && after.snapshot.window < before.snapshot.window).then_some(WindowCut {
            at: *at,
            before: before.snapshot.window,
            after: after.snapshot.window,
        })
    });
    (records.collect(), cuts.collect())
}

/// The longest queue of every bin of the link's series, on the viewer's clock.
fn queue(series: &LinkSeries, joined: Duration) -> Vec<QueueSample> {
    series
        .iter()
        .filter_map(|(time, bin)| {
            Some(QueueSample {
                at: time.elapsed().checked_sub(joined)?,
                queued: bin.max_queue,
            })
        })
        .collect()
}
