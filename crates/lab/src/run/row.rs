//! [`Row`]: the result of one viewer's session, one line of `runs.jsonl`. `docs/runs.md` describes the fields.

use std::time::Duration;

use playrate_netsim::LinkStats;
use playrate_transport::telemetry::Totals;
use playrate_units::Bitrate;
use serde::{Deserialize, Serialize};
use video_client::playout::PlayoutReport;
use video_client::report::Outcome;

use super::control::{Control, Restarted};
use super::dash::Adaptive;
use crate::scenario::{Scenario, full_name};
use crate::sim::{Ideal, Simulated, SimulatedBulk, SimulatedViewer, WindowCounts};

/// Name of the format.
pub const FORMAT: &str = "lab-run";
/// Its version: within one, fields are added, never renamed or removed.
pub const VERSION: u32 = 1;
/// What stands for the controller in the row of the best that any sender could do.
pub const IDEAL: &str = "ideal";

/// Role of whoever watches a title.
pub const VIEWER: &str = "viewer";

/// Role of a flow that just downloads.
pub const BULK: &str = "bulk";

fn viewer() -> String {
    VIEWER.to_owned()
}

/// One viewer's session in numbers. Times are seconds since the viewer asked for the title.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
    /// Version of the program that made it.
    pub program: String,
    /// What it is a run of.
    #[serde(flatten)]
    pub key: Key,
    /// Which of the run's flows, from 0: viewers first, then other downloads.
    pub viewer: u32,
    /// What it is there for: [`VIEWER`] or [`BULK`].
    #[serde(default = "viewer")]
    pub role: String,
    /// Spec of the controller of this flow; in a bulk flow's row it may differ from the run's. Empty in rows of older
    /// programs, whose flows all have the run's.
    #[serde(default)]
    pub flow_controller: String,
    /// When it came, from the beginning of the run.
    #[serde(default)]
    pub joined_s: f64,
    /// `complete`, `stopped` or `failed`.
    pub outcome: String,
    /// Why it failed.
    pub error: Option<String>,
    /// What the viewer saw.
    #[serde(flatten)]
    pub seen: Seen,
    /// Bytes of the title received.
    pub received_bytes: u64,
    /// When the last of them came.
    pub download_s: f64,
    /// The one over the other.
    pub throughput_bps: Option<u64>,
    /// Average rate λ of the title.
    pub title_rate_bps: u64,
    /// Mean rate of the bottleneck, headers included.
    pub link_rate_bps: Option<u64>,
    /// What the server's transport counted; absent in ideal rows.
    #[serde(flatten)]
    pub sender: Option<SenderCounts>,
    /// What the server's window, RTT and estimates did; absent in ideal rows and in those of older programs.
    #[serde(flatten)]
    pub control: Option<Control>,
    /// What happened when the sender went on after a pause; absent if it never paused.
    #[serde(flatten)]
    pub restarted: Option<Restarted>,
    /// What a player of a ladder chose and measured; absent for other titles.
    #[serde(flatten)]
    pub adaptive: Option<Adaptive>,
    /// What it did in the scenario's windows.
    #[serde(default)]
    pub windows: Vec<WindowRow>,
    /// What the bottleneck counted, of all flows together; absent in ideal rows.
    #[serde(flatten)]
    pub link: Option<LinkTotals>,
    /// Hash of every packet's time, size and fate, as 16 hexadecimal digits.
    pub wire_hash: Option<String>,
}

/// What a run is: equal keys, equal runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    /// Name of the scenario.
    pub scenario: String,
    /// Which of its cases; empty if it has none.
    #[serde(default)]
    pub case: String,
    /// What of the scenario a run depends on.
    pub scenario_hash: String,
    /// The controller's canonical spec, or [`IDEAL`].
    pub controller: String,
    /// Counts a controller's runs from 1.
    pub trial: u32,
    /// Seed of everything random.
    pub seed: u64,
}

impl Key {
    /// Scenario and case, for people: `p12-3 n10`.
    pub fn full_name(&self) -> String {
        full_name(&self.scenario, &self.case)
    }

    /// The run, for people: `p12-3 n10 under reno with seed 4`.
    pub fn run_name(&self) -> String {
        format!(
            "{} under {} with seed {}",
            self.full_name(),
            self.controller,
            self.seed
        )
    }
}

