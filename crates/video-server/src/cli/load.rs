//! Options of admission control.

use std::time::Duration;

use playrate_units::{Bitrate, Probability, duration};
use video_server::admission::Limits;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Limits beyond which new sessions get 503 (none by default)")]
pub(super) struct AdmissionOptions {
    /// Maximum number of connections with media
    #[arg(long, value_name = "N")]
    max_sessions: Option<usize>,

    /// Maximum sum of the rates of the media being watched, such as 4000Mbit/s
    #[arg(long, value_name = "RATE")]
    capacity: Option<Bitrate>,

    /// Maximum timer lateness that one timer in ten may exceed, such as 10ms; this also sees the load of
    /// other programs
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    max_lag: Option<Duration>,

    /// Maximum share of the time of all processors, or of as many as there are workers if these are fewer, such as 65%
    #[cfg(unix)]
    #[arg(long, value_name = "SHARE")]
    max_cpu: Option<Probability>,
}

impl AdmissionOptions {
    pub(super) fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        limits.sessions = self.max_sessions;
        limits.capacity = self.capacity;
        limits.lag = self.max_lag;
        #[cfg(unix)]
        {
            limits.cpu = self.max_cpu;
        }
        limits
    }
}

/// Processor time of the process, where the system reports it.
#[cfg(unix)]
pub(super) const PROCESSOR_TIME: Option<fn() -> Duration> = Some(|| {
    use rustix::time::{ClockId, clock_gettime};

    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
});
#[cfg(not(unix))]
pub(super) const PROCESSOR_TIME: Option<fn() -> Duration> = None;
