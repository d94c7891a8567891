//! The figures of an experiment: those that its scenario asks for, or those that suit its results.

use super::over_time::column;
use super::playback::playback;
use super::request::{Drawn, FigureRequest, file_name, uncapitalised};
use super::results::{CaseResults, ControllerResults, Experiment};
use super::spec::{FigureKind, FigureSpec};
use crate::figure::{
    Band, BarColumn, Bars, Grouped, GroupedSeries, IDEAL_STYLE, Line, Panel, Panels, distribution,
    world_style,
};
use crate::metric::{Measure, Unit};
use crate::result::Row;
use crate::statistics::Spread;

/// Most cases whose figures stand one after the other; more are shown side by side.
const FEW_CASES: usize = 3;
/// Most corners of the steps of a distribution; more would not be visible.
const CORNERS: usize = 400;

/// The figures that the scenario of `experiment` asks for, or those that suit its results.
pub(super) fn specs(experiment: &Experiment) -> Vec<FigureSpec> {
    if !experiment.figures.is_empty() {
        return experiment.figures.clone();
    }
    let spec = |kind, show: &[&str]| FigureSpec::new(kind, show);
    let adaptive = experiment.rows().any(|row| row.adaptive.is_some());
    let metrics: &[&str] = if adaptive {
        &["rebuffer_ratio", "mean_bitrate_bps", "loss_ratio"]
    } else {
        &["frames_discarded", "underflow_events", "lost_packets"]
    };
    let mut figures = Vec::new();
    let few = experiment.cases.len() <= FEW_CASES;
    if few {
        figures.push(spec(FigureKind::Bars, metrics));
    }
    if experiment.cases.len() > 1 {
        figures.push(spec(FigureKind::Cases, metrics));
    }
    if adaptive {
        figures.push(spec(FigureKind::Distribution, &["instant", "smoothed"]));
    }
    if adaptive && few {
        figures.push(spec(FigureKind::Switches, &[]));
    }
    if few {
        figures.push(spec(FigureKind::OverTime, &["window", "rtt", "queue", "buffer"]));
    }
    figures
}

/// Draws the playback of the viewers, unless there are many cases, and the figures that `specs` ask for, as far as
/// the results have their data.
pub(super) fn draw(experiment: &Experiment, specs: &[FigureSpec], buckets: usize) -> Vec<Drawn> {
    let few = experiment.cases.len() <= FEW_CASES;
    let cases = experiment.cases.iter().filter(|_| few);
    let viewers = cases.filter_map(|case| playback(experiment, case));
    let figures = specs.iter().flat_map(|spec| {
        let request = FigureRequest {
            experiment,
            cases: experiment.cases_of(spec),
            spec,
            buckets,
        };
        request.draw()
    });
    viewers.chain(figures).collect()
}

/// Number of lines over time that `spec` asks for.
pub(super) fn lines_over_time(experiment: &Experiment, spec: &FigureSpec) -> usize {
    if spec.kind != FigureKind::OverTime {
        return 0;
    }
    let cases = experiment.cases_of(spec);
    spec.show.len() * cases.iter().map(|case| case.controllers.len()).sum::<usize>()
}

