//! Curves over time, from the CSV files that a run with `--series` stores.

use std::fs;
use std::path::Path;

use playrate_units::Bitrate;

use super::request::{Drawn, FigureRequest, file_name, uncapitalised};
use super::results::{CaseResults, ControllerResults};
use crate::figure::{Band, Line, Panel, Panels, Style};
use crate::metric::Unit;
use crate::scenario::Scenario;
use crate::sim::PAUSE;
use crate::svg::FAINT;
use crate::words::{rate, size, time};

/// Seconds over which throughput is averaged.
const RATE_WINDOW: f64 = 0.5;
/// Seconds without a sample after which a sender counts as idle.
const IDLE: f64 = 0.1;
/// Most controllers side by side if each has a panel for each world.
const MOST_COLUMNS: usize = 4;

/// A quantity over time: its column in the files `*-FILE.csv` and its look.
pub(super) struct Curve {
    pub(super) name: &'static str,
    file: &'static str,
    column: &'static str,
    title: &'static str,
    /// Name of the axis of values.
    unit: &'static str,
    /// Kind of quantity, in which scenario files state ranges of it.
    pub(super) quantity: Unit,
    /// Factor from seconds, bytes or bits per second to the unit of the axis.
    pub(super) scale: f64,
}

/// All quantities that a figure `over-time` may show.
pub(super) const CURVES: [Curve; 7] = [
    Curve {
        name: "window",
        file: "transport",
        column: "window_bytes",
        title: "Congestion window",
        unit: "kB",
        quantity: Unit::Bytes,
        scale: 1e-3,
    },
    Curve {
        name: "rtt",
        file: "transport",
        column: "rtt_s",
        title: "RTT",
        unit: "ms, samples of the sender",
        quantity: Unit::Seconds,
        scale: 1e3,
    },
    Curve {
        name: "capacity",
        file: "transport",
        column: "capacity_bps",
        title: "Capacity estimate",
        unit: "Mbit/s",
        quantity: Unit::BitsPerSecond,
        scale: 1e-6,
    },
    Curve {
        name: "buffer",
        file: "playout",
        column: "held_s",
        title: "Playout buffer",
        unit: "seconds of video not yet shown",
        quantity: Unit::Seconds,
        scale: 1.0,
    },
    Curve {
        name: "throughput",
        file: "playout",
        column: "received_bytes",
        title: "Throughput",
        unit: "Mbit/s of the title, over half a second",
        quantity: Unit::BitsPerSecond,
        scale: 1e-6,
    },
    Curve {
        name: "downloads",
        file: "downloads",
        column: "delivered_bytes",
        title: "Throughput of all downloads",
        unit: "Mbit/s acknowledged, over half a second",
        quantity: Unit::BitsPerSecond,
        scale: 1e-6,
    },
    Curve {
        name: "queue",
        file: "queue",
        column: "max_queue_bytes",
        title: "Bottleneck queue",
        unit: "kB waiting",
        quantity: Unit::Bytes,
        scale: 1e-3,
    },
];

/// The look of the slow start threshold beside the window.
const THRESHOLD: Style = Style {
    colour: FAINT,
    dash: 2,
};

impl Curve {
    /// Finds a curve by its name in scenario files.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        CURVES.iter().find(|curve| curve.name == name)
    }

    /// Seconds and values of a controller's first trial.
    fn points(&self, one: &ControllerResults) -> Vec<(f64, f64)> {
        let read = first_column(one, self.file, self.column);
        match self.name {
            "throughput" | "downloads" => rates(&read, RATE_WINDOW),
            "window" => scaled(&held(&read), self.scale),
            _ => scaled(&read, self.scale),
        }
    }

    /// The controller's line and, for the window, the slow start threshold.
    fn panel(&self, one: &ControllerResults) -> Panel {
        let mut lines = vec![Line {
            name: one.full_name(),
            // Dashes would hide what a dense line does.
            style: Style { dash: 0, ..one.style },
            points: self.points(one),
        }];
        if self.name == "window" {
            let points = steps(&first_column(one, self.file, "ssthresh_bytes"), self.scale);
            lines.extend((!points.is_empty()).then(|| Line {
                name: "slow start threshold".to_owned(),
                style: THRESHOLD,
                points,
            }));
        }
        Panel {
            name: one.full_name(),
            lines,
            bands: Vec::new(),
        }
    }
}

