//! `lab report papers`: the page on the papers' claims and its data, drawn from finished searches and from nothing
//! else.

mod counts;
mod kept;
mod markdown;
mod page;
mod pictures;
mod random;
mod verdicts;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use super::{Drawn, row_figures};
use crate::error::CommandError;
use crate::worlds::{Declared, Finished, built_in_beds, is_finished, test_bed_of};

use kept::Kept;
use page::{FIGURES, Shown};
use verdicts::{Fidelity, RowVerdicts};

/// Command line of `lab report papers`.
#[derive(Args, Clone, Debug)]
pub(crate) struct PapersArgs {
    /// Directory with a finished search, or with those of several test beds in DIR/kyutech, DIR/ns2 and DIR/mininet
    #[arg(value_name = "DIR", default_value = "lab-worlds")]
    directory: PathBuf,

    /// Directory of the page
    #[arg(long, value_name = "DIR", default_value = "docs")]
    out: PathBuf,

    /// Write nothing, and fail if a file of the page differs from what would be written
    #[arg(long)]
    check: bool,

    /// File of a test bed of your own, whose search is in DIR or in a directory of its name there
    #[arg(long = "test-bed", value_name = "FILE")]
    test_beds: Vec<String>,
}

/// File of the data, in the page's directory.
const DATA: &str = "fidelity.json";
/// File of the page.
const PAGE: &str = "fidelity.md";

/// Draws the page that `args` ask for, and writes or compares its files. Returns the page's path.
///
/// # Errors
/// If a search is missing, unfinished or of another version, words that people wrote do not fit the results, or a file
/// cannot be written, or differs.
pub(crate) fn write(args: &PapersArgs) -> Result<PathBuf, CommandError> {
    let files = files(args)?;
    let page = args.out.join(PAGE);
    if args.check {
        let differs = |(name, text): &(&String, &String)| {
            fs::read(args.out.join(name)).map_or(true, |there| there != text.as_bytes())
        };
        let stale: Vec<String> = files
            .iter()
            .filter(differs)
            .map(|(name, _)| name.clone())
            .collect();
        return if stale.is_empty() {
            Ok(page)
        } else {
            Err(CommandError::Stale {
                directory: args.out.clone(),
                files: stale,
            })
        };
    }
    let failed = |path: &Path, error: &std::io::Error| CommandError::cannot_write(path, error);
    let figures = args.out.join(FIGURES);
    fs::create_dir_all(&figures).map_err(|error| failed(&figures, &error))?;
    for (name, text) in &files {
        let file = args.out.join(name);
        fs::write(&file, text).map_err(|error| failed(&file, &error))?;
    }
    Ok(page)
}

/// Path below the page's directory, and text, of every file.
fn files(args: &PapersArgs) -> Result<BTreeMap<String, String>, CommandError> {
    let (beds, searches) = searches(args)?;
    let fidelity = Fidelity::of(&beds, &searches)?;
    let kept = Kept::read(&args.out)?;
    let summary = kept.summary(&fidelity, &args.out)?;
    kept.check_reasons(&fidelity, &args.out)?;
    let figures: Vec<Vec<Drawn>> = fidelity
        .rows
        .iter()
        .map(|row| row_pictures(row, &searches))
        .collect();
    let landscapes: Vec<(String, String)> = searches
        .iter()
        .filter_map(|search| Some((search.outcome.test_bed.clone(), pictures::landscape(search)?)))
        .collect();
    let drawn: Vec<String> = landscapes.iter().map(|(bed, _)| bed.clone()).collect();
    let page = page::markdown(&Shown {
        fidelity: &fidelity,
        kept: &kept,
        summary: &summary,
        figures: &figures,
        landscapes: &drawn,
    });
    let data = fidelity.json().map_err(|error| CommandError::Write {
        file: args.out.join(DATA),
        error: error.into(),
    })?;
    let mut files = BTreeMap::from([
        (PAGE.to_owned(), page),
        (DATA.to_owned(), data),
        (
            format!("{FIGURES}/heat-map.svg"),
            pictures::heat_map(&fidelity, &searches),
        ),
    ]);
    for (bed, svg) in landscapes {
        files.insert(format!("{FIGURES}/{}", page::landscape_name(&bed)), svg);
    }
    for figure in figures
        .into_iter()
        .flatten()
        .filter(|figure| !figure.svg.is_empty())
    {
        files.insert(format!("{FIGURES}/{}.svg", figure.name), figure.svg);
    }
    Ok(files)
}

/// The figures of a row, for both worlds of its test bed in the same axes.
fn row_pictures(row: &RowVerdicts, searches: &[Finished]) -> Vec<Drawn> {
    let mut searches = searches.iter();
    let search = searches.find(|search| row.test_bed.as_ref() == Some(&search.outcome.test_bed));
    search.map_or_else(Vec::new, |search| {
        let is_one_world = search.outcome.nominal.choices == search.outcome.fitted.choices;
        let worlds = if is_one_world {
            vec![&search.nominal]
        } else {
            vec![&search.nominal, &search.fitted]
        };
        row_figures(&row.id, &worlds)
    })
}

/// All test beds, one's own first, and their finished searches.
fn searches(args: &PapersArgs) -> Result<(Vec<Declared>, Vec<Finished>), CommandError> {
    let own = args.test_beds.iter().map(|file| Declared::read(file));
    let beds = own
        .chain(built_in_beds().map(Declared::read))
        .collect::<Result<Vec<_>, _>>()?;
    let known: Vec<&str> = beds.iter().map(Declared::name).collect();
    let mut searches = Vec::new();
    if is_finished(&args.directory) {
        let found = test_bed_of(&args.directory)?;
        let bed = beds.iter().find(|bed| bed.name() == found).ok_or_else(|| {
            CommandError::BadInput(format!(
                "{} has a search of the test bed `{found}`; expected one of: {}; a test bed of your own is named with \
                 --test-bed",
                args.directory.display(),
                known.join(", ")
            ))
        })?;
        searches.push(Finished::read(bed, &args.directory)?);
    } else {
        for bed in &beds {
            let directory = args.directory.join(bed.name());
            if directory.is_dir() {
                searches.push(Finished::read(bed, &directory)?);
            }
        }
    }
    if searches.is_empty() {
        return Err(CommandError::BadInput(format!(
            "{} has no finished search: expected worlds.json in it, or in a directory of it that is called {}; `lab \
             worlds` makes it",
            args.directory.display(),
            known.join(", ")
        )));
    }
    Ok((beds, searches))
}

#[cfg(test)]
mod tests;
