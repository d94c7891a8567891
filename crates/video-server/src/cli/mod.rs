//! What may stand on the command line, and what the process says when it ends.
//!
//! Exit codes: 0 done, 1 the run failed, 2 bad input. Results go to stdout, logs and errors to stderr.

mod controllers;
mod load;
mod logging;
mod metrics;
mod serve;
mod tcp;

use std::fmt;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Serves H.264 titles over HTTP/3, HTTP/2 and HTTP/1.1 with a congestion controller of your choice.
#[derive(Debug, Parser)]
#[command(name = "video-server", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the titles of a directory
    Serve(Box<serve::Arguments>),
    /// List every controller that --controller can name, with its parameters and its source
    Controllers(controllers::Arguments),
}

/// Why the process ends with something else than success.
#[derive(Debug)]
enum Failure {
    /// What was asked for cannot be done: exit code 2.
    Input(anyhow::Error),
    /// It went wrong while it ran: exit code 1.
    Run(anyhow::Error),
}

impl Failure {
    fn input(error: impl Into<anyhow::Error>) -> Self {
        Self::Input(error.into())
    }

    fn run(error: impl Into<anyhow::Error>) -> Self {
        Self::Run(error.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(error) | Self::Run(error) => {
                // Some errors say their cause themselves; it need not be said twice.
                let mut said = String::new();
                for cause in error.chain().map(ToString::to_string) {
                    if !said.ends_with(&cause) {
                        if !said.is_empty() {
                            said.push_str(": ");
                        }
                        said.push_str(&cause);
                    }
                }
                f.write_str(&said)
            }
        }
    }
}

/// Does what the command line says.
pub(crate) fn run() -> ExitCode {
    // Bad arguments end the process here, with code 2.
    let done = match Arguments::parse().command {
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Controllers(arguments) => controllers::run(arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            print_error(&failure);
            match failure {
                Failure::Run(_) => ExitCode::from(1),
                Failure::Input(_) => ExitCode::from(2),
            }
        }
    }
}

#[expect(clippy::print_stderr, reason = "the last word of the process, logging or not")]
fn print_error(failure: &Failure) {
    eprintln!("error: {failure}");
}

/// Prints results; a reader that has closed the pipe has seen enough.
fn print(text: &str) -> Result<(), Failure> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::run(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}
