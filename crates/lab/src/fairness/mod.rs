//! `lab fairness`: throughput of a viewer and of one endless download over a shared bottleneck, for every pair of
//! controllers. The runs are those of the scenarios `fairness-needy` and `fairness-calm`.

mod page;
mod pairs;

use std::fs;
use std::io::{self, Write};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Args;
use playrate_netsim::QueueLimit;
use playrate_units::{Bitrate, duration};

use pairs::Pairs;

use crate::demo::Controllers;
use crate::error::CommandError;
use crate::result::{ResultSet, read_directory};
use crate::run::{self, RunArgs};
use crate::scenario::{self, Changes, Scenario, ScenarioError, Setting};

/// Controllers without a choice: the usual ones, those of the papers with and without regard for others, and ours.
const CONTROLLERS: &str = "reno,cubic,vegas,bbr,copa,ccp,ccp-lb(2),video";
/// Playing time that the viewer's playout buffer holds.
const PLAYOUT: Duration = Duration::from_secs(1);

/// Arguments of `lab fairness`.
#[derive(Args, Clone, Debug)]
pub(crate) struct FairnessArgs {
    /// Controllers of the viewer, separated by commas: the rows
    #[arg(long, value_name = "LIST", default_value = CONTROLLERS)]
    controllers: Controllers,

    /// Controllers of the download beside it: the columns [default: those of the viewer]
    #[arg(long, value_name = "LIST")]
    beside: Option<Controllers>,

    /// Rate of the bottleneck; the titles have 0.75 and 0.2 of it
    #[arg(long, value_name = "RATE", default_value = "20Mbit/s")]
    rate: Bitrate,

    /// Propagation RTT, without queueing
    #[arg(long, value_name = "TIME", default_value = "50ms", value_parser = duration::parse)]
    rtt: Duration,

    /// Size of the queue before the bottleneck: bytes, packets, or a multiple of rate × RTT (such as 0.5bdp)
    #[arg(long, value_name = "SIZE", default_value = "1bdp")]
    queue: QueueLimit,

    /// Runs of each pair [default: 3, with --quick 1]
    #[arg(long, value_name = "N")]
    trials: Option<NonZeroU32>,

    /// Run one trial of a title of 30 s
    #[arg(long)]
    quick: bool,

    /// Runs at the same time [default: number of cores]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,

    /// Directory for the results; results that are already there are not run again
    #[arg(long, value_name = "DIR", default_value = "lab-fairness")]
    out: PathBuf,
}

/// Amount that the viewer needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Demand {
    /// 1.5 times its fair share: both flows want all they can get.
    Needy,
    /// 0.4 of its fair share: the download should get more than half.
    Calm,
}

impl Demand {
    /// Name of the built-in scenario with this demand.
    const fn scenario(self) -> &'static str {
        match self {
            Self::Needy => "fairness-needy",
            Self::Calm => "fairness-calm",
        }
    }

    /// Rate λ of the title on a link of this rate, half of which is the fair share.
    fn title_rate(self, link: Bitrate) -> Bitrate {
        match self {
            Self::Needy => link.scaled(3, 4),
            Self::Calm => link.scaled(1, 5),
        }
    }
}

impl FairnessArgs {
    fn beside(&self) -> &Controllers {
        self.beside.as_ref().unwrap_or(&self.controllers)
    }

    /// The scenario of this demand beside each download, one for each column.
    fn scenarios(&self, demand: Demand) -> Result<Vec<Arc<Scenario>>, ScenarioError> {
        let title = demand.title_rate(self.rate);
        let mut all = Vec::new();
        for beside in &self.beside().0 {
            let beside = beside.to_string();
            let settings = [
                ("title.rate", title.to_string()),
                ("path.rate", self.rate.to_string()),
                ("path.rtt", duration::display(self.rtt).to_string()),
                ("path.queue", self.queue.to_string()),
                ("viewer.playout_buffer", (title * PLAYOUT).to_string()),
                ("bulk.controller", beside.clone()),
            ];
            let changes = Changes {
                quick: self.quick,
                trials: self.trials.map(NonZeroU32::get),
                settings: settings.map(|(key, value)| Setting::new(key, value)).into(),
                ..Changes::default()
            };
            for mut scenario in scenario::open(demand.scenario(), &changes)? {
                scenario.case = format!("beside={beside}");
                scenario.controllers.clone_from(&self.controllers.0);
                all.push(Arc::new(scenario));
            }
        }
        Ok(all)
    }
}

/// Makes the runs that are missing, writes JSON and figures, and prints the tables to `out`. Returns the path of the
/// JSON. If single runs fail, the others are reported before the error is returned.
pub(crate) fn run(
    args: &FairnessArgs,
    stop: &AtomicBool,
    out: &mut impl Write,
) -> Result<PathBuf, CommandError> {
    let (needy, calm) = (args.scenarios(Demand::Needy)?, args.scenarios(Demand::Calm)?);
    let runs = RunArgs {
        jobs: args.jobs,
        resume: true,
        out: args.out.clone(),
        ..RunArgs::default()
    };
    let failed = match run::make(
        &[needy.clone(), calm.clone()].concat(),
        &runs,
        stop,
        &mut io::sink(),
    ) {
        Ok(_) => None,
        Err(error @ CommandError::Runs { .. }) => Some(error),
        Err(error) => return Err(error),
    };
    let rows = read_directory(&args.out).map_err(|error| CommandError::read(&args.out, error))?;
    let pairs = Pairs::of(args, &ResultSet::of(&rows), &needy, &calm);
    let json = args.out.join("fairness.json");
    let files = [
        (json.clone(), page::json(&pairs)),
        (args.out.join("fairness-share.svg"), page::shares(&pairs).svg()),
        (args.out.join("fairness-left.svg"), page::left(&pairs).svg()),
    ];
    for (file, text) in files {
        fs::write(&file, text).map_err(|error| CommandError::Write { file, error })?;
    }
    out.write_all(page::text(&pairs).as_bytes())
        .map_err(CommandError::Print)?;
    writeln!(out, "The same with figures: {}", args.out.display()).map_err(CommandError::Print)?;
    failed.map_or(Ok(json), Err)
}
