//! [`Row`]: the result of one flow of one run, a line of `runs.jsonl`. `docs/runs.md` describes the fields.

use std::collections::BTreeMap;
use std::time::Duration;

use playrate_netsim::LinkStats;
use playrate_units::{Bitrate, Bytes};
use quinn::ConnectionStats;
use serde::{Deserialize, Serialize};
use video_client::dash::DashReport;
use video_client::playout::PlaybackReport;
use video_client::report::Outcome;

use super::flatten::group;
use crate::rounding::{ratio, seconds, whole};
use crate::scenario::{BulkFlows, Scenario, Vary, full_name};
use crate::sim::{
    BroadcastStatistics, ControlStatistics, DeliveryScore, Ideal, RestartStatistics, Simulated,
    SimulatedBroadcast, SimulatedBulk, SimulatedViewer, WindowCounts,
};

pub(crate) const FORMAT: &str = "lab-run";
/// Version of the format: within one, fields are added, never renamed or removed.
pub(crate) const VERSION: u32 = 1;
/// Controller of the ideal row.
pub(crate) const IDEAL: &str = "ideal";
/// Role of a flow that plays a title.
pub(crate) const VIEWER: &str = "viewer";
/// Role of a broadcast.
pub(crate) const BROADCAST: &str = "broadcast";
/// Role of a bulk flow.
pub(crate) const BULK: &str = "bulk";

/// The result of one flow. Times are in seconds since its request, unless stated otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub(crate) format: String,
    pub(crate) version: u32,
    /// Version of the program that made the row.
    pub(crate) program: String,
    #[serde(flatten)]
    pub(crate) key: ResultKey,
    /// Number of the flow in its run, from 0: viewers first, then bulk flows.
    pub(crate) viewer: u32,
    pub(crate) role: String,
    /// Spec of this flow's controller; for a bulk flow it may differ from the run's.
    pub(crate) flow_controller: String,
    /// Time of the request, since the run began.
    pub(crate) joined_s: f64,
    /// True if the trial's seed determined the title's beginning, RTT, queue and start times.
    pub(crate) varied: bool,
    pub(crate) outcome: SessionOutcome,
    /// Reason of the outcome `failed`.
    pub(crate) error: Option<String>,
    /// The viewer's numbers; zero or absent in a bulk flow's row.
    #[serde(flatten)]
    pub(crate) playback: PlaybackReport,
    /// Absent in a bulk flow's row and for titles in several representations.
    #[serde(flatten, deserialize_with = "group")]
    pub(crate) delivery: Option<DeliveryScore>,
    /// Absent in all rows but those of broadcasts.
    #[serde(flatten, deserialize_with = "group")]
    pub(crate) broadcast: Option<BroadcastStatistics>,
    pub(crate) received_bytes: u64,
    /// Time of the last byte.
    pub(crate) download_s: f64,
    pub(crate) throughput_bps: Option<u64>,
    /// Average rate λ of the title.
    pub(crate) title_rate_bps: u64,
    /// Playing time of the title at the viewer's speed; absent in a bulk flow's row.
    pub(crate) title_duration_s: Option<f64>,
    /// True if an ideal sender's throughput is enough for the title; absent if `title_duration_s` is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fits: Option<bool>,
    /// Propagation RTT of the trial; absent if `title_duration_s` is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_rtt_s: Option<f64>,
    /// Bytes and time to compare a bulk flow with others; absent in a viewer's row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) compared_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) compared_s: Option<f64>,
    /// Mean rate of the bottleneck, including headers.
    pub(crate) link_rate_bps: Option<u64>,
    /// Absent in ideal rows.
    #[serde(flatten, deserialize_with = "group")]
    pub(crate) sender: Option<SenderCounts>,
    /// Absent in ideal rows.
    #[serde(flatten, deserialize_with = "group")]
    pub(crate) control: Option<ControlStatistics>,
    /// Absent if the sender never paused.
    #[serde(flatten, deserialize_with = "group")]
    pub(crate) restarted: Option<RestartStatistics>,
    /// Absent for titles in one representation.
    #[serde(flatten, deserialize_with = "group")]
    pub(crate) adaptive: Option<Adaptive>,
    /// Counts in each of the scenario's measurement windows.
    pub(crate) windows: Vec<WindowCounts>,
    /// Absent in ideal rows.
    #[serde(flatten, deserialize_with = "group")]
    pub(crate) link: Option<LinkTotals>,
    /// Hash of every packet's time, size and fate, as 16 hexadecimal digits.
    pub(crate) wire_hash: Option<String>,
}

