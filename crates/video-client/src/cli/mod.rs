//! The command line: arguments, the tokio runtime, signals, progress bar and output.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use playrate_transport::{Client, ClientOptions, ConnectError, Target, time};
use quinn::{Runtime, TokioRuntime};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use uuid::Uuid;
use video_client::cmcd::CmcdOptions;
use video_client::dash::{Abr, DashOptions};
use video_client::playout::{CatchUp, Clock, ClockKind, Fill, Playout, PlayoutConfig};
use video_client::report::Outcome;
use video_client::{
    PlayError, PlayOptions, Played, Player, QualityReport, ReconnectOptions, Session, SessionOptions,
    Sink as _,
};

mod args;
mod output;
mod progress;

use args::{Arguments, Command, NetworkArguments, PlayArguments};
use output::Output;
use progress::Bar;

/// The run failed or was stopped, or segments are missing.
const FAILED: u8 = 1;
/// The input was invalid; nothing was sent.
const BAD_INPUT: u8 = 2;

/// Parses the arguments, runs the command and prints its error.
pub(crate) fn main() -> ExitCode {
    // clap itself exits with 2 if the arguments are wrong.
    let matches = Arguments::command().get_matches();
    let play = match Arguments::from_arg_matches(&matches).map(|arguments| arguments.command) {
        Ok(Command::Play(play)) => play,
        Ok(Command::Completions { shell }) => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "video-client", &mut text);
            // A closed pipe is not an error.
            let _ = io::stdout().write_all(&text);
            return ExitCode::SUCCESS;
        }
        Ok(Command::Man { directory }) => {
            return match clap_mangen::generate_to(Arguments::command(), &directory) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => complain(
                    &anyhow::Error::new(error).context(directory.display().to_string()),
                    BAD_INPUT,
                ),
            };
        }
        Err(error) => error.exit(),
    };
    let filter = std::env::var("RUST_LOG")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| Targets::new().with_default(LevelFilter::WARN));
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_target(false)
        .with_ansi(io::stderr().is_terminal());
    tracing_subscriber::registry().with(filter).with(lines).init();
    let given = matches.subcommand_matches("play");
    let prepared = match prepare(&play, given) {
        Ok(prepared) => prepared,
        Err(error) => return complain(&error, BAD_INPUT),
    };
    match run(&play, prepared) {
        Ok(code) => code,
        Err(error) => match error.downcast_ref::<PlayError>() {
            // The report already says so, both as text and as JSON.
            Some(PlayError::Stopped) => ExitCode::from(FAILED),
            Some(PlayError::Connect(ConnectError::Setup(_)) | PlayError::Setup(_)) => {
                complain(&error, BAD_INPUT)
            }
            _ => complain(&error, FAILED),
        },
    }
}

fn complain(error: &anyhow::Error, code: u8) -> ExitCode {
    // If stderr is closed, the error cannot be printed.
    let _ = writeln!(io::stderr(), "error: {error:#}");
    ExitCode::from(code)
}

fn prepare(
    play: &PlayArguments,
    given: Option<&ArgMatches>,
) -> anyhow::Result<(Player, ClientOptions, Output)> {
    let player = if play.url.is_manifest() {
        let chosen = |name: &&&str| {
            given.is_some_and(|given| given.value_source(name) == Some(ValueSource::CommandLine))
        };
        if let Some(name) = ["playout_buffer", "clock", "late", "max_jitter"]
            .iter()
            .find(chosen)
        {
            let flag = name.replace('_', "-");
            anyhow::bail!(
                "--{flag} is for single MP4 files: {} is played as dash.js 4.0 plays it; leave --{flag} out",
                play.url
            );
        }
        let mut options = DashOptions::default();
        options.abr = play.adaptive.abr.clone();
        options.start_at = play.adaptive.start_at;
        options.session = session_options(&play.network);
        options.into()
    } else {
        file_options(play)?.into()
    };
    let mut client = ClientOptions::new(play.trust.trust()?);
    client.connect_timeout = client.connect_timeout.min(play.network.timeout);
    if !play.network.reconnect_limit.is_zero() {
        client.transport.keep_alive = Some(ReconnectOptions::KEEP_ALIVE);
        client.transport.idle_timeout = ReconnectOptions::IDLE_TIMEOUT;
    }
    let output = Output::new(play.output.output.as_deref())?;
    Ok((player, client, output))
}

