//! `lab sweep`: a scenario with several values of a key in place of its own, and where its claims flip.

mod over;
mod table;

use std::io::{self, Write};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use playrate_transport::ControllerChoice;
use thiserror::Error;

pub use over::{Over, OverError, Point};
pub use table::{FORMAT, VERSION, to_json, to_text};

use crate::claims::{ClaimResult, Results, judge};
use crate::run::{self, RunArgs, RunFailure, read_directory};
use crate::scenario::{self, Changes, Scenario, ScenarioError};

/// What `lab sweep` is told.
#[derive(Args, Clone, Debug)]
pub struct SweepArgs {
    /// The scenario: a name from `lab list`, or the path of a file of your own
    #[arg(value_name = "SCENARIO")]
    pub scenario: String,

    /// A key and the values that it is to have, such as queue=0.5bdp,1bdp,2bdp; several make all combinations
    #[arg(long, value_name = "KEY=V1,V2,...", required = true)]
    pub over: Vec<Over>,

    /// Only these controllers, separated by commas; claims about others are not decided
    #[arg(long, value_name = "LIST")]
    pub controllers: Option<String>,

    /// Fewer trials and a shorter title, as the scenario says
    #[arg(long)]
    pub quick: bool,

    /// Runs of each controller with each value, instead of what the scenario says
    #[arg(long, value_name = "N")]
    pub trials: Option<NonZeroU32>,

    /// Runs at once; all cores if not given
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,

    /// Directory for the results
    #[arg(long, value_name = "DIR", default_value = "lab-sweep")]
    pub out: PathBuf,

    /// Keep the results that are in the directory and make what is missing
    #[arg(long)]
    pub resume: bool,
}

/// Why there is no answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SweepFailure {
    /// The runs came to no end.
    #[error(transparent)]
    Run(#[from] RunFailure),
    /// A value makes the scenario no good.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// There is nothing that could flip.
    #[error("{0} makes no claims: nothing can flip. `lab run` and `lab show` say what it does otherwise")]
    NoClaims(String),
    /// The controllers are not those of the scenario.
    #[error("{0}")]
    Controllers(String),
    /// The results cannot be read or written.
    #[error("cannot keep results in {}: {error}", .directory.display())]
    Results {
        /// Where.
        directory: PathBuf,
        /// What the system says.
        error: io::Error,
    },
}

impl SweepFailure {
    /// Whether the user asked for something that cannot be.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Run(failure) => failure.is_bad_input(),
            Self::Scenario(_) | Self::NoClaims(_) | Self::Controllers(_) => true,
            Self::Results { .. } => false,
        }
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The scenario's name.
    pub scenario: String,
    /// Whether it was run with `--quick`.
    pub quick: bool,
    /// What was changed.
    pub over: Vec<Over>,
    /// For each combination of values, what the claims come to with it.
    pub points: Vec<(Point, Vec<ClaimResult>)>,
}

/// A combination of values with the scenario's cases under it: each under the name of its runs, with its own name.
type Cases = Vec<(String, String)>;

/// Makes the runs and judges the claims; the results are kept in the directory, with `sweep.json`.
///
/// # Errors
/// See [`SweepFailure`].
pub fn sweep(args: &SweepArgs, stop: &AtomicBool) -> Result<Sweep, SweepFailure> {
    let made = scenario::claims(&args.scenario)?;
    if made.claims.is_empty() {
        return Err(SweepFailure::NoClaims(made.scenario));
    }
    let only = controllers(args)?;
    let points = Point::all(&args.over);
    let mut scenarios: Vec<Arc<Scenario>> = Vec::new();
    let mut cases: Vec<Cases> = Vec::new();
    for point in &points {
        let mut under = Cases::new();
        for mut scenario in open(args, point)? {
            if let Some(only) = &only {
                scenario.controllers.retain(|one| only.contains(one));
            }
            let own = std::mem::take(&mut scenario.case);
            let name = point.name();
            scenario.case = if own.is_empty() {
                name
            } else {
                format!("{own},{name}")
            };
            under.push((scenario.case.clone(), own));
            scenarios.push(Arc::new(scenario));
        }
        cases.push(under);
    }
    run::make(&scenarios, &run_args(args), stop, &mut io::sink())?;
    let kept = |error| SweepFailure::Results {
        directory: args.out.clone(),
        error,
    };
    let rows = read_directory(&args.out).map_err(kept)?;
    let of = |cases: &Cases| {
        let mine = rows.iter().filter_map(|row| {
            let (_, own) = cases.iter().find(|(name, _)| *name == row.key.case)?;
            // The directory may hold results of the same values in another version of the scenario.
            let known = |scenario: &Arc<Scenario>| scenario.hash == row.key.scenario_hash;
            let mut row = scenarios.iter().any(known).then(|| row.clone())?;
            row.key.case.clone_from(own);
            Some(row)
        });
        let results = Results::of(mine);
        let claims = made.claims.iter();
        claims.map(|claim| judge(claim, &made.beside, &results)).collect()
    };
    let judged: Vec<Vec<ClaimResult>> = cases.iter().map(of).collect();
    let sweep = Sweep {
        scenario: made.scenario.clone(),
        quick: args.quick,
        over: args.over.clone(),
        points: points.into_iter().zip(judged).collect(),
    };
    std::fs::write(args.out.join("sweep.json"), to_json(&sweep)).map_err(kept)?;
    Ok(sweep)
}

fn open(args: &SweepArgs, point: &Point) -> Result<Vec<Scenario>, ScenarioError> {
    let changes = Changes {
        quick: args.quick,
        trials: args.trials.map(NonZeroU32::get),
        settings: point.settings.clone(),
        ..Changes::default()
    };
    scenario::open(&args.scenario, &changes)
}

fn controllers(args: &SweepArgs) -> Result<Option<Vec<ControllerChoice>>, SweepFailure> {
    let Some(list) = &args.controllers else {
        return Ok(None);
    };
    let only = ControllerChoice::list(list).map_err(|error| SweepFailure::Controllers(error.to_string()))?;
    let cases = scenario::open(&args.scenario, &Changes::default())?;
    let known: Vec<&ControllerChoice> = cases.iter().flat_map(|case| &case.controllers).collect();
    match only.iter().find(|one| !known.contains(one)) {
        None => Ok(Some(only)),
        Some(other) => {
            let names: Vec<String> = cases.first().map_or_else(Vec::new, |case| {
                case.controllers.iter().map(ToString::to_string).collect()
            });
            Err(SweepFailure::Controllers(format!(
                "`{other}` is no controller of {}; there are {}",
                args.scenario,
                names.join(", ")
            )))
        }
    }
}

fn run_args(args: &SweepArgs) -> RunArgs {
    RunArgs {
        trials: args.trials,
        jobs: args.jobs,
        quick: args.quick,
        resume: args.resume,
        ..RunArgs::keeping_in(args.out.clone())
    }
}

/// Prints what came of `args` to `out`.
///
/// # Errors
/// See [`SweepFailure`].
pub fn run(args: &SweepArgs, stop: &AtomicBool, out: &mut impl Write) -> Result<(), SweepFailure> {
    let sweep = sweep(args, stop)?;
    out.write_all(to_text(&sweep).as_bytes())
        .map_err(|error| SweepFailure::Run(RunFailure::Print(error)))
}
