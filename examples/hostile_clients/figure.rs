//! The figure of `soak`: memory, descriptors, processor time and sessions over time, with the attacks behind them.

use std::fmt::Write as _;

use anyhow::Context as _;
use lab::svg::{Anchor, Axis, FAINT, GRID, INK, Label, PALETTE, Point, Stroke, SvgWriter};

/// First line of the samples.
pub(crate) const HEAD: &str =
    "seconds,attack,memory_mb,descriptors,processor_time,watching,complete,failed,late,bytes,wrong_bytes";

const SIZE: Point = (900.0, 560.0);
const LEFT: f64 = 70.0;
const WIDTH: f64 = 810.0;
const TOP: f64 = 34.0;
const HEIGHT: f64 = 90.0;
/// From the top of one panel to that of the next.
const PITCH: f64 = 128.0;
/// Seconds after which memory and descriptors are to stay as they are.
const SETTLED: f64 = 300.0;

/// Title of a panel, and the sample's column that it shows.
const PANELS: [(&str, usize); 4] = [
    ("server's resident memory, MB", 2),
    ("server's descriptors", 3),
    ("server's processor time, processors", 4),
    ("sessions in progress", 5),
];

/// A line of the samples, without its attack, which is a column of zeros.
struct Sample {
    attack: String,
    values: Vec<f64>,
}

fn parse(text: &str) -> anyhow::Result<Vec<Sample>> {
    let lines = text.lines().skip(1).enumerate();
    let samples = lines.map(|(number, line)| {
        let fields: Vec<&str> = line.split(',').collect();
        let values = fields.iter().enumerate().map(|(column, field)| match column {
            1 => Ok(0.0),
            _ => field.parse::<f64>(),
        });
        anyhow::ensure!(
            fields.len() == HEAD.split(',').count(),
            "line {}: `{line}`",
            number + 2
        );
        Ok(Sample {
            attack: fields[1].to_owned(),
            values: values
                .collect::<Result<_, _>>()
                .with_context(|| format!("line {}: `{line}`", number + 2))?,
        })
    });
    samples.collect()
}

/// Draws the samples of `soak`.
///
/// # Errors
/// A line that is no sample.
pub(crate) fn draw(text: &str) -> anyhow::Result<String> {
    let samples = parse(text)?;
    let last = samples.last().map_or(0.0, |sample| sample.values[0]);
    let x = Axis::exact(0.0, last / 60.0, 6.0);
    let across = |seconds: f64| LEFT + WIDTH * x.place(seconds / 60.0);
    let mut svg = SvgWriter::new(
        SIZE,
        "Memory, descriptors, processor time and sessions of a server over time, attacked in turns",
    );
    for (number, (title, column)) in PANELS.into_iter().enumerate() {
        let top = TOP + PITCH * number as f64;
        let most = samples
            .iter()
            .map(|sample| sample.values[column])
            .fold(0.0, f64::max);
        let y = Axis::linear(0.0, most.max(0.1), 3.0);
        let down = |value: f64| top + HEIGHT * (1.0 - y.place(value));
        for pair in samples.windows(2) {
            if !pair[1].attack.is_empty() {
                let (from, to) = (across(pair[0].values[0]), across(pair[1].values[0]));
                svg.rect((from, top), (to - from, HEIGHT), GRID);
            }
        }
        svg.text((LEFT, top - 12.0), Label::new(12.0, INK, Anchor::Start), title);
        for (value, text) in y.ticks() {
            svg.line(
                (LEFT, down(value)),
                (LEFT + WIDTH, down(value)),
                Stroke::solid(GRID, 1.0),
            );
            svg.text(
                (LEFT - 6.0, down(value)),
                Label::new(11.0, FAINT, Anchor::End),
                &text,
            );
        }
        for (minutes, text) in x.ticks() {
            let at = (across(minutes * 60.0), top + HEIGHT + 10.0);
            svg.text(at, Label::new(11.0, FAINT, Anchor::Middle), &text);
        }
        let points = samples
            .iter()
            .map(|sample| (across(sample.values[0]), down(sample.values[column])));
        svg.path(points, Stroke::solid(PALETTE[0], 1.5));
    }
    let middle = (LEFT + WIDTH / 2.0, SIZE.1 - 12.0);
    let label = Label::new(11.0, FAINT, Anchor::Middle);
    svg.text(
        middle,
        label,
        "minutes; grey: an attack is in progress, another one each time",
    );
    Ok(svg.finish())
}

/// Memory and descriptors in each tenth of the time after the first five minutes.
///
/// # Errors
/// A line that is no sample.
pub(crate) fn summary(text: &str) -> anyhow::Result<String> {
    let samples = parse(text)?;
    let last = samples.last().map_or(0.0, |sample| sample.values[0]);
    let mut summary = String::from("minutes, MB (mean, most), descriptors (mean, most)\n");
    let settled = SETTLED.min(last / 2.0);
    for tenth in 0..10 {
        let at = |tenth: u32| settled + (last - settled) * f64::from(tenth) / 10.0;
        let (from, to) = (at(tenth), at(tenth + 1));
        let inside: Vec<_> = samples
            .iter()
            .filter(|sample| (from..to).contains(&sample.values[0]))
            .collect();
        let mean = |column: usize| {
            inside.iter().map(|sample| sample.values[column]).sum::<f64>() / inside.len().max(1) as f64
        };
        let most = |column: usize| {
            inside
                .iter()
                .map(|sample| sample.values[column])
                .fold(0.0, f64::max)
        };
        let _ = writeln!(
            summary,
            "{:.1}–{:.1}: {:.1}, {:.1}; {:.0}, {:.0}",
            from / 60.0,
            to / 60.0,
            mean(2),
            most(2),
            mean(3),
            most(3)
        );
    }
    Ok(summary)
}
