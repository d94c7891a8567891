//! [`ProcessCollector`]: what Prometheus' client libraries export of every process.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

/// Reads the state of this process at each scrape: the metrics `process_*` of the official client libraries. Exports
/// nothing where the system has no `/proc`.
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
        let mut put = |name, help, unit: Option<&Unit>, metric: &dyn EncodeMetric| {
            metric.encode(encoder.encode_descriptor(name, help, unit, metric.metric_type())?)
        };
        let bytes = |bytes: u64| ConstGauge::new(i64::try_from(bytes).unwrap_or(i64::MAX));
        put(
            "process_cpu",
            "User and system time of the process.",
            Some(&Unit::Seconds),
            &ConstCounter::new(state.cpu_seconds),
        )?;
        put(
            "process_start_time",
            "Start of the process, since the epoch.",
            Some(&Unit::Seconds),
            &ConstGauge::new(state.start_time_seconds),
        )?;
        put(
            "process_resident_memory",
            "Resident memory of the process.",
            Some(&Unit::Bytes),
            &bytes(state.resident_bytes),
        )?;
        put(
            "process_virtual_memory",
            "Virtual memory of the process.",
            Some(&Unit::Bytes),
            &bytes(state.virtual_bytes),
        )?;
        put(
            "process_threads",
            "Threads of the process.",
            None,
            &ConstGauge::new(state.threads),
        )?;
        put(
            "process_open_fds",
            "Open file descriptors of the process.",
            None,
            &bytes(state.open_files),
        )?;
        if let Some(files) = state.max_files {
            put(
                "process_max_fds",
                "Maximum number of open file descriptors of the process.",
                None,
                &bytes(files),
            )?;
        }
        Ok(())
    }
}
