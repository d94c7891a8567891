//! Pictures of what players of ladders measured and chose.

use std::path::Path;

use super::draw::{Drawn, Source, file_name, words};
use super::load::{CaseResults, ControllerResults, Experiment, series_file};
use super::series::column;
use crate::figure::{Grouped, GroupedSeries, Line, Panel, Panels, distribution};
use crate::run::Row;
use crate::scenario::FigureSpec;

/// Corners of a distribution's steps at most; more would not be seen.
const CORNERS: usize = 400;

/// Distributions of one of the players' estimates: a panel for each case, a line for each controller.
pub(super) fn estimates(
    experiment: &Experiment,
    cases: &[&CaseResults],
    spec: &FigureSpec,
    name: &str,
    source: Source<'_>,
) -> Option<Drawn> {
    let panels: Vec<Panel> = cases
        .iter()
        .map(|case| Panel {
            name: case.name.clone(),
            lines: case
                .controllers
                .iter()
                .map(|one| Line {
                    name: one.name.clone(),
                    style: one.style,
                    points: thinned(&distribution(&values(source.directory, one, name))),
                })
                .collect(),
        })
        .collect();
    let points = || {
        panels
            .iter()
            .flat_map(|panel| &panel.lines)
            .flat_map(|line| &line.points)
    };
    // Rare estimates far beyond all others would press the rest together.
    let end = points()
        .filter(|point| point.1 <= 0.99)
        .map(|point| point.0)
        .fold(0.0, f64::max);
    points().next()?;
    let what = format!("distribution of the players' {name} throughput estimate");
    let (title, caption) = words(experiment, "", spec, &what);
    let places: Vec<&str> = spec.cases.iter().map(String::as_str).collect();
    let svg = Panels {
        title,
        x_name: format!("{name} estimate in Mbit/s, segments of each controller's first trial"),
        y_name: "share of segments at or below".to_owned(),
        x: Some((0.0, end * 1.05)),
        y_to: Some(1.0),
        panels,
        ..Panels::default()
    }
    .svg();
    Some(Drawn {
        name: file_name(experiment, &places.join("-"), &format!("distribution-{name}")),
        svg,
        caption,
    })
}

/// The estimates of all viewers in Mbit/s, of the trials that have series.
fn values(directory: &Path, one: &ControllerResults, name: &str) -> Vec<f64> {
    let rows = one.trials.iter().flatten().filter(|row| row.adaptive.is_some());
    let files = rows.map(|row| series_file(directory, &row.key, row.viewer as usize, "segments"));
    let points = files.flat_map(|file| column(&file, &format!("{name}_bps")));
    points.map(|point| point.1 / 1e6).collect()
}

/// Every so manieth corner, the last always among them.
fn thinned(corners: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let step = corners.len().div_ceil(CORNERS).max(1);
    let kept = corners.iter().step_by(step).copied();
    let last = corners
        .last()
        .copied()
        .filter(|_| corners.len() % step != 1 && step > 1);
    kept.chain(last).collect()
}

/// How often the representation changed by how much, as a share of all segments.
pub(super) fn switches(experiment: &Experiment, case: &CaseResults, spec: &FigureSpec) -> Option<Drawn> {
    let sizes = case
        .controllers
        .iter()
        .flat_map(|one| one.trials.iter().flatten());
    let sizes = sizes
        .filter_map(|row| row.adaptive.as_ref())
        .flat_map(|row| row.switch_sizes.keys());
    let most = sizes.map(|size| size.abs()).max()?;
    let sizes: Vec<i64> = (-most..=most).filter(|size| *size != 0).collect();
    let series = case.controllers.iter().map(|one| GroupedSeries {
        name: one.name.clone(),
        style: one.style,
        trials: sizes
            .iter()
            .map(|size| one.trials.iter().filter_map(|rows| share(rows, *size)).collect())
            .collect(),
    });
    let (title, caption) = words(experiment, &case.name, spec, "switches of representation");
    let svg = Grouped {
        title,
        unit: "% of segments, logarithmic".to_owned(),
        cases_are: "steps up or down from one segment to the next".to_owned(),
        cases: sizes.iter().map(|size| format!("{size:+}")).collect(),
        series: series.collect(),
        joined: false,
        log: true,
    }
    .svg();
    Some(Drawn {
        name: file_name(experiment, &case.name, "switches"),
        svg,
        caption,
    })
}

/// Share of the segments of a run, in percent, that were such a step from the one before.
fn share(rows: &[Row], size: i64) -> Option<f64> {
    let players = || rows.iter().filter_map(|row| row.adaptive.as_ref());
    let segments: u64 = players().map(|one| one.segments).sum();
    let steps: u64 = players().filter_map(|one| one.switch_sizes.get(&size)).sum();
    (segments > 0).then(|| steps as f64 * 100.0 / segments as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinned_steps_keep_their_ends() {
        let corners: Vec<_> = (0..3_000)
            .map(|i| (f64::from(i), f64::from(i) / 3_000.0))
            .collect();
        let thin = thinned(&corners);
        assert!(thin.len() <= CORNERS + 2);
        assert_eq!((thin.first(), thin.last()), (corners.first(), corners.last()));
        assert_eq!(thinned(&corners[..7]), corners[..7]);
    }
}
