//! `lab merge`: the directories of `lab run --shard`, put together to what one `lab run` would have left.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use thiserror::Error;

use crate::run::{Key, Part, Planned, Row, SCENARIOS, SERIES, Store, read_runs};
use crate::words::count;

/// What `lab merge` is told.
#[derive(Args, Clone, Debug)]
pub struct MergeArgs {
    /// Directories of results, as `lab run --shard` made them
    #[arg(value_name = "DIR", required = true)]
    pub directories: Vec<PathBuf>,

    /// Directory for all of them together
    #[arg(long, value_name = "DIR", default_value = "lab-runs")]
    pub out: PathBuf,
}

/// Why nothing was merged.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MergeFailure {
    /// A directory is not one of `lab run --shard`.
    #[error("{} is no shard (there is no shard.json): name directories that `lab run --shard I/N --out DIR` made", .0.display())]
    NoShard(PathBuf),
    /// Two directories are parts of different runs.
    #[error("{} is not of the same runs as {}: {why}", .other.display(), .first.display())]
    OtherRuns {
        /// One of them.
        first: PathBuf,
        /// The other.
        other: PathBuf,
        /// What differs in the other.
        why: String,
    },
    /// Runs are missing.
    #[error("{missing} of {all} runs are missing, the first being {run}: {mend}")]
    Missing {
        /// How many.
        missing: usize,
        /// Of how many.
        all: usize,
        /// The first of them.
        run: String,
        /// What to do.
        mend: String,
    },
    /// Two directories disagree about a run or a file.
    #[error("{what} differs between {} and {}: the same inputs should give the same bytes, so they were made by different programs, or one was changed; leave one away", .first.display(), .other.display())]
    Differs {
        /// What they disagree about.
        what: String,
        /// One of them.
        first: PathBuf,
        /// The other.
        other: PathBuf,
    },
    /// Rows were made by different versions of the program.
    #[error("{} was made by version {theirs} of the program and {} by {ours}: make one of them anew", .other.display(), .first.display())]
    Versions {
        /// One directory.
        first: PathBuf,
        /// Its version.
        ours: String,
        /// The other.
        other: PathBuf,
        /// Its version.
        theirs: String,
    },
    /// The directory for all of them holds results already.
    #[error("{} holds results already: name another directory with --out", .0.display())]
    Exists(PathBuf),
    /// A directory cannot be read.
    #[error("cannot read {}: {error}", .directory.display())]
    Read {
        /// Which.
        directory: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The results cannot be written.
    #[error("cannot keep results in {}: {error}", .directory.display())]
    Write {
        /// Where.
        directory: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The results are there, but that cannot be printed.
    #[error("cannot print the results: {0}")]
    Print(io::Error),
}

impl MergeFailure {
    /// Whether the user asked for something that cannot be.
    pub const fn is_bad_input(&self) -> bool {
        !matches!(self, Self::Write { .. } | Self::Print(_))
    }
}

/// Puts the directories that `args` name together, and says to `out` what there is.
///
/// # Errors
/// See [`MergeFailure`]. Nothing is written unless all is there and consistent.
pub fn merge(args: &MergeArgs, out: &mut impl Write) -> Result<PathBuf, MergeFailure> {
    let parts = args.directories.iter().map(|directory| part(directory));
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    let Some((first, others)) = parts.split_first() else {
        return Err(MergeFailure::NoShard(PathBuf::new()));
    };
    for other in others {
        if let Some(why) = other.1.differs_from(&first.1) {
            return Err(MergeFailure::OtherRuns {
                first: first.0.to_owned(),
                other: other.0.to_owned(),
                why,
            });
        }
    }
    let plan = &first.1.plan;
    let rows = rows(&parts)?;
    let ordered = whole(plan, &rows, &parts)?;
    let files = files(&args.directories)?;

    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => MergeFailure::Exists(args.out.clone()),
        _ => MergeFailure::Write {
            directory: args.out.clone(),
            error,
        },
    };
    let mut store = Store::open(&args.out, false).map_err(failed)?;
    for (name, source) in &files {
        let target = args.out.join(name);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        fs::copy(source.join(name), target).map_err(failed)?;
    }
    for rows in ordered {
        store.add(rows.to_vec()).map_err(failed)?;
    }
    let file = store.finish(plan.iter().map(|run| &run.key)).map_err(failed)?;
    let runs = count(plan.len() as u64, "run", "runs");
    writeln!(out, "{runs} together: {}", file.display()).map_err(MergeFailure::Print)?;
    Ok(file)
}

