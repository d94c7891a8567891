//! Made-up records with known properties, for tests only.

use std::time::Duration;

use playrate_units::{Bitrate, Bytes, Probability};

use crate::record::{
    Comparison, LinkCounts, Outcome, PathFacts, PlayoutSample, QueueSample, RunRecord, Sender, Span,
    TitleFacts, TransportSample, Viewer, WindowCut,
};
use crate::run::{IDEAL, Row};

/// Seconds from a whole number of milliseconds.
fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A title of 2.4 Mbit/s over 5 Mbit/s and 200 ms: 60 kB must be in flight. `reno` fails there, `cubic` does not.
pub(crate) fn comparison() -> Comparison {
    let mut calm = run("cubic", 0.8);
    calm.viewer.freezes.clear();
    calm.viewer.frozen = Duration::ZERO;
    calm.viewer.discard_times.clear();
    calm.viewer.discarded = 0;
    calm.viewer.underflows = 0;
    calm.viewer.delivered = Bytes::from_kb(12_000);
    calm.sender.lost = 9;
    Comparison {
        version: "0.1.0".into(),
        title: TitleFacts {
            name: "title.mp4".into(),
            format: "H.264, 1280×720, 30 frames/s".into(),
            size: Bytes::from_kb(12_000),
            duration: Duration::from_secs(40),
            average_rate: Bitrate::from_kbps(2_400),
            pictures: 1_200,
        },
        path: PathFacts {
            rate: Bitrate::from_mbps(5),
            rtt: ms(200),
            queue: Bytes::from_kb(60),
            loss: Probability::from_parts_per_billion(1_000_000),
            seed: 7,
        },
        playout_buffer: Bytes::from_kb(656),
        runs: vec![run("reno", 0.5), calm],
    }
}

/// A window that climbs 10 kB/s and, at 100 kB, is multiplied by `kept`, for 40 s; three freezes and 12 discards.
pub(crate) fn run(spec: &str, kept: f64) -> RunRecord {
    let mut transport = Vec::new();
    let mut cuts = Vec::new();
    let mut window = 50_000.0;
    for i in 0..400_u64 {
        if window >= 100_000.0 {
            let after = window * kept;
            cuts.push(WindowCut {
                at: ms(i * 100),
                before: bytes(window),
                after: bytes(after),
            });
            window = after;
        }
        transport.push(TransportSample {
            at: ms(i * 100 + 1),
            window: bytes(window),
            ssthresh: None,
            rtt: Some(ms(200 + (i % 50))),
            latest_rtt: None,
            capacity: None,
        });
        window += 1_000.0;
    }
    let span = |from: u64, to: u64| Span {
        from: ms(from),
        to: ms(to),
    };
    RunRecord {
        spec: spec.into(),
        viewer: Viewer {
            startup: Some(ms(1_500)),
            pictures: 1_200,
            discarded: 12,
            underflows: 3,
            frozen: ms(5_500),
            freezes: vec![span(9_000, 10_500), span(20_000, 23_000), span(30_000, 31_000)],
            discard_times: (0..12).map(|i| ms(10_500 + i * 33)).collect(),
            rebases: 0,
            delivered: Bytes::from_kb(10_000),
            receiving: Duration::from_secs(40),
            length: Duration::from_secs(43),
            outcome: Outcome::Played,
        },
        sender: Sender {
            packets: 9_000,
            lost: 14,
        },
        link: LinkCounts {
            forwarded: 8_986,
            overflowed: 4,
            lost: 10,
            lateness: ms(1),
            flaws: Vec::new(),
        },
        playout: (0..400_u32)
            .map(|i| PlayoutSample {
                at: ms(u64::from(i) * 100),
                ahead: ms(u64::from(2_000_u32.saturating_sub((i % 100) * 20))),
                delivered: Bytes::new(u64::from(i) * 25_000),
            })
            .collect(),
        transport,
        queue: (0..400_u64)
            .map(|i| QueueSample {
                at: ms(i * 100),
                queued: Bytes::new(i % 60 * 1_000),
            })
            .collect(),
        cuts,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "made-up windows are small positive numbers"
)]
fn bytes(value: f64) -> Bytes {
    Bytes::new(value as u64)
}

