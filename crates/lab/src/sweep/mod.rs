//! `lab sweep`: runs a scenario with several values of a key and shows where the verdicts on its claims flip.

mod table;

use std::io::{self, Write};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use playrate_transport::ControllerChoice;

use table::{to_json, to_text};

use crate::claims::{self, ClaimResult, judge};
use crate::error::CommandError;
use crate::result::{ResultSet, Row, read_directory};
use crate::run::{self, Point, RunArgs, RunSelection, SweptKey};
use crate::scenario::{self, Changes, Scenario, ScenarioSource};

/// Arguments of `lab sweep`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SweepArgs {
    /// A name from `lab list`, or the path of a scenario file
    #[arg(value_name = "SCENARIO")]
    scenario: String,

    /// A key and its values, such as queue=0.5bdp,1bdp,2bdp; several --over make all combinations
    #[arg(long, value_name = "KEY=V1,V2,...", required = true)]
    over: Vec<SweptKey>,

    /// Run only these controllers, separated by commas; claims about others are reported as not run
    #[arg(long, value_name = "LIST")]
    controllers: Option<String>,

    /// Run fewer trials of a shorter title, as the scenario's `quick` table says
    #[arg(long)]
    quick: bool,

    /// Runs of each controller with each value [default: as in the scenario]
    #[arg(long, value_name = "N")]
    trials: Option<NonZeroU32>,

    /// Runs at the same time [default: number of cores]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,

    /// Directory for the results
    #[arg(long, value_name = "DIR", default_value = "lab-sweep")]
    out: PathBuf,

    /// Keep the results in the directory and run only what is missing
    #[arg(long)]
    resume: bool,
}

/// The verdicts on a scenario's claims for each combination of values.
#[derive(Clone, Debug)]
struct Sweep {
    scenario: String,
    /// True for runs of `--quick`.
    quick: bool,
    over: Vec<SweptKey>,
    points: Vec<(Point, Vec<ClaimResult>)>,
}

/// The cases of one combination of values: each with its name in the results and its own name.
type PointCases = Vec<(String, String)>;

/// Makes the runs and decides the claims; the results are kept in the directory, with `sweep.json`.
fn sweep(args: &SweepArgs, stop: &AtomicBool) -> Result<Sweep, CommandError> {
    let made = claims::read(&ScenarioSource::find(&args.scenario)?.document()?)?;
    if made.claims.is_empty() {
        return Err(CommandError::BadInput(format!(
            "scenario {} makes no claims, so no verdict can flip: add a [[claim]], or use `lab run`",
            made.scenario
        )));
    }
    let only = controllers(args)?;
    let selection = RunSelection {
        scenarios: vec![args.scenario.clone()],
        trials: args.trials,
        quick: args.quick,
        over: args.over.clone(),
        ..RunSelection::default()
    };
    let mut points: Vec<Point> = Vec::new();
    let mut scenarios: Vec<Arc<Scenario>> = Vec::new();
    let mut cases: Vec<PointCases> = Vec::new();
    for (point, under) in selection.by_point()? {
        points.push(point);
        cases.push(
            under
                .iter()
                .map(|case| (case.scenario.case.clone(), case.own.clone()))
                .collect(),
        );
        for mut case in under {
            if let Some(only) = &only {
                case.scenario.controllers.retain(|one| only.contains(one));
            }
            scenarios.push(Arc::new(case.scenario));
        }
    }
    let runs = RunArgs {
        jobs: args.jobs,
        resume: args.resume,
        out: args.out.clone(),
        ..RunArgs::default()
    };
    run::make(&scenarios, &runs, stop, &mut io::sink())?;
    let rows = read_directory(&args.out).map_err(|error| CommandError::read(&args.out, error))?;
    let of = |cases: &PointCases| {
        let mine = rows.iter().filter_map(|row| {
            let (_, own) = cases.iter().find(|(name, _)| *name == row.key.case)?;
            // The directory may hold results of the same values in another version of the scenario.
            let is_its = |scenario: &Arc<Scenario>| scenario.hash == row.key.scenario_hash;
            let mut row = scenarios.iter().any(is_its).then(|| row.clone())?;
            row.key.case.clone_from(own);
            Some(row)
        });
        let mine: Vec<Row> = mine.collect();
        let results = ResultSet::of(&mine);
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
    let file = args.out.join("sweep.json");
    match std::fs::write(&file, to_json(&sweep)) {
        Ok(()) => Ok(sweep),
        Err(error) => Err(CommandError::Write { file, error }),
    }
}

fn controllers(args: &SweepArgs) -> Result<Option<Vec<ControllerChoice>>, CommandError> {
    let Some(list) = &args.controllers else {
        return Ok(None);
    };
    let only = ControllerChoice::list(list).map_err(|error| CommandError::BadInput(error.to_string()))?;
    let cases = scenario::open(&args.scenario, &Changes::default())?;
    let known: Vec<&ControllerChoice> = cases.iter().flat_map(|case| &case.controllers).collect();
    match only.iter().find(|one| !known.contains(one)) {
        None => Ok(Some(only)),
        Some(other) => {
            let names: Vec<String> = cases.first().map_or_else(Vec::new, |case| {
                case.controllers.iter().map(ToString::to_string).collect()
            });
            Err(CommandError::BadInput(format!(
                "`{other}` is not a controller of {}; expected one of: {}",
                args.scenario,
                names.join(", ")
            )))
        }
    }
}

/// Runs `lab sweep` and prints the verdicts to `out`.
pub(crate) fn run(args: &SweepArgs, stop: &AtomicBool, out: &mut impl Write) -> Result<(), CommandError> {
    let sweep = sweep(args, stop)?;
    out.write_all(to_text(&sweep).as_bytes())
        .map_err(CommandError::Print)
}
