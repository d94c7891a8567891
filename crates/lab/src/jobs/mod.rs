//! `lab jobs`: writes the runs of `lab run` as jobs for a cluster, each a shard, and a last one that merges them.
//!
//! One [`JobList`] is the source of all formats, so that every scheduler runs the same commands.

mod kubernetes;
mod shell;
mod slurm;

use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::error::CommandError;
use crate::run::{RunSelection, plan};

const FORMAT: &str = "lab-jobs";
/// Version of the format: within one, fields are added, never renamed or removed.
const VERSION: u32 = 1;
/// Directory of the shards, inside that of the results.
const SHARDS: &str = "shards";

/// Command line of `lab jobs`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Each job is a `lab run --shard I/N` into DIR/shards/I; the last one merges all into DIR, which is then to the byte \
what one `lab run --out DIR` would have written. Nothing is run by this command. A job that is run again goes on \
where it was interrupted, and one that was finished changes nothing.

Examples:
  lab jobs papers --shards 64 --format slurm > papers.sh && bash papers.sh
  lab jobs papers --shards 64 --format kubernetes --image lab:1 --claim runs \\
      > papers.yaml && kubectl create -f papers.yaml
  lab jobs papers --shards 64 > papers.json      # for other schedulers")]
pub(crate) struct JobsArgs {
    #[command(flatten)]
    selection: RunSelection,

    /// Number of jobs among which the runs are divided; results do not depend on it
    #[arg(long, value_name = "N")]
    shards: NonZeroUsize,

    /// Cores of each job
    #[arg(long, value_name = "N", default_value = "1")]
    cores: NonZeroUsize,

    /// Form in which the jobs are printed to stdout
    #[arg(long, value_enum, default_value = "json")]
    format: JobFormat,

    /// Directory for the results, on storage that all jobs share
    #[arg(long, value_name = "DIR", default_value = "lab-runs")]
    out: PathBuf,

    /// The program on the machines that run the jobs, of the version of this one
    #[arg(long, value_name = "PROGRAM", default_value = "lab")]
    lab: String,

    /// Name of the jobs at the scheduler
    #[arg(long, value_name = "NAME", default_value = "lab")]
    name: String,

    /// Kubernetes: container image that has the program and `sh`
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,

    /// Kubernetes: claim on the shared volume; scenario files and DIR are paths from its root
    #[arg(long, value_name = "CLAIM")]
    claim: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum JobFormat {
    /// The list of jobs as JSON, for programs.
    Json,
    /// A shell script that submits a Slurm array, and a job that merges after it.
    Slurm,
    /// A manifest with an indexed Kubernetes Job, and a suspended Job that merges.
    Kubernetes,
}

/// The jobs that make the runs of a selection.
#[derive(Debug, Serialize)]
struct JobList {
    format: &'static str,
    version: u32,
    /// Version of the program.
    program: &'static str,
    /// Number of runs of all jobs.
    runs: usize,
    /// Cores of each job.
    cores: usize,
    jobs: Vec<ShardJob>,
    merge: MergeJob,
    #[serde(skip)]
    template: Template,
}

/// The job of one shard.
#[derive(Debug, Serialize)]
struct ShardJob {
    shard: String,
    /// Number of its runs.
    runs: usize,
    command: Vec<String>,
    /// Directory that the command writes.
    directory: String,
}

/// The job that merges all shards after they are finished.
#[derive(Debug, Serialize)]
struct MergeJob {
    command: Vec<String>,
    /// Directory that the command writes.
    directory: String,
}

/// The commands of all jobs, for any number of a job.
#[derive(Clone, Debug)]
struct Template {
    lab: String,
    selection: Vec<String>,
    shards: usize,
    cores: usize,
    out: String,
}

impl Template {
    fn directory(&self, number: &str) -> String {
        format!("{}/{SHARDS}/{number}", self.out)
    }

    /// The command of the job `number`, which is a number from 1 or what the scheduler replaces with it.
    fn command(&self, number: &str) -> Vec<String> {
        let shard = format!("{number}/{}", self.shards);
        let (cores, directory) = (self.cores.to_string(), self.directory(number));
        let mut words = vec![self.lab.clone(), "run".to_owned()];
        words.extend_from_slice(&self.selection);
        let own = [
            "--shard", &shard, "--jobs", &cores, "--out", &directory, "--resume",
        ];
        words.extend(own.map(str::to_owned));
        words
    }

    fn merge_command(&self) -> Vec<String> {
        let mut words = vec![self.lab.clone(), "merge".to_owned()];
        words.extend((1..=self.shards).map(|number| self.directory(&number.to_string())));
        words.extend(["--out", &self.out, "--resume"].map(str::to_owned));
        words
    }
}

impl JobsArgs {
    /// Names of the scenarios and groups.
    pub(crate) fn scenarios(&self) -> &[String] {
        &self.selection.scenarios
    }
}

impl JobList {
    fn new(args: &JobsArgs) -> Result<Self, CommandError> {
        let shards = args.shards.get();
        let runs = plan(&args.selection.open()?).len();
        if shards > runs {
            return Err(CommandError::BadInput(format!(
                "`--shards` must be at most the number of runs, {runs} (got {shards})"
            )));
        }
        let out = args.out.to_str().ok_or_else(|| {
            CommandError::BadInput(format!("--out {} must be UTF-8 text", args.out.display()))
        })?;
        let template = Template {
            lab: args.lab.clone(),
            selection: args.selection.arguments(),
            shards,
            cores: args.cores.get(),
            out: out.to_owned(),
        };
        let job = |number: usize| ShardJob {
            shard: format!("{number}/{shards}"),
            runs: runs / shards + usize::from(number <= runs % shards),
            command: template.command(&number.to_string()),
            directory: template.directory(&number.to_string()),
        };
        Ok(Self {
            format: FORMAT,
            version: VERSION,
            program: env!("CARGO_PKG_VERSION"),
            runs,
            cores: template.cores,
            jobs: (1..=shards).map(job).collect(),
            merge: MergeJob {
                command: template.merge_command(),
                directory: template.out.clone(),
            },
            template,
        })
    }
}

/// The jobs of `args` in the requested form.
///
/// # Errors
/// If a scenario or an option is invalid.
pub(crate) fn text(args: &JobsArgs) -> Result<String, CommandError> {
    let list = JobList::new(args)?;
    match args.format {
        JobFormat::Json => {
            let text = serde_json::to_string_pretty(&list).map_err(io::Error::from);
            Ok(text.map_err(CommandError::Print)? + "\n")
        }
        JobFormat::Slurm => Ok(slurm::script(&list, &args.name)),
        JobFormat::Kubernetes => kubernetes::manifest(&list, args),
    }
}