/// The row of a run; `ideal` has no sender and no link.
pub(crate) fn row(controller: &str, trial: u32) -> Row {
    let mut row = serde_json::json!({
        "format": "lab-run", "version": 1, "program": "0.1.0", "scenario": "s", "scenario_hash": "00",
        "controller": controller, "trial": trial, "seed": trial, "viewer": 0, "outcome": "complete", "error": null,
        "startup_delay_s": 1.25, "ended_s": 61.5, "frames": 1_800, "frames_shown": 1_790, "frames_discarded": 10,
        "frames_missing": 0, "underflow_events": 2, "frozen_s": 0.5, "rebases": 0, "rebuffer_ratio": 0.01,
        "mean_bitrate_bps": 4_000_000, "received_bytes": 30_000_000, "download_s": 48.0, "throughput_bps": 5_000_000,
        "title_rate_bps": 4_000_000, "link_rate_bps": 5_500_000, "wire_hash": null,
    });
    let counted = serde_json::json!({
        "sent_packets": 22_000, "sent_bytes": 31_500_000, "lost_packets": 44, "lost_bytes": 62_000,
        "congestion_events": 4, "min_rtt_s": 0.1, "last_srtt_s": 0.12, "link_packets": 21_960, "link_bytes": 31_600_000,
        "queue_drops": 40, "random_losses": 3, "max_queue_bytes": 48_000, "mean_queue_delay_s": 0.01,
        "max_queue_delay_s": 0.06,
    });
    let control = serde_json::json!({
        "window_mean_bytes": 60_000, "window_p05_bytes": 30_000, "window_p50_bytes": 61_000, "window_p95_bytes": 90_000,
        "window_max_bytes": 95_000, "window_swings": 12, "window_step_sd": 0.02, "window_recoveries": 5,
        "window_recovery_mean_s": 4.5, "window_reached_bdp_s": 0.7,
        "window_first_rtts_bytes": [14_520, 29_040, 58_080, 116_160, 90_000], "window_30s_mean_bytes": 50_000,
        "window_30s_p05_bytes": 20_000, "window_30s_p95_bytes": 80_000, "window_30s_max_bytes": 95_000,
        "window_30s_swings": 4, "window_30s_step_sd": 0.05, "startup_s": 0.9, "startup_window_bytes": 95_000,
        "slow_start_entries": 1, "rtt_mean_s": 0.13, "rtt_sd_s": 0.01, "rtt_p05_s": 0.1, "rtt_p50_s": 0.13,
        "rtt_p95_s": 0.16, "rtt_max_s": 0.2, "capacity_mean_bps": 5_400_000, "capacity_sd_bps": 40_000,
    });
    let adaptive = serde_json::json!({
        "segments": 200, "segments_by_representation": {"low": 20, "high": 180}, "switches": 10, "switch_share": 0.05,
        "switch_sizes": {"-1": 5, "0": 190, "1": 5}, "mean_representation_bps": 3_000_000, "instant_mean_bps": 6_000_000,
        "instant_sd_bps": 1_000_000, "instant_p05_bps": 3_000_000, "instant_p50_bps": 6_100_000,
        "instant_p95_bps": 8_000_000, "instant_variation": 0.166_667, "smoothed_mean_bps": 5_500_000,
        "smoothed_sd_bps": 500_000, "smoothed_p05_bps": 4_000_000, "smoothed_p50_bps": 5_600_000,
        "smoothed_p95_bps": 6_500_000, "smoothed_variation": 0.090_909,
    });
    let restarted = serde_json::json!({
        "restarts": 55, "restart_loss_share": 0.4, "restart_lost_mean_bytes": 4_000, "restart_avoidance_share": 0.9,
        "restart_avoidance_mean_s": 0.12,
    });
    let windows = serde_json::json!({
        "windows": [{
            "window": "0s..30s", "from_s": 0.0, "to_s": 30.0, "received_bytes": 7_500_000, "goodput_bps": 2_000_000, "sent_bytes": 8_000_000,
            "lost_bytes": 80_000, "sent_packets": 5_510, "lost_packets": 55,
        }],
    });
    if controller != IDEAL
        && let Some(row) = row.as_object_mut()
    {
        for more in [&counted, &control, &adaptive, &restarted, &windows] {
            row.extend(more.as_object().unwrap().clone());
        }
    }
    serde_json::from_value(row).unwrap()
}
