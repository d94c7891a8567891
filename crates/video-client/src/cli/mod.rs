//! The command line: arguments, the tokio runtime, signals, progress bar and output.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use clap::Parser;
use playrate_transport::{Client, ClientOptions, ConnectError, Target, time};
use quinn::{Runtime, TokioRuntime};
use video_client::playout::{CatchUp, Clock, ClockKind, Fill, PlayoutConfig, Rebuffer};
use video_client::{PlayError, PlayOptions, Played, QualityReport, Session};

mod args;
mod output;
mod progress;

use args::{Abr, Arguments, Command, PlayArguments};
use output::Output;
use progress::Bar;

/// The run failed.
const FAILED: u8 = 1;
/// The input was bad; nothing was sent.
const BAD_INPUT: u8 = 2;

/// Parses the arguments, runs the command, says what went wrong.
pub(crate) fn main() -> ExitCode {
    // clap exits with 2 by itself where the arguments are wrong.
    let Command::Play(play) = Arguments::parse().command;
    let filter = tracing_subscriber::EnvFilter::try_from_env("RUST_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_target(false)
        .with_ansi(watched())
        .init();
    let prepared = match prepare(&play) {
        Ok(prepared) => prepared,
        Err(error) => return complain(&error, BAD_INPUT),
    };
    match run(&play, prepared) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => match error.downcast_ref::<PlayError>() {
            // The report says so already, to people and to programs.
            Some(PlayError::Stopped) => ExitCode::from(FAILED),
            Some(PlayError::Connect(ConnectError::Setup(_))) => complain(&error, BAD_INPUT),
            _ => complain(&error, FAILED),
        },
    }
}

fn complain(error: &anyhow::Error, code: u8) -> ExitCode {
    // If stderr is gone there is nobody left to tell.
    let _ = writeln!(io::stderr(), "error: {error:#}");
    ExitCode::from(code)
}

/// Everything that can be checked before anything is sent.
struct Prepared {
    options: PlayOptions,
    client: ClientOptions,
    output: Output,
}

fn prepare(play: &PlayArguments) -> anyhow::Result<Prepared> {
    if let Abr::Fixed(name) = &play.abr {
        anyhow::bail!(
            "`--abr fixed:{name}`: {} is one MP4, a single representation without a name, so there is nothing to \
             choose; leave --abr out",
            play.url
        );
    }
    let clock = match play.clock {
        ClockKind::CatchUp => Clock::CatchUp(CatchUp {
            late: play.late,
            max_jitter: play.max_jitter,
            ..CatchUp::default()
        }),
        ClockKind::Rebuffer => Clock::Rebuffer(Rebuffer {
            resume: Fill::Bytes(play.playout_buffer),
        }),
    };
    let playout = PlayoutConfig::new(play.playout_buffer, clock);
    // Says what is wrong with the numbers before a server hears of them.
    video_client::playout::Playout::new(playout.clone())?;
    let options = PlayOptions {
        playout,
        timeout: play.timeout,
        ..PlayOptions::default()
    };
    let mut client = ClientOptions::new(play.trust()?);
    client.connect_timeout = client.connect_timeout.min(play.timeout);
    Ok(Prepared {
        options,
        client,
        output: Output::new(play.output.as_deref())?,
    })
}

/// Plays and prints the report, of a broken run as well.
fn run(play: &PlayArguments, prepared: Prepared) -> anyhow::Result<()> {
    let Prepared {
        options,
        client,
        mut output,
    } = prepared;
    let target = Target::resolve(&play.url.host, play.url.port)?;
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let Played { report, result, .. } = tokio.block_on(async {
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
        let client = Client::bind(Arc::clone(&runtime), client)?;
        let session = Session::new(
            Arc::clone(&runtime),
            client.clone(),
            target,
            &play.url.path,
            options,
        );
        let mut bar = Bar::new();
        let interrupted = async {
            if tokio::signal::ctrl_c().await.is_err() {
                // Without the signal there is still the shell's way of ending a process.
                std::future::pending::<()>().await;
            }
        };
        let played = session.play(&mut output, &mut bar, interrupted).await?;
        bar.clear();
        // So that the server hears of the end; a server that is gone is not waited for long.
        let _ = time::timeout(
            &*runtime,
            std::time::Duration::from_millis(500),
            client.wait_idle(),
        )
        .await;
        anyhow::Ok(played)
    })?;
    // A writer that hangs on a full pipe must not hold the report back.
    tokio.shutdown_background();
    // Where nothing came there is nothing to tell people but the error.
    let stopped = matches!(result, Err(PlayError::Stopped));
    if play.json || stopped || report.network.first_byte.is_some() {
        print(&report, play, &output)?;
    }
    result.map_err(|error| explain(error, play))
}

fn print(report: &QualityReport, play: &PlayArguments, output: &Output) -> anyhow::Result<()> {
    let text = if play.json {
        report.to_json(play.series)?
    } else {
        report.to_text()
    };
    let mut to: Box<dyn Write> = if output.is_stdout() {
        Box::new(io::stderr())
    } else {
        Box::new(io::stdout())
    };
    writeln!(to, "{text}").context("cannot print the report")
}

fn explain(error: PlayError, play: &PlayArguments) -> anyhow::Error {
    let no_answer = matches!(error, PlayError::Connect(ConnectError::NoAnswer { .. }));
    let error = anyhow::Error::new(error);
    if no_answer && play.url.port == 443 {
        error.context("nobody at the default port; write https://HOST:PORT/TITLE.mp4 for another")
    } else {
        error
    }
}

/// Whether people watch stderr.
fn watched() -> bool {
    io::stderr().is_terminal()
}
