//! The `lab` command line.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use lab::demo::{self, DemoArgs};
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
}

const FAILED: u8 = 1;
const BAD_INPUT: u8 = 2;

#[tokio::main]
async fn main() -> ExitCode {
    let Cli { command } = Cli::parse();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("error"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let Command::Demo(args) = command;
    match demo::run(&args, &mut std::io::stdout()).await {
        Ok(comparison) if demo::succeeded(&comparison) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(FAILED),
        Err(error) => {
            use std::io::Write as _;
            // Nobody is left to be told if stderr is closed.
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::from(if error.is_bad_input() { BAD_INPUT } else { FAILED })
        }
    }
}
