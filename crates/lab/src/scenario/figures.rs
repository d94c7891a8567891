//! The figures that a scenario asks for: what `lab report` draws of its results.

use serde::Deserialize;
use toml::Spanned;

use super::ScenarioError;
use super::error::Blame;
use super::text::{Text, Time};
use crate::metric::Measure;

/// A figure to be drawn of the results.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FigureSpec {
    /// What kind of picture.
    pub kind: FigureKind,
    /// What it shows, in the words of its kind: metrics, or curves.
    pub show: Vec<String>,
    /// The figure of the paper that it stands beside, such as `P13, figure 4`.
    pub paper: Option<String>,
    /// Its title, if not the one that follows from what it shows.
    pub title: Option<String>,
    /// What to look for.
    pub note: Option<String>,
    /// The cases that it shows; all if empty.
    pub cases: Vec<String>,
    /// Which flows it is about: `viewer`, `bulk`, or `all`.
    pub role: String,
    /// Whether the flows of a run are added up instead of averaged.
    pub total: bool,
    /// In which of the scenario's measurement windows metrics are read; over the whole run if `None`.
    pub window: Option<String>,
    /// Beginning of the time axis in seconds.
    pub from_s: f64,
    /// End of the time axis in seconds.
    pub until_s: Option<f64>,
}

impl FigureSpec {
    /// A figure of this kind that shows this of all viewers and cases.
    pub fn new(kind: FigureKind, show: &[&str]) -> Self {
        Self {
            kind,
            show: show.iter().map(|name| (*name).to_owned()).collect(),
            paper: None,
            title: None,
            note: None,
            cases: Vec::new(),
            role: "viewer".to_owned(),
            total: false,
            window: None,
            from_s: 0.0,
            until_s: None,
        }
    }
}

/// A kind of picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FigureKind {
    /// Metrics as bars by controller; a picture for each case.
    Bars,
    /// A metric over the cases as bars in groups; a picture for each metric.
    Cases,
    /// A metric over the cases as points joined by lines.
    CaseLines,
    /// Curves over time of each controller's first trial; a picture for each curve and case.
    OverTime,
    /// Distributions of estimates, cases side by side.
    Distribution,
    /// How often the representation changed by how much.
    Switches,
}

/// Which flows a figure can be about.
const ROLES: [&str; 3] = ["viewer", "bulk", "all"];

/// Names of kinds in a file.
const KINDS: [(&str, FigureKind); 6] = [
    ("bars", FigureKind::Bars),
    ("cases", FigureKind::Cases),
    ("case-lines", FigureKind::CaseLines),
    ("over-time", FigureKind::OverTime),
    ("distribution", FigureKind::Distribution),
    ("switches", FigureKind::Switches),
];

/// Curves that [`FigureKind::OverTime`] can show.
pub const CURVES: [&str; 6] = ["window", "rtt", "capacity", "buffer", "throughput", "queue"];

/// Estimates of a DASH player that [`FigureKind::Distribution`] can show.
pub const ESTIMATES: [&str; 2] = ["instant", "smoothed"];

/// What of a file concerns figures.
#[derive(Debug, Deserialize)]
struct Outline {
    #[serde(default)]
    figure: Vec<FigureTable>,
    #[serde(default)]
    case: Vec<CaseName>,
    #[serde(default)]
    measure: Windows,
}

