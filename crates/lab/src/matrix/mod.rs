//! `lab matrix`: runs all controllers in all scenarios of the papers and ranks them by what viewers see.
//!
//! Runs are those of `lab run`, fewer and with shorter titles; [`score`] has the rules of the ranking.

mod args;
mod candidates;
mod classes;
mod page;
mod regret;
mod score;

use std::fs;
use std::io::{self, Write};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub(crate) use args::MatrixArgs;
use score::Matrix;

use crate::error::CommandError;
use crate::result::{ResultSet, read_directory};
use crate::run::{self, RunArgs, RunSelection};

const TRIALS: u32 = 3;
/// The same with `--quick`, and on generated paths.
const QUICK_TRIALS: u32 = 1;

/// Makes the runs that are missing, ranks the controllers, writes page, figures and JSON, and prints the table
/// to `out`. Returns the page's path. If single runs fail, the others are ranked before the error is returned.
pub(crate) fn run(
    args: &MatrixArgs,
    stop: &AtomicBool,
    out: &mut impl Write,
) -> Result<PathBuf, CommandError> {
    let controllers = args.controllers()?;
    // Many paths say more than many trials of few.
    let few = args.quick || args.paths.is_some();
    let trials = if few { QUICK_TRIALS } else { TRIALS };
    let selection = RunSelection {
        scenarios: args.scenario_names(),
        trials: args.trials.or(NonZeroU32::new(trials)),
        quick: true,
        settings: args.settings.clone(),
        ..RunSelection::default()
    };
    let runs = RunArgs {
        jobs: args.jobs,
        // Results that are there are kept: a matrix grows by one row at a time.
        resume: true,
        out: args.out.clone(),
        ..RunArgs::default()
    };
    let mut scenarios = selection.open()?;
    for scenario in &mut scenarios {
        let scenario = Arc::make_mut(scenario);
        scenario.controllers.clone_from(&controllers);
        scenario.ideal = false;
    }
    let failed = match run::make(&scenarios, &runs, stop, &mut io::sink()) {
        Ok(_) => None,
        Err(error @ CommandError::Runs { .. }) => Some(error),
        Err(error) => return Err(error),
    };
    let wanted: Vec<String> = controllers.iter().map(ToString::to_string).collect();
    let rows = read_directory(&args.out).map_err(|error| CommandError::read(&args.out, error))?;
    let matrix = Matrix::of(&ResultSet::of(&rows), &wanted, &scenarios);
    let file = write(&args.out, &matrix)?;
    let text = match &args.search {
        Some(space) => space.text(&matrix),
        None => page::text(&matrix),
    };
    out.write_all(text.as_bytes()).map_err(CommandError::Print)?;
    writeln!(out, "Matrix with figures: {}", file.display()).map_err(CommandError::Print)?;
    failed.map_or(Ok(file), Err)
}

fn write(directory: &Path, matrix: &Matrix) -> Result<PathBuf, CommandError> {
    let page = directory.join("matrix.html");
    let files = [
        (page.clone(), page::html(matrix)),
        (directory.join("matrix.json"), page::json(matrix)),
        (directory.join("matrix-ranks.svg"), page::ranks(matrix).svg()),
        (directory.join("matrix-spoilt.svg"), page::scores(matrix).svg()),
        (directory.join("matrix-regret.svg"), regret::map(matrix).svg()),
    ];
    for (file, text) in files {
        fs::write(&file, text).map_err(|error| CommandError::Write { file, error })?;
    }
    Ok(page)
}