/// Ending of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SessionOutcome {
    /// The title was received in full.
    Complete,
    /// The viewer left early, or the run ended.
    #[default]
    Stopped,
    /// Connection or player failed.
    Failed,
}

/// Totals of the server's transport.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SenderCounts {
    pub(crate) sent_packets: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) lost_packets: u64,
    pub(crate) lost_bytes: u64,
    pub(crate) congestion_events: u64,
    pub(crate) min_rtt_s: f64,
    pub(crate) last_srtt_s: f64,
}

impl From<ConnectionStats> for SenderCounts {
    fn from(ConnectionStats { path, udp_tx, .. }: ConnectionStats) -> Self {
        Self {
            sent_packets: path.sent_packets,
            sent_bytes: udp_tx.bytes,
            lost_packets: path.lost_packets,
            lost_bytes: path.lost_bytes,
            congestion_events: path.congestion_events,
            min_rtt_s: seconds(path.min_rtt),
            last_srtt_s: seconds(path.rtt),
        }
    }
}

/// Choices and estimates of an adaptive player.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Adaptive {
    pub(crate) segments: u64,
    pub(crate) segments_by_representation: BTreeMap<String, u64>,
    pub(crate) switches: u64,
    pub(crate) switch_share: f64,
    pub(crate) switch_sizes: BTreeMap<i64, u64>,
    pub(crate) mean_representation_bps: u64,
    pub(crate) instant_mean_bps: u64,
    pub(crate) instant_sd_bps: u64,
    pub(crate) instant_p05_bps: u64,
    pub(crate) instant_p50_bps: u64,
    pub(crate) instant_p95_bps: u64,
    pub(crate) instant_variation: f64,
    pub(crate) smoothed_mean_bps: u64,
    pub(crate) smoothed_sd_bps: u64,
    pub(crate) smoothed_p05_bps: u64,
    pub(crate) smoothed_p50_bps: u64,
    pub(crate) smoothed_p95_bps: u64,
    pub(crate) smoothed_variation: f64,
}

impl Adaptive {
    /// The numbers of a player's report; `None` if no segment arrived.
    fn of(report: &DashReport) -> Option<Self> {
        let (instant, smoothed) = (report.instantaneous?, report.smoothed?);
        let segments = report
            .representations
            .iter()
            .map(|it| (it.name.clone(), it.segments));
        Some(Self {
            segments: report.segments.len() as u64,
            segments_by_representation: segments.collect(),
            switches: report.switches,
            switch_share: ratio(report.switch_share?),
            switch_sizes: report.switch_sizes.clone(),
            mean_representation_bps: report.mean_rate.map(Bitrate::as_bits_per_second)?,
            instant_mean_bps: whole(instant.mean_bps),
            instant_sd_bps: whole(instant.sd_bps),
            instant_p05_bps: instant.p5_bps,
            instant_p50_bps: instant.p50_bps,
            instant_p95_bps: instant.p95_bps,
            instant_variation: ratio(instant.variation),
            smoothed_mean_bps: whole(smoothed.mean_bps),
            smoothed_sd_bps: whole(smoothed.sd_bps),
            smoothed_p05_bps: smoothed.p5_bps,
            smoothed_p50_bps: smoothed.p50_bps,
            smoothed_p95_bps: smoothed.p95_bps,
            smoothed_variation: ratio(smoothed.variation),
        })
    }
}