#[derive(Debug, Default, Deserialize)]
struct Windows {
    #[serde(default)]
    windows: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct CaseName {
    name: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FigureTable {
    kind: Spanned<String>,
    #[serde(default)]
    show: Vec<Spanned<String>>,
    paper: Option<String>,
    title: Option<String>,
    note: Option<String>,
    #[serde(default)]
    cases: Vec<Spanned<String>>,
    role: Option<Spanned<String>>,
    #[serde(default)]
    total: bool,
    window: Option<Spanned<String>>,
    from: Option<Text<Time>>,
    until: Option<Text<Time>>,
}

/// The figures that the text of a scenario asks for.
///
/// # Errors
/// If a kind, a metric, a curve or a case is unknown.
pub(super) fn figures(blame: Blame<'_>) -> Result<Vec<FigureSpec>, ScenarioError> {
    let outline: Outline = toml::from_str(blame.text).map_err(|error| blame.toml(&error))?;
    let cases: Vec<&str> = outline.case.iter().map(|case| case.name.as_str()).collect();
    outline
        .figure
        .iter()
        .map(|table| figure(blame, table, &cases, &outline.measure.windows))
        .collect()
}

/// The figures that a text asks for, whether or not the rest of it can be used.
pub fn figures_of(text: &str) -> Vec<FigureSpec> {
    figures(Blame::new("", text)).unwrap_or_default()
}

fn figure(
    blame: Blame<'_>,
    table: &FigureTable,
    cases: &[&str],
    windows: &[String],
) -> Result<FigureSpec, ScenarioError> {
    let asked = table.kind.get_ref();
    let Some((_, kind)) = KINDS.iter().find(|(name, _)| name == asked) else {
        let known: Vec<_> = KINDS.iter().map(|(name, _)| *name).collect();
        let problem = format!(
            "there is no kind of figure `{asked}`; there are {}",
            known.join(", ")
        );
        return Err(blame.at(table.kind.span(), problem));
    };
    for name in &table.show {
        if let Err(known) = knows(*kind, name.get_ref()) {
            let problem = format!("`{}` cannot be shown as `{asked}`; {known}", name.get_ref());
            return Err(blame.at(name.span(), problem));
        }
    }
    if table.show.is_empty() && *kind != FigureKind::Switches {
        let problem = "a figure shows something: name it with `show`, such as [\"frames_discarded\"]";
        return Err(blame.at(table.kind.span(), problem));
    }
    for name in &table.cases {
        if !cases.contains(&name.get_ref().as_str()) {
            let problem = format!(
                "there is no case `{}`; there are {}",
                name.get_ref(),
                cases.join(", ")
            );
            return Err(blame.at(name.span(), problem));
        }
    }
    let role = table.role.as_ref();
    if let Some(role) = role.filter(|role| !ROLES.contains(&role.get_ref().as_str())) {
        return Err(blame.at(role.span(), "flows are `viewer`, `bulk` or `all`"));
    }
    if let Some(window) = &table.window {
        in_window(blame, table, window, windows)?;
    }
    let texts = |list: &[Spanned<String>]| list.iter().map(|text| text.get_ref().clone()).collect();
    Ok(FigureSpec {
        kind: *kind,
        show: texts(&table.show),
        paper: table.paper.clone(),
        title: table.title.clone(),
        note: table.note.clone(),
        cases: texts(&table.cases),
        role: role.map_or_else(|| "viewer".to_owned(), |role| role.get_ref().clone()),
        total: table.total,
        window: table.window.as_ref().map(|window| window.get_ref().clone()),
        from_s: table.from.as_ref().map_or(0.0, |from| from.0.0.as_secs_f64()),
        until_s: table.until.as_ref().map(|until| until.0.0.as_secs_f64()),
    })
}

/// Whether what is shown is counted in that window.
fn in_window(
    blame: Blame<'_>,
    table: &FigureTable,
    window: &Spanned<String>,
    windows: &[String],
) -> Result<(), ScenarioError> {
    if !windows.contains(window.get_ref()) {
        let problem = format!(
            "there is no window `{}`; `measure.windows` has {}",
            window.get_ref(),
            if windows.is_empty() {
                "none".to_owned()
            } else {
                windows.join(", ")
            }
        );
        return Err(blame.at(window.span(), problem));
    }
    for name in &table.show {
        let counted = Measure::find(name.get_ref())
            .is_some_and(|measure| !measure.over_ideal && measure.metric.has_windows());
        if !counted {
            let problem = format!("`{}` is counted over whole runs, not in windows", name.get_ref());
            return Err(blame.at(name.span(), problem));
        }
    }
    Ok(())
}

/// Whether a kind can show this; if not, what it can show.
fn knows(kind: FigureKind, name: &str) -> Result<(), String> {
    let among = |known: &[&str]| {
        if known.contains(&name) {
            Ok(())
        } else {
            Err(format!("there are {}", known.join(", ")))
        }
    };
    match kind {
        FigureKind::OverTime => among(&CURVES),
        FigureKind::Distribution => among(&ESTIMATES),
        FigureKind::Switches => Err("it needs no `show`".to_owned()),
        FigureKind::Bars | FigureKind::Cases | FigureKind::CaseLines => Measure::find(name)
            .map(|_| ())
            .ok_or_else(|| "it takes metrics, which are the fields of a row (docs/runs.md)".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const GOOD: &str = r#"
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
        figures(Blame::new("mine.toml", text))
    }

    #[test]
    fn figures_are_read_with_what_they_show() {
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
    #[case("\"bars\"", "\"pie\"", "kind", "there are bars, cases")]
    #[case("frames_discarded", "frames_lost", "show", "fields of a row")]
    #[case("\"window\"", "\"cwnd\"", "show", "window, rtt")]
    #[case("[\"n5\"]", "[\"n6\"]", "cases", "there are n5")]
    #[case(
        "window = \"0s..30s\"",
        "window = \"0s..40s\"",
        "window",
        "`measure.windows` has 0s..30s"
    )]
    #[case("throughput_bps", "rtt_mean_s", "show", "over whole runs")]
    #[case("\"all\"", "\"some\"", "role", "`bulk` or `all`")]
    fn what_is_unknown_is_said_with_what_would_do(
        #[case] good: &str,
        #[case] bad: &str,
        #[case] key: &str,
        #[case] mend: &str,
    ) {
        let error = read(&GOOD.replace(good, bad)).unwrap_err().to_string();
        for words in ["mine.toml, line", key, mend] {
            assert!(error.contains(words), "{words} is missing in: {error}");
        }
    }
}
