//! From stored results and what a scenario asks for to pictures.

use std::path::Path;

use super::adaptive::{estimates, switches};
use super::load::{CaseResults, EVERYBODY, Experiment, Flows, series_file};
use super::series::{column, held, rates};
use crate::figure::{BarColumn, Bars, Grouped, GroupedSeries, Line, Panel, Panels};
use crate::metric::{Measure, Unit};
use crate::run::slug;
use crate::scenario::{FigureKind, FigureSpec, Scenario};
use crate::words::{rate, size, time};

/// A picture of the report.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// A name fit for a file, without its ending.
    pub name: String,
    /// The picture.
    pub svg: String,
    /// What it stands beside, and what to look for.
    pub caption: String,
}

/// Where pictures take what they need from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    /// The directory of the results.
    pub(super) directory: &'a Path,
    /// To how many buckets lines over time are reduced.
    pub(super) buckets: usize,
}

/// Share of a second over which throughput is averaged.
const RATE_WINDOW: f64 = 0.5;

/// A curve over time: its file, its column and how it is shown.
struct Curve {
    file: &'static str,
    column: &'static str,
    title: &'static str,
    unit: &'static str,
    scale: f64,
}

fn curve(name: &str) -> Option<Curve> {
    let (file, column, title, unit, scale) = match name {
        "window" => ("transport", "window_bytes", "Congestion window", "kB", 1e-3),
        "rtt" => ("transport", "rtt_s", "RTT", "ms, samples of the sender", 1e3),
        "capacity" => ("transport", "capacity_bps", "Capacity estimate", "Mbit/s", 1e-6),
        "buffer" => (
            "playout",
            "held_s",
            "Playout buffer",
            "seconds of video not yet shown",
            1.0,
        ),
        "throughput" => (
            "playout",
            "received_bytes",
            "Throughput",
            "Mbit/s of the title, over half a second",
            1.0,
        ),
        "queue" => ("queue", "max_queue_bytes", "Bottleneck queue", "kB waiting", 1e-3),
        _ => return None,
    };
    Some(Curve {
        file,
        column,
        title,
        unit,
        scale,
    })
}

/// The pictures that `spec` asks for; none if the results do not have what it shows.
pub(super) fn draw(experiment: &Experiment, spec: &FigureSpec, source: Source<'_>) -> Vec<Drawn> {
    let cases: Vec<&CaseResults> = experiment
        .cases
        .iter()
        .filter(|case| spec.cases.is_empty() || spec.cases.contains(&case.name))
        .collect();
    match spec.kind {
        FigureKind::Bars => cases
            .iter()
            .filter_map(|case| bars(experiment, case, spec))
            .collect(),
        FigureKind::Cases | FigureKind::CaseLines => spec
            .show
            .iter()
            .filter_map(|name| over_cases(experiment, &cases, spec, name))
            .collect(),
        FigureKind::OverTime => {
            let pairs = spec
                .show
                .iter()
                .flat_map(|name| cases.iter().map(move |case| (name, case)));
            pairs
                .filter_map(|(name, case)| over_time(experiment, case, spec, name, source))
                .collect()
        }
        FigureKind::Distribution => spec
            .show
            .iter()
            .filter_map(|name| estimates(experiment, &cases, spec, name, source))
            .collect(),
        FigureKind::Switches => cases
            .iter()
            .filter_map(|case| switches(experiment, case, spec))
            .collect(),
    }
}

/// How many lines over time `spec` asks for.
pub(super) fn lines_over_time(experiment: &Experiment, spec: &FigureSpec) -> usize {
    if spec.kind != FigureKind::OverTime {
        return 0;
    }
    let cases = experiment.cases.iter();
    let cases = cases.filter(|case| spec.cases.is_empty() || spec.cases.contains(&case.name));
    spec.show.len() * cases.map(|case| case.controllers.len()).sum::<usize>()
}

fn flows(spec: &FigureSpec) -> Flows<'_> {
    Flows {
        role: &spec.role,
        total: spec.total,
        window: spec.window.as_deref(),
    }
}

/// Title and caption: what it shows, of which case, beside which figure of the paper.
pub(super) fn words(experiment: &Experiment, case: &str, spec: &FigureSpec, shows: &str) -> (String, String) {
    let place = crate::scenario::full_name(&experiment.name, case);
    let what = spec.title.as_deref().unwrap_or(shows);
    let title = format!("{place}: {what}");
    let parts = [
        spec.paper.as_deref().map(|paper| format!("Beside {paper}.")),
        spec.note.clone(),
    ];
    (title, parts.into_iter().flatten().collect::<Vec<_>>().join(" "))
}

pub(super) fn file_name(experiment: &Experiment, case: &str, what: &str) -> String {
    let all: Vec<&str> = [experiment.name.as_str(), case, what]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    slug(&all.join("-"))
}