/// Totals of the bottleneck towards the viewers, over all flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LinkTotals {
    pub(crate) link_packets: u64,
    pub(crate) link_bytes: u64,
    pub(crate) queue_drops: u64,
    pub(crate) random_losses: u64,
    /// Drops of queue management.
    pub(crate) aqm_drops: u64,
    /// Packets that a Wi-Fi hop failed to send in all attempts.
    pub(crate) retry_losses: u64,
    /// Packets that a policer dropped.
    pub(crate) policer_drops: u64,
    pub(crate) max_queue_bytes: u64,
    pub(crate) mean_queue_delay_s: f64,
    pub(crate) max_queue_delay_s: f64,
}

impl From<LinkStats> for LinkTotals {
    fn from(stats: LinkStats) -> Self {
        Self {
            link_packets: stats.delivered.packets,
            link_bytes: stats.delivered.bytes.as_u64(),
            queue_drops: stats.dropped.queue_full.packets,
            random_losses: stats.dropped.loss.packets,
            aqm_drops: stats.dropped.aqm.packets,
            retry_losses: stats.dropped.retries.packets,
            policer_drops: stats.dropped.policer.packets,
            max_queue_bytes: stats.max_queue.as_u64(),
            mean_queue_delay_s: seconds(stats.mean_queue_delay),
            max_queue_delay_s: seconds(stats.max_queue_delay),
        }
    }
}

/// Identity of a run: equal keys mean equal runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct ResultKey {
    /// Name of the scenario.
    pub(crate) scenario: String,
    /// Name of the scenario's case; empty if it has none.
    pub(crate) case: String,
    /// Hash of everything in the scenario that affects a run.
    pub(crate) scenario_hash: String,
    /// Canonical spec of the controller, or [`IDEAL`].
    pub(crate) controller: String,
    /// Number of the run among those of the controller, from 1.
    pub(crate) trial: u32,
    /// Seed of all random choices.
    pub(crate) seed: u64,
}

impl ResultKey {
    /// Scenario and case for people: `p12-3 n10`.
    pub(crate) fn full_name(&self) -> String {
        full_name(&self.scenario, &self.case)
    }

    /// The run for people: `p12-3 n10 under reno with seed 4`.
    pub(crate) fn run_name(&self) -> String {
        let scenario = self.full_name();
        format!("{scenario} under {} with seed {}", self.controller, self.seed)
    }
}

fn bps(rate: Option<Bitrate>) -> Option<u64> {
    rate.map(Bitrate::as_bits_per_second)
}

/// Bytes and seconds to compare downloads: those of `bulk.stays`, up to the end of the download's stay even if it
/// failed earlier. Without that key, those of the whole download.
fn compared(scenario: &Scenario, bulk: &SimulatedBulk) -> (u64, f64) {
    let flows = scenario.bulk.as_ref();
    let window = flows.and_then(BulkFlows::window).map(|window| window.to_string());
    let Some(counts) = bulk
        .windows
        .iter()
        .find(|counts| Some(&counts.window) == window.as_ref())
    else {
        return (bulk.received.as_u64(), seconds(bulk.lasted));
    };
    let stay = flows.and_then(|bulk| bulk.flows.leaves_after);
    let stay = stay.map_or(f64::INFINITY, |stay| stay.as_secs_f64());
    let time = (counts.to_s - seconds(bulk.joined)).clamp(0.0, stay);
    (counts.received_bytes, time)
}

