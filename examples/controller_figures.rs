//! Draws the figures of `docs/controllers.md`: the window of each controller over time, from runs of the product's own
//! server and client in virtual time.
//!
//! `cargo run --release --example controller_figures` writes `docs/controllers/*.svg`. The test below fails when one
//! of them is missing or is not what would be drawn.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;
use std::{fs, thread};

use anyhow::{Context as _, anyhow};
use lab::sim::{self, ServedTitle, Setup, Viewer};
use lab::svg::{Anchor, Axis, Colour, FAINT, GRID, INK, Label, PALETTE, Point, Stroke, SvgWriter};
use playrate_cc::Phase;
use playrate_cc::testing::{Demand, Example, examples};
use playrate_media::{FrameTrace, Ladder, SegmentSizes, TraceSource};
use playrate_netsim::{Loss, PathConfig, QueueLimit, Seed};
use playrate_transport::telemetry::Sample;
use playrate_units::{Bitrate, Bytes};
use video_client::dash::BufferTargets;

/// Length of a run, and of the time axis.
const LENGTH: Duration = Duration::from_secs(30);
/// Average rate of the video in Watanabe et al. 2014: 409 MB in 624 s.
const VIDEO_RATE: Bitrate = Bitrate::from_kbps(5_240);
const LINK_RATE: Bitrate = Bitrate::from_mbps(20);
const RTT: Duration = Duration::from_millis(100);
/// Playing time of a segment.
const SEGMENT: Duration = Duration::from_secs(4);
/// Random loss: about one packet of a run.
const LOSS: &str = "0.003%";

const SIZE: Point = (480.0, 190.0);
const LEFT: f64 = 40.0;
const RIGHT: f64 = 406.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 156.0;
/// The end of the window's axis, the same in all figures so that they can be compared.
const MOST_KB: f64 = 750.0;

const SLOW_START: Colour = PALETTE[4];
const AVOIDANCE: Colour = PALETTE[0];
const LOST: Colour = PALETTE[1];

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
    // The buffer is full with one segment: the next is fetched when less is left to play.
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

struct Figure {
    svg: SvgWriter,
    x: Axis,
    y: Axis,
}

impl Figure {
    fn new(title: &str) -> Self {
        Self {
            svg: SvgWriter::new(SIZE, &format!("Congestion window of {title}, over 30 s")),
            x: Axis::exact(0.0, LENGTH.as_secs_f64(), 6.0),
            y: Axis::exact(0.0, MOST_KB, 3.0),
        }
    }

    fn place(&self, at: Duration, bytes: Bytes) -> Point {
        (
            LEFT + (RIGHT - LEFT) * self.x.place(at.as_secs_f64()),
            BOTTOM - (BOTTOM - TOP) * self.y.place(bytes.as_f64() / 1e3),
        )
    }

    fn axes(&mut self, title: &str) {
        let label = |anchor| Label::new(10.0, FAINT, anchor);
        for (value, text) in self.y.ticks() {
            let y = BOTTOM - (BOTTOM - TOP) * self.y.place(value);
            self.svg.line((LEFT, y), (RIGHT, y), Stroke::solid(GRID, 1.0));
            self.svg.text((LEFT - 5.0, y), label(Anchor::End), &text);
        }
        for (value, text) in self.x.ticks() {
            let x = LEFT + (RIGHT - LEFT) * self.x.place(value);
            self.svg.text((x, BOTTOM + 11.0), label(Anchor::Middle), &text);
        }
        let middle = f64::midpoint(LEFT, RIGHT);
        self.svg
            .text((middle, BOTTOM + 26.0), label(Anchor::Middle), "time, s");
        self.svg.text((4.0, 10.0), label(Anchor::Start), "cwnd, kB");
        self.svg
            .text((middle, 10.0), Label::new(10.0, INK, Anchor::Middle), title);
        let bdp = LINK_RATE * RTT;
        for (bytes, name) in [(bdp, "BDP"), (bdp + bdp, "BDP + queue")] {
            let (_, y) = self.place(Duration::ZERO, bytes);
            self.svg
                .line((LEFT, y), (RIGHT, y), Stroke::dashed(FAINT, 0.7, &[4.0, 3.0]));
            self.svg.text((RIGHT + 5.0, y), label(Anchor::Start), name);
        }
    }

    /// Draws a line for each stretch of slow start or avoidance. A window keeps its value until the next sample.
    fn window(&mut self, samples: &[Sample]) {
        let is_slow_start = |phase| !matches!(phase, Phase::Avoidance | Phase::Recovery);
        let same =
            |a: &Sample, b: &Sample| is_slow_start(a.snapshot.phase) == is_slow_start(b.snapshot.phase);
        let mut last = None;
        for stretch in samples.chunk_by(same) {
            let mut points: Vec<Point> = last.into_iter().collect();
            for sample in stretch {
                let (x, y) = self.place(sample.at, sample.snapshot.window);
                match points.last() {
                    Some(before) if (before.1 - y).abs() < 0.05 => {}
                    Some(before) => points.extend([(x, before.1), (x, y)]),
                    None => points.push((x, y)),
                }
                last = points.last().map(|point| (x, point.1));
            }
            points.extend(last);
            let colour = if is_slow_start(stretch[0].snapshot.phase) {
                SLOW_START
            } else {
                AVOIDANCE
            };
            self.svg.path(points, Stroke::solid(colour, 1.5));
        }
    }

    /// Draws a tick wherever packets were declared lost.
    fn losses(&mut self, samples: &[Sample]) {
        let lossy = samples.windows(2).filter(|pair| pair[1].lost > pair[0].lost);
        let mut ticks: Vec<f64> = lossy
            .map(|pair| self.place(pair[1].at, Bytes::ZERO).0.round())
            .collect();
        ticks.dedup();
        for x in ticks {
            self.svg
                .line((x, BOTTOM), (x, BOTTOM - 6.0), Stroke::solid(LOST, 1.2));
        }
    }
}

fn figure(example: &Example) -> anyhow::Result<String> {
    let demand = match example.demand {
        Demand::Endless => "endless data",
        Demand::Segments => "4 s of video every 4 s",
    };
    let title = format!("{}, {demand}", example.name);
    let samples = samples(example)?;
    let mut figure = Figure::new(&title);
    figure.axes(&title);
    figure.losses(&samples);
    figure.window(&samples);
    Ok(figure.svg.finish())
}

/// File and content of every figure, in no particular order.
fn figures(examples: &[Example]) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/controllers");
    let rest = Mutex::new(examples.iter());
    let draw = || -> anyhow::Result<Vec<(PathBuf, String)>> {
        let next = || rest.lock().ok().and_then(|mut rest| rest.next());
        let mut drawn = Vec::new();
        while let Some(example) = next() {
            drawn.push((folder.join(format!("{}.svg", example.name)), figure(example)?));
        }
        Ok(drawn)
    };
    let threads = thread::available_parallelism()?.get();
    thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(draw)).collect();
        let mut all = Vec::new();
        for handle in handles {
            all.extend(handle.join().map_err(|_| anyhow!("a run panicked"))??);
        }
        Ok(all)
    })
}

fn main() -> anyhow::Result<()> {
    for (path, svg) in figures(&examples()?)? {
        fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        fs::write(&path, svg).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

#[test]
fn the_figures_in_the_docs_are_those_that_would_be_drawn() {
    for (path, svg) in figures(&examples().expect("all examples are specs")).expect("all runs end") {
        let stored = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            stored == svg,
            "{} is out of date: run `cargo run --release --example controller_figures` and look at it",
            path.display()
        );
    }
}