impl FigureRequest<'_> {
    /// Draws the curve `name` of one case, with a panel for each controller. `None` if no series has it.
    pub(super) fn curve(&self, case: &CaseResults, name: &str) -> Option<Drawn> {
        let curve = Curve::find(name)?;
        let panel = |one: &ControllerResults| {
            let mut panel = curve.panel(one);
            if self.spec.since_restart {
                panel.shift(first_restart(one));
            }
            panel.bands = self.spec.bands_of(name, &case.name, &one.spec);
            panel
        };
        let all: Vec<Panel> = case.controllers.iter().map(panel).collect();
        let pairs = || case.controllers.iter().zip(&all);
        // Most controllers have no estimate of the capacity.
        let has_data =
            |spec: &str| pairs().any(|(one, panel)| one.spec == spec && !panel.lines[0].points.is_empty());
        let shown = pairs().filter(|(one, _)| name != "capacity" || has_data(&one.spec));
        let panels: Vec<Panel> = shown.map(|(_, panel)| panel.clone()).collect();
        // Senders may be done long before their viewers.
        let ends = panels.iter().filter_map(|panel| panel.lines[0].points.last());
        let last = ends.map(|point| point.0).fold(0.0, f64::max);
        if last <= 0.0 {
            return None;
        }
        let y_from = lowest(&panels, name);
        let (panels, columns) = stacked(panels, self.experiment.worlds().len());
        let (title, caption) = self.captioned(&case.name, &uncapitalised(curve.title));
        let link = link(case);
        let guides = case
            .scenario
            .as_ref()
            .map(|scenario| guides(scenario, link, name));
        let guides = guides.unwrap_or_default();
        let until = self.spec.until_s.unwrap_or_else(|| case.length().min(last));
        let x = (self.spec.from_s, until);
        let since = if self.spec.since_restart {
            "the first packet after the sender's first pause"
        } else {
            "the viewer's request"
        };
        let figure = Panels {
            title,
            x_name: format!("seconds since {since}, first trial"),
            y_name: curve.unit.to_owned(),
            x: Some(x),
            y_from,
            y_to: Some(highest(&panels, x, &guides)),
            guides,
            columns,
            charts: panels,
            buckets: self.buckets,
        };
        Some(Drawn {
            name: file_name(self.experiment, &case.name, &format!("time-{name}")),
            svg: figure.svg(),
            caption,
        })
    }
}

/// Puts the panels of `worlds` worlds one above the other; they are in the order of controllers, and for each in that
/// of worlds. Also returns the number of columns, which is 0 if there is nothing to stack.
fn stacked(panels: Vec<Panel>, worlds: usize) -> (Vec<Panel>, usize) {
    let controllers = panels.len() / worlds.max(1);
    if worlds < 2 || controllers * worlds < panels.len() {
        return (panels, 0);
    }
    let columns = if controllers <= MOST_COLUMNS {
        controllers
    } else {
        3
    };
    let mut places: Vec<Panel> = Vec::new();
    for first in (0..controllers).step_by(columns.max(1)) {
        for world in 0..worlds {
            let place = |column: usize| panels.get((first + column) * worlds + world).cloned();
            places.extend((0..columns).map(|column| place(column).unwrap_or_default()));
        }
    }
    (places, columns)
}

/// Time of the first packet after the first pause of the first trial's sender ([`PAUSE`]); `None` without a pause.
fn first_restart(one: &ControllerResults) -> Option<f64> {
    let samples = first_column(one, "transport", "rtt_s");
    let pause = samples
        .windows(2)
        .find(|pair| pair[1].0 - pair[0].0 >= PAUSE.as_secs_f64())?;
    // The packet that is acknowledged first left an RTT before.
    Some(pause[1].0 - pause[1].1)
}