/// What the viewer saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as in the client's own report, and in docs/runs.md")]
pub struct Seen {
    pub startup_delay_s: Option<f64>,
    pub ended_s: Option<f64>,
    pub frames: u64,
    pub frames_shown: u64,
    pub frames_discarded: u64,
    pub frames_missing: u64,
    pub underflow_events: u64,
    pub frozen_s: f64,
    pub rebases: u64,
    pub rebuffer_ratio: Option<f64>,
    pub mean_bitrate_bps: Option<u64>,
}

/// What the server's transport counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as in the transport's totals, and in docs/runs.md")]
pub struct SenderCounts {
    pub sent_packets: u64,
    pub sent_bytes: u64,
    pub lost_packets: u64,
    pub lost_bytes: u64,
    pub congestion_events: u64,
    pub min_rtt_s: f64,
    pub last_srtt_s: f64,
}

/// What a flow did in a part of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as in `sim::WindowCounts`, and in docs/runs.md")]
pub struct WindowRow {
    pub window: String,
    pub from_s: f64,
    pub to_s: f64,
    pub received_bytes: u64,
    pub goodput_bps: Option<u64>,
    pub sent_bytes: u64,
    pub lost_bytes: u64,
    pub sent_packets: u64,
    pub lost_packets: u64,
}

impl From<&WindowCounts> for WindowRow {
    fn from(counts: &WindowCounts) -> Self {
        let length = counts.to.saturating_sub(counts.from);
        Self {
            window: counts.window.to_string(),
            from_s: seconds(counts.from),
            to_s: seconds(counts.to),
            received_bytes: counts.received.as_u64(),
            goodput_bps: bps(counts.received.per(length)),
            sent_bytes: counts.sent.as_u64(),
            lost_bytes: counts.lost.as_u64(),
            sent_packets: WindowCounts::packets(counts.sent),
            lost_packets: WindowCounts::packets(counts.lost),
        }
    }
}

/// What the bottleneck counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as in the link's counters, and in docs/runs.md")]
pub struct LinkTotals {
    pub link_packets: u64,
    pub link_bytes: u64,
    pub queue_drops: u64,
    pub random_losses: u64,
    pub max_queue_bytes: u64,
    pub mean_queue_delay_s: f64,
    pub max_queue_delay_s: f64,
}

/// Seconds to the microsecond, which print as short as they are.
pub(super) fn seconds(time: Duration) -> f64 {
    time.as_micros() as f64 / 1e6
}

fn bps(rate: Option<Bitrate>) -> Option<u64> {
    rate.map(Bitrate::as_bits_per_second)
}

impl Seen {
    fn of(report: &PlayoutReport) -> Self {
        Self {
            startup_delay_s: report.startup_delay.map(seconds),
            ended_s: report.ended.map(seconds),
            frames: report.frames,
            frames_shown: report.shown,
            frames_discarded: report.discarded,
            frames_missing: report.missing,
            underflow_events: report.underflows,
            frozen_s: seconds(report.frozen),
            rebases: report.rebases,
            rebuffer_ratio: report.rebuffer_ratio,
            mean_bitrate_bps: bps(report.mean_bitrate),
        }
    }
}

impl From<Totals> for SenderCounts {
    fn from(totals: Totals) -> Self {
        Self {
            sent_packets: totals.sent_packets,
            sent_bytes: totals.sent_bytes.as_u64(),
            lost_packets: totals.lost_packets,
            lost_bytes: totals.lost_bytes.as_u64(),
            congestion_events: totals.congestion_events,
            min_rtt_s: seconds(totals.min_rtt),
            last_srtt_s: seconds(totals.smoothed_rtt),
        }
    }
}

impl From<LinkStats> for LinkTotals {
    fn from(stats: LinkStats) -> Self {
        Self {
            link_packets: stats.delivered.packets,
            link_bytes: stats.delivered.bytes.as_u64(),
            queue_drops: stats.dropped.queue_full.packets,
            random_losses: stats.dropped.loss.packets,
            max_queue_bytes: stats.max_queue.as_u64(),
            mean_queue_delay_s: seconds(stats.mean_queue_delay),
            max_queue_delay_s: seconds(stats.max_queue_delay),
        }
    }
}

