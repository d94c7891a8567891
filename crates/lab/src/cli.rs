//! The `lab` command line.

use std::fmt::{Display, Write as _};
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use playrate_media::assets;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::demo::{self, DemoArgs};
use crate::error::CommandError;
use crate::live::{self, LiveArgs};
use crate::relay::{self, RelayArgs};
use crate::report::{self, ReportArgs};
use crate::rows::{self, RowsArgs};
use crate::run::{self, RunArgs};
use crate::scenario::generated::PathSet;
use crate::scenario::{self, BUILT_IN, Changes, Scenario, ScenarioError};
use crate::words::folded;

/// Experiments with congestion control for video
#[derive(Debug, Parser)]
#[command(name = "lab", version, max_term_width = 80)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Play a title over real UDP under several controllers and report what each viewer saw
    Demo(Box<DemoCommand>),
    /// List the built-in scenarios
    List,
    /// Describe a scenario in words
    Show {
        /// A name from `lab list`, the path of a scenario file, or generated paths, `generated:SEED:N`,
        /// `generated2:SEED:N` or `generated:SEED#NUMBER`
        scenario: String,
    },
    /// Run scenarios in virtual time, every controller with every seed, and compare the controllers
    Run(Box<RunArgs>),
    /// Print the rows of `lab run` as lines of JSON, with all metrics, for programs
    Rows(RowsArgs),
    /// Draw the results of `lab run` as one self-contained interactive page
    Report(ReportArgs),
    /// Write the embedded title, a short film, to a directory
    Title {
        /// Directory for the film, which is created if it does not exist
        directory: PathBuf,
    },
    /// Put a path with a rate, an RTT, a queue and losses in front of any UDP server, in real time
    Relay(Box<RelayArgs>),
    /// Print a completion script for a shell
    #[command(after_help = "Example: source <(lab completions bash)")]
    Completions {
        /// Shell that the script is for
        shell: Shell,
    },
    /// Write man pages to a directory
    #[command(after_help = "Example: lab man ~/.local/share/man/man1")]
    Man {
        /// Existing directory for the pages
        directory: PathBuf,
    },
}

/// Command line of `lab demo`.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
struct DemoCommand {
    #[command(subcommand)]
    kind: Option<DemoKind>,

    #[command(flatten)]
    args: DemoArgs,
}

#[derive(Clone, Debug, Subcommand)]
enum DemoKind {
    /// Run any scenario over real UDP in real time and compare it with the same run in virtual time
    Scenario(LiveArgs),
}

/// Answer to a call without a command.
const FIRST_STEPS: &str = "\
lab measures congestion controllers for video, in virtual and in real time.

  lab demo                    play a film under three of them, over real UDP
  lab run first-look          compare controllers on one path, in virtual time
  lab report                  draw a page of the results of `lab run`
  lab list                    the other scenarios
  lab title films             write the film, for `video-server`
  lab --help                  all commands
";

const FAILED: u8 = 1;
const BAD_INPUT: u8 = 2;
/// Exit status that shells report for a program terminated by SIGINT.
const INTERRUPTED: i32 = 130;

/// Runs the command that the process's arguments name, on its own tokio runtime.
pub fn main() -> ExitCode {
    if std::env::args_os().len() < 2 {
        // If stderr is closed, no one can read it.
        let _ = std::io::stderr().write_all(FIRST_STEPS.as_bytes());
        return ExitCode::from(BAD_INPUT);
    }
    let Cli { command } = Cli::parse();
    let filter = std::env::var("RUST_LOG")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| Targets::new().with_default(LevelFilter::ERROR));
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    tracing_subscriber::registry().with(filter).with(lines).init();
    match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime
            .block_on(execute(command))
            .unwrap_or_else(|error| failure(&error, error.is_bad_input())),
        Err(error) => failure(&error, false),
    }
}

