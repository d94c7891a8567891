//! Figures of one row of the papers' claims, drawn for several worlds in the same axes.

use std::collections::BTreeMap;

use playrate_transport::ControllerChoice;

use super::figures;
use super::request::{Drawn, FigureRequest};
use super::results::Experiment;
use super::spec::{FigureKind, FigureSpec, figures_of_row};
use crate::figure::{styles, world_style};
use crate::result::{IDEAL, slug};
use crate::scenario::BUILT_IN;
use crate::worlds::WorldRuns;

/// Approximate size of the curves of one figure, in bytes of SVG.
const CURVE_BUDGET: usize = 48_000;

/// All figures of the papers that are about `row`, each for all `worlds` in the same axes, under the names `P13-5-1`,
/// `P13-5-2` and so on. A figure without data has an empty SVG and a caption that says what is missing.
pub(crate) fn row_figures(row: &str, worlds: &[&WorldRuns]) -> Vec<Drawn> {
    let mut names: Vec<&str> = Vec::new();
    for one in worlds.iter().flat_map(|world| &world.runs) {
        if !names.contains(&one.row.key.scenario.as_str()) {
            names.push(&one.row.key.scenario);
        }
    }
    let mut drawn: Vec<Drawn> = Vec::new();
    for name in names {
        let Some(text) = text(name, worlds) else { continue };
        let specs = figures_of_row(&text, row);
        if specs.is_empty() {
            continue;
        }
        let mut experiment = merged(name, worlds);
        experiment.set_names(&written(&text));
        drawn.extend(specs.iter().flat_map(|spec| draw(&experiment, spec)));
    }
    for (number, one) in (1..).zip(&mut drawn) {
        one.name = slug(&format!("{}-{number}", row.replace("..", "-")));
    }
    drawn
}

/// The text of the scenario `name`: the built-in one before a stored one.
///
/// Figures do not change runs, so that a stored text may have those of an older program.
fn text(name: &str, worlds: &[&WorldRuns]) -> Option<String> {
    let built_in = BUILT_IN.iter().find(|(known, _)| *known == name);
    let stored = || {
        let mut directories = worlds.iter().map(|world| &world.directory);
        directories.find_map(|directory| Experiment::stored_text(name, directory))
    };
    built_in.map(|(_, text)| (*text).to_owned()).or_else(stored)
}

/// The controllers of a scenario's text as it writes them, by their canonical specs: claims have the same names.
fn written(text: &str) -> BTreeMap<String, String> {
    let table: toml::Table = toml::from_str(text).unwrap_or_default();
    let list = table.get("controllers").and_then(toml::Value::as_array);
    let names = list.into_iter().flatten().filter_map(toml::Value::as_str);
    let pair = |name: &str| {
        let choice: ControllerChoice = name.parse().ok()?;
        Some((choice.to_string(), name.to_owned()))
    };
    names.filter_map(pair).collect()
}

/// The figures that `spec` asks for; one without an SVG if there are no data.
fn draw(experiment: &Experiment, spec: &FigureSpec) -> Vec<Drawn> {
    let lines = figures::lines_over_time(experiment, spec) / experiment.cases_of(spec).len().max(1);
    let request = FigureRequest {
        experiment,
        cases: experiment.cases_of(spec),
        spec,
        // The window has a second line, its threshold.
        buckets: (CURVE_BUDGET / super::BUCKET_BYTES / (2 * lines).max(1)).clamp(20, 300),
    };
    let drawn = request.draw();
    if !drawn.is_empty() {
        return drawn;
    }
    let what = match spec.kind {
        FigureKind::OverTime | FigureKind::Distribution => "no time series of the first trials are stored",
        _ => "no run has these numbers",
    };
    let paper = spec.paper.as_deref().unwrap_or("The figure");
    vec![Drawn {
        name: String::new(),
        svg: String::new(),
        caption: format!("{paper} is not drawn for {}: {what}.", experiment.name),
    }]
}

