//! [`Row`]: the figures of a stage.

use std::fmt;
use std::time::Duration;

use playrate_test_support::Process;
use serde::Serialize;

use super::viewer::Seen;

/// Usage of a process during a stage, as far as it is known.
#[derive(Clone, Copy, Default)]
pub(crate) struct Usage {
    /// Share of one processor.
    processor: Option<f64>,
    /// Resident memory in excess of that before the first viewer.
    kilobytes: Option<f64>,
}

impl Usage {
    pub(crate) fn between(
        before: Option<Process>,
        after: Option<Process>,
        idle: Option<Process>,
        passed: Duration,
    ) -> Self {
        let time = after.zip(before).map(|(after, before)| {
            let time = after.processor_time.saturating_sub(before.processor_time);
            time.as_secs_f64() / passed.as_secs_f64()
        });
        let memory = after
            .zip(idle)
            .map(|(after, idle)| (after.resident - idle.resident).as_u64() as f64 / 1e3);
        Self {
            processor: time,
            kilobytes: memory,
        }
    }
}

/// The figures of a stage. Times are in milliseconds, shares of one processor in percent.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    offered: u32,
    watched: u64,
    turned_away: u64,
    refusals: u64,
    failed: u64,
    goodput_mbps: f64,
    segments: usize,
    lateness_p50_ms: Option<f64>,
    lateness_p99_ms: Option<f64>,
    lateness_max_ms: Option<f64>,
    missed: u64,
    #[serde(rename = "starved")]
    stalled: u64,
    server_kb_per_session: Option<f64>,
    server_cpu_percent: Option<f64>,
    /// Processor time of the server per received GB.
    server_cpu_s_per_gb: Option<f64>,
    viewers_cpu_percent: Option<f64>,
}

impl Row {
    pub(crate) const HEAD: &str = concat!(
        " offered  watched turned  × 503 failed  Mbit/s   p50 ms   p99 ms   max ms",
        "  missed stalled  kB each  CPU %   s/GB viewers' CPU %"
    );

    pub(crate) fn new(
        offered: u32,
        mut seen: Seen,
        counted: Duration,
        [server, viewers]: [Usage; 2],
    ) -> Self {
        seen.lateness.sort_unstable();
        let quantile = |percent| quantile(&seen.lateness, percent).map(|at| at.as_secs_f64() * 1e3);
        let percent = |share: f64| share * 100.0;
        let goodput_mbps = seen.counted_bytes as f64 * 8e-6 / counted.as_secs_f64();
        Self {
            offered,
            watched: seen.watched,
            turned_away: seen.turned_away,
            refusals: seen.refusals,
            failed: seen.failed,
            goodput_mbps,
            segments: seen.lateness.len(),
            lateness_p50_ms: quantile(50),
            lateness_p99_ms: quantile(99),
            lateness_max_ms: quantile(100),
            missed: seen.missed,
            stalled: seen.stalled,
            server_kb_per_session: server.kilobytes.map(|all| all / seen.watched.max(1) as f64),
            server_cpu_percent: server.processor.map(percent),
            server_cpu_s_per_gb: server.processor.map(|share| share * 8e3 / goodput_mbps),
            viewers_cpu_percent: viewers.processor.map(percent),
        }
    }
}

/// The given percentile of the sorted values (nearest rank).
fn quantile(sorted: &[Duration], percent: usize) -> Option<Duration> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = |value: Option<f64>| value.unwrap_or(f64::NAN);
        write!(
            f,
            "{:>8} {:>8} {:>6} {:>6} {:>6} {:>7.0} {:>8.1} {:>8.1} {:>8.1} {:>7} {:>7} {:>8.0} {:>6.0} {:>6.2} \
             {:>14.0}",
            self.offered,
            self.watched,
            self.turned_away,
            self.refusals,
            self.failed,
            self.goodput_mbps,
            known(self.lateness_p50_ms),
            known(self.lateness_p99_ms),
            known(self.lateness_max_ms),
            self.missed,
            self.stalled,
            known(self.server_kb_per_session),
            known(self.server_cpu_percent),
            known(self.server_cpu_s_per_gb),
            known(self.viewers_cpu_percent),
        )
    }
}