/// The rate of the link, if it is the same in all results of a case.
fn link(case: &CaseResults) -> Option<Bitrate> {
    let mut rates = case.rows().filter_map(|row| row.link_rate_bps);
    let first = rates.next()?;
    let mean = case.scenario.as_ref()?.path.forward.rate.mean();
    mean.filter(|_| rates.all(|rate| rate == first))
}

/// Start of the y axis. RTTs begin just below the smallest, since queueing is what there is to see.
fn lowest(panels: &[Panel], name: &str) -> f64 {
    if name != "rtt" {
        return 0.0;
    }
    let lines = panels.iter().flat_map(|panel| &panel.lines);
    let values = lines.flat_map(|line| line.points.iter().map(|point| point.1));
    let bands = panels.iter().flat_map(|panel| &panel.bands);
    values
        .chain(bands.flat_map(Band::ends))
        .fold(f64::INFINITY, f64::min)
        * 0.9
}

/// End of the y axis: the largest value of each panel's first line, or, if single spikes such as one controller's
/// first overshoot would flatten everything else, a quarter above the 99th percentiles. Lines beyond are cut off.
fn highest(panels: &[Panel], x: (f64, f64), guides: &[(f64, String)]) -> f64 {
    let mut most: f64 = 0.0;
    let mut usual: f64 = 0.0;
    for line in panels.iter().filter_map(|panel| panel.lines.first()) {
        let shown = line.points.iter().filter(|point| (x.0..=x.1).contains(&point.0));
        let mut values: Vec<f64> = shown.map(|point| point.1).collect();
        values.sort_by(f64::total_cmp);
        let at = |place: usize| values.get(place).copied().unwrap_or(0.0);
        most = most.max(at(values.len().saturating_sub(1)));
        usual = usual.max(at(values.len() * 99 / 100));
    }
    let bands = || panels.iter().flat_map(|panel| &panel.bands);
    let ends = || bands().flat_map(Band::ends);
    if usual > 0.0 && most > usual * 2.0 {
        return ends().fold(usual * 1.25, f64::max);
    }
    let guides = guides.iter().map(|guide| guide.0);
    guides.chain(ends()).fold(most, f64::max)
}

/// Values to compare a curve with.
fn guides(scenario: &Scenario, link: Option<Bitrate>, name: &str) -> Vec<(f64, String)> {
    let round_trip = scenario.path.round_trip();
    let title = scenario.title_rate();
    let mut guides = Vec::new();
    match name {
        "window" => {
            let product = link.map(|link| ("bandwidth-delay product", link * round_trip));
            let needed = ("title's rate × RTT", title * round_trip);
            let both = product.into_iter().chain([needed]);
            guides.extend(
                both.map(|(name, bytes)| (bytes.as_u64() as f64 / 1e3, format!("{name} {}", size(bytes)))),
            );
        }
        "rtt" => guides.push((
            round_trip.as_secs_f64() * 1e3,
            format!("propagation {}", time(round_trip)),
        )),
        "downloads" => guides.extend(link.map(|link| (link.as_mbps(), format!("link {}", rate(link))))),
        "capacity" | "throughput" => {
            guides.extend(link.map(|link| (link.as_mbps(), format!("link {}", rate(link)))));
            guides.push((title.as_mbps(), format!("title λ {}", rate(title))));
        }
        _ => {}
    }
    guides
}

/// Seconds and values of one column of a controller's first trial.
fn first_column(one: &ControllerResults, file: &str, name: &str) -> Vec<(f64, f64)> {
    let file = one.first().map(|key| one.series(key, 0, file));
    file.map_or_else(Vec::new, |file| column(&file, name))
}

/// Seconds and values of one column, in the order of the file. Rows without a value are left out; a file or column
/// that does not exist has none.
pub(super) fn column(file: &Path, name: &str) -> Vec<(f64, f64)> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let mut lines = text.lines();
    let heads: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let place = |name: &str| heads.iter().position(|head| *head == name);
    let (Some(time), Some(value)) = (place("at_s"), place(name)) else {
        return Vec::new();
    };
    let point = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        Some((cells.get(time)?.parse().ok()?, cells.get(value)?.parse().ok()?))
    };
    lines.filter_map(point).collect()
}

