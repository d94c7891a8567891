//! `lab report`: figures, tables and a page from the results in a directory, and from nothing else.

mod bands;
mod beside;
mod fidelity;
mod figures;
mod over_time;
mod page;
mod papers;
mod playback;
mod request;
mod results;
mod spec;

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use crate::claims;
use crate::error::CommandError;

pub(crate) use beside::row_figures;
pub(crate) use page::begin as begin_page;
pub(crate) use request::Drawn;
pub(crate) use results::Results;
pub(crate) use spec::figure_specs;

use page::Texts;

/// Command line of `lab report` with the pages it can make.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ReportCommand {
    #[command(subcommand)]
    page: Option<ReportPage>,

    #[command(flatten)]
    args: ReportArgs,
}

#[derive(Clone, Debug, Subcommand)]
enum ReportPage {
    /// Draw the page on the papers' claims from finished searches of `lab worlds`
    Papers(fidelity::PapersArgs),
}

/// Command line of `lab report`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReportArgs {
    /// Directory of results, as made by `lab run --out` or `lab demo --out`
    #[arg(value_name = "DIR", default_value = "lab-runs")]
    pub directory: PathBuf,

    /// Directory of the report [default: the directory of results]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// A report, ready to be written.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    /// The whole page, which refers to no other file.
    pub html: String,
    /// File name and SVG of each figure.
    pub figures: Vec<(String, String)>,
}

/// File of a directory of results with a headline and, in the lines below, its reasons. `lab demo` writes it.
pub(crate) const EXPLANATION: &str = "explanation.txt";

/// Approximate limit for all curves over time together, in bytes of SVG.
const CURVE_BUDGET: usize = 5_000_000;
/// Approximate size of a curve's bucket of four points, in bytes of SVG.
const BUCKET_BYTES: usize = 22;

/// Makes the report of the results in `directory`. The same files give the same bytes.
///
/// # Errors
/// If there are no results, or they cannot be read.
pub(crate) fn report(directory: &Path) -> Result<Report, CommandError> {
    let results = Results::load(directory)?;
    let specs: Vec<_> = results.experiments.iter().map(figures::specs).collect();
    let pairs = || results.experiments.iter().zip(&specs);
    let lines = pairs().flat_map(|(experiment, specs)| {
        let of_spec = |spec| figures::lines_over_time(experiment, spec);
        specs.iter().map(of_spec)
    });
    let lines: usize = lines.sum();
    let buckets = (CURVE_BUDGET / BUCKET_BYTES / lines.max(1)).clamp(25, 500);
    let drawn: Vec<Vec<_>> = pairs()
        .map(|(experiment, specs)| figures::draw(experiment, specs, buckets))
        .collect();
    let texts = Texts {
        claims: claims::report(&results.rows, &[]).ok(),
        // It is about one experiment, so it is no headline over results that were added later.
        explanation: fs::read_to_string(directory.join(EXPLANATION))
            .ok()
            .filter(|_| results.experiments.len() == 1),
    };
    let html = page::html(&results, &drawn, &texts);
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

/// Writes the page that the command line asks for, and returns its path.
///
/// # Errors
/// If there are no results, or a file cannot be read or written.
pub(crate) fn run(command: &ReportCommand) -> Result<PathBuf, CommandError> {
    match &command.page {
        Some(ReportPage::Papers(args)) => fidelity::write(args),
        None => write(&command.args),
    }
}

/// Makes the report that `args` ask for, writes page and figures, and returns the page's path.
///
/// # Errors
/// If there are no results, or a file cannot be read or written.
pub(crate) fn write(args: &ReportArgs) -> Result<PathBuf, CommandError> {
    let made = report(&args.directory)?;
    let out = args.out.as_deref().unwrap_or(&args.directory);
    let figures = out.join("figures");
    let failed = |file: &Path| {
        let directory = file.to_owned();
        move |error| CommandError::Store { directory, error }
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
