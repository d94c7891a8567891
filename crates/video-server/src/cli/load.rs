//! The flags of admission control.

use std::time::Duration;

use playrate_units::{Bitrate, Probability, duration};
use video_server::admission::Limits;

#[derive(Debug, clap::Args)]
// Its name is taken by the command's own arguments.
#[group(skip)]
#[command(next_help_heading = "When to turn new sessions away (503; without these options never)")]
pub(super) struct Arguments {
    /// As soon as so many connections have asked for media
    #[arg(long, value_name = "N")]
    max_sessions: Option<usize>,

    /// When the rates of what is watched would add up to more than this, such as 4000Mbit/s
    #[arg(long, value_name = "RATE")]
    capacity: Option<Bitrate>,

    /// While one timer in ten fires later than this, such as 10ms: the sign of too much to do that also sees what other
    /// programs take
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    max_lag: Option<Duration>,

    /// When more of all processors' time than this would be used, such as 65%
    #[cfg(unix)]
    #[arg(long, value_name = "SHARE")]
    max_cpu: Option<Probability>,
}

impl Arguments {
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

/// Tells the processor time that the process has used, divided by the number of processors, where the system says it.
#[cfg(unix)]
pub(super) const PROCESSOR_TIME: Option<fn() -> Duration> = Some(|| {
    use std::sync::LazyLock;

    use rustix::time::{ClockId, clock_gettime};

    static PROCESSORS: LazyLock<u32> = LazyLock::new(|| {
        let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        u32::try_from(count).unwrap_or(u32::MAX)
    });
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default() / *PROCESSORS
});
#[cfg(not(unix))]
pub(super) const PROCESSOR_TIME: Option<fn() -> Duration> = None;
