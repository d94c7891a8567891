//! `lab report`: figures, tables and a page from what `lab run` stored, and from nothing else.

mod adaptive;
mod defaults;
mod draw;
mod load;
mod page;
mod papers;
mod series;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use thiserror::Error;

use crate::claims;

pub use draw::Drawn;
pub use load::{CaseResults, ControllerResults, Experiment, Flows, Results};

/// The command line of `lab report`.
#[derive(Args, Clone, Debug)]
pub struct ReportArgs {
    /// Directory of results, as `lab run --out` made it
    #[arg(value_name = "DIR", default_value = "lab-runs")]
    pub directory: PathBuf,

    /// Where the report goes; the directory of results if not given
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Why there is no report.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReportFailure {
    /// There are no results.
    #[error("{} holds no results: make some with `lab run SCENARIO --series --out {}`", .0.display(), .0.display())]
    Nothing(PathBuf),
    /// Results cannot be read.
    #[error("cannot read the results in {}: {error}", .directory.display())]
    Read {
        /// Where.
        directory: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The report cannot be written.
    #[error("cannot write {}: {error}", .file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// What the system says.
        error: io::Error,
    },
}

impl ReportFailure {
    /// Whether the user asked for something that cannot be.
    pub const fn is_bad_input(&self) -> bool {
        matches!(self, Self::Nothing(_))
    }
}

/// A report, ready to be written.
#[derive(Clone, Debug)]
pub struct Report {
    /// The page.
    pub html: String,
    /// The figures alone: name of a file and SVG.
    pub figures: Vec<(String, String)>,
}

/// Bytes that all curves over time together should not exceed by much.
const CURVE_BUDGET: usize = 5_000_000;
/// Bytes that a bucket of a curve takes: four points.
const BUCKET_BYTES: usize = 22;

/// Makes the report of the results in `directory`. The same files give the same bytes.
///
/// # Errors
/// If there are no results, or they cannot be read.
pub fn report(directory: &Path) -> Result<Report, ReportFailure> {
    let results = Results::load(directory)?;
    let specs: Vec<_> = results.experiments.iter().map(defaults::figures).collect();
    let pairs = || results.experiments.iter().zip(&specs);
    let lines: usize = pairs()
        .flat_map(|(experiment, specs)| specs.iter().map(|spec| draw::lines_over_time(experiment, spec)))
        .sum();
    let source = draw::Source {
        directory,
        buckets: (CURVE_BUDGET / BUCKET_BYTES / lines.max(1)).clamp(25, 500),
    };
    let drawn: Vec<Vec<Drawn>> = pairs()
        .map(|(experiment, specs)| {
            let all = specs.iter().flat_map(|spec| draw::draw(experiment, spec, source));
            all.collect()
        })
        .collect();
    let claims = claims::report(results.rows.clone(), &[]).ok();
    let html = page::html(&results, &drawn, claims.as_ref());
    let mut figures: Vec<(String, String)> = Vec::new();
    for one in drawn.into_iter().flatten() {
        let mut name = format!("{}.svg", one.name);
        let mut number = 2;
        while figures.iter().any(|(known, _)| *known == name) {
            name = format!("{}-{number}.svg", one.name);
            number += 1;
        }
        figures.push((name, one.svg));
    }
    Ok(Report { html, figures })
}

/// Makes the report that `args` ask for and writes it; gives the page's path.
///
/// # Errors
/// See [`ReportFailure`].
pub fn write(args: &ReportArgs) -> Result<PathBuf, ReportFailure> {
    let made = report(&args.directory)?;
    let out = args.out.as_deref().unwrap_or(&args.directory);
    let figures = out.join("figures");
    let failed = |file: &Path| {
        let file = file.to_owned();
        move |error| ReportFailure::Write { file, error }
    };
    fs::create_dir_all(&figures).map_err(failed(&figures))?;
    for (name, svg) in &made.figures {
        let file = figures.join(name);
        fs::write(&file, svg).map_err(failed(&file))?;
    }
    let file = out.join("report.html");
    fs::write(&file, &made.html).map_err(failed(&file))?;
    Ok(file)
}

#[cfg(test)]
mod tests;
