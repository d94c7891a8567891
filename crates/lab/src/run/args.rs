//! The command line of `lab run`.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::Shard;

/// What `lab run` is told.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    /// Scenarios to run: names from `lab list`, groups of them such as `papers`, or paths of files of your own
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

    /// Keep time series as well, as CSV files: window, RTT, capacity estimate, playout buffer and queue of each controller's first
    /// trial, or of all of them
    #[arg(long, value_name = "WHICH", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "first")]
    pub series: Option<SeriesOf>,

    /// Only part I of N of the runs, the others being made elsewhere; `lab merge` puts them together
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,

    /// Directory for the results
    #[arg(long, value_name = "DIR", default_value = "lab-runs")]
    pub out: PathBuf,

    /// Keep the results that are in the directory and make what is missing
    #[arg(long)]
    pub resume: bool,
}

/// Of which runs time series are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SeriesOf {
    /// Of each controller's first trial.
    First,
    /// Of all.
    All,
}

impl SeriesOf {
    /// Whether those of trial `trial`, from 1, are kept.
    pub(super) const fn takes(self, trial: u32) -> bool {
        matches!(self, Self::All) || trial == 1
    }
}

impl RunArgs {
    /// Nothing asked for but where the results go.
    pub(crate) fn keeping_in(out: PathBuf) -> Self {
        Self {
            scenarios: Vec::new(),
            cases: Vec::new(),
            trials: None,
            seed: None,
            jobs: None,
            quick: false,
            series: None,
            shard: None,
            out,
            resume: false,
        }
    }

    /// How many runs at once.
    pub(super) fn threads(&self) -> usize {
        self.jobs
            .or_else(|| std::thread::available_parallelism().ok())
            .map_or(1, NonZeroUsize::get)
    }
}
