//! [`StatedBand`]: a range that the paper states of its figure, as a scenario file has it in `[[figure.band]]`.

use std::str::FromStr;

use playrate_transport::ControllerChoice;
use playrate_units::{Bitrate, Bytes, Probability};
use toml::Spanned;

use super::over_time::Curve;
use super::spec::{FigureKind, FigureSpec};
use crate::figure::Band;
use crate::metric::{Measure, Unit};
use crate::scenario::file::{Amount, BandTable, Text, Time};
use crate::scenario::{Document, ScenarioError};

/// A range of values that the paper states of one thing in its figure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StatedBand {
    /// The metric or curve.
    show: String,
    /// Canonical specs of the controllers; all if empty.
    of: Vec<String>,
    /// Cases of the scenario; all that the figure shows if empty.
    cases: Vec<String>,
    /// Range of time and of values in the unit of the axis.
    band: Band,
}

impl FigureSpec {
    /// The ranges that the paper states of what the figure shows of a controller, given by its canonical spec.
    pub(super) fn bands_of(&self, show: &str, case: &str, controller: &str) -> Vec<Band> {
        let has = |list: &[String], name: &str| list.is_empty() || list.iter().any(|one| one == name);
        let stated = self
            .bands
            .iter()
            .filter(|stated| stated.show == show && has(&stated.cases, case) && has(&stated.of, controller));
        stated.map(|stated| stated.band.clone()).collect()
    }
}

/// Reads a range of the paper's in `figure`. `controllers` are the canonical specs of the scenario's controllers.
///
/// # Errors
/// If it is of nothing that the figure shows, states nothing, or has values of another unit or in the wrong order.
pub(super) fn read_band(
    document: &Document<'_>,
    controllers: &[String],
    figure: &FigureSpec,
    table: &BandTable,
) -> Result<StatedBand, ScenarioError> {
    let says = &table.says;
    let at_says = |problem: &str| document.source_map().at(says.span(), problem);
    if !figure.kind.has_bands() {
        return Err(at_says(
            "a band needs a figure of kind `bars`, `cases`, `case-lines` or `over-time`",
        ));
    }
    if says.get_ref().trim().is_empty() {
        return Err(at_says("`says` is empty: quote the paper, and say where"));
    }
    let show = shown(document, figure, table)?;
    let value = |end: &Option<Spanned<Amount>>, open: f64| match end {
        None => Ok(open),
        Some(text) => {
            let read = axis_value(&show, &text.get_ref().0);
            read.map_err(|problem| document.source_map().at(text.span(), problem))
        }
    };
    let y = (
        value(&table.least, f64::NEG_INFINITY)?,
        value(&table.most, f64::INFINITY)?,
    );
    let time = |end: &Option<Spanned<Text<Time>>>, open: f64| {
        end.as_ref().map_or(open, |time| time.get_ref().0.0.as_secs_f64())
    };
    let x = (
        time(&table.from, f64::NEG_INFINITY),
        time(&table.until, f64::INFINITY),
    );
    let timed = table.from.as_ref().or(table.until.as_ref());
    if let Some(time) = timed.filter(|_| figure.kind != FigureKind::OverTime) {
        let problem = "only the bands of a figure of kind `over-time` have times";
        return Err(document.source_map().at(time.span(), problem));
    }
    if y.0 > y.1 || x.0 > x.1 {
        return Err(at_says("`least` must not exceed `most`, nor `from` `until`"));
    }
    if [y.0, y.1, x.0, x.1].iter().all(|end| end.is_infinite()) {
        return Err(at_says(
            "the band has no end: add `least`, `most`, `from` or `until`",
        ));
    }
    Ok(StatedBand {
        show,
        of: specs(document, controllers, &table.of)?,
        cases: cases(document, figure, &table.cases)?,
        band: Band {
            x,
            y,
            says: says.get_ref().clone(),
        },
    })
}