impl FigureRequest<'_> {
    pub(super) fn draw(&self) -> Vec<Drawn> {
        let shown = || self.spec.show.iter();
        let cases = || self.cases.iter().copied();
        match self.spec.kind {
            FigureKind::Bars => cases().filter_map(|case| self.bars(case)).collect(),
            FigureKind::Cases | FigureKind::CaseLines => {
                shown().filter_map(|name| self.over_cases(name)).collect()
            }
            FigureKind::OverTime => {
                let pairs = shown().flat_map(|name| cases().map(move |case| (case, name)));
                pairs.filter_map(|(case, name)| self.curve(case, name)).collect()
            }
            FigureKind::Distribution => shown().filter_map(|name| self.estimates(name)).collect(),
            FigureKind::Switches => cases().filter_map(|case| self.switches(case)).collect(),
        }
    }

    /// Values of a measure in the trials of a controller, in the unit of an axis.
    fn values(&self, one: &ControllerResults, case: &CaseResults, measure: Measure) -> Vec<f64> {
        let (_, scale) = measure.metric.unit.axis();
        let values = one.values(measure, self.flows(), &case.ideal);
        values.into_iter().map(|value| value * scale).collect()
    }

    /// Bars of all measures of one case.
    fn bars(&self, case: &CaseResults) -> Option<Drawn> {
        let mut columns = Vec::new();
        let mut labels = Vec::new();
        let shown = self.spec.show.iter();
        for (shown, measure) in shown.filter_map(|name| Some((name, Measure::find(name)?))) {
            let (unit, scale) = measure.metric.unit.axis();
            let controllers = case.controllers.iter();
            let trials: Vec<Vec<f64>> = controllers.map(|one| self.values(one, case, measure)).collect();
            if trials.iter().all(Vec::is_empty) {
                continue;
            }
            let name = self.label(measure);
            labels.push(uncapitalised(&name));
            let comparable = self.flows().is_plain() && !measure.over_ideal;
            let ideal = case.ideal.iter().filter(|_| comparable);
            columns.push(BarColumn {
                name,
                unit: unit.to_owned(),
                decimals: match measure.metric.unit {
                    Unit::Count | Unit::Bytes => 0,
                    _ => 2,
                },
                trials,
                reference: Spread::of(ideal.filter_map(|row| measure.metric.value(row)))
                    .map(|values| values.mean * scale),
                bands: self.bands_of_rows(case, shown),
            });
        }
        if columns.is_empty() {
            return None;
        }
        let (title, caption) = self.captioned(&case.name, &labels.join(", "));
        let rows = case.controllers.iter().map(|one| (one.name.clone(), one.style));
        let rows = rows.collect();
        Some(Drawn {
            name: self.file_name_of_flows(&case.name, ("bars", &self.spec.show.join("-"))),
            svg: Bars {
                title,
                rows,
                looks: looks(self.experiment),
                columns,
            }
            .svg(),
            caption,
        })
    }

    /// The paper's ranges of what `show` names, each with its controller's first row of bars.
    fn bands_of_rows(&self, case: &CaseResults, show: &str) -> Vec<(usize, Band)> {
        let mut all = Vec::new();
        for (row, one) in case.controllers.iter().enumerate() {
            // The rows of a controller's worlds follow one another.
            if row == 0 || case.controllers[row - 1].spec != one.spec {
                let bands = self.spec.bands_of(show, &case.name, &one.spec);
                all.extend(bands.into_iter().map(|band| (row, band)));
            }
        }
        all
    }

    /// One measure over all cases.
    fn over_cases(&self, name: &str) -> Option<Drawn> {
        let measure = Measure::find(name)?;
        let mut series: Vec<GroupedSeries> = Vec::new();
        for (index, case) in self.cases.iter().enumerate() {
            for one in &case.controllers {
                let known = series.iter().position(|known| known.name == one.full_name());
                let place = known.unwrap_or_else(|| {
                    series.push(GroupedSeries {
                        name: one.full_name(),
                        style: one.style,
                        trials: vec![Vec::new(); self.cases.len()],
                        bands: Vec::new(),
                    });
                    series.len() - 1
                });
                series[place].trials[index] = self.values(one, case, measure);
                let bands = self.spec.bands_of(name, &case.name, &one.spec);
                series[place]
                    .bands
                    .extend(bands.into_iter().map(|band| (index, band)));
            }
        }
        if series.iter().flat_map(|one| &one.trials).all(Vec::is_empty) {
            return None;
        }
        let (title, caption) = self.captioned("", &uncapitalised(&self.label(measure)));
        let grouped = Grouped {
            title,
            unit: measure.metric.unit.axis().0.to_owned(),
            cases_name: "case of the scenario".to_owned(),
            cases: self.cases.iter().map(|case| case.name.clone()).collect(),
            series,
            joined: self.spec.kind == FigureKind::CaseLines,
            log: false,
        };
        Some(Drawn {
            name: self.file_name_of_flows(&self.spec.cases.join("-"), ("cases", name)),
            svg: grouped.svg(),
            caption,
        })
    }

    /// Distributions of the players' throughput estimate `name`: a panel for each case, a line for each controller.
    fn estimates(&self, name: &str) -> Option<Drawn> {
        let line = |one: &ControllerResults| Line {
            name: one.full_name(),
            style: one.style,
            points: thinned(&distribution(&estimates(one, name))),
        };
        let panels = self.cases.iter().map(|case| Panel {
            name: case.name.clone(),
            lines: case.controllers.iter().map(line).collect(),
            bands: Vec::new(),
        });
        let panels: Vec<Panel> = panels.collect();
        let points = || {
            let lines = panels.iter().flat_map(|panel| &panel.lines);
            lines.flat_map(|line| &line.points)
        };
        points().next()?;
        // Rare estimates far beyond all others would press the rest together.
        let usual = points().filter(|point| point.1 <= 0.99);
        let end = usual.map(|point| point.0).fold(0.0, f64::max);
        let shows = format!("distribution of the players' {name} throughput estimate");
        let (title, caption) = self.captioned("", &shows);
        let figure = Panels {
            title,
            x_name: format!("{name} estimate in Mbit/s, segments of each controller's first trial"),
            y_name: "share of segments at or below".to_owned(),
            x: Some((0.0, end * 1.05)),
            y_to: Some(1.0),
            charts: panels,
            ..Panels::default()
        };
        let kind = format!("distribution-{name}");
        Some(Drawn {
            name: file_name(self.experiment, &self.spec.cases.join("-"), &kind),
            svg: figure.svg(),
            caption,
        })
    }

    /// Changes of representation by their size, as a share of all segments.
    fn switches(&self, case: &CaseResults) -> Option<Drawn> {
        let players = case.rows().filter_map(|row| row.adaptive.as_ref());
        let sizes = players.flat_map(|player| player.switch_sizes.keys());
        let most = sizes.map(|size| size.abs()).max()?;
        let sizes: Vec<i64> = (-most..=most).filter(|size| *size != 0).collect();
        let shares = |one: &ControllerResults, size: i64| {
            let trials = one.trials.iter();
            trials.filter_map(|rows| switch_share(rows, size)).collect()
        };
        let series = case.controllers.iter().map(|one| GroupedSeries {
            name: one.full_name(),
            style: one.style,
            trials: sizes.iter().map(|size| shares(one, *size)).collect(),
            bands: Vec::new(),
        });
        let (title, caption) = self.captioned(&case.name, "switches of representation");
        let grouped = Grouped {
            title,
            unit: "% of segments, logarithmic".to_owned(),
            cases_name: "steps up or down from one segment to the next".to_owned(),
            cases: sizes.iter().map(|size| format!("{size:+}")).collect(),
            series: series.collect(),
            joined: false,
            log: true,
        };
        Some(Drawn {
            name: file_name(self.experiment, &case.name, "switches"),
            svg: grouped.svg(),
            caption,
        })
    }
}

