//! [`ProcessCollector`]: the metrics that Prometheus' client libraries export for every process.

use std::fmt;

use procfs::process::{LimitValue, Process, Stat};
use procfs::{CurrentSI as _, KernelStats, ProcResult, page_size, ticks_per_second};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::exposition::{encode, gauge};

/// Reads the state of this process at each scrape: the metrics `process_*` of the official client libraries.
#[derive(Debug)]
pub(super) struct ProcessCollector;

/// State of the process, its number of open files and the limit of that, and the time of the system's start since the
/// epoch in seconds.
fn read() -> ProcResult<(Stat, usize, LimitValue, u64)> {
    let process = Process::myself()?;
    let limit = process.limits()?.max_open_files.soft_limit;
    Ok((
        process.stat()?,
        process.fd_count()?,
        limit,
        KernelStats::current()?.btime,
    ))
}

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (stat, files, limit, booted) = match read() {
            Ok(state) => state,
            Err(error) => {
                tracing::debug!(%error, "cannot read the state of the process");
                return Ok(());
            }
        };
        let seconds = |ticks: u64| ticks as f64 / ticks_per_second() as f64;
        encode! { &mut encoder,
            /// User and system time of the process.
            process_cpu [Seconds] = ConstCounter::new(seconds(stat.utime.saturating_add(stat.stime)));
            /// Start of the process, since the epoch.
            process_start_time [Seconds] = ConstGauge::new(booted as f64 + seconds(stat.starttime));
            /// Resident memory of the process.
            process_resident_memory [Bytes] = gauge(stat.rss.saturating_mul(page_size()));
            /// Virtual memory of the process.
            process_virtual_memory [Bytes] = gauge(stat.vsize);
            /// Threads of the process.
            process_threads = gauge(stat.num_threads);
            /// Open file descriptors of the process.
            process_open_fds = gauge(files);
        }
        if let LimitValue::Value(most) = limit {
            encode! { &mut encoder,
                /// Maximum number of open file descriptors of the process.
                process_max_fds = gauge(most);
            }
        }
        Ok(())
    }
}