/// Label and unit of a measure on an axis, and what its values are multiplied with.
fn axis(measure: Measure, flows: Flows<'_>) -> (String, &'static str, f64) {
    let (unit, scale) = measure.metric.unit.axis();
    let who = match (flows.role, flows.total) {
        ("viewer", false) => String::new(),
        ("viewer", true) => ", all viewers together".to_owned(),
        (EVERYBODY, _) => " of all flows".to_owned(),
        (role, false) => format!(" of {role} flows"),
        (role, true) => format!(" of all {role} flows together"),
    };
    let when = flows
        .window
        .map_or_else(String::new, |window| format!(", {window}"));
    (format!("{}{who}{when}", measure.label()), unit, scale)
}

fn decimals(unit: Unit) -> usize {
    match unit {
        Unit::Count | Unit::Bytes => 0,
        _ => 2,
    }
}

/// What tells files of the same metrics of other flows apart.
fn whose(spec: &FigureSpec) -> String {
    let parts = [
        (spec.role != Flows::VIEWERS.role).then_some(spec.role.as_str()),
        spec.window.as_deref(),
    ];
    let parts = parts.into_iter().flatten();
    parts.flat_map(|part| [part, "-"]).collect()
}

fn bars(experiment: &Experiment, case: &CaseResults, spec: &FigureSpec) -> Option<Drawn> {
    let mut columns = Vec::new();
    let mut labels = Vec::new();
    for measure in spec.show.iter().filter_map(|name| Measure::find(name)) {
        let (name, unit, scale) = axis(measure, flows(spec));
        let scaled = |values: Vec<f64>| values.into_iter().map(|value| value * scale).collect::<Vec<_>>();
        let trials: Vec<Vec<f64>> = case
            .controllers
            .iter()
            .map(|one| scaled(one.values(measure, flows(spec), case.ideal.as_ref())))
            .collect();
        if trials.iter().all(Vec::is_empty) {
            continue;
        }
        let ideal = case
            .ideal
            .as_ref()
            .filter(|_| flows(spec).is_plain() && !measure.over_ideal);
        labels.push(uncapitalised(&if flows(spec).is_plain() {
            measure.label()
        } else {
            name.clone()
        }));
        columns.push(BarColumn {
            name,
            unit: unit.to_owned(),
            decimals: decimals(measure.metric.unit),
            trials,
            reference: ideal
                .and_then(|row| measure.metric.value(row))
                .map(|value| value * scale),
        });
    }
    if columns.is_empty() {
        return None;
    }
    let (title, caption) = words(experiment, &case.name, spec, &labels.join(", "));
    let svg = Bars {
        title,
        rows: case
            .controllers
            .iter()
            .map(|one| (one.name.clone(), one.style))
            .collect(),
        columns,
    }
    .svg();
    Some(Drawn {
        name: file_name(
            experiment,
            &case.name,
            &format!("bars-{}{}", whose(spec), spec.show.join("-")),
        ),
        svg,
        caption,
    })
}

fn over_cases(
    experiment: &Experiment,
    cases: &[&CaseResults],
    spec: &FigureSpec,
    name: &str,
) -> Option<Drawn> {
    let measure = Measure::find(name)?;
    let (label, unit, scale) = axis(measure, flows(spec));
    let mut series: Vec<GroupedSeries> = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        for one in &case.controllers {
            let values = one.values(measure, flows(spec), case.ideal.as_ref());
            let place = series
                .iter()
                .position(|known| known.name == one.name)
                .unwrap_or_else(|| {
                    series.push(GroupedSeries {
                        name: one.name.clone(),
                        style: one.style,
                        trials: vec![Vec::new(); cases.len()],
                    });
                    series.len() - 1
                });
            series[place].trials[index] = values.into_iter().map(|value| value * scale).collect();
        }
    }
    if series.iter().flat_map(|one| &one.trials).all(Vec::is_empty) {
        return None;
    }
    let (title, caption) = words(experiment, "", spec, &label);
    let svg = Grouped {
        title,
        unit: unit.to_owned(),
        cases_are: "case of the scenario".to_owned(),
        cases: cases.iter().map(|case| case.name.clone()).collect(),
        series,
        joined: spec.kind == FigureKind::CaseLines,
        log: false,
    }
    .svg();
    Some(Drawn {
        name: file_name(
            experiment,
            &spec.cases.join("-"),
            &format!("cases-{}{name}", whose(spec)),
        ),
        svg,
        caption,
    })
}