/// The metric or curve of the band: its `show`, or the only one that the figure shows.
fn shown(document: &Document<'_>, figure: &FigureSpec, table: &BandTable) -> Result<String, ScenarioError> {
    let known = figure.show.join(", ");
    match (&table.show, figure.show.as_slice()) {
        (Some(show), all) if all.contains(show.get_ref()) => Ok(show.get_ref().clone()),
        (Some(show), _) => {
            let problem = format!(
                "the figure does not show `{}`; expected one of: {known}",
                show.get_ref()
            );
            Err(document.source_map().at(show.span(), problem))
        }
        (None, [only]) => Ok(only.clone()),
        (None, _) => {
            let problem = format!("the band needs `show`, since the figure shows several: one of {known}");
            Err(document.source_map().at(table.says.span(), problem))
        }
    }
}

/// A value of a metric or curve in the unit of its axis.
fn axis_value(show: &str, text: &str) -> Result<f64, String> {
    fn read<T: FromStr<Err: ToString>>(text: &str, value: impl Fn(T) -> f64) -> Result<f64, String> {
        text.parse().map(value).map_err(|error: T::Err| error.to_string())
    }
    let metric = || Measure::find(show).map(|measure| measure.metric.unit);
    let curve = Curve::find(show).map(|curve| (curve.quantity, curve.scale));
    let axis = curve.or_else(|| metric().map(|unit| (unit, unit.axis().1)));
    let (unit, scale) = axis.ok_or_else(|| format!("`{show}` has no values"))?;
    let value = match unit {
        Unit::Count => read(text, |count: f64| count),
        Unit::Share => read(text, Probability::as_f64),
        Unit::Seconds => read(text, |time: Time| time.0.as_secs_f64()),
        Unit::BitsPerSecond => read(text, |rate: Bitrate| rate.as_bits_per_second() as f64),
        Unit::Bytes => read(text, Bytes::as_f64),
    };
    value.map(|value| value * scale)
}

/// The canonical specs of controllers of the scenario.
fn specs(
    document: &Document<'_>,
    controllers: &[String],
    of: &[Spanned<String>],
) -> Result<Vec<String>, ScenarioError> {
    let canonical = |name: &Spanned<String>| {
        let spec = name
            .get_ref()
            .parse()
            .map(|choice: ControllerChoice| choice.to_string());
        spec.ok()
            .filter(|spec| controllers.contains(spec))
            .ok_or_else(|| {
                let problem = format!(
                    "unknown controller `{}`; expected one of: {}",
                    name.get_ref(),
                    controllers.join(", ")
                );
                document.source_map().at(name.span(), problem)
            })
    };
    of.iter().map(canonical).collect()
}

