//! [`Control`]: what window, RTT and estimates did, in a row of the results.

use playrate_units::{Bitrate, Bytes};
use serde::{Deserialize, Serialize};

use super::row::seconds;
use crate::sim::{Measured, RestartSpread};

/// What the server's window, RTT and estimates did over the session, and in its first 30 s.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as in `sim::Measured`, and in docs/runs.md")]
pub struct Control {
    pub window_mean_bytes: u64,
    pub window_p05_bytes: u64,
    pub window_p50_bytes: u64,
    pub window_p95_bytes: u64,
    pub window_max_bytes: u64,
    pub window_swings: u64,
    pub window_step_sd: f64,
    pub window_recoveries: u64,
    pub window_recovery_mean_s: Option<f64>,
    pub window_reached_bdp_s: Option<f64>,
    pub window_first_rtts_bytes: Vec<u64>,
    pub window_30s_mean_bytes: u64,
    pub window_30s_p05_bytes: u64,
    pub window_30s_p95_bytes: u64,
    pub window_30s_max_bytes: u64,
    pub window_30s_swings: u64,
    pub window_30s_step_sd: f64,
    pub startup_s: Option<f64>,
    pub startup_window_bytes: Option<u64>,
    pub slow_start_entries: u64,
    pub rtt_mean_s: f64,
    pub rtt_sd_s: f64,
    pub rtt_p05_s: f64,
    pub rtt_p50_s: f64,
    pub rtt_p95_s: f64,
    pub rtt_max_s: f64,
    pub capacity_mean_bps: Option<u64>,
    pub capacity_sd_bps: Option<u64>,
}

/// What happened when the sender went on after a pause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as in `sim::RestartSpread`, and in docs/runs.md")]
pub struct Restarted {
    pub restarts: u64,
    pub restart_loss_share: f64,
    pub restart_lost_mean_bytes: u64,
    pub restart_avoidance_share: f64,
    pub restart_avoidance_mean_s: f64,
}

impl From<RestartSpread> for Restarted {
    fn from(seen: RestartSpread) -> Self {
        let share = |part: u64| ratio(part as f64 / seen.count.max(1) as f64);
        Self {
            restarts: seen.count,
            restart_loss_share: share(seen.lossy),
            restart_lost_mean_bytes: seen.lost_mean.as_u64(),
            restart_avoidance_share: share(seen.avoided),
            restart_avoidance_mean_s: seconds(seen.avoidance_mean),
        }
    }
}

/// A ratio to the millionth, which prints as short as it is.
pub(super) fn ratio(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

impl From<&Measured> for Control {
    fn from(seen: &Measured) -> Self {
        let (window, opening, rtt) = (&seen.window, &seen.opening, &seen.rtt);
        let capacity = |pick: fn((Bitrate, Bitrate)) -> Bitrate| {
            seen.capacity.map(|both| pick(both).as_bits_per_second())
        };
        Self {
            window_mean_bytes: window.mean.as_u64(),
            window_p05_bytes: window.p05.as_u64(),
            window_p50_bytes: window.p50.as_u64(),
            window_p95_bytes: window.p95.as_u64(),
            window_max_bytes: window.max.as_u64(),
            window_swings: window.swings,
            window_step_sd: ratio(window.step_sd),
            window_recoveries: seen.recoveries,
            window_recovery_mean_s: seen.recovery_mean.map(seconds),
            window_reached_bdp_s: seen.reached_bdp.map(seconds),
            window_first_rtts_bytes: seen.first_round_trips.iter().map(|one| one.as_u64()).collect(),
            window_30s_mean_bytes: opening.mean.as_u64(),
            window_30s_p05_bytes: opening.p05.as_u64(),
            window_30s_p95_bytes: opening.p95.as_u64(),
            window_30s_max_bytes: opening.max.as_u64(),
            window_30s_swings: opening.swings,
            window_30s_step_sd: ratio(opening.step_sd),
            startup_s: seen.startup.map(seconds),
            startup_window_bytes: seen.startup_window.map(Bytes::as_u64),
            slow_start_entries: seen.slow_start_entries,
            rtt_mean_s: seconds(rtt.mean),
            rtt_sd_s: seconds(rtt.sd),
            rtt_p05_s: seconds(rtt.p05),
            rtt_p50_s: seconds(rtt.p50),
            rtt_p95_s: seconds(rtt.p95),
            rtt_max_s: seconds(rtt.max),
            capacity_mean_bps: capacity(|(mean, _)| mean),
            capacity_sd_bps: capacity(|(_, sd)| sd),
        }
    }
}