/// A directory and what it is for.
type Source<'a> = (&'a Path, Part);

fn part(directory: &Path) -> Result<Source<'_>, MergeFailure> {
    match Part::read(directory) {
        Ok(Some(part)) => Ok((directory, part)),
        Ok(None) => Err(MergeFailure::NoShard(directory.to_owned())),
        Err(error) => Err(unreadable(directory)(error)),
    }
}

fn unreadable(directory: &Path) -> impl Fn(io::Error) -> MergeFailure {
    move |error| MergeFailure::Read {
        directory: directory.to_owned(),
        error,
    }
}

/// The rows of a run, and where they were found.
type Found<'a> = BTreeMap<Key, (&'a Path, Vec<Row>)>;

/// The whole runs of all directories.
fn rows<'a>(parts: &[Source<'a>]) -> Result<Found<'a>, MergeFailure> {
    let mut found: Found<'a> = BTreeMap::new();
    let mut version: Option<(&Path, String)> = None;
    for (directory, part) in parts {
        let mut runs = read_runs(directory).map_err(unreadable(directory))?;
        for planned in &part.plan {
            let Some(rows) = runs.remove(&planned.key) else {
                continue;
            };
            if rows.len() != planned.rows as usize {
                continue;
            }
            for row in &rows {
                let (first, ours) = version.get_or_insert_with(|| (directory, row.program.clone()));
                if *ours != row.program {
                    return Err(MergeFailure::Versions {
                        first: first.to_owned(),
                        ours: ours.clone(),
                        other: (*directory).to_owned(),
                        theirs: row.program.clone(),
                    });
                }
            }
            let known = found
                .entry(planned.key.clone())
                .or_insert_with(|| (directory, rows.clone()));
            if known.1 != rows {
                return Err(MergeFailure::Differs {
                    what: planned.key.run_name(),
                    first: known.0.to_owned(),
                    other: (*directory).to_owned(),
                });
            }
        }
    }
    Ok(found)
}

/// The rows of each run of the plan, in its order.
fn whole<'a>(
    plan: &[Planned],
    found: &'a Found<'_>,
    parts: &[Source<'_>],
) -> Result<Vec<&'a [Row]>, MergeFailure> {
    let mut ordered = Vec::with_capacity(plan.len());
    let mut missing = Vec::new();
    for (index, run) in plan.iter().enumerate() {
        match found.get(&run.key) {
            Some((_, rows)) => ordered.push(rows.as_slice()),
            None => missing.push((index, run)),
        }
    }
    let Some((index, run)) = missing.first() else {
        return Ok(ordered);
    };
    let begun = parts.iter().find(|(_, part)| part.shard.has(*index));
    let mend = match (begun, parts.first()) {
        (Some((directory, part)), _) => format!(
            "{} is not done; finish it with --shard {} --resume",
            directory.display(),
            part.shard
        ),
        (None, Some((_, part))) => {
            format!("add the directory of shard {}", part.shard.sibling_with(*index))
        }
        (None, None) => String::new(),
    };
    Err(MergeFailure::Missing {
        missing: missing.len(),
        all: plan.len(),
        run: run.key.run_name(),
        mend,
    })
}

/// Texts of scenarios and time series, by their paths inside the directories, and a directory that has each.
fn files(directories: &[PathBuf]) -> Result<BTreeMap<PathBuf, &Path>, MergeFailure> {
    let mut files: BTreeMap<PathBuf, &Path> = BTreeMap::new();
    for directory in directories {
        let mut names = Vec::new();
        for top in [SCENARIOS, SERIES] {
            list(directory, Path::new(top), &mut names).map_err(unreadable(directory))?;
        }
        for name in names {
            let Some(known) = files.get(&name).copied() else {
                files.insert(name, directory);
                continue;
            };
            let read = |directory: &Path| fs::read(directory.join(&name)).map_err(unreadable(directory));
            if read(known)? != read(directory)? {
                return Err(MergeFailure::Differs {
                    what: name.display().to_string(),
                    first: known.to_owned(),
                    other: directory.clone(),
                });
            }
        }
    }
    Ok(files)
}

/// Adds the files in `inside` of `directory` to `names`, with those in directories there; none if it is not there.
fn list(directory: &Path, inside: &Path, names: &mut Vec<PathBuf>) -> io::Result<()> {
    let entries = match fs::read_dir(directory.join(inside)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let name = inside.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            list(directory, &name, names)?;
        } else {
            names.push(name);
        }
    }
    Ok(())
}
