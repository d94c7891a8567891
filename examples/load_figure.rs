//! Draws the load curve of `docs/benchmarks.md` from the output of `many_viewers --json`.
//!
//! `cargo run --example load_figure` reads `docs/load/without.jsonl` and `docs/load/with.jsonl` (admission control) and
//! writes `docs/load/curve.svg`.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use lab::svg::{Anchor, Axis, Colour, FAINT, GRID, INK, Label, PALETTE, Point, Stroke, SvgWriter};
use serde_json::Value;

const SIZE: Point = (760.0, 270.0);
const TOP: f64 = 48.0;
const BOTTOM: f64 = 226.0;
/// Width of a panel.
const WIDTH: f64 = 300.0;

/// Files, names and colours of the lines.
const LINES: [(&str, &str, Colour); 2] = [
    ("without.jsonl", "every viewer admitted", PALETTE[1]),
    ("with.jsonl", "with admission control", PALETTE[0]),
];

/// One quantity over the number of sessions offered.
struct Panel {
    left: f64,
    title: &'static str,
    /// Name of the quantity in the files.
    field: &'static str,
    /// From values in the files to values on the axis.
    scale: f64,
    axis: Axis,
}

impl Panel {
    fn draw(&self, svg: &mut SvgWriter, lines: &[Vec<Value>]) {
        let x = Axis::exact(0.0, 2_000.0, 4.0);
        let place = |sessions: f64, value: f64| {
            (
                self.left + WIDTH * x.place(sessions),
                BOTTOM - (BOTTOM - TOP) * self.axis.place(value),
            )
        };
        let label = |anchor| Label::new(11.0, FAINT, anchor);
        svg.text(
            (self.left, TOP - 14.0),
            Label::new(11.0, INK, Anchor::Start),
            self.title,
        );
        for (value, text) in self.axis.ticks() {
            let (left, y) = place(0.0, value);
            svg.line((left, y), (left + WIDTH, y), Stroke::solid(GRID, 1.0));
            svg.text((left - 5.0, y), label(Anchor::End), &text);
        }
        for (sessions, text) in x.ticks() {
            let at = (place(sessions, 0.0).0, BOTTOM + 11.0);
            svg.text(at, label(Anchor::Middle), &text);
        }
        let middle = (self.left + WIDTH / 2.0, SIZE.1 - 16.0);
        svg.text(middle, label(Anchor::Middle), "sessions offered, 5 Mbit/s each");
        for (rows, (_, _, colour)) in lines.iter().zip(LINES) {
            let point = |row: &Value| {
                let value = row.get(self.field)?.as_f64()?;
                Some(place(row.get("offered")?.as_f64()?, value * self.scale))
            };
            let points: Vec<Point> = rows.iter().filter_map(point).collect();
            svg.path(points.iter().copied(), Stroke::solid(colour, 1.7));
            for point in points {
                svg.dot(point, 3.0, colour);
            }
        }
    }
}

fn read(path: &Path) -> anyhow::Result<Vec<Value>> {
    let lines = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    lines
        .lines()
        .map(|line| serde_json::from_str(line).with_context(|| path.display().to_string()))
        .collect()
}

fn main() -> anyhow::Result<()> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/load");
    let lines = LINES.map(|(file, _, _)| read(&directory.join(file)));
    let lines = lines.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    let panels = [
        Panel {
            left: 56.0,
            title: "lateness of segments, 99th percentile, seconds",
            field: "lateness_p99_ms",
            scale: 1e-3,
            axis: Axis::log(0.001, 100.0),
        },
        Panel {
            left: 440.0,
            title: "delivered, Gbit/s",
            field: "goodput_mbps",
            scale: 1e-3,
            axis: Axis::exact(0.0, 10.0, 5.0),
        },
    ];
    let alternative = "Lateness of segments and bytes delivered by the number of sessions offered, with and without \
                       admission control";
    let mut svg = SvgWriter::new(SIZE, alternative);
    for ((_, name, colour), panel) in LINES.into_iter().zip(&panels) {
        svg.line(
            (panel.left, 14.0),
            (panel.left + 20.0, 14.0),
            Stroke::solid(colour, 2.5),
        );
        let label = Label::new(11.0, INK, Anchor::Start);
        svg.text((panel.left + 26.0, 14.0), label, name);
    }
    for panel in &panels {
        panel.draw(&mut svg, &lines);
    }
    fs::write(directory.join("curve.svg"), svg.finish())?;
    Ok(())
}
