//! Writes the data for the figures of `docs/controllers.md` and `docs/controllers/all.md`: windows over time, from runs
//! of the product's own server and client in virtual time.
//!
//! `cargo run --example controller_windows` writes `docs/controllers/windows.jsonl`; `python docs/draw.py`
//! draws the figures from it. The test below fails if the file differs from what would be written.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use lab::sim::{self, ServedTitle, Setup, Viewer};
use playrate_cc::Phase;
use playrate_cc::testing::{Demand, Example, examples};
use playrate_media::{FrameTrace, Ladder, SegmentSizes, TraceSource};
use playrate_netsim::{Loss, PathConfig, QueueLimit, Seed};
use playrate_test_support::in_parallel;
use playrate_transport::telemetry::Sample;
use playrate_units::{Bitrate, Bytes};
use serde_json::{Value, json};
use video_client::dash::BufferTargets;

/// Length of a run.
const LENGTH: Duration = Duration::from_secs(30);
/// Average rate of the video in Watanabe et al. 2014: 409 MB in 624 s.
const VIDEO_RATE: Bitrate = Bitrate::from_kbps(5_240);
const LINK_RATE: Bitrate = Bitrate::from_mbps(20);
const RTT: Duration = Duration::from_millis(100);
/// Playing time of a segment.
const SEGMENT: Duration = Duration::from_secs(4);
/// Random loss: about one packet of a run.
const LOSS: &str = "0.003%";

/// Minimum change of a window that is written: less than a fifth of a pixel in the figures.
const LEAST_CHANGE: Bytes = Bytes::from_kb(1);

/// The run of an example: one viewer that downloads without a pause, or fetches 4 s of video every 4 s.
fn setup(example: &Example) -> anyhow::Result<Setup> {
    let mut frames = String::new();
    for frame in 0..25 {
        let flags = if frame == 0 { "K" } else { "_" };
        writeln!(frames, "0.{:02},26200,{flags}", frame * 4)?;
    }
    let frames = FrameTrace::parse(&frames)?;
    let title = match example.demand {
        Demand::Endless => {
            let trace = frames.repeat_to(LENGTH * 5)?.scale_to_rate(VIDEO_RATE)?;
            ServedTitle::trace("endless", TraceSource::new(&trace))
        }
        Demand::Segments => {
            let sizes: SegmentSizes = "segment_duration_s,4\nencode_kbps,5240\n0,2620000\n".parse()?;
            let rates = [("video".to_owned(), VIDEO_RATE)];
            ServedTitle::ladder("segments", Ladder::generate(&sizes, &frames, &rates, LENGTH * 2)?)?
        }
    };
    let mut viewer = Viewer::new(example.name.parse()?, title);
    viewer.leaves_after = Some(LENGTH);
    // The buffer is full with one segment: the next one is fetched once less is left to play.
    viewer.dash.start_segments = 1;
    viewer.dash.buffer = BufferTargets {
        top: SEGMENT,
        top_of_long: SEGMENT,
        ..BufferTargets::default()
    };
    let loss: Loss = LOSS.parse()?;
    let path = PathConfig::bottleneck(LINK_RATE, RTT, QueueLimit::ONE_BDP, loss);
    Ok(Setup::new(path, Seed::new(1)).with_viewer(viewer))
}

/// The samples of the server's connection.
fn samples(example: &Example) -> anyhow::Result<Vec<Sample>> {
    let run = sim::run(&setup(example)?).with_context(|| example.name.clone())?;
    let viewer = run.viewers.into_iter().next();
    let viewer = viewer.ok_or_else(|| anyhow!("{}: no viewer", example.name))?;
    Ok(viewer.transport)
}

/// One stretch of slow start or of avoidance: times in milliseconds and windows in kB. A window keeps its value until
/// the next time.
fn stretch(samples: &[Sample]) -> Value {
    let mut points: Vec<(u128, f64)> = Vec::new();
    for sample in samples {
        let kb = sample.snapshot.window.as_f64() / 1e3;
        let is_new = |last: &(u128, f64)| (last.1 - kb).abs() * 1e3 >= LEAST_CHANGE.as_f64();
        if points.last().is_none_or(is_new) {
            points.push((sample.at.as_millis(), (kb * 10.0).round() / 10.0));
        }
    }
    json!({ "slow_start": samples.first().is_some_and(is_slow_start), "ms_kb": points })
}

fn is_slow_start(sample: &Sample) -> bool {
    !matches!(sample.snapshot.phase, Phase::Avoidance | Phase::Recovery)
}

/// The window of an example over time, and the tenths of a second with packets declared lost.
fn windows(example: &Example) -> anyhow::Result<String> {
    let samples = samples(example)?;
    let stretches = samples.chunk_by(|a, b| is_slow_start(a) == is_slow_start(b));
    let lossy = samples.windows(2).filter(|pair| pair[1].lost > pair[0].lost);
    let mut losses: Vec<_> = lossy.map(|pair| pair[1].at.as_millis() / 100).collect();
    losses.dedup();
    let line = json!({
        "controller": example.name,
        "demand": match example.demand {
            Demand::Endless => "endless data",
            Demand::Segments => "4 s of video every 4 s",
        },
        "stretches": stretches.map(stretch).collect::<Vec<_>>(),
        "losses_ds": losses,
    });
    Ok(format!("{line}\n"))
}

/// The lines of all examples, in their order.
fn lines(examples: &[Example]) -> anyhow::Result<String> {
    in_parallel(examples, None, windows).into_iter().collect()
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/controllers/windows.jsonl")
}

fn main() -> anyhow::Result<()> {
    fs::write(file(), lines(&examples()?)?).with_context(|| file().display().to_string())
}

#[test]
fn the_numbers_behind_the_figures_are_those_that_would_be_written() {
    let written = lines(&examples().expect("all examples are specs")).expect("all runs end");
    let stored = fs::read_to_string(file()).unwrap_or_default();
    let (written, stored): (Vec<_>, Vec<_>) = (written.lines().collect(), stored.lines().collect());
    let differing = written.iter().filter(|line| !stored.contains(line));
    let names: Vec<&str> = differing.map(|line| &line[..line.len().min(60)]).collect();
    assert!(
        names.is_empty() && written.len() == stored.len(),
        "{} is out of date for {names:?}: run `cargo run --example controller_windows` and `python \
         docs/draw.py`, and look at the figures",
        file().display()
    );
}
