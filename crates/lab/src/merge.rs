//! `lab merge`: combines the directories of `lab run --shard` into the one that a single `lab run` would have written.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::error::CommandError;
use crate::result::{ResultKey, Row, SCENARIOS, SERIES, Store, read_runs};
use crate::run::{PlannedRun, ShardPlan};
use crate::words::count;

/// Command line of `lab merge`.
#[derive(Args, Clone, Debug)]
pub(crate) struct MergeArgs {
    /// Directories that `lab run --shard` wrote
    #[arg(value_name = "DIR", required = true)]
    pub(crate) directories: Vec<PathBuf>,

    /// Directory for the merged results
    #[arg(long, value_name = "DIR", default_value = "lab-runs")]
    pub(crate) out: PathBuf,

    /// Keep the results in the directory and add the merged ones, such as after an interrupted merge
    #[arg(long)]
    pub(crate) resume: bool,
}

/// Merges the directories of `args` and prints a line to `out`.
///
/// # Errors
/// Nothing is written unless all runs are there and consistent.
pub(crate) fn merge(args: &MergeArgs, out: &mut impl Write) -> Result<PathBuf, CommandError> {
    let shards = args.directories.iter().map(|directory| open(directory));
    let shards = shards.collect::<Result<Vec<_>, _>>()?;
    let Some((first, others)) = shards.split_first() else {
        return Err(no_shard(Path::new("")));
    };
    for other in others {
        if let Some(why) = other.1.difference_from(&first.1) {
            return Err(CommandError::BadInput(format!(
                "{} is a shard of other runs than {}: {why}",
                other.0.display(),
                first.0.display()
            )));
        }
    }
    let plan = &first.1.plan;
    let rows = rows(&shards)?;
    let ordered = in_order(plan, &rows, &shards)?;
    let files = files(&args.directories)?;

    let advice = "add --resume to keep them and add the merged ones, or choose another directory with --out";
    let failed = |error| CommandError::store(&args.out, error, advice);
    let mut store = Store::open(&args.out, args.resume).map_err(failed)?;
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
    writeln!(out, "{runs} together: {}", file.display()).map_err(CommandError::Print)?;
    Ok(file)
}

type ShardDirectory<'a> = (&'a Path, ShardPlan);

fn open(directory: &Path) -> Result<ShardDirectory<'_>, CommandError> {
    match ShardPlan::read(directory) {
        Ok(Some(plan)) => Ok((directory, plan)),
        Ok(None) => Err(no_shard(directory)),
        Err(error) => Err(unreadable(directory)(error)),
    }
}

fn no_shard(directory: &Path) -> CommandError {
    CommandError::BadInput(format!(
        "{} is not a shard: it has no shard.json; name directories that `lab run --shard I/N --out DIR` wrote",
        directory.display()
    ))
}

fn unreadable(directory: &Path) -> impl Fn(io::Error) -> CommandError {
    move |error| CommandError::BadInput(format!("cannot read {}: {error}", directory.display()))
}

/// Two directories have different results for the same run, or different files of the same name.
fn differs(what: &str, first: &Path, other: &Path) -> CommandError {
    CommandError::BadInput(format!(
        "{what} differs between {} and {}: they were made by different programs, or one was edited; leave out one of \
         the directories",
        first.display(),
        other.display()
    ))
}

/// The rows of a run, and the directory in which they were found.
type FoundRows<'a> = BTreeMap<ResultKey, (&'a Path, Vec<Row>)>;

/// The complete runs of all directories.
fn rows<'a>(shards: &[ShardDirectory<'a>]) -> Result<FoundRows<'a>, CommandError> {
    let mut found: FoundRows<'a> = BTreeMap::new();
    let mut version: Option<(&Path, String)> = None;
    for (directory, plan) in shards {
        let mut runs = read_runs(directory).map_err(unreadable(directory))?;
        for planned in &plan.plan {
            let Some(rows) = runs.remove(&planned.key) else {
                continue;
            };
            if rows.len() != planned.rows as usize {
                continue;
            }
            for row in &rows {
                let (first, ours) = version.get_or_insert_with(|| (directory, row.program.clone()));
                if *ours != row.program {
                    return Err(CommandError::BadInput(format!(
                        "{} was made by version {} of the program and {} by version {ours}; make one of them again",
                        directory.display(),
                        row.program,
                        first.display()
                    )));
                }
            }
            let known = found
                .entry(planned.key.clone())
                .or_insert_with(|| (directory, rows.clone()));
            if known.1 != rows {
                return Err(differs(&planned.key.run_name(), known.0, directory));
            }
        }
    }
    Ok(found)
}

/// The rows of each run of the plan, in its order.
fn in_order<'a>(
    plan: &[PlannedRun],
    found: &'a FoundRows<'_>,
    shards: &[ShardDirectory<'_>],
) -> Result<Vec<&'a [Row]>, CommandError> {
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
    let begun = shards.iter().find(|(_, plan)| plan.shard.has(*index));
    let fix = match (begun, shards.first()) {
        (Some((directory, plan)), _) => format!(
            "{} is not complete: finish it with --shard {} --resume",
            directory.display(),
            plan.shard
        ),
        (None, Some((_, plan))) => {
            format!("add the directory of shard {}", plan.shard.sibling_with(*index))
        }
        (None, None) => String::new(),
    };
    Err(CommandError::BadInput(format!(
        "{} of {} runs are missing, first {}; {fix}",
        missing.len(),
        plan.len(),
        run.key.run_name()
    )))
}

/// Paths of scenario texts and time series inside the directories, each with a directory that has it.
fn files(directories: &[PathBuf]) -> Result<BTreeMap<PathBuf, &Path>, CommandError> {
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
                return Err(differs(&name.display().to_string(), known, directory));
            }
        }
    }
    Ok(files)
}

/// Adds the files below `inside` in `directory` to `names`; none if there is no such directory.
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