fn over_time(
    experiment: &Experiment,
    case: &CaseResults,
    spec: &FigureSpec,
    name: &str,
    source: Source<'_>,
) -> Option<Drawn> {
    let curve = curve(name)?;
    let points = |key: &crate::run::Key| {
        let read = column(&series_file(source.directory, key, 0, curve.file), curve.column);
        match name {
            "throughput" => rates(&read, RATE_WINDOW),
            "window" => held(&read)
                .into_iter()
                .map(|(at, value)| (at, value * curve.scale))
                .collect(),
            _ => read
                .into_iter()
                .map(|(at, value)| (at, value * curve.scale))
                .collect(),
        }
    };
    let panels: Vec<Panel> = case
        .controllers
        .iter()
        .map(|one| Panel {
            name: one.name.clone(),
            lines: vec![Line {
                name: one.name.clone(),
                // Dashes would hide what a dense line does.
                style: crate::figure::Style { dash: 0, ..one.style },
                points: one.first().map(points).unwrap_or_default(),
            }],
        })
        .filter(|panel| name != "capacity" || !panel.lines[0].points.is_empty())
        .collect();
    if panels.iter().all(|panel| panel.lines[0].points.is_empty()) {
        return None;
    }
    let lines = || panels.iter().flat_map(|panel| &panel.lines);
    // Senders may be done long before their viewers.
    let last = lines()
        .filter_map(|line| line.points.last())
        .map(|point| point.0)
        .fold(0.0, f64::max);
    let (title, caption) = words(experiment, &case.name, spec, &uncapitalised(curve.title));
    let guides = case
        .scenario
        .as_ref()
        .map(|scenario| guides(scenario, name))
        .unwrap_or_default();
    let figure = Panels {
        title,
        x_name: "seconds since the viewer's request, first trial".to_owned(),
        y_name: curve.unit.to_owned(),
        x: Some((
            spec.from_s,
            spec.until_s.unwrap_or_else(|| case.length().min(last)),
        )),
        y_from: least(&panels, name),
        y_to: quantile_top(&panels, spec.until_s),
        guides,
        panels,
        buckets: source.buckets,
    };
    Some(Drawn {
        name: file_name(experiment, &case.name, &format!("time-{name}")),
        svg: figure.svg(),
        caption,
    })
}

/// Where the y axis begins. Of RTTs queueing is what there is to see, so a long path's propagation is cut off.
fn least(panels: &[Panel], name: &str) -> f64 {
    let lines = panels.iter().flat_map(|panel| &panel.lines);
    let values = lines.flat_map(|line| line.points.iter().map(|point| point.1));
    match name {
        "rtt" => values.fold(f64::INFINITY, f64::min) * 0.9,
        _ => 0.0,
    }
}

/// Where the y axis ends if single spikes, such as the first overshoot of one controller, would flatten everything else: a quarter above what 99 % of the
/// samples of every line stay below. Lines that go beyond are cut off there.
fn quantile_top(panels: &[Panel], until: Option<f64>) -> Option<f64> {
    let until = until.unwrap_or(f64::INFINITY);
    let mut most: f64 = 0.0;
    let mut usual: f64 = 0.0;
    for line in panels.iter().flat_map(|panel| &panel.lines) {
        let mut values: Vec<f64> = line
            .points
            .iter()
            .filter(|point| point.0 <= until)
            .map(|point| point.1)
            .collect();
        values.sort_by(f64::total_cmp);
        let place = values.len() * 99 / 100;
        most = values.last().copied().unwrap_or(0.0).max(most);
        usual = values.get(place).copied().unwrap_or(0.0).max(usual);
    }
    (usual > 0.0 && most > usual * 2.0).then_some(usual * 1.25)
}

/// A heading within a sentence; `RTT` stays.
fn uncapitalised(heading: &str) -> String {
    let mut letters = heading.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if second.is_lowercase() => {
            format!("{}{}", first.to_lowercase(), &heading[first.len_utf8()..])
        }
        _ => heading.to_owned(),
    }
}

/// What a curve is compared with.
fn guides(scenario: &Scenario, name: &str) -> Vec<(f64, String)> {
    let round_trip = scenario.path.round_trip();
    let link = scenario.path.forward.rate.mean();
    let title = scenario.title_rate();
    let mut guides = Vec::new();
    match name {
        "window" => {
            if let Some(link) = link {
                let bdp = link * round_trip;
                guides.push((
                    bdp.as_u64() as f64 / 1e3,
                    format!("bandwidth-delay product {}", size(bdp)),
                ));
            }
            let need = title * round_trip;
            guides.push((
                need.as_u64() as f64 / 1e3,
                format!("title's rate × RTT {}", size(need)),
            ));
        }
        "rtt" => guides.push((
            round_trip.as_secs_f64() * 1e3,
            format!("propagation {}", time(round_trip)),
        )),
        "capacity" | "throughput" => {
            guides.extend(link.map(|link| (link.as_mbps(), format!("link {}", rate(link)))));
            guides.push((title.as_mbps(), format!("title λ {}", rate(title))));
        }
        _ => {}
    }
    guides
}