fn session_options(network: &NetworkArguments) -> SessionOptions {
    let mut options = SessionOptions::default();
    options.timeout = network.timeout;
    options.cmcd = CmcdOptions {
        mode: network.cmcd,
        version_2: network.cmcd_version == 2,
        session: Uuid::new_v4().to_string(),
    };
    if !network.reconnect_limit.is_zero() {
        let mut reconnect = ReconnectOptions::default();
        reconnect.limit = network.reconnect_limit;
        (_, reconnect.seed) = Uuid::new_v4().as_u64_pair();
        options.reconnect = Some(reconnect);
    }
    options
}

fn file_options(play: &PlayArguments) -> anyhow::Result<PlayOptions> {
    if let Abr::Fixed(name) = &play.adaptive.abr {
        anyhow::bail!(
            "`--abr fixed:{name}`: {} is one MP4, a single representation without a name, so there is nothing to \
             choose; leave --abr out",
            play.url
        );
    }
    if !play.adaptive.start_at.is_zero() {
        anyhow::bail!(
            "--start-at: {} is one MP4, which is fetched from its first byte on; leave --start-at out, or package the \
             title as DASH or HLS (docs/media.md)",
            play.url
        );
    }
    let file = &play.file;
    let clock = match file.clock {
        ClockKind::CatchUp => Clock::CatchUp(CatchUp {
            late: file.late,
            max_jitter: file.max_jitter,
            ..CatchUp::default()
        }),
        ClockKind::Rebuffer => Clock::Rebuffer(Fill::Bytes(file.playout_buffer)),
    };
    let mut options = PlayOptions::default();
    options.playout = PlayoutConfig::new(file.playout_buffer, clock);
    options.session = session_options(&play.network);
    // Reports contradictory settings before connecting.
    Playout::new(options.playout.clone())?;
    Ok(options)
}

/// Plays and prints the report, even if the run failed. Returns the exit code.
fn run(
    play: &PlayArguments,
    (player, client, mut output): (Player, ClientOptions, Output),
) -> anyhow::Result<ExitCode> {
    let target = Target::resolve(&play.url.host, play.url.port)?;
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let Played { report, result, .. } = tokio.block_on(async {
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
        let client = Client::bind(Arc::clone(&runtime), client)?;
        let mut bar = Bar::new();
        let interrupted = async {
            if tokio::signal::ctrl_c().await.is_err() {
                // Without the signal, the shell can still end the process.
                std::future::pending::<()>().await;
            }
        };
        let session = Session::new(client.clone(), target, &play.url.path, player);
        let finished = session.play(&mut output, &mut bar, interrupted).await?;
        bar.clear();
        // Lets the close reach the server and the last bytes reach the output. The wait is short if the server is
        // unreachable or the pipe is full.
        let limit = Duration::from_millis(500);
        let _ = time::timeout(&*runtime, limit, client.wait_idle()).await;
        if let Ok(Err(error)) = time::timeout(&*runtime, limit, output.finish()).await {
            tracing::warn!("the last bytes of the output could not be written: {error}");
        }
        anyhow::Ok(finished)
    })?;
    // A writer that hangs on a full pipe must not delay the report.
    tokio.shutdown_background();
    // If no byte was received, the error is the whole result.
    let stopped = matches!(result, Err(PlayError::Stopped));
    if play.output.json || stopped || report.network.first_byte.is_some() {
        print(&report, play, &output)?;
    }
    result.map_err(|error| explain(error, play))?;
    let is_incomplete = matches!(report.outcome, Outcome::Incomplete(_));
    Ok(ExitCode::from(if is_incomplete { FAILED } else { 0 }))
}

fn print(report: &QualityReport, play: &PlayArguments, output: &Output) -> anyhow::Result<()> {
    let text = if play.output.json {
        report.to_json(play.output.series)?
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
        error.context("no server at the default port 443; write https://HOST:PORT/TITLE.mp4 for another")
    } else {
        error
    }
}
