//! `lab demo`: one title, one path, several controllers side by side, over real UDP.
//!
//! For every controller a `video-server`, a relay that is the path, and a `video-client` run in this process and talk
//! over loopback sockets, all at once. What comes out is a [`Comparison`].

mod args;
mod error;
mod output;
mod progress;

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use playrate_media::{MediaSource, assets};
use playrate_netsim::{PathConfig, QueueLimit, Seed};
use playrate_units::Bytes;
use tokio::task::JoinSet;
use video_client::playout::{CatchUp, Clock, PlayoutConfig};

pub use args::{Controllers, DemoArgs};
pub use error::DemoError;

use crate::record::{Comparison, Outcome, PathFacts, RunRecord, TitleFacts};
use crate::sim::{self, LiveOptions, Played, Seat, Setup, Viewer, Watch};
use progress::Display;

/// How often progress is shown.
const REFRESH: Duration = Duration::from_millis(120);

/// No session goes on for longer than this; a slow path may take forever.
const LONGEST: Duration = Duration::from_secs(120);

/// Plays the embedded title as `args` say, shows progress on stderr and writes report and files. The results go to
/// `out`, as a table or as JSON. Ctrl-C stops the sessions early; what was seen is still reported.
///
/// # Errors
/// If the path cannot be, something cannot be set up, or the results cannot be written. A session that breaks off is
/// part of the results.
pub async fn run(args: &DemoArgs, out: &mut impl Write) -> Result<Comparison, DemoError> {
    output::prepare(&args.out)?;
    let source = assets::title().map_err(|error| DemoError::setup("the embedded title", &error))?;
    let comparison = compare(args, Arc::new(source), assets::TITLE_NAME).await?;
    let report = output::save(&comparison, &args.out)?;
    let printed = if args.json {
        output::print_json(&comparison, &report, out)
    } else {
        output::print(&comparison, out)
            .and_then(|()| writeln!(out, "\nThe full report, with curves: {}", report.display()))
    };
    printed.map_err(DemoError::Print)?;
    Ok(comparison)
}

/// Plays `source` over every path at once.
async fn compare(args: &DemoArgs, source: Arc<dyn MediaSource>, name: &str) -> Result<Comparison, DemoError> {
    let path_config = PathConfig::bottleneck(args.rate, args.rtt, args.queue, args.loss);
    let path = facts(args, &path_config)?;
    let specs: Vec<String> = args.controllers.0.iter().map(ToString::to_string).collect();
    let seats: Vec<Seat> = specs.iter().map(|_| Seat::default()).collect();
    let watch = Arc::new(Watch::default());

    let mut sessions = JoinSet::new();
    let played = Played::mp4(name, Arc::clone(&source));
    for ((index, choice), seat) in args.controllers.0.iter().enumerate().zip(&seats) {
        let mut viewer = Viewer::new(choice.clone(), played.clone());
        viewer.playout = PlayoutConfig::new(args.playout_buffer, Clock::CatchUp(CatchUp::default()));
        let setup = Setup::new(path_config.clone(), Seed::new(args.seed)).with_viewer(viewer);
        let (seat, watch) = (seat.clone(), Arc::clone(&watch));
        sessions.spawn(async move { (index, play(&setup, seat, &watch).await) });
    }

    let title = describe(source.as_ref(), name);
    if !args.json {
        announce(&title, &path, &specs);
    }
    let mut display = Display::new(specs.into_iter().zip(seats).collect(), args.json);
    let mut runs = Vec::new();
    let mut tick = tokio::time::interval(REFRESH);
    let deadline = tokio::time::sleep(LONGEST);
    tokio::pin!(deadline);
    loop {
        tokio::select! {
            biased;
            ended = sessions.join_next() => match ended {
                Some(Ok((index, run))) => runs.push((index, run?)),
                Some(Err(error)) => return Err(DemoError::setup("a session", &error)),
                None => break,
            },
            _ = tokio::signal::ctrl_c() => watch.stop(),
            () = &mut deadline, if !watch.is_stopped() => watch.stop(),
            _ = tick.tick() => display.refresh(),
        }
    }
    display.finish();
    runs.sort_by_key(|(index, _)| *index);
    Ok(Comparison {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        title,
        path,
        playout_buffer: args.playout_buffer,
        runs: runs.into_iter().map(|(_, run)| run).collect(),
    })
}

/// Plays the title once.
async fn play(setup: &Setup, seat: Seat, watch: &Arc<Watch>) -> Result<RunRecord, DemoError> {
    let options = LiveOptions {
        seats: vec![seat],
        ..LiveOptions::default()
    };
    let live = sim::run_live(setup, options, watch).await?;
    let viewer = live.run.viewers.into_iter().next();
    viewer
        .map(|viewer| viewer.record)
        .ok_or_else(|| DemoError::setup("a session", &"it has no viewer"))
}

/// Whether every session went to its end or was stopped on purpose.
pub fn succeeded(comparison: &Comparison) -> bool {
    comparison
        .runs
        .iter()
        .all(|run| !matches!(run.viewer.outcome, Outcome::Failed(_)))
}

/// What the path is in numbers, once it is known that it can be.
fn facts(args: &DemoArgs, config: &PathConfig) -> Result<PathFacts, DemoError> {
    let built = config.build(Seed::new(args.seed))?;
    let queue = match args.queue {
        QueueLimit::Packets(packets) => config.forward.mtu * u64::from(packets),
        _ => built.forward.queue_limit().unwrap_or(Bytes::MAX),
    };
    Ok(PathFacts {
        rate: args.rate,
        rtt: args.rtt,
        queue,
        loss: args.loss,
        seed: args.seed,
    })
}

fn describe(source: &dyn MediaSource, name: &str) -> TitleFacts {
    let title = source.title();
    let info = title.info();
    let pictures = title.frames().len() as u64;
    let codec = if info.codecs.starts_with("avc1") {
        "H.264"
    } else {
        info.codecs.as_str()
    };
    let fps = pictures as f64 / title.duration().as_secs_f64().max(1e-9);
    TitleFacts {
        name: name.to_owned(),
        format: format!("{codec}, {}×{}, {fps:.0} frames/s", info.width, info.height),
        size: title.file_size(),
        duration: title.duration(),
        average_rate: title.average_rate(),
        pictures,
    }
}

/// Says on stderr what is about to happen.
fn announce(title: &TitleFacts, path: &PathFacts, specs: &[String]) {
    use crate::words::{percent, rate, size, time};
    let loss = match path.loss.as_f64() {
        0.0 => "no random loss".to_owned(),
        loss => format!("{} random loss", percent(loss)),
    };
    // Nobody is left to be told if stderr is closed.
    let _ = writeln!(
        std::io::stderr(),
        "{} ({}, {} on average, {})\nover UDP through {}, {} RTT, a {} queue, {loss}: {}, about {} to go\n",
        title.name,
        title.format,
        rate(title.average_rate),
        time(title.duration),
        rate(path.rate),
        time(path.rtt),
        size(path.queue),
        specs.join(" and "),
        time(expected(title, path)),
    );
}

/// How long a session will take at least: until the title is in.
fn expected(title: &TitleFacts, path: &PathFacts) -> Duration {
    path.rate.time_for(title.size).unwrap_or(LONGEST).min(LONGEST)
}
