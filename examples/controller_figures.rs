//! Draws the figures of `docs/controllers.md`: each controller's window over time on the path of its golden trace.
//!
//! `cargo run --example controller_figures` writes `docs/controllers/*.svg`. The same traces are the snapshots in
//! `crates/cc/src/tests/snapshots`. The test below fails when a figure is not the one that would be drawn.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use playrate_cc::testing::{Demand, Example, LINK, Round, Trace, examples, trace};
use playrate_cc::{Bytes, Phase};

// CSS pixels.
const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 40.0;
const RIGHT: f64 = 74.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 34.0;
/// The same axes in every figure, so that they can be compared.
const SECONDS: u32 = 30;
const KILOBYTES: u32 = 750;

const INK: &str = "#22262b";
const FAINT: &str = "#6a7178";
const GRID: &str = "#e7e9ec";
const SLOW_START: &str = "#d98a00";
const AVOIDANCE: &str = "#1f6fb2";
const LOSS: &str = "#c0392b";

fn x(seconds: f64) -> f64 {
    LEFT + (WIDTH - LEFT - RIGHT) * seconds / f64::from(SECONDS)
}

fn y(bytes: Bytes) -> f64 {
    let share = (bytes.as_f64() / 1_000.0 / f64::from(KILOBYTES)).min(1.0);
    HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share
}

fn seconds(round: &Round) -> f64 {
    round.at.as_nanos() as f64 / 1e9
}

fn is_slow_start(phase: Phase) -> bool {
    !matches!(phase, Phase::Avoidance | Phase::Recovery)
}

fn text(svg: &mut String, at: (f64, f64), anchor: &str, colour: &str, text: &str) {
    let (x, y) = at;
    let _ = writeln!(
        svg,
        r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" fill="{colour}">{text}</text>"#
    );
}

fn axes(svg: &mut String) {
    let (right, bottom) = (x(f64::from(SECONDS)), y(Bytes::ZERO));
    for kilobytes in (0..=KILOBYTES).step_by(250) {
        let level = y(Bytes::from_kb(u64::from(kilobytes)));
        let _ = writeln!(
            svg,
            r#"<path d="M{LEFT} {level:.1}H{right:.1}" stroke="{GRID}"/>"#
        );
        text(
            svg,
            (LEFT - 5.0, level + 3.5),
            "end",
            FAINT,
            &kilobytes.to_string(),
        );
    }
    for second in (0..=SECONDS).step_by(5) {
        text(
            svg,
            (x(f64::from(second)), bottom + 14.0),
            "middle",
            FAINT,
            &second.to_string(),
        );
    }
    text(
        svg,
        (f64::midpoint(LEFT, right), bottom + 29.0),
        "middle",
        FAINT,
        "time, s",
    );
    text(svg, (4.0, 13.0), "start", FAINT, "cwnd, kB");
    for (bytes, label) in [(LINK.bdp(), "BDP"), (LINK.bdp() + LINK.queue, "BDP + queue")] {
        let level = y(bytes);
        let _ = writeln!(
            svg,
            r#"<path d="M{LEFT} {level:.1}H{right:.1}" stroke="{FAINT}" stroke-width="0.7" stroke-dasharray="4 3"/>"#
        );
        text(svg, (right + 5.0, level + 3.5), "start", FAINT, label);
    }
}

/// The window: one line for each stretch of slow start or avoidance. It stays what it was until the next round trip ends.
fn window(svg: &mut String, trace: &Trace) {
    let mut from = y(Bytes::ZERO);
    let mut stretches = trace
        .rounds
        .chunk_by(|a, b| is_slow_start(a.phase) == is_slow_start(b.phase))
        .peekable();
    while let Some(stretch) = stretches.next() {
        let Some(first) = stretch.first() else { continue };
        let mut line = format!("M{:.1} {from:.1}", x(seconds(first)));
        for round in stretch {
            from = y(round.window);
            let _ = write!(line, "H{:.1}V{from:.1}", x(seconds(round)));
        }
        if let Some(next) = stretches.peek().and_then(|stretch| stretch.first()) {
            let _ = write!(line, "H{:.1}", x(seconds(next)));
        }
        let colour = if is_slow_start(first.phase) {
            SLOW_START
        } else {
            AVOIDANCE
        };
        let _ = writeln!(
            svg,
            r#"<path d="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>"#
        );
    }
}

/// What the window ranged over within each round trip.
fn ranges(svg: &mut String, trace: &Trace) {
    let mut upper = format!("M{:.1} {:.1}", x(0.0), y(Bytes::ZERO));
    let mut lower = String::new();
    for round in &trace.rounds {
        let _ = write!(upper, "V{:.1}H{:.1}", y(round.range.1), x(seconds(round)));
    }
    for pair in trace.rounds.windows(2).rev() {
        if let [before, round] = pair {
            let _ = write!(lower, "V{:.1}H{:.1}", y(round.range.0), x(seconds(before)));
        }
    }
    let _ = writeln!(
        svg,
        r#"<path d="{upper}{lower}Z" fill="{AVOIDANCE}" fill-opacity="0.22"/>"#
    );
}

/// A tick for each round trip in which packets were declared lost.
fn losses(svg: &mut String, trace: &Trace) {
    let bottom = y(Bytes::ZERO);
    let mut before = 0;
    for round in &trace.rounds {
        if round.lost > before {
            let at = x(seconds(round));
            let _ = writeln!(
                svg,
                r#"<path d="M{at:.1} {bottom:.1}v-6" stroke="{LOSS}" stroke-width="1.2"/>"#
            );
        }
        before = round.lost;
    }
}

fn figure(example: &Example) -> String {
    let trace = trace(&example.spec, example.demand);
    let demand = match example.demand {
        Demand::Endless => "endless data",
        Demand::Segments => "4 s of video every 4 s",
    };
    let name = &example.name;
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="Congestion window of {name} over 30 s, {demand}" font-family="system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif" font-size="10">
<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>
"#
    );
    let title = format!("{name}, {demand}");
    axes(&mut svg);
    ranges(&mut svg, &trace);
    losses(&mut svg, &trace);
    window(&mut svg, &trace);
    text(&mut svg, (x(15.0), 13.0), "middle", INK, &title);
    svg + "</svg>\n"
}

/// Where each figure belongs, and what it is.
fn figures() -> anyhow::Result<Vec<(PathBuf, String)>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/controllers");
    let examples = examples().context("an example is no spec")?;
    let file = |example: &Example| folder.join(format!("{}.svg", example.name));
    Ok(examples
        .iter()
        .map(|example| (file(example), figure(example)))
        .collect())
}

fn main() -> anyhow::Result<()> {
    for (path, svg) in figures()? {
        fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        fs::write(&path, svg).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

#[test]
fn the_figures_in_the_docs_are_those_of_the_golden_traces() {
    for (path, svg) in figures().expect("all examples are specs") {
        let drawn = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            drawn == svg,
            "{} is out of date: run `cargo run --example controller_figures` and look at it",
            path.display()
        );
    }
}
