//! Command line of `video-server`, and its exit codes.
//!
//! Exit codes: 0 done, 1 the run failed, 2 bad input. Results go to stdout, logs and errors to stderr.

mod access;
mod access_log;
mod acme;
mod announce;
mod certificate;
mod check;
mod config;
mod controllers;
#[cfg(target_os = "linux")]
mod handover;
#[cfg(not(target_os = "linux"))]
#[path = "handover/elsewhere.rs"]
mod handover;
mod healthcheck;
mod listen;
mod logging;
mod media;
mod metrics;
mod notify;
mod options;
mod qlog;
mod quic_lb;
mod redirect;
mod rescan;
mod serve;
mod signals;
mod state;
mod tcp;
mod watch;
mod workers;

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
pub(crate) use config::Config;

/// Serves titles over HTTP/3, HTTP/2 and HTTP/1.1 with a congestion controller of your choice.
#[derive(Debug, Parser)]
#[command(name = "video-server", version, max_term_width = 80)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve titles from a directory or an object store
    Serve(Box<options::ServeOptions>),
    /// Check a config file and what it names (titles, certificate, controllers), or titles alone, without serving
    Check(check::CheckOptions),
    /// Print a URL with a token for serve --signing-key
    Sign(access::SignOptions),
    /// List every controller that --controller can name, with its parameters and its source
    Controllers(controllers::ControllersOptions),
    /// Ask a running server at its --metrics whether it is ready for clients
    Healthcheck(healthcheck::HealthcheckOptions),
    /// Print a completion script for a shell
    #[command(after_help = "Example: source <(video-server completions bash)")]
    Completions {
        /// Shell that the script is for
        shell: Shell,
    },
    /// Write man pages to a directory
    #[command(after_help = "Example: video-server man ~/.local/share/man/man1")]
    Man {
        /// Existing directory for the pages
        directory: PathBuf,
    },
}

/// Answer to a call without a command.
const FIRST_STEPS: &str = "\
video-server serves films (MP4, DASH, HLS) over HTTP/3, HTTP/2 and HTTP/1.1.

  video-server serve --media films    serve the directory `films`
  video-server check films            show how the server reads these films
  video-server serve --help           all options of the server
  video-server --help                 all commands

No film at hand? Each of these writes one:
  lab title films
  mkdir films; ffmpeg -f lavfi -i testsrc2=d=30 -pix_fmt yuv420p films/test.mp4
";

/// Error that ends the process.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Invalid input: exit code 2.
    Input(anyhow::Error),
    /// Failure while running: exit code 1.
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
                // Some errors already include their cause: do not repeat it.
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

/// Runs the command that the process's arguments name. To use your own controllers, call
/// [`Registry::install`](playrate_cc::Registry::install) first.
pub fn main() -> ExitCode {
    let line: Vec<OsString> = std::env::args_os().collect();
    if line.len() < 2 {
        logging::finish(FIRST_STEPS);
        return ExitCode::from(2);
    }
    let done = match CommandLine::parse_from_first(line) {
        Ok((arguments, None)) => arguments.run(),
        Ok((arguments, Some(config))) => arguments.run().map_err(|failure| config.place(failure)),
        Err(failure) => Err(failure),
    };
    match done {
        Ok(()) => {
            logging::finish("");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            logging::finish(&format!("error: {failure}\n"));
            match failure {
                Failure::Run(_) => ExitCode::from(1),
                Failure::Input(_) => ExitCode::from(2),
            }
        }
    }
}

impl CommandLine {
    fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Serve(arguments) => serve::run(&arguments),
            Command::Check(options) => check::run(&options),
            Command::Sign(options) => access::sign(&options),
            Command::Controllers(arguments) => controllers::run(arguments),
            Command::Healthcheck(options) => healthcheck::run(&options),
            Command::Completions { shell } => {
                let mut text = Vec::new();
                clap_complete::generate(shell, &mut Self::command(), "video-server", &mut text);
                print(&String::from_utf8_lossy(&text))
            }
            Command::Man { directory } => clap_mangen::generate_to(Self::command(), &directory)
                .with_context(|| directory.display().to_string())
                .map_err(Failure::Input),
        }
    }

    /// Reads the command line and the config file that it names. Exits with code 2 if the arguments are invalid.
    fn parse_from_first(line: Vec<OsString>) -> Result<(Self, Option<Config>), Failure> {
        let first = Self::command().ignore_errors(true).try_get_matches_from(&line);
        let serve = first.as_ref().ok().and_then(|matches| matches.subcommand());
        let Some(("serve", given)) = serve else {
            return Ok((Self::parse_from(line), None));
        };
        let Some(file) = given.get_one::<PathBuf>("config") else {
            let parsed = Self::try_parse_from(line);
            return Ok((parsed.unwrap_or_else(|error| with_advice(error).exit()), None));
        };
        let config = Config::read(file)?;
        let typed = |key: &str| {
            let id = options::id(key);
            id.is_some_and(|id| given.value_source(&id) == Some(ValueSource::CommandLine))
        };
        let at = line.iter().position(|word| word == "serve");
        let at = at.map_or(1, |at| at + 1);
        let mut whole = line;
        whole.splice(at..at, config.arguments(typed));
        match Self::try_parse_from(whole) {
            Ok(arguments) => Ok((arguments, Some(config))),
            Err(error) => Err(config.explain(&error).unwrap_or_else(|| error.exit())),
        }
    }
}

/// The command line equivalent to a config file.
pub(crate) fn parse_config(file: &std::path::Path, config: &Config) -> Result<CommandLine, Failure> {
    let mut line: Vec<OsString> = vec!["video-server".into(), "serve".into()];
    line.extend(config.arguments(|_| false));
    CommandLine::try_parse_from(line).map_err(|error| {
        let explained = config.explain(&error);
        explained.unwrap_or_else(|| Failure::Input(anyhow::anyhow!("{}: {error}", file.display())))
    })
}

/// Adds to the error about a missing `--media` where a film comes from.
fn with_advice(mut error: clap::Error) -> clap::Error {
    let missing = error.get(ContextKind::InvalidArg).map(ToString::to_string);
    if error.kind() == clap::error::ErrorKind::MissingRequiredArgument
        && missing.is_some_and(|one| one.starts_with("--media"))
    {
        let tip = "`lab title films` writes a film; then `video-server serve --media films`";
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Prints results. A closed pipe is not an error.
fn print(text: &str) -> Result<(), Failure> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::run(error)),
        _ => Ok(()),
    }
}

/// Number of the line that contains byte `at` of a file, counted from 1.
fn line_at(text: &str, at: usize) -> usize {
    let before = text.bytes().take(at);
    before.filter(|&byte| byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }
}