/// The results of the scenario `name` in all worlds: each controller once for each world.
///
/// Ideal senders are left out, since they differ between worlds.
fn merged(name: &str, worlds: &[&WorldRuns]) -> Experiment {
    let mut all = Experiment::default();
    let mut specs: Vec<&str> = Vec::new();
    for world in worlds {
        let runs = || world.runs.iter().filter(|one| one.row.key.scenario == name);
        let mut own = Experiment {
            name: name.to_owned(),
            ..Experiment::default()
        };
        for one in runs().filter(|one| one.label != IDEAL) {
            if !specs.contains(&one.label.as_str()) {
                specs.push(&one.label);
            }
            own.take(&one.label, one.row.clone(), &world.directory);
        }
        own.explain(&world.directory);
        own.set_world(&world.name);
        all.join(own);
    }
    specs.sort_unstable();
    let looks: Vec<_> = specs
        .iter()
        .map(|spec| (*spec).to_owned())
        .zip(styles(&specs))
        .collect();
    all.set_styles(&looks);
    let names: Vec<String> = worlds.iter().map(|world| world.name.clone()).collect();
    for one in all.cases.iter_mut().flat_map(|case| &mut case.controllers) {
        let place = names.iter().position(|name| *name == one.world).unwrap_or(0);
        one.style = world_style(one.style, place, worlds.len());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{assert_has, row};
    use crate::worlds::LabelledRow;
    use std::fs;
    use std::path::Path;

    /// Two trials of two controllers of P13-4, of which the world has changed `cubic` to `own`.
    fn world(name: &str, own: &str, directory: &Path) -> WorldRuns {
        let run = |label: &str, spec: &str, trial: u32| {
            let mut row = row(spec, trial);
            row.key.scenario = "p13-4".to_owned();
            row.playback.frames_discarded = 100 * u64::from(trial);
            LabelledRow {
                label: label.to_owned(),
                row,
            }
        };
        let runs = [
            ("reno", "reno"),
            ("cubic", own),
            ("ccpd(kd=4ms)+loss=ignore", "ccpd(kd=3ms)+loss=ignore"),
        ];
        let runs = runs
            .iter()
            .flat_map(|(label, spec)| [1, 2].map(|trial| run(label, spec, trial)));
        WorldRuns {
            name: name.to_owned(),
            directory: directory.to_owned(),
            runs: runs.collect(),
        }
    }

    fn worlds(directory: &Path) -> [WorldRuns; 2] {
        [
            world("nominal", "cubic", directory),
            world("fitted", "cubic+start=hystart", directory),
        ]
    }

    fn drawn(row: &str, [nominal, fitted]: &[WorldRuns; 2]) -> Vec<Drawn> {
        row_figures(row, &[nominal, fitted])
    }

    /// Writes a window of a minute for the first trial of `spec`.
    fn write_series(directory: &Path, spec: &str) {
        let mut text = "at_s,window_bytes\n".to_owned();
        for i in 0..600 {
            text = format!("{text}{},{}\n", f64::from(i) / 10.0, 14_720 + i * 100);
        }
        let key = row(spec, 1).key;
        let series = directory.join("series/p13-4");
        fs::create_dir_all(&series).unwrap();
        let file = format!("{}-seed{}-viewer0-transport.csv", slug(spec), key.seed);
        fs::write(series.join(file), text).unwrap();
    }

    #[test]
    fn bars_have_each_controller_in_both_worlds_under_the_scenarios_own_name() {
        let home = tempfile::tempdir().unwrap();
        let figures = drawn("P13-4", &worlds(home.path()));
        assert_eq!(figures.len(), 1, "{figures:?}");
        let svg = &figures[0].svg;
        assert_has(
            svg,
            ">ccpd(1,4000)+loss=ignore<|P13, figure 4|pale: nominal world|filled: fitted world|>150 ± 71<",
        );
        assert_eq!(
            (svg.matches(">cubic<").count(), svg.matches("hystart").count()),
            (1, 0)
        );
        assert_eq!(figures[0].name, "P13-4-1");
    }

    #[test]
    fn curves_stand_one_above_the_other_with_the_same_axes() {
        let home = tempfile::tempdir().unwrap();
        for spec in ["reno", "cubic", "cubic+start=hystart"] {
            write_series(home.path(), spec);
        }
        let figures = drawn("P13-5", &worlds(home.path()));
        let svg = &figures[0].svg;
        assert_has(svg, "P13, figure 5|>reno, nominal<|>cubic, fitted<");
        assert_eq!(svg.matches("<path").count(), 4, "two controllers in two worlds");
        assert!(svg.len() < 60_000, "{}", svg.len());
        assert_eq!(svg, &drawn("P13-5", &worlds(home.path()))[0].svg);
    }

    #[test]
    fn a_figure_without_series_is_left_out_and_says_so() {
        let home = tempfile::tempdir().unwrap();
        let figures = drawn("P13-5", &worlds(home.path()));
        assert_eq!(figures.len(), 1);
        assert!(figures[0].svg.is_empty());
        assert_has(&figures[0].caption, "P13, figure 5|no time series");
        write_series(home.path(), "reno");
        let half = &drawn("P13-5", &worlds(home.path()))[0].svg;
        assert_eq!(
            half.matches("not measured").count(),
            4,
            "two controllers, in both worlds"
        );
    }

    #[test]
    fn a_single_world_is_drawn_alone_and_solid() {
        let home = tempfile::tempdir().unwrap();
        let figures = row_figures("P13-4", &[&worlds(home.path())[0]]);
        assert_has(&figures[0].svg, "filled: nominal world");
        assert_has(&figures[0].caption, "P13, figure 4: ours in the nominal world.");
        assert!(!figures[0].svg.contains("stroke-dasharray"));
    }

    #[test]
    fn rows_of_scenarios_that_were_not_run_have_no_figures() {
        let home = tempfile::tempdir().unwrap();
        assert!(drawn("P13-6", &worlds(home.path())).is_empty());
        assert!(drawn("P99-1", &worlds(home.path())).is_empty());
    }
}