/// The looks of bars by world, in words; empty for the results of a directory.
fn looks(experiment: &Experiment) -> String {
    let worlds = experiment.worlds();
    let look = |(place, world): (usize, &&str)| {
        let solid = world_style(IDEAL_STYLE, place, worlds.len()).dash == 0;
        format!("{}: {world} world", if solid { "filled" } else { "pale" })
    };
    let looks = worlds.iter().enumerate().map(look);
    looks.collect::<Vec<_>>().join(" · ")
}

/// The estimates `name` of all viewers in Mbit/s, of the trials that have series.
fn estimates(one: &ControllerResults, name: &str) -> Vec<f64> {
    let rows = one.trials.iter().flatten().filter(|row| row.adaptive.is_some());
    let files = rows.map(|row| one.series(&row.key, row.viewer as usize, "segments"));
    let points = files.flat_map(|file| column(&file, &format!("{name}_bps")));
    points.map(|point| point.1 / 1e6).collect()
}

/// Evenly chosen corners, [`CORNERS`] or one more, always with the last.
fn thinned(corners: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let step = corners.len().div_ceil(CORNERS).max(1);
    let kept = corners.iter().step_by(step).copied();
    let last = corners.last().copied();
    let last = last.filter(|_| corners.len() % step != 1 && step > 1);
    kept.chain(last).collect()
}

/// Share in percent of a run's segments that were `size` representations above the segment before.
fn switch_share(rows: &[Row], size: i64) -> Option<f64> {
    let players = || rows.iter().filter_map(|row| row.adaptive.as_ref());
    let segments: u64 = players().map(|player| player.segments).sum();
    let switches: u64 = players()
        .filter_map(|player| player.switch_sizes.get(&size))
        .sum();
    (segments > 0).then(|| switches as f64 * 100.0 / segments as f64)
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
