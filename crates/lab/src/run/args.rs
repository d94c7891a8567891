//! The command line of `lab run`.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use clap::Args;

/// What `lab run` is told.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    /// Scenarios to run: names from `lab list`, or paths of files of your own
    #[arg(value_name = "SCENARIO", required = true)]
    pub scenarios: Vec<String>,

    /// Only these cases of the scenarios; all if not given
    #[arg(long = "case", value_name = "NAME")]
    pub cases: Vec<String>,

    /// Runs of each controller, instead of what the scenario says
    #[arg(long, value_name = "N")]
    pub trials: Option<NonZeroU32>,

    /// Seed of the first trial, instead of what the scenario says
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Runs at once; all cores if not given
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,

    /// Fewer trials and shorter titles, as the scenarios say
    #[arg(long)]
    pub quick: bool,

    /// Keep time series as well: window, RTT, playout buffer and queue of every run as CSV files
    #[arg(long)]
    pub series: bool,

    /// Directory for the results
    #[arg(long, value_name = "DIR", default_value = "lab-runs")]
    pub out: PathBuf,

    /// Keep the results that are in the directory and make what is missing
    #[arg(long)]
    pub resume: bool,
}

impl RunArgs {
    /// How many runs at once.
    pub(super) fn threads(&self) -> usize {
        self.jobs
            .or_else(|| std::thread::available_parallelism().ok())
            .map_or(1, NonZeroUsize::get)
    }
}
