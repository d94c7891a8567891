//! What the report shows, as figures.

use std::time::Duration;

use playrate_units::Bytes;

use crate::facts::needed_window;
use crate::figure::{
    Band, Chart, Colour, FigureError, Guide, Lane, Mark, Part, PartKind, PathDiagram, Series, colours,
    path_diagram, timeline,
};
use crate::record::{Comparison, PlayoutSample, RunRecord};
use crate::words::{percent, rate, size, time};

/// One figure of the report.
pub(super) struct Figure {
    /// A name fit for a file, without its ending.
    pub(super) name: &'static str,
    /// The figure.
    pub(super) svg: String,
    /// What to look for.
    pub(super) caption: &'static str,
}

/// The colour of each run, in the order of the runs.
pub(super) fn run_colours(comparison: &Comparison) -> Vec<Colour> {
    let specs: Vec<&str> = comparison.runs.iter().map(|run| run.spec.as_str()).collect();
    colours(&specs)
}

/// Path and viewers: what one sees first.
pub(super) fn overview(comparison: &Comparison) -> Result<[Figure; 2], FigureError> {
    let colours = run_colours(comparison);
    Ok([
        Figure {
            name: "path",
            svg: diagram(comparison, &colours),
            caption: "",
        },
        Figure {
            name: "viewers",
            svg: timeline(&lanes(comparison, &colours), length(comparison))?,
            caption: "",
        },
    ])
}

/// The curves over time, on one time axis. A quantity that was not sampled has none.
pub(super) fn curves(comparison: &Comparison) -> Result<Vec<Figure>, FigureError> {
    let charts = [
        (
            "playout-buffer",
            buffer(comparison),
            "Empty means the picture freezes; shaded: a viewer's picture stood still.",
        ),
        (
            "throughput",
            throughput(comparison),
            "Above the title's rate the buffer grows, below it shrinks.",
        ),
        (
            "congestion-window",
            window(comparison),
            "A dot is a cut after a congestion signal, at the window before the cut.",
        ),
        (
            "rtt",
            rtt(comparison),
            "What is above propagation is waiting in the queue.",
        ),
        (
            "bottleneck-queue",
            queue(comparison),
            "A full queue drops what comes next.",
        ),
    ];
    charts
        .into_iter()
        .filter(|(_, chart, _)| chart.series.iter().any(|series| !series.points.is_empty()))
        .map(|(name, chart, caption)| {
            Ok(Figure {
                name,
                svg: chart.svg()?,
                caption,
            })
        })
        .collect()
}

fn diagram(comparison: &Comparison, colours: &[Colour]) -> String {
    let path = &comparison.path;
    path_diagram(&PathDiagram {
        flows: comparison
            .runs
            .iter()
            .map(|run| run.spec.clone())
            .zip(colours.iter().copied())
            .collect(),
        queue: size(path.queue),
        rate: rate(path.rate),
        rtt: time(path.rtt),
        loss: (path.loss.as_f64() > 0.0).then(|| percent(path.loss.as_f64())),
        receiver: "playout buffer".to_owned(),
    })
}

/// Length of the time axis in seconds: the longest session.
fn length(comparison: &Comparison) -> f64 {
    let longest = comparison.runs.iter().map(|run| run.viewer.length).max();
    longest.unwrap_or(Duration::from_secs(1)).as_secs_f64()
}

fn lanes(comparison: &Comparison, colours: &[Colour]) -> Vec<Lane> {
    comparison
        .runs
        .iter()
        .zip(colours)
        .map(|(run, &colour)| Lane {
            name: run.spec.clone(),
            colour,
            parts: parts(run),
            ticks: run
                .viewer
                .discard_times
                .iter()
                .map(Duration::as_secs_f64)
                .collect(),
        })
        .collect()
}

/// Waiting, then playing, interrupted by freezes.
fn parts(run: &RunRecord) -> Vec<Part> {
    let end = run.viewer.length.as_secs_f64();
    let mut at = run.viewer.startup.unwrap_or(run.viewer.length).as_secs_f64();
    let mut parts = vec![Part {
        span: (0.0, at),
        kind: PartKind::Waiting,
    }];
    for freeze in &run.viewer.freezes {
        let (from, to) = (freeze.from.as_secs_f64(), freeze.to.as_secs_f64());
        parts.push(Part {
            span: (at, from),
            kind: PartKind::Playing,
        });
        parts.push(Part {
            span: (from, to),
            kind: PartKind::Frozen,
        });
        at = to;
    }
    parts.push(Part {
        span: (at, end),
        kind: PartKind::Playing,
    });
    parts.retain(|part| part.span.1 > part.span.0);
    parts
}