/// The names of cases that the figure shows.
fn cases(
    document: &Document<'_>,
    figure: &FigureSpec,
    cases: &[Spanned<String>],
) -> Result<Vec<String>, ScenarioError> {
    let known = |case: &Spanned<String>| {
        let name = case.get_ref();
        if document.case_names().all(|known| known != name) {
            return Err(document.unknown_case(case));
        }
        if figure.cases.is_empty() || figure.cases.contains(name) {
            return Ok(name.clone());
        }
        let problem = format!(
            "the figure does not show the case `{name}`; it has {}",
            figure.cases.join(", ")
        );
        Err(document.source_map().at(case.span(), problem))
    };
    cases.iter().map(known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::figure_specs;
    use crate::scenario::ScenarioSource;
    use rstest::rstest;
    use std::path::Path;

    const GOOD: &str = r#"
about = "A test."
controllers = ["ccp(1)", "reno"]
[title]
trace = "film-1080p"
[path]
rate = "2λ"
rtt = "1ms"
[[case]]
name = "n5"
[[case]]
name = "n10"
[[figure]]
kind = "bars"
show = ["lost_packets", "loss_ratio"]
cases = ["n5"]
[[figure.band]]
show = "loss_ratio"
of = ["ccp(kp=1)"]
cases = ["n5"]
least = "1.5%"
most = "2%"
says = "around 2% (P14, section VI)"
[[figure.band]]
show = "lost_packets"
most = 800
says = "y axis from 0 to 800"
[[figure]]
kind = "over-time"
show = ["rtt"]
[[figure.band]]
least = "100ms"
from = "1s"
until = "30s"
says = "a 100msec support line"
[[figure]]
kind = "distribution"
show = ["instant"]
"#;

    fn read(text: &str) -> Result<Vec<FigureSpec>, ScenarioError> {
        let source = ScenarioSource::new("mine", "mine.toml", text.to_owned(), Path::new("."));
        figure_specs(&source.document()?)
    }

    fn ends(bands: &[Band]) -> Vec<((f64, f64), (f64, f64))> {
        bands.iter().map(|band| (band.x, band.y)).collect()
    }

    #[test]
    fn a_band_is_of_its_metric_case_and_controller_alone_in_the_unit_of_the_axis() {
        let figures = read(GOOD).unwrap();
        let open = (f64::NEG_INFINITY, f64::INFINITY);
        assert_eq!(
            ends(&figures[0].bands_of("loss_ratio", "n5", "ccp")),
            [(open, (1.5, 2.0))]
        );
        assert_eq!(figures[0].bands_of("loss_ratio", "n5", "reno"), []);
        assert_eq!(figures[0].bands_of("loss_ratio", "n10", "ccp"), []);
        let most = (open, (f64::NEG_INFINITY, 800.0));
        assert_eq!(ends(&figures[0].bands_of("lost_packets", "n5", "reno")), [most]);
        let rtt = figures[1].bands_of("rtt", "n5", "reno");
        assert_eq!(ends(&rtt), [((1.0, 30.0), (100.0, f64::INFINITY))]);
        assert_eq!(rtt[0].says, "a 100msec support line");
    }

    #[rstest]
    #[case(
        "show = \"loss_ratio\"\n",
        "",
        "22, `figure.band.says`",
        "one of lost_packets, loss_ratio"
    )]
    #[case(
        "show = \"loss_ratio\"",
        "show = \"rtt\"",
        "18, `figure.band.show`",
        "expected one of: lost_packets"
    )]
    #[case("ccp(kp=1)", "cubic", "19, `figure.band.of`", "expected one of: ccp, reno")]
    #[case(
        "cases = [\"n5\"]\nleast",
        "cases = [\"n6\"]\nleast",
        "20, `figure.band.cases`",
        "expected one of: n5, n10"
    )]
    #[case(
        "cases = [\"n5\"]\nleast",
        "cases = [\"n10\"]\nleast",
        "20, `figure.band.cases`",
        "it has n5"
    )]
    #[case("\"1.5%\"", "\"1.5ms\"", "21, `figure.band.least`", "0.01%")]
    #[case("\"1.5%\"", "\"3%\"", "23, `figure.band.says`", "must not exceed")]
    #[case("most = 800\n", "", "26, `figure.band.says`", "add `least`")]
    #[case(
        "\"y axis from 0 to 800\"",
        "\" \"",
        "27, `figure.band.says`",
        "quote the paper"
    )]
    #[case("most = 800", "until = \"3s\"", "26, `figure.band.until`", "`over-time`")]
    #[case(
        "says = \"a 100msec support line\"",
        "",
        "31, `figure.band`",
        "missing field `says`"
    )]
    #[case(
        "show = [\"instant\"]",
        "show = [\"instant\"]\n[[figure.band]]\nmost = 1\nsays = \"one\"",
        "41, `figure.band.says`",
        "`case-lines`"
    )]
    fn a_mistake_is_reported_with_line_key_and_correction(
        #[case] good: &str,
        #[case] bad: &str,
        #[case] place: &str,
        #[case] correction: &str,
    ) {
        let error = read(&GOOD.replacen(good, bad, 1)).unwrap_err().to_string();
        let place = format!("mine.toml, line {place}: ");
        assert!(error.starts_with(&place) && error.contains(correction), "{error}");
    }
}
