//! [`ProcessCollector`]: the metrics that Prometheus' client libraries export for every process.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::exposition::{encode, gauge};

/// Reads the state of this process at each scrape: the metrics `process_*` of the official client libraries. Exports
/// nothing on systems without `/proc`.
#[derive(Debug)]
pub(super) struct ProcessCollector;

/// State of a process.
struct ProcessState {
    cpu_seconds: f64,
    start_time_seconds: f64,
    resident_bytes: u64,
    virtual_bytes: u64,
    threads: i64,
    open_files: u64,
    max_files: Option<u64>,
}

#[cfg(target_os = "linux")]
fn read() -> procfs::ProcResult<ProcessState> {
    use procfs::CurrentSI as _;
    use procfs::process::{LimitValue, Process};

    let process = Process::myself()?;
    let stat = process.stat()?;
    let ticks = procfs::ticks_per_second() as f64;
    Ok(ProcessState {
        cpu_seconds: stat.utime.saturating_add(stat.stime) as f64 / ticks,
        start_time_seconds: procfs::KernelStats::current()?.btime as f64 + stat.starttime as f64 / ticks,
        resident_bytes: stat.rss.saturating_mul(procfs::page_size()),
        virtual_bytes: stat.vsize,
        threads: stat.num_threads,
        open_files: process.fd_count()? as u64,
        max_files: match process.limits()?.max_open_files.soft_limit {
            LimitValue::Value(files) => Some(files),
            LimitValue::Unlimited => None,
        },
    })
}

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        #[cfg(target_os = "linux")]
        let state = read();
        #[cfg(not(target_os = "linux"))]
        let state: Result<ProcessState, std::io::Error> = Err(std::io::ErrorKind::Unsupported.into());
        let state = match state {
            Ok(state) => state,
            Err(error) => {
                tracing::debug!(%error, "cannot read the state of the process");
                return Ok(());
            }
        };
        encode! { &mut encoder,
            /// User and system time of the process.
            process_cpu [Seconds] = ConstCounter::new(state.cpu_seconds);
            /// Start of the process, since the epoch.
            process_start_time [Seconds] = ConstGauge::new(state.start_time_seconds);
            /// Resident memory of the process.
            process_resident_memory [Bytes] = gauge(state.resident_bytes);
            /// Virtual memory of the process.
            process_virtual_memory [Bytes] = gauge(state.virtual_bytes);
            /// Threads of the process.
            process_threads = gauge(state.threads);
            /// Open file descriptors of the process.
            process_open_fds = gauge(state.open_files);
        }
        if let Some(files) = state.max_files {
            encode! { &mut encoder,
                /// Maximum number of open file descriptors of the process.
                process_max_fds = gauge(files);
            }
        }
        Ok(())
    }
}