impl Row {
    /// The rows of a run, one for each flow: viewers first.
    pub fn of_run(scenario: &Scenario, key: &Key, run: &Simulated) -> Vec<Self> {
        let mut rows: Vec<Self> = (0..)
            .zip(&run.viewers)
            .map(|(viewer, seen)| Self::of_viewer(scenario, key, run, viewer, seen))
            .collect();
        let number = |index: usize| u32::try_from(run.viewers.len() + index).unwrap_or(u32::MAX);
        let bulk = run.bulk.iter().enumerate();
        rows.extend(bulk.map(|(index, seen)| Self::of_bulk(scenario, key, run, number(index), seen)));
        rows
    }

    /// A flow that plays nothing: what only a viewer has is zero.
    fn of_bulk(scenario: &Scenario, key: &Key, run: &Simulated, viewer: u32, seen: &SimulatedBulk) -> Self {
        let outcome = if seen.error.is_some() { "failed" } else { "stopped" };
        Self {
            viewer,
            role: BULK.to_owned(),
            flow_controller: seen.controller.clone(),
            joined_s: seconds(seen.joined),
            outcome: outcome.to_owned(),
            error: seen.error.clone(),
            seen: Seen::default(),
            received_bytes: seen.received.as_u64(),
            download_s: seconds(seen.lasted),
            throughput_bps: bps(seen.received.per(seen.lasted)),
            title_rate_bps: 0,
            link_rate_bps: bps(scenario.path.forward.rate.mean()),
            sender: seen.totals.map(SenderCounts::from),
            control: seen.measured.as_ref().map(Control::from),
            windows: seen.windows.iter().map(WindowRow::from).collect(),
            link: Some(run.forward.into()),
            wire_hash: run.wire_hash.map(|hash| format!("{hash:016x}")),
            ..Self::stamp(key)
        }
    }

    /// Nothing but where a row comes from.
    fn stamp(key: &Key) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            key: key.clone(),
            viewer: 0,
            role: viewer(),
            flow_controller: key.controller.clone(),
            joined_s: 0.0,
            outcome: String::new(),
            error: None,
            seen: Seen::default(),
            received_bytes: 0,
            download_s: 0.0,
            throughput_bps: None,
            title_rate_bps: 0,
            link_rate_bps: None,
            sender: None,
            control: None,
            restarted: None,
            adaptive: None,
            windows: Vec::new(),
            link: None,
            wire_hash: None,
        }
    }

    fn of_viewer(
        scenario: &Scenario,
        key: &Key,
        run: &Simulated,
        viewer: u32,
        seen: &SimulatedViewer,
    ) -> Self {
        let (outcome, error) = match &seen.report.outcome {
            Outcome::Complete => ("complete", None),
            Outcome::Stopped => ("stopped", None),
            Outcome::Failed(reason) => ("failed", Some(reason.clone())),
            _ => ("failed", Some("for an unknown reason".to_owned())),
        };
        let network = &seen.report.network;
        Self {
            viewer,
            outcome: outcome.to_owned(),
            error,
            sender: seen.totals.map(SenderCounts::from),
            control: seen.measured.as_ref().map(Control::from),
            restarted: seen
                .measured
                .as_ref()
                .and_then(|seen| seen.restarts)
                .map(Restarted::from),
            adaptive: seen.report.dash.as_ref().and_then(Adaptive::of),
            joined_s: seconds(seen.joined),
            windows: seen.windows.iter().map(WindowRow::from).collect(),
            link: Some(run.forward.into()),
            wire_hash: run.wire_hash.map(|hash| format!("{hash:016x}")),
            ..Self::bare(
                scenario,
                key,
                &seen.report.playout,
                network.received,
                network.ended,
            )
        }
    }

    /// The row of the best that any sender could do.
    pub fn of_ideal(scenario: &Scenario, key: &Key, ideal: &Ideal) -> Self {
        Self::bare(scenario, key, &ideal.playout, ideal.received, ideal.ended)
    }

    fn bare(
        scenario: &Scenario,
        key: &Key,
        seen: &PlayoutReport,
        received: playrate_units::Bytes,
        download: Duration,
    ) -> Self {
        let whole = received.as_u64() >= scenario.title.source().len();
        Self {
            outcome: if whole { "complete" } else { "stopped" }.to_owned(),
            seen: Seen::of(seen),
            received_bytes: received.as_u64(),
            download_s: seconds(download),
            throughput_bps: bps(received.per(download)),
            title_rate_bps: scenario.title_rate().as_bits_per_second(),
            link_rate_bps: bps(scenario.path.forward.rate.mean()),
            ..Self::stamp(key)
        }
    }
}
