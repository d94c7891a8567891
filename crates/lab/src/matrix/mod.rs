//! `lab matrix`: all controllers over all scenarios of the papers, ranked by what viewers see.
//!
//! It is the map on which a controller for every path is looked for: add yours and see its row. Runs are those of `lab run`, fewer and
//! with shorter titles; [`Matrix`] says how they are ranked.

mod args;
mod json;
mod page;
mod score;

use std::fs;
use std::io::{self, Write};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use thiserror::Error;

pub use args::{ControllersError, MatrixArgs, default_controllers};
pub use score::{Cell, Matrix, Place, Standing};

use crate::report::results::{ReportFailure, Results};
use crate::run::{self, RunArgs, RunFailure};

/// Trials of each controller in each scenario.
const TRIALS: u32 = 3;
/// The same with `--quick`.
const QUICK_TRIALS: u32 = 1;

/// Why there is no matrix.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MatrixFailure {
    /// A controller is none.
    #[error(transparent)]
    Controllers(#[from] ControllersError),
    /// The runs came to no end.
    #[error(transparent)]
    Run(#[from] RunFailure),
    /// The results cannot be read again.
    #[error(transparent)]
    Results(#[from] ReportFailure),
    /// The matrix cannot be written.
    #[error("cannot write {}: {error}", .file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// What the system says.
        error: io::Error,
    },
}

impl MatrixFailure {
    /// Whether the user asked for something that cannot be.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Controllers(_) => true,
            Self::Run(failure) => failure.is_bad_input(),
            Self::Results(failure) => failure.is_bad_input(),
            Self::Write { .. } => false,
        }
    }
}

/// Makes the runs that `args` ask for and are not there yet, ranks them, writes page, figures and JSON, and prints the table to `out`.
/// Returns the page.
///
/// # Errors
/// See [`MatrixFailure`]. If single runs fail, the others are ranked nevertheless.
pub fn run(args: &MatrixArgs, stop: &AtomicBool, out: &mut impl Write) -> Result<PathBuf, MatrixFailure> {
    let controllers = args.controllers()?;
    let trials = if args.quick { QUICK_TRIALS } else { TRIALS };
    let runs = RunArgs {
        scenarios: args.scenarios.clone(),
        trials: args.trials.or(NonZeroU32::new(trials)),
        jobs: args.jobs,
        quick: true,
        // What is there is kept: a matrix grows by a row at a time.
        resume: true,
        ..RunArgs::keeping_in(args.out.clone())
    };
    let mut scenarios = run::scenarios(&runs).map_err(RunFailure::from)?;
    for scenario in &mut scenarios {
        let scenario = Arc::make_mut(scenario);
        scenario.controllers.clone_from(&controllers);
        scenario.ideal = false;
    }
    let failed = match run::make(&scenarios, &runs, stop, &mut io::sink()) {
        Ok(_) => None,
        Err(failure @ RunFailure::Runs { .. }) => Some(failure),
        Err(failure) => return Err(failure.into()),
    };
    let wanted: Vec<String> = controllers.iter().map(ToString::to_string).collect();
    let matrix = Matrix::of(&Results::load(&args.out)?, &wanted, &scenarios);
    let file = write(&args.out, &matrix)?;
    out.write_all(page::text(&matrix).as_bytes())
        .map_err(RunFailure::Print)?;
    writeln!(out, "The map: {}", file.display()).map_err(RunFailure::Print)?;
    failed.map_or(Ok(file), |failure| Err(failure.into()))
}

fn write(directory: &Path, matrix: &Matrix) -> Result<PathBuf, MatrixFailure> {
    let page = directory.join("matrix.html");
    let files = [
        (page.clone(), page::html(matrix)),
        (directory.join("matrix.json"), json::text(matrix)),
        (directory.join("matrix-ranks.svg"), page::ranks(matrix).svg()),
        (directory.join("matrix-spoilt.svg"), page::spoilt(matrix).svg()),
    ];
    for (file, text) in files {
        fs::write(&file, text).map_err(|error| MatrixFailure::Write { file, error })?;
    }
    Ok(page)
}
