//! Draws the load curve of `docs/benchmarks.md` from what `many_viewers --json` wrote.
//!
//! `cargo run --example load_figure` reads `docs/load/without.jsonl` and `docs/load/with.jsonl` (admission control) and writes
//! `docs/load/curve.svg`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

// CSS pixels.
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 270.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 44.0;
const PANEL: f64 = 300.0;
const MOST_SESSIONS: u32 = 2_000;

const INK: &str = "#22262b";
const FAINT: &str = "#6a7178";
const GRID: &str = "#e7e9ec";
/// The files, what they are called and their colours.
const LINES: [(&str, &str, &str); 2] = [
    ("without.jsonl", "everybody let in", "#c0392b"),
    ("with.jsonl", "with admission control", "#1f6fb2"),
];

/// One quantity over the number of sessions offered.
struct Panel {
    left: f64,
    title: &'static str,
    field: &'static str,
    /// Lines of the grid, from the lowest to the highest, and their names.
    levels: &'static [(f64, &'static str)],
    logarithmic: bool,
}

const PANELS: [Panel; 2] = [
    Panel {
        left: 56.0,
        title: "lateness of segments, 99th percentile",
        field: "lateness_p99_ms",
        levels: &[
            (1.0, "1 ms"),
            (10.0, "10 ms"),
            (100.0, "100 ms"),
            (1e3, "1 s"),
            (1e4, "10 s"),
            (1e5, "100 s"),
        ],
        logarithmic: true,
    },
    Panel {
        left: 440.0,
        title: "delivered, Gbit/s",
        field: "goodput_mbps",
        levels: &[
            (0.0, "0"),
            (2e3, "2"),
            (4e3, "4"),
            (6e3, "6"),
            (8e3, "8"),
            (1e4, "10"),
        ],
        logarithmic: false,
    },
];

impl Panel {
    fn x(&self, sessions: f64) -> f64 {
        self.left + PANEL * sessions / f64::from(MOST_SESSIONS)
    }

    fn y(&self, value: f64) -> f64 {
        let scale = |value: f64| if self.logarithmic { value.log10() } else { value };
        let (low, high) = (
            scale(self.levels[0].0),
            scale(self.levels[self.levels.len() - 1].0),
        );
        let share = ((scale(value) - low) / (high - low)).clamp(0.0, 1.0);
        HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share
    }

    fn draw(&self, svg: &mut String, lines: &[Vec<Value>]) {
        let (left, right) = (self.left, self.left + PANEL);
        text(svg, (left, TOP - 10.0), "start", INK, self.title);
        for (value, name) in self.levels {
            let y = self.y(*value);
            let _ = writeln!(svg, r#"<path d="M{left} {y:.1}H{right}" stroke="{GRID}"/>"#);
            text(svg, (left - 5.0, y + 3.5), "end", FAINT, name);
        }
        for sessions in (0..=MOST_SESSIONS).step_by(500) {
            let x = self.x(f64::from(sessions));
            text(
                svg,
                (x, HEIGHT - BOTTOM + 15.0),
                "middle",
                FAINT,
                &sessions.to_string(),
            );
        }
        let middle = f64::midpoint(left, right);
        text(
            svg,
            (middle, HEIGHT - 12.0),
            "middle",
            FAINT,
            "sessions offered, 5 Mbit/s each",
        );
        for (rows, (_, _, colour)) in lines.iter().zip(LINES) {
            let points: Vec<_> = rows
                .iter()
                .filter_map(|row| Some((row.get("offered")?.as_f64()?, row.get(self.field)?.as_f64()?)))
                .map(|(sessions, value)| (self.x(sessions), self.y(value)))
                .collect();
            let mut path = String::new();
            for (number, (x, y)) in points.iter().enumerate() {
                let _ = write!(path, "{}{x:.1} {y:.1}", if number == 0 { 'M' } else { 'L' });
                let _ = writeln!(svg, r#"<circle cx="{x:.1}" cy="{y:.1}" r="3" fill="{colour}"/>"#);
            }
            let _ = writeln!(
                svg,
                r#"<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.7"/>"#
            );
        }
    }
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, colour: &str, text: &str) {
    let _ = writeln!(
        svg,
        r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" fill="{colour}">{text}</text>"#
    );
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
    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="11" role="img">
<title>Lateness of segments and bytes delivered by the number of sessions offered, with and without admission control</title>
<rect width="100%" height="100%" fill="#fff"/>
"##
    );
    for (place, (_, name, colour)) in [PANELS[0].left, PANELS[1].left].into_iter().zip(LINES) {
        let _ = writeln!(
            svg,
            r#"<path d="M{place} 14h20" stroke="{colour}" stroke-width="2.5"/>"#
        );
        text(&mut svg, (place + 26.0, 18.0), "start", INK, name);
    }
    for panel in &PANELS {
        panel.draw(&mut svg, &lines);
    }
    svg.push_str("</svg>\n");
    fs::write(directory.join("curve.svg"), svg)?;
    Ok(())
}
