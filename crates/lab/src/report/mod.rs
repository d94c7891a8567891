//! `lab report`: one self-contained page with the results in some directories. The browser draws it from their rows and
//! time series.

mod curves;
mod decimate;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use askama::Template;
use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::controllers::{Controller, short_name};
use crate::error::CommandError;
use crate::metric::{METRICS, Metric};
use crate::result::{Row, read_directories};
use crate::scenario::{Changes, ScenarioSource};
use crate::summary::{self, Group};
use curves::Curve;

/// Command line of `lab report`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReportArgs {
    /// Directories of results, as made by `lab run --out` or `lab demo --out`
    #[arg(value_name = "DIR", default_value = "lab-runs")]
    pub(crate) directories: Vec<PathBuf>,

    /// Controller with which the others are compared, trial by trial
    #[arg(long, value_name = "SPEC")]
    pub(crate) baseline: Option<Controller>,

    /// Directory of the page [default: the first directory of results]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// File in a directory of results with a headline and its reasons on the following lines. `lab demo` writes it.
pub(crate) const EXPLANATION: &str = "explanation.txt";

const STYLE: &str = include_str!("assets/report.css");
const SCRIPT: &str = include_str!("assets/report.js");
const CHART_LIBRARY: &str = include_str!("assets/dygraph.min.js");

/// The page, including everything that it needs.
#[derive(Template)]
#[template(path = "report.html")]
struct Page {
    /// The table that is shown without JavaScript.
    table: String,
    /// The [`Results`] of all trials, as JSON.
    data: String,
}

/// The data of the page.
#[derive(Serialize)]
struct Results {
    program: &'static str,
    title: String,
    /// Headline and reasons of `lab demo`; empty without them.
    explanation: Vec<String>,
    metrics: &'static [Metric],
    cases: Vec<Case>,
}

/// A group of the summary with its rows and curves.
#[derive(Serialize)]
struct Case {
    name: String,
    paths: usize,
    about: String,
    /// Short names, in the order of the rows.
    controllers: Vec<String>,
    summaries: Vec<Value>,
    rows: Vec<Value>,
    curves: Vec<Curve>,
}

/// Writes the page requested by `args` and returns its path. The same results give the same bytes.
///
/// # Errors
/// If a directory has no results, or two have different results of the same run, or the baseline was not run, or the
/// page cannot be written.
pub(crate) fn write(args: &ReportArgs) -> Result<PathBuf, CommandError> {
    let rows = read_directories(&args.directories)?;
    let baseline = args.baseline.as_ref().map(ToString::to_string);
    if let Some(name) = &baseline
        && !rows.iter().any(|row| row.key.controller == *name)
    {
        return Err(CommandError::BadInput(format!(
            "the baseline `{name}` was not run: no row has this controller"
        )));
    }
    check_versions(&rows)?;
    let groups = summary::groups(&rows, baseline.as_deref());
    let results = results(args, &rows, &groups);
    let out = args
        .out
        .as_deref()
        .or(args.directories.first().map(PathBuf::as_path));
    let out = out.unwrap_or(Path::new("."));
    let file = out.join("report.html");
    let failed = |error| CommandError::Write {
        file: file.clone(),
        error,
    };
    fs::create_dir_all(out).map_err(failed)?;
    let data = serde_json::to_string(&results).map_err(|error| failed(error.into()))?;
    let page = Page {
        table: summary::text(&groups),
        // A `<` could close the element that holds the data.
        data: data.replace('<', "\\u003c"),
    };
    fs::write(&file, format!("{page}\n")).map_err(failed)?;
    Ok(file)
}

/// Checks that all rows of a scenario or case have the same settings.
fn check_versions(rows: &[Row]) -> Result<(), CommandError> {
    let mut hashes: BTreeMap<String, &str> = BTreeMap::new();
    for row in rows {
        let hash = hashes
            .entry(row.key.full_name())
            .or_insert(&row.key.scenario_hash);
        if *hash != row.key.scenario_hash {
            return Err(CommandError::BadInput(format!(
                "the results of {} come from several settings, such as --quick and full titles; write each into a \
                 directory of its own with `lab run --out`",
                row.key.full_name()
            )));
        }
    }
    Ok(())
}

fn results(args: &ReportArgs, rows: &[Row], groups: &[Group<'_>]) -> Results {
    // An explanation is about one experiment, so it must not head results that were added later.
    let explanation = match (args.directories.as_slice(), groups) {
        ([directory], [_]) => fs::read_to_string(directory.join(EXPLANATION)).unwrap_or_default(),
        _ => String::new(),
    };
    let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
    let budget = curves::points_per_line(args, rows);
    Results {
        program: env!("CARGO_PKG_VERSION"),
        title: format!("Results: {}", names.join(", ")),
        explanation: explanation.lines().map(str::to_owned).collect(),
        metrics: METRICS,
        cases: groups
            .iter()
            .map(|group| {
                let own = &group.rows;
                Case {
                    name: group.name.clone(),
                    paths: group.paths,
                    about: own.first().map_or_else(String::new, |row| about(args, row)),
                    controllers: group.controllers.iter().map(|name| short_name(name)).collect(),
                    summaries: group.summaries.iter().map(short).collect(),
                    curves: curves::read(&args.directories, own, budget),
                    rows: own.iter().map(|one| row(one)).collect(),
                }
            })
            .collect(),
    }
}

/// A summary with the short names of controllers.
fn short(summary: &summary::Summary) -> Value {
    let mut value = json!(summary);
    value["controller"] = short_name(&summary.controller).into();
    if let Some(difference) = &summary.difference {
        value["difference"]["baseline"] = short_name(&difference.baseline).into();
    }
    value
}

fn row(row: &Row) -> Value {
    let values = METRICS
        .iter()
        .filter_map(|metric| Some((metric.name.to_owned(), json!(metric.value(row)?))));
    json!({
        "scenario": row.key.full_name(),
        "controller": short_name(&row.key.controller),
        "trial": row.key.trial,
        "seed": row.key.seed,
        "role": row.role,
        "viewer": row.viewer,
        "values": values.collect::<Map<_, _>>(),
    })
}

/// The scenario's own description, from its text stored next to the rows.
fn about(args: &ReportArgs, row: &Row) -> String {
    let file = format!("scenarios/{}.toml", row.key.scenario);
    let text = args
        .directories
        .iter()
        .find_map(|directory| fs::read_to_string(directory.join(&file)).ok());
    let Some(text) = text else { return String::new() };
    let source = ScenarioSource::new(&row.key.scenario, &file, text, Path::new("scenarios"));
    let cases = source.scenarios(&Changes::default()).unwrap_or_default();
    let own = cases
        .iter()
        .find(|case| case.case == row.key.case)
        .or(cases.first());
    own.map_or_else(String::new, |scenario| {
        let mut about = scenario.about.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some(case) = &scenario.case_about {
            // Writing to a String cannot fail.
            let _ = write!(about, " {case}");
        }
        about
    })
}

#[cfg(test)]
mod tests;
