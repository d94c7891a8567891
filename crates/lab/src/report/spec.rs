//! [`FigureSpec`]: the figures that a scenario file asks for, which `lab report` draws of its results.

use std::path::Path;

use toml::Spanned;

use super::bands::{StatedBand, read_band};
use super::over_time::CURVES;
use crate::metric::Measure;
use crate::result::{ALL_ROLES, BULK, VIEWER};
use crate::scenario::file::FigureTable;
use crate::scenario::{Document, ScenarioError, ScenarioSource, SourceMap};
use crate::sim::Window;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FigureSpec {
    pub(crate) kind: FigureKind,
    /// Names of metrics, curves or estimates, depending on the kind.
    pub(crate) show: Vec<String>,
    /// The paper's figure that it is to be compared with, such as `P13, figure 4`.
    pub(crate) paper: Option<String>,
    /// Title in place of the one that follows from `show`.
    pub(crate) title: Option<String>,
    /// Advice to the reader, below the figure.
    pub(crate) note: Option<String>,
    /// Cases to show; all if empty.
    pub(crate) cases: Vec<String>,
    /// Role of the flows: `viewer`, `bulk` or `all`.
    pub(crate) role: String,
    /// True to add up the flows of a run instead of averaging them.
    pub(crate) total: bool,
    /// Name of the measurement window in which metrics are read; `None` for the whole run.
    pub(crate) window: Option<String>,
    /// Beginning of the time axis in seconds.
    pub(crate) from_s: f64,
    /// End of the time axis in seconds; `None` for the end of the data.
    pub(crate) until_s: Option<f64>,
    /// True to count time from the first packet after the sender's first pause.
    pub(crate) since_restart: bool,
    /// Ranges that the paper states.
    pub(crate) bands: Vec<StatedBand>,
}

impl FigureSpec {
    /// A figure of all viewers and cases over the whole run.
    pub(crate) fn new(kind: FigureKind, show: &[&str]) -> Self {
        Self {
            kind,
            show: show.iter().map(|name| (*name).to_owned()).collect(),
            paper: None,
            title: None,
            note: None,
            cases: Vec::new(),
            role: VIEWER.to_owned(),
            total: false,
            window: None,
            from_s: 0.0,
            until_s: None,
            since_restart: false,
            bands: Vec::new(),
        }
    }
}