fn scaled(points: &[(f64, f64)], scale: f64) -> Vec<(f64, f64)> {
    points.iter().map(|&(at, value)| (at, value * scale)).collect()
}

/// Byte counts over time as rates in Mbit/s over windows of at least `window` seconds.
pub(in crate::report) fn rates(bytes: &[(f64, f64)], window: f64) -> Vec<(f64, f64)> {
    let mut rates = Vec::new();
    let mut from = 0;
    for to in 0..bytes.len() {
        let span = bytes[to].0 - bytes[from].0;
        if span >= window {
            let middle = bytes[from].0 + span / 2.0;
            rates.push((middle, (bytes[to].1 - bytes[from].1) * 8.0 / span / 1e6));
            from = to;
        }
    }
    rates
}

/// The points with one more at the end of each pause: a window keeps its value until it changes, where a line from
/// sample to sample would show a slope.
fn held(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut all: Vec<(f64, f64)> = Vec::with_capacity(points.len());
    for &(at, value) in points {
        if let Some(&(before, last)) = all.last()
            && at - before > IDLE
        {
            all.push((at, last));
        }
        all.push((at, value));
    }
    all
}

/// The corners of a step function: the points at which the value changes, and the last.
fn steps(points: &[(f64, f64)], scale: f64) -> Vec<(f64, f64)> {
    let mut corners: Vec<(f64, f64)> = Vec::new();
    for &(at, value) in points {
        match corners.last().copied() {
            Some((_, last)) if (last - value * scale).abs() < 1e-9 => {}
            Some((_, last)) => corners.extend([(at, last), (at, value * scale)]),
            None => corners.push((at, value * scale)),
        }
    }
    let end = points.last().zip(corners.last().copied());
    corners.extend(end.map(|(point, (_, last))| (point.0, last)));
    corners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_read_by_its_name_and_gaps_are_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("x-transport.csv");
        let text = "at_s,window_bytes,ssthresh_bytes\n0.1,14720,\n0.2,20000,90000\n0.3,torn";
        fs::write(&file, text).unwrap();
        assert_eq!(column(&file, "window_bytes"), [(0.1, 14_720.0), (0.2, 20_000.0)]);
        assert_eq!(column(&file, "ssthresh_bytes"), [(0.2, 90_000.0)]);
        assert_eq!(column(&file, "srtt_s"), []);
        assert_eq!(column(Path::new("no/such/file.csv"), "window_bytes"), []);
    }

    #[test]
    fn rates_are_bytes_over_the_time_they_took() {
        let bytes: Vec<_> = (0..11)
            .map(|i| (f64::from(i) * 0.25, f64::from(i) * 125_000.0))
            .collect();
        let rates = rates(&bytes, 0.5);
        assert_eq!(rates.len(), 5);
        assert!(rates.iter().all(|rate| (rate.1 - 4.0).abs() < 1e-9));
        assert!((rates[0].0 - 0.25).abs() < 1e-9);
    }

    #[test]
    fn a_window_is_held_through_a_pause() {
        let points = [(1.0, 8.0), (1.02, 9.0), (3.0, 2.0), (3.02, 3.0)];
        let all = [(1.0, 8.0), (1.02, 9.0), (3.0, 9.0), (3.0, 2.0), (3.02, 3.0)];
        assert_eq!(held(&points), all);
    }

    #[test]
    fn a_threshold_is_drawn_as_steps() {
        let points = [(1.0, 8.0), (2.0, 8.0), (3.0, 4.0), (4.0, 4.0)];
        assert_eq!(
            steps(&points, 1.0),
            [(1.0, 8.0), (3.0, 8.0), (3.0, 4.0), (4.0, 4.0)]
        );
        assert_eq!(steps(&[], 1.0), []);
    }
}