async fn execute(command: Command) -> Result<ExitCode, CommandError> {
    Ok(match command {
        Command::Demo(command) => {
            let out = &mut std::io::stdout();
            let succeeded = match &command.kind {
                Some(DemoKind::Scenario(args)) => live::run(args, &interruption(), out).await?.agrees,
                None => demo::run(&command.args, &interruption(), out).await?.succeeded(),
            };
            ExitCode::from(if succeeded { 0 } else { FAILED })
        }
        Command::List => print(&folded(&list()?)),
        Command::Show { scenario } if PathSet::parse(&scenario).is_some() => print(&folded(&set(&scenario)?)),
        Command::Show { scenario } => {
            let cases = scenario::open(&scenario, &Changes::default())?;
            print(&folded(&scenario::explain(&cases)))
        }
        Command::Run(args) => {
            let stop = interruption();
            let work = move || run::run(&args, &stop, &mut std::io::stdout());
            match tokio::task::spawn_blocking(work).await {
                Ok(result) => result.map(|()| ExitCode::SUCCESS)?,
                Err(error) => failure(&error, false),
            }
        }
        Command::Rows(args) => match rows::run(&args, &mut std::io::stdout().lock()) {
            Err(CommandError::Print(error)) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            printed => printed.map(|()| ExitCode::SUCCESS)?,
        },
        Command::Report(args) => print(&format!("{}\n", report::write(&args)?.display())),
        Command::Title { directory } => {
            let path = directory.join(assets::TITLE_NAME);
            write_title(&path).map_err(|error| {
                CommandError::BadInput(format!("cannot write {}: {error}", path.display()))
            })?;
            print(&format!("{}\n", path.display()))
        }
        Command::Relay(args) => {
            relay::run(&args, std::io::stdin(), &mut std::io::stdout())?;
            ExitCode::SUCCESS
        }
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "lab", &mut text);
            print(&String::from_utf8_lossy(&text))
        }
        Command::Man { directory } => {
            let failed = |error| CommandError::BadInput(format!("{}: {error}", directory.display()));
            clap_mangen::generate_to(Cli::command(), &directory).map_err(failed)?;
            ExitCode::SUCCESS
        }
    })
}

/// Writes the embedded title to `path`, whole or not at all. The same file may be there already.
///
/// # Errors
/// If it cannot be written, or another file is there.
fn write_title(path: &Path) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    match fs::read(path) {
        Ok(known) if known == assets::TITLE => return Ok(()),
        Ok(_) => {
            return Err(std::io::Error::other(
                "another file has this name; choose another directory",
            ));
        }
        Err(_) => {}
    }
    let part = path.with_extension("part");
    let written = fs::write(&part, assets::TITLE).and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        // The first error is reported.
        let _ = fs::remove_file(&part);
    }
    written
}

/// Prints an error and returns the exit status for it.
fn failure(error: &impl Display, is_bad_input: bool) -> ExitCode {
    // If stderr is closed, the error cannot be reported anywhere.
    let _ = writeln!(std::io::stderr(), "error: {error}");
    ExitCode::from(if is_bad_input { BAD_INPUT } else { FAILED })
}

/// Prints `text`. A reader that has closed the pipe is not an error.
fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => failure(&error, false),
        _ => ExitCode::SUCCESS,
    }
}

/// A token that SIGINT cancels; a second SIGINT ends the process at once.
fn interruption() -> CancellationToken {
    let stop = CancellationToken::new();
    let interrupted = stop.clone();
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() {
            if interrupted.is_cancelled() {
                std::process::exit(INTERRUPTED);
            }
            interrupted.cancel();
        }
    });
    stop
}

fn list() -> Result<String, ScenarioError> {
    let mut text = String::new();
    for (name, _) in BUILT_IN {
        let cases = scenario::open(name, &Changes::default())?;
        let summary = cases.first().map(Scenario::summary);
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(text, "{name:<20}  {}", summary.unwrap_or_default());
    }
    text.push_str("\nGroups, for `lab run`:\n");
    for (group, names) in scenario::groups() {
        let _ = writeln!(text, "{group:<20}  {}", names.join(", "));
    }
    Ok(text)
}

/// One line per path of a generated set.
fn set(name: &str) -> Result<String, ScenarioError> {
    let mut text = String::new();
    for path in scenario::named(name) {
        for scenario in scenario::open(&path, &Changes::default())? {
            let fits = if scenario.fits() { "fits" } else { "-" };
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "{:<20} {fits:<5} {path}\n{:2}  {}",
                scenario.name, "", scenario.about
            );
        }
    }
    Ok(text)
}