/// A chart with a line and the freezes of every run.
fn chart(
    comparison: &Comparison,
    title: &str,
    unit: &str,
    points: impl Fn(&RunRecord) -> Vec<(f64, f64)>,
) -> Chart {
    let mut chart = Chart {
        title: title.to_owned(),
        unit: unit.to_owned(),
        seconds: length(comparison),
        ..Chart::default()
    };
    for (run, colour) in comparison.runs.iter().zip(run_colours(comparison)) {
        chart.series.push(Series {
            name: run.spec.clone(),
            colour,
            points: points(run),
        });
        chart.bands.extend(run.viewer.freezes.iter().map(|freeze| Band {
            span: (freeze.from.as_secs_f64(), freeze.to.as_secs_f64()),
            colour,
        }));
    }
    chart
}

fn kilobytes(bytes: Bytes) -> f64 {
    bytes.as_u64() as f64 / 1e3
}

fn buffer(comparison: &Comparison) -> Chart {
    let mut chart = chart(
        comparison,
        "Playout buffer",
        "seconds of video not yet shown",
        |run| {
            let points = run.playout.iter();
            points
                .map(|sample| (sample.at.as_secs_f64(), sample.ahead.as_secs_f64()))
                .collect()
        },
    );
    chart.height = 240;
    chart
}

fn throughput(comparison: &Comparison) -> Chart {
    let unit = "Mbit/s of the title, over half a second";
    let mut chart = chart(comparison, "Throughput", unit, |run| {
        // What comes after the last byte is no throughput.
        let until = run
            .playout
            .partition_point(|sample| sample.at <= run.viewer.receiving);
        rates(&run.playout[..until])
    });
    let (link, title) = (comparison.path.rate, comparison.title.average_rate);
    chart.guides = vec![
        Guide {
            value: link.as_mbps(),
            label: format!("link {}", rate(link)),
        },
        Guide {
            value: title.as_mbps(),
            label: format!("title {}", rate(title)),
        },
    ];
    chart
}

fn window(comparison: &Comparison) -> Chart {
    let mut chart = chart(comparison, "Congestion window", "kB", |run| {
        let points = run.transport.iter();
        points
            .map(|sample| (sample.at.as_secs_f64(), kilobytes(sample.window)))
            .collect()
    });
    chart.height = 250;
    let needed = needed_window(comparison);
    chart.guides = vec![Guide {
        value: kilobytes(needed),
        label: format!("title needs {}", size(needed)),
    }];
    for (run, colour) in comparison.runs.iter().zip(run_colours(comparison)) {
        chart.marks.extend(run.cuts.iter().map(|cut| Mark {
            at: (cut.at.as_secs_f64(), kilobytes(cut.before)),
            colour,
        }));
    }
    chart
}

fn rtt(comparison: &Comparison) -> Chart {
    let mut chart = chart(comparison, "RTT", "ms, smoothed by the sender", |run| {
        let points = run
            .transport
            .iter()
            .filter_map(|sample| Some((sample.at, sample.rtt?)));
        points
            .map(|(at, rtt)| (at.as_secs_f64(), rtt.as_secs_f64() * 1e3))
            .collect()
    });
    let propagation = comparison.path.rtt;
    // Queueing is what there is to see, so a long path's propagation is cut off below.
    chart.bottom = propagation.as_secs_f64() * 1e3 * 0.9;
    chart.guides = vec![Guide {
        value: propagation.as_secs_f64() * 1e3,
        label: format!("propagation {}", time(propagation)),
    }];
    chart
}

fn queue(comparison: &Comparison) -> Chart {
    let mut chart = chart(comparison, "Bottleneck queue", "kB waiting", |run| {
        let points = run.queue.iter();
        points
            .map(|sample| (sample.at.as_secs_f64(), kilobytes(sample.queued)))
            .collect()
    });
    chart.height = 180;
    let limit = comparison.path.queue;
    chart.guides = vec![Guide {
        value: kilobytes(limit),
        label: format!("full at {}", size(limit)),
    }];
    chart
}

/// Delivered bytes as rates in Mbit/s over windows of half a second.
fn rates(samples: &[PlayoutSample]) -> Vec<(f64, f64)> {
    const WINDOW: Duration = Duration::from_millis(500);
    let mut points = Vec::new();
    let mut from = 0;
    for (to, sample) in samples.iter().enumerate() {
        let span = sample.at.saturating_sub(samples[from].at);
        if span >= WINDOW {
            let bytes = sample.delivered - samples[from].delivered;
            let middle = samples[from].at + span / 2;
            points.extend(bytes.per(span).map(|rate| (middle.as_secs_f64(), rate.as_mbps())));
            from = to;
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::comparison;

    #[test]
    fn lanes_follow_the_session_without_gaps() {
        let sample = comparison();
        let parts = parts(&sample.runs[0]);
        assert_eq!(parts.len(), 8);
        assert!(
            parts
                .windows(2)
                .all(|pair| (pair[0].span.1 - pair[1].span.0).abs() < 1e-9)
        );
        assert!((parts[7].span.1 - 43.0).abs() < 1e-9);
    }

    #[test]
    fn throughput_is_delivered_bytes_over_time() {
        let points = rates(&comparison().runs[0].playout);
        assert!(
            points.iter().all(|point| (point.1 - 2.0).abs() < 1e-6),
            "{points:?}"
        );
    }
}