impl Row {
    /// The rows of a run, one per flow, viewers first.
    pub(crate) fn of_run(scenario: &Scenario, key: &ResultKey, run: &Simulated) -> Vec<Self> {
        let viewers = run.viewers.iter();
        let viewers = viewers.map(|viewer| Self::of_viewer(scenario, key, viewer));
        let broadcasts = run.broadcasts.iter();
        let broadcasts = broadcasts.map(|broadcast| Self::of_broadcast(scenario, key, broadcast));
        let bulk = run.bulk.iter().map(|bulk| Self::of_bulk(scenario, key, bulk));
        let rows = (0..)
            .zip(viewers.chain(broadcasts).chain(bulk))
            .map(|(number, row)| Self {
                viewer: number,
                link: Some(run.forward.into()),
                wire_hash: run.wire_hash.map(|hash| format!("{hash:016x}")),
                ..row
            });
        rows.collect()
    }

    pub(crate) fn of_ideal(scenario: &Scenario, key: &ResultKey, ideal: &Ideal) -> Self {
        let whole = ideal.received.as_u64() >= scenario.viewer.title.source().len();
        Self {
            outcome: if whole {
                SessionOutcome::Complete
            } else {
                SessionOutcome::Stopped
            },
            delivery: ideal.delivery,
            ..Self::of_playback(scenario, key, &ideal.playback).with_download(ideal.received, ideal.ended)
        }
    }

    fn of_viewer(scenario: &Scenario, key: &ResultKey, viewer: &SimulatedViewer) -> Self {
        let (outcome, error) = match &viewer.report.outcome {
            Outcome::Complete => (SessionOutcome::Complete, None),
            Outcome::Stopped => (SessionOutcome::Stopped, None),
            Outcome::Failed(reason) => (SessionOutcome::Failed, Some(reason.clone())),
            Outcome::Incomplete(missing) => {
                let reason = format!("{missing} segments did not arrive");
                (SessionOutcome::Failed, Some(reason))
            }
            _ => (SessionOutcome::Failed, Some("unknown reason".to_owned())),
        };
        let network = &viewer.report.network;
        Self {
            joined_s: seconds(viewer.joined),
            outcome,
            error,
            sender: viewer.totals.map(SenderCounts::from),
            control: viewer.control.clone(),
            restarted: viewer.restarts,
            adaptive: viewer.report.dash.as_ref().and_then(Adaptive::of),
            windows: viewer.windows.clone(),
            delivery: viewer.delivery,
            ..Self::of_playback(scenario, key, &viewer.report.playback)
                .with_download(network.received, network.ended)
        }
    }

    fn of_playback(scenario: &Scenario, key: &ResultKey, playback: &PlaybackReport) -> Self {
        Self {
            playback: playback.clone().in_whole_microseconds(),
            title_rate_bps: scenario.title_rate().as_bits_per_second(),
            title_duration_s: Some(seconds(scenario.viewing_time())),
            fits: Some(scenario.fits()),
            path_rtt_s: Some(scenario.trial_path(key.seed).round_trip().as_secs_f64()),
            ..Self::empty(scenario, key)
        }
    }

    fn of_broadcast(scenario: &Scenario, key: &ResultKey, broadcast: &SimulatedBroadcast) -> Self {
        Self {
            role: BROADCAST.to_owned(),
            joined_s: seconds(broadcast.joined),
            outcome: if broadcast.error.is_some() {
                SessionOutcome::Failed
            } else if broadcast.stopped {
                SessionOutcome::Stopped
            } else {
                SessionOutcome::Complete
            },
            error: broadcast.error.clone(),
            broadcast: broadcast.frames.clone(),
            title_rate_bps: scenario.title_rate().as_bits_per_second(),
            sender: broadcast.totals.map(SenderCounts::from),
            control: broadcast.control.clone(),
            windows: broadcast.windows.clone(),
            ..Self::empty(scenario, key).with_download(broadcast.received, broadcast.lasted)
        }
    }