impl FigureKind {
    /// Returns true if bands can be drawn behind what it shows.
    pub(super) fn has_bands(self) -> bool {
        !matches!(self, Self::Distribution | Self::Switches)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FigureKind {
    /// Metrics as bars by controller; one figure for each case.
    Bars,
    /// A metric over the cases as grouped bars; one figure for each metric.
    Cases,
    /// A metric over the cases as points joined by lines.
    CaseLines,
    /// Curves over time of each controller's first trial; one figure for each curve and case.
    OverTime,
    /// Distributions of an adaptive player's throughput estimates, cases side by side.
    Distribution,
    /// Frequency of representation switches by size.
    Switches,
}

/// Value of `figure.since`: the first packet after the sender's first pause.
const RESTART: &str = "restart";
const ROLES: [&str; 3] = [VIEWER, BULK, ALL_ROLES];

/// Names of the kinds in scenario files.
const KINDS: [(&str, FigureKind); 6] = [
    ("bars", FigureKind::Bars),
    ("cases", FigureKind::Cases),
    ("case-lines", FigureKind::CaseLines),
    ("over-time", FigureKind::OverTime),
    ("distribution", FigureKind::Distribution),
    ("switches", FigureKind::Switches),
];

/// Estimates of an adaptive player, for [`FigureKind::Distribution`].
const ESTIMATES: [&str; 2] = ["instant", "smoothed"];

/// The figures that a scenario file asks for.
///
/// # Errors
/// If a kind, a metric, a curve, a case or a window is unknown.
pub(crate) fn figure_specs(document: &Document<'_>) -> Result<Vec<FigureSpec>, ScenarioError> {
    let tables = &document.annotations.figure;
    if tables.is_empty() {
        return Ok(Vec::new());
    }
    let file = document.first_file()?;
    let windows = file.measure.windows.iter().map(|window| window.0.to_string());
    let windows: Vec<String> = windows.collect();
    let controllers = file.controllers.get_ref().iter().map(|one| one.0.to_string());
    let controllers: Vec<String> = controllers.collect();
    let figure = |table| {
        let mut figure = figure(document, &windows, table)?;
        let bands = table
            .band
            .iter()
            .map(|band| read_band(document, &controllers, &figure, band));
        figure.bands = bands.collect::<Result<_, _>>()?;
        Ok(figure)
    };
    tables.iter().map(figure).collect()
}

/// The figures that the text of a scenario asks for; none if something in it is wrong.
pub(crate) fn figures_of(text: &str) -> Vec<FigureSpec> {
    let source = ScenarioSource::new("", "", text.to_owned(), Path::new("."));
    let document = source.document();
    document
        .and_then(|document| figure_specs(&document))
        .unwrap_or_default()
}

/// The figures of a scenario's text that repeat those of the paper which the row of claims `row` is about; none if the
/// scenario does not decide the row.
pub(crate) fn figures_of_row(text: &str, row: &str) -> Vec<FigureSpec> {
    let source = ScenarioSource::new("", "", text.to_owned(), Path::new("."));
    let Ok(document) = source.document() else {
        return Vec::new();
    };
    let decides = document
        .first_file()
        .is_ok_and(|file| file.claims.iter().any(|claim| claim == row));
    let figures = figure_specs(&document).unwrap_or_default();
    let mine = |figure: &FigureSpec| figure.paper.as_ref().is_some_and(|paper| is_about(row, paper));
    figures
        .into_iter()
        .filter(|figure| decides && mine(figure))
        .collect()
}

/// Returns true if a row of claims such as `P12-3a` or `P14-8..10` is about a paper's figure such as
/// `P12, figure 3(a)`. A capital letter, as in `P13-4L`, is no part of the figure's name.
fn is_about(row: &str, figure: &str) -> bool {
    let Some(((row_paper, numbers), (paper, name))) = row.split_once('-').zip(figure.split_once(", figure "))
    else {
        return false;
    };
    let number = |text: &str| {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        text[..end].parse::<u32>().ok()
    };
    let letter = |text: &str| text.chars().find(char::is_ascii_lowercase);
    let (first, last) = numbers.split_once("..").unwrap_or((numbers, numbers));
    let in_range = match (number(first), number(last), number(name)) {
        (Some(first), Some(last), Some(own)) => (first..=last).contains(&own),
        _ => false,
    };
    let same_letter = letter(numbers).is_none_or(|wanted| letter(name).is_none_or(|own| own == wanted));
    row_paper == paper && in_range && same_letter
}

fn figure(
    document: &Document<'_>,
    windows: &[String],
    table: &FigureTable,
) -> Result<FigureSpec, ScenarioError> {
    let map = document.source_map();
    let name = table.kind.get_ref();
    let Some((_, kind)) = KINDS.iter().find(|(known, _)| known == name) else {
        let known: Vec<_> = KINDS.iter().map(|(name, _)| *name).collect();
        let problem = format!(
            "unknown kind of figure `{name}`; expected one of: {}",
            known.join(", ")
        );
        return Err(map.at(table.kind.span(), problem));
    };
    for shown in &table.show {
        if let Err(expected) = can_show(*kind, shown.get_ref()) {
            let problem = format!(
                "a figure of kind `{name}` cannot show `{}`: {expected}",
                shown.get_ref()
            );
            return Err(map.at(shown.span(), problem));
        }
    }
    if table.show.is_empty() && *kind != FigureKind::Switches {
        let problem = "the figure shows nothing: add `show`, such as show = [\"frames_discarded\"]";
        return Err(map.at(table.kind.span(), problem));
    }
    for case in &table.cases {
        if document.case_names().all(|known| known != case.get_ref()) {
            return Err(document.unknown_case(case));
        }
    }
    let role = table.role.as_ref();
    if let Some(role) = role.filter(|role| !ROLES.contains(&role.get_ref().as_str())) {
        let problem = format!(
            "unknown role `{}`; expected `viewer`, `bulk` or `all`",
            role.get_ref()
        );
        return Err(map.at(role.span(), problem));
    }
    if let Some(since) = &table.since {
        let name = since.get_ref();
        if name != RESTART || *kind != FigureKind::OverTime {
            let problem =
                format!("unknown origin of time `{name}`; `{RESTART}` is one, in figures over time");
            return Err(map.at(since.span(), problem));
        }
    }
    if let Some(window) = &table.window {
        check_window(map, windows, table, window)?;
    }
    let texts = |list: &[Spanned<String>]| list.iter().map(|text| text.get_ref().clone()).collect();
    Ok(FigureSpec {
        kind: *kind,
        show: texts(&table.show),
        paper: table.paper.clone(),
        title: table.title.clone(),
        note: table.note.clone(),
        cases: texts(&table.cases),
        role: role.map_or_else(|| VIEWER.to_owned(), |role| role.get_ref().clone()),
        total: table.total,
        window: table.window.as_ref().map(|window| window_name(window.get_ref())),
        from_s: table.from.as_ref().map_or(0.0, |from| from.0.0.as_secs_f64()),
        until_s: table.until.as_ref().map(|until| until.0.0.as_secs_f64()),
        since_restart: table.since.is_some(),
        bands: Vec::new(),
    })
}

/// Checks that the window is one of `windows` and that everything shown is counted in windows.
fn check_window(
    map: SourceMap<'_>,
    windows: &[String],
    table: &FigureTable,
    window: &Spanned<String>,
) -> Result<(), ScenarioError> {
    let name = window.get_ref();
    if !windows.contains(&window_name(name)) {
        let problem = format!(
            "unknown window `{name}`; `measure.windows` has {}",
            if windows.is_empty() {
                "none".to_owned()
            } else {
                windows.join(", ")
            }
        );
        return Err(map.at(window.span(), problem));
    }
    for shown in &table.show {
        let counted = Measure::find(shown.get_ref())
            .is_some_and(|measure| !measure.over_ideal && measure.metric.has_windows());
        if !counted {
            let problem = format!("`{}` is counted over whole runs, not in windows", shown.get_ref());
            return Err(map.at(shown.span(), problem));
        }
    }
    Ok(())
}

/// The name of a window as results have it, whichever units the file uses.
fn window_name(text: &str) -> String {
    text.parse()
        .map_or_else(|_| text.to_owned(), |window: Window| window.to_string())
}

/// Checks that a figure of this kind can show `name`; otherwise returns what is expected.
fn can_show(kind: FigureKind, name: &str) -> Result<(), String> {
    let one_of = |known: &[&str]| {
        if known.contains(&name) {
            Ok(())
        } else {
            Err(format!("expected one of: {}", known.join(", ")))
        }
    };
    match kind {
        FigureKind::OverTime => one_of(&CURVES.each_ref().map(|curve| curve.name)),
        FigureKind::Distribution => one_of(&ESTIMATES),
        FigureKind::Switches => Err("leave `show` out".to_owned()),
        FigureKind::Bars | FigureKind::Cases | FigureKind::CaseLines => Measure::find(name)
            .map(|_| ())
            .ok_or_else(|| "expected a metric, which is a field of a row (docs/runs.md)".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const GOOD: &str = r#"
about = "A test."
controllers = ["reno"]
[title]
trace = "film-1080p"
[path]
rate = "2λ"
rtt = "1ms"
[measure]
windows = ["0s..30s"]
[[case]]
name = "n5"
[[figure]]
paper = "P13, figure 4"
kind = "bars"
show = ["frames_discarded", "excess_underflow_events"]
[[figure]]
kind = "over-time"
show = ["window"]
cases = ["n5"]
from = "10s"
until = "30s"
[[figure]]
kind = "switches"
[[figure]]
kind = "case-lines"
role = "all"
window = "0s..30s"
show = ["throughput_bps"]
"#;

    fn read(text: &str) -> Result<Vec<FigureSpec>, ScenarioError> {
        let source = ScenarioSource::new("mine", "mine.toml", text.to_owned(), Path::new("."));
        figure_specs(&source.document()?)
    }

    #[test]
    fn figures_are_read_with_all_their_keys() {
        let figures = read(GOOD).unwrap();
        let kinds: Vec<_> = figures.iter().map(|figure| figure.kind).collect();
        assert_eq!(
            kinds,
            [
                FigureKind::Bars,
                FigureKind::OverTime,
                FigureKind::Switches,
                FigureKind::CaseLines
            ]
        );
        assert_eq!(figures[0].show, ["frames_discarded", "excess_underflow_events"]);
        assert_eq!(
            (figures[1].from_s, figures[1].until_s, figures[1].role.as_str()),
            (10.0, Some(30.0), "viewer")
        );
        assert_eq!(
            (figures[3].window.as_deref(), figures[3].role.as_str()),
            (Some("0s..30s"), "all")
        );
        assert_eq!(figures[1].cases, ["n5"]);
    }

    #[rstest]
    #[case("\"bars\"", "\"pie\"", "15, `figure.kind`", "expected one of: bars, cases")]
    #[case("frames_discarded", "frames_lost", "16, `figure.show`", "field of a row")]
    #[case("\"window\"", "\"cwnd\"", "19, `figure.show`", "expected one of: window, rtt")]
    #[case("[\"n5\"]", "[\"n6\"]", "20, `figure.cases`", "expected one of: n5")]
    #[case(
        "window = \"0s..30s\"",
        "window = \"0s..40s\"",
        "28, `figure.window`",
        "`measure.windows` has 0s..30s"
    )]
    #[case("throughput_bps", "rtt_mean_s", "29, `figure.show`", "over whole runs")]
    #[case("\"all\"", "\"some\"", "27, `figure.role`", "`bulk` or `all`")]
    #[case(
        "from = \"10s\"",
        "since = \"stall\"",
        "21, `figure.since`",
        "`restart` is one"
    )]
    #[case(
        "role = \"all\"",
        "since = \"restart\"",
        "27, `figure.since`",
        "in figures over time"
    )]
    fn an_unknown_name_is_reported_with_line_key_and_correction(
        #[case] good: &str,
        #[case] bad: &str,
        #[case] place: &str,
        #[case] correction: &str,
    ) {
        let error = read(&GOOD.replace(good, bad)).unwrap_err().to_string();
        let place = format!("mine.toml, line {place}: ");
        assert!(error.starts_with(&place) && error.contains(correction), "{error}");
    }

    #[rstest]
    #[case("P12-3a", "P12, figure 3(a)", true)]
    #[case("P12-3a", "P12, figure 3(b)", false)]
    #[case("P12-5", "P12, figure 5(b)", true)]
    #[case("P13-4L", "P13, figure 4", true)]
    #[case("P13-1", "P13, figure 10", false)]
    #[case("P14-8..10", "P14, figure 9", true)]
    #[case("P14-8..10", "P14, figure 11", false)]
    #[case("P15-8..9", "P14, figure 8", false)]
    #[case("P21-4", "P21, figure 4(b)", true)]
    fn a_row_is_about_the_figures_of_its_name(
        #[case] row: &str,
        #[case] figure: &str,
        #[case] expected: bool,
    ) {
        assert_eq!(is_about(row, figure), expected);
    }

    #[test]
    fn every_row_of_the_papers_has_a_figure() {
        for (name, text) in crate::scenario::BUILT_IN {
            let source = ScenarioSource::new(name, name, *text, Path::new("."));
            let file = source.document().unwrap().first_file().unwrap();
            for row in &file.claims {
                assert!(!figures_of_row(text, row).is_empty(), "{row} in {name}");
            }
        }
    }
}
