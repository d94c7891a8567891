//! The `lab` command line.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use clap::{Parser, Subcommand};
use lab::claims::{self, ClaimsArgs};
use lab::demo::{self, DemoArgs};
use lab::live::{self, LiveArgs};
use lab::matrix::{self, MatrixArgs};
use lab::merge::{self, MergeArgs};
use lab::report::results::{self, ReportArgs};
use lab::run::{self, RunArgs};
use lab::scenario::{self, Changes};
use lab::sweep::{self, SweepArgs};
use tracing_subscriber::EnvFilter;

/// Experiments with congestion control for video
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Play a title over a real, impaired UDP path under several controllers side by side, and report what each viewer saw
    Demo(DemoArgs),
    /// List the scenarios that come with the lab
    List,
    /// Explain a scenario in words
    Show {
        /// A name from `lab list`, or the path of a file of your own
        scenario: String,
    },
    /// Run scenarios in virtual time: every controller, every seed, over all cores
    Run(RunArgs),
    /// Put the results of `lab run --shard` on several machines together
    Merge(MergeArgs),
    /// Run a scenario over real UDP through a relay, in real time, and compare it with the same in virtual time
    Live(LiveArgs),
    /// Say which of the papers' claims hold, by the results of `lab run`
    Claims(ClaimsArgs),
    /// Run a scenario with several values of a key, and say where its claims flip
    Sweep(SweepArgs),
    /// Draw the results of `lab run`: one page of figures and tables that needs nothing but itself, and the figures as SVG
    Report(ReportArgs),
    /// Run all controllers over all scenarios of the papers and rank them by what viewers see
    Matrix(MatrixArgs),
}

const FAILED: u8 = 1;
const BAD_INPUT: u8 = 2;
/// As shells report a program that SIGINT ended.
const INTERRUPTED: i32 = 130;

#[tokio::main]
async fn main() -> ExitCode {
    let Cli { command } = Cli::parse();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("error"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    match command {
        Command::Demo(args) => demonstrate(&args).await,
        Command::List => list(),
        Command::Show { scenario } => show(&scenario),
        Command::Run(args) => run_all(args).await,
        Command::Merge(args) => put_together(&args),
        Command::Live(args) => run_live(&args).await,
        Command::Claims(args) => judge(&args),
        Command::Sweep(args) => run_sweep(args).await,
        Command::Report(args) => report(&args),
        Command::Matrix(args) => rank(args).await,
    }
}

/// Says what went wrong.
fn complain(error: &impl std::fmt::Display, is_bad_input: bool) -> ExitCode {
    // Nobody is left to be told if stderr is closed.
    let _ = writeln!(std::io::stderr(), "error: {error}");
    ExitCode::from(if is_bad_input { BAD_INPUT } else { FAILED })
}

/// Prints `text`; a reader that has gone away is no failure of ours.
fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => complain(&error, false),
        _ => ExitCode::SUCCESS,
    }
}

async fn demonstrate(args: &DemoArgs) -> ExitCode {
    match demo::run(args, &mut std::io::stdout()).await {
        Ok(comparison) if demo::succeeded(&comparison) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(FAILED),
        Err(error) => complain(&error, error.is_bad_input()),
    }
}

fn list() -> ExitCode {
    let mut text = String::new();
    for (name, _) in scenario::BUILT_IN {
        match scenario::open(name, &Changes::default()) {
            Ok(cases) => {
                let Some(scenario) = cases.into_iter().next() else {
                    continue;
                };
                let about = scenario.about.replace('\n', " ");
                // Its first sentence.
                let about = about.split_inclusive(". ").next().unwrap_or_default().trim();
                let source = scenario
                    .source
                    .map_or_else(String::new, |source| format!(" ({source})"));
                // Writing to a String cannot fail.
                let _ = writeln!(text, "{name:<20} {about}{source}");
            }
            Err(error) => return complain(&error, false),
        }
    }
    text.push_str("\nGroups, for `lab run`:\n");
    for (group, names) in scenario::groups() {
        let _ = writeln!(text, "{group:<20} {}", names.join(", "));
    }
    print(&text)
}

fn show(name: &str) -> ExitCode {
    match scenario::open(name, &Changes::default()) {
        Ok(cases) => print(&scenario::explain(&cases)),
        Err(error) => complain(&error, true),
    }
}

fn judge(args: &ClaimsArgs) -> ExitCode {
    match claims::claims(args) {
        Ok(report) if args.json => print(&claims::to_json(&report)),
        Ok(report) => print(&claims::to_text(&report)),
        Err(error) => complain(&error, error.is_bad_input()),
    }
}

fn report(args: &ReportArgs) -> ExitCode {
    match results::write(args) {
        Ok(file) => print(&format!("{}\n", file.display())),
        Err(error) => complain(&error, error.is_bad_input()),
    }
}

fn put_together(args: &MergeArgs) -> ExitCode {
    match merge::merge(args, &mut std::io::stdout()) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => complain(&error, error.is_bad_input()),
    }
}

/// Becomes true when somebody asks for an end; who asks twice is not kept waiting.
fn interruption() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() {
            if asked.swap(true, Relaxed) {
                std::process::exit(INTERRUPTED);
            }
        }
    });
    stop
}

async fn run_sweep(args: SweepArgs) -> ExitCode {
    let stop = interruption();
    let made = tokio::task::spawn_blocking(move || sweep::run(&args, &stop, &mut std::io::stdout())).await;
    match made {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => complain(&error, error.is_bad_input()),
        Err(error) => complain(&error, false),
    }
}

async fn rank(args: MatrixArgs) -> ExitCode {
    let stop = interruption();
    let made = tokio::task::spawn_blocking(move || matrix::run(&args, &stop, &mut std::io::stdout())).await;
    match made {
        Ok(Ok(_)) => ExitCode::SUCCESS,
        Ok(Err(error)) => complain(&error, error.is_bad_input()),
        Err(error) => complain(&error, false),
    }
}

async fn run_all(args: RunArgs) -> ExitCode {
    let stop = interruption();
    let made = tokio::task::spawn_blocking(move || run::run(&args, &stop, &mut std::io::stdout())).await;
    match made {
        Ok(Ok(_)) => ExitCode::SUCCESS,
        Ok(Err(error)) => complain(&error, error.is_bad_input()),
        Err(error) => complain(&error, false),
    }
}

async fn run_live(args: &LiveArgs) -> ExitCode {
    match live::run(args, &interruption(), &mut std::io::stdout()).await {
        Ok(report) if report.agrees => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(FAILED),
        Err(error) => complain(&error, error.is_bad_input()),
    }
}