    fn of_bulk(scenario: &Scenario, key: &ResultKey, bulk: &SimulatedBulk) -> Self {
        let failed = bulk.error.is_some();
        let (compared_bytes, compared_s) = compared(scenario, bulk);
        Self {
            role: BULK.to_owned(),
            flow_controller: bulk.controller.clone(),
            joined_s: seconds(bulk.joined),
            outcome: if failed {
                SessionOutcome::Failed
            } else {
                SessionOutcome::Stopped
            },
            error: bulk.error.clone(),
            sender: bulk.totals.map(SenderCounts::from),
            control: bulk.control.clone(),
            windows: bulk.windows.clone(),
            compared_bytes: Some(compared_bytes),
            compared_s: Some(compared_s),
            ..Self::empty(scenario, key).with_download(bulk.received, bulk.lasted)
        }
    }

    fn with_download(self, received: Bytes, time: Duration) -> Self {
        Self {
            received_bytes: received.as_u64(),
            download_s: seconds(time),
            throughput_bps: bps(received.per(time)),
            ..self
        }
    }

    /// A row without any result.
    fn empty(scenario: &Scenario, key: &ResultKey) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            key: key.clone(),
            role: VIEWER.to_owned(),
            flow_controller: key.controller.clone(),
            varied: scenario.vary == Vary::Trials,
            link_rate_bps: bps(scenario.path.forward.rate.mean()),
            ..Self::default()
        }
    }

    /// The viewer's [impaired share](PlaybackReport::impaired_share), the lab's headline number: 1 for a session that
    /// failed or displayed nothing; `None` for a bulk flow, and for a row without the title's duration.
    pub(crate) fn impaired_share(&self) -> Option<f64> {
        if self.role != VIEWER {
            return None;
        }
        if self.outcome == SessionOutcome::Failed || self.playback.frames_shown == 0 {
            return Some(1.0);
        }
        let title = Duration::try_from_secs_f64(self.title_duration_s?).ok()?;
        Some(self.playback.impaired_share(title))
    }

    /// The viewer's score, used to rank controllers: the mean of both shares of the delivery; the impaired share if
    /// they are missing; 1 for a session that failed.
    pub(crate) fn score(&self) -> Option<f64> {
        let impaired = self.impaired_share()?;
        match self.delivery {
            Some(delivery) if self.outcome != SessionOutcome::Failed => Some(delivery.mean()),
            _ => Some(impaired),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::row;

    /// A title of 4 s in 100 frames.
    fn share(shown: u64, discarded: u64, stalled: Duration) -> Option<f64> {
        let mut row = row("reno", 1);
        row.title_duration_s = Some(4.0);
        row.playback.frames = 100;
        row.playback.frames_shown = shown;
        row.playback.frames_discarded = discarded;
        row.playback.frames_missing = 0;
        row.playback.stalled_time = stalled;
        row.impaired_share()
    }

    #[test]
    fn time_without_a_new_frame_counts_once_and_a_session_that_showed_nothing_is_all_impaired() {
        let second = Duration::from_secs(1);
        assert_eq!(share(75, 25, second), Some(0.25));
        assert_eq!(share(75, 25, Duration::ZERO), Some(0.25));
        // As a rebuffering ratio: 1 s of 5 s.
        assert_eq!(share(100, 0, second), Some(0.2));
        assert_eq!(share(100, 0, Duration::ZERO), Some(0.0));
        assert_eq!(share(0, 0, Duration::ZERO), Some(1.0));
        let failed = Row {
            outcome: SessionOutcome::Failed,
            ..row("reno", 1)
        };
        assert_eq!(failed.impaired_share(), Some(1.0));
    }

    #[test]
    fn a_bulk_flow_and_a_row_without_the_titles_duration_have_no_impaired_share() {
        let mut row = row("reno", 1);
        row.title_duration_s = None;
        assert_eq!(row.impaired_share(), None);
        BULK.clone_into(&mut row.role);
        row.title_duration_s = Some(60.0);
        assert_eq!(row.impaired_share(), None);
    }
}
