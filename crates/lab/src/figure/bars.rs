//! Bars by controller: a row for each controller and a column for each quantity, with the numbers printed beside.

use super::legend::{self, Entry};
use super::{Band, Style, WIDTH_PX, band, spread, whiskers};
use crate::statistics::Spread;
use crate::svg::{
    AXIS, Anchor, Axis, FAINT, GRID, INK, Label, Stroke, SvgWriter, axis_number, text_width, thousands,
    widest,
};

/// Quantities side by side for the same controllers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bars {
    pub(crate) title: String,
    /// Name and look of each controller, from the top. Rows of the same name stand closer together.
    pub(crate) rows: Vec<(String, Style)>,
    /// Meaning of the looks of rows of the same name, in words; empty if there are none.
    pub(crate) looks: String,
    /// The quantities, from the left.
    pub(crate) columns: Vec<BarColumn>,
}

/// One quantity of all controllers.
#[derive(Clone, Debug, Default)]
pub(crate) struct BarColumn {
    pub(crate) name: String,
    /// Empty for plain counts.
    pub(crate) unit: String,
    /// Decimals of the printed numbers.
    pub(crate) decimals: usize,
    /// For each row the values of its trials; empty if it was not measured.
    pub(crate) trials: Vec<Vec<f64>>,
    /// The ideal sender's value, drawn as a dashed line.
    pub(crate) reference: Option<f64>,
    /// Ranges of values behind the bars, with the row of each.
    pub(crate) bands: Vec<(usize, Band)>,
}

const TOP: f64 = 58.0;
const ROW: f64 = 26.0;
/// Height of a row that has the name of the one before.
const CLOSE_ROW: f64 = 18.0;
const BAR: f64 = 15.0;
/// Half of the height of a row's band.
const BAND: f64 = 10.5;
const BOTTOM: f64 = 44.0;
const GAP: f64 = 16.0;
/// Left edge of the legend.
const LEGEND: f64 = 4.0;

/// Position of a column, with the positions that all columns share.
struct Place<'a> {
    left: f64,
    width: f64,
    /// Vertical middles of the rows.
    middles: &'a [f64],
    bottom: f64,
    /// The legend of the bands.
    entries: &'a [Entry],
}

impl Bars {
    /// Vertical middle of each row's bar.
    fn middles(&self) -> Vec<f64> {
        let mut y = TOP - ROW / 2.0;
        let mut before = None;
        let rows = self.rows.iter().map(|(name, _)| {
            y += if before == Some(name) { CLOSE_ROW } else { ROW };
            before = Some(name);
            y
        });
        rows.collect()
    }

    /// The last row of the same name as `row`.
    fn last_of(&self, row: usize) -> usize {
        let same = self.rows[row..]
            .iter()
            .take_while(|other| other.0 == self.rows[row].0);
        row + same.count() - 1
    }

    pub(crate) fn svg(&self) -> String {
        let bands = self.columns.iter().flat_map(|column| &column.bands);
        let entries = band::entries(bands.map(|(_, band)| band));
        let middles = self.middles();
        let bottom = middles.last().map_or(TOP, |y| y + ROW / 2.0);
        let height = bottom + BOTTOM + legend::height(&entries, WIDTH_PX - LEGEND);
        let names: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
        let label = format!("{}: {} by controller", self.title, names.join(", "));
        let mut svg = SvgWriter::new((WIDTH_PX, height), &label);
        svg.heading(&self.title, "");
        let name_width = widest(self.rows.iter().map(|row| row.0.as_str()), 12.0, 60.0);
        let left = (name_width * 1.17 + 14.0).min(320.0);
        let mut row = 0;
        while let Some((name, _)) = self.rows.get(row) {
            let last = self.last_of(row);
            let label = Label::new(12.0, INK, Anchor::End).fitted(name, left - 14.0);
            svg.text(
                (left - 8.0, f64::midpoint(middles[row], middles[last])),
                label,
                name,
            );
            row = last + 1;
        }
        let width = (WIDTH_PX - left) / self.columns.len().max(1) as f64;
        for (index, column) in self.columns.iter().enumerate() {
            let place = Place {
                left: left + width * index as f64,
                width: width - GAP,
                middles: &middles,
                bottom,
                entries: &entries,
            };
            self.column(&mut svg, column, &place);
        }
        self.legend(&mut svg, bottom + BOTTOM - 10.0);
        legend::draw(
            &mut svg,
            &entries,
            (LEGEND, bottom + BOTTOM - 2.0),
            WIDTH_PX - LEGEND,
        );
        svg.finish()
    }

    /// Draws one quantity as bars, with its axis and its numbers.
    fn column(&self, svg: &mut SvgWriter, column: &BarColumn, at: &Place<'_>) {
        let (left, width, bottom) = (at.left, at.width, at.bottom);
        let spreads: Vec<Option<Spread>> = column.trials.iter().map(|trials| spread(trials)).collect();
        let texts = spreads.iter().map(|spread| printed(*spread, column.decimals));
        let texts: Vec<String> = texts.collect();
        let text_room = widest(texts.iter().map(String::as_str), 10.5, 20.0) * 1.2 + 8.0;
        let plot = (width - text_room).max(40.0);
        let axis = column.axis(&spreads, plot);
        let place = |value: f64| left + plot * axis.place(value);

        let name = Label::new(12.5, INK, Anchor::Start).bold();
        svg.text((left, TOP - 20.0), name, &column.name);
        if !column.unit.is_empty() {
            let after = left + text_width(&column.name, 12.5) * 1.24 + 7.0;
            let unit = Label::new(11.0, FAINT, Anchor::Start);
            svg.text((after, TOP - 20.0), unit, &column.unit);
        }
        for (value, text) in axis.ticks() {
            let x = place(value);
            let colour = if value.abs() < 1e-12 { AXIS } else { GRID };
            svg.line((x, TOP), (x, bottom), Stroke::solid(colour, 1.0));
            svg.text((x, bottom + 10.0), Label::new(10.5, FAINT, Anchor::Middle), &text);
        }
        let shade = |svg: &mut SvgWriter, (row, band): &(usize, Band)| {
            let (first, last) = (at.middles[*row], at.middles[self.last_of(*row)]);
            let from = (place(band.y.0), first - BAND);
            let to = (place(band.y.1), last + BAND);
            band::shade(svg, (from, to), band.number(at.entries));
        };
        for one in column.bands.iter().filter(|(_, band)| !band.is_line()) {
            shade(svg, one);
        }
        for (row, ((spread, text), (_, style))) in spreads.iter().zip(&texts).zip(&self.rows).enumerate() {
            let y = at.middles[row];
            svg.text((left + width, y), Label::new(10.5, INK, Anchor::End), text);
            let Some(spread) = *spread else { continue };
            let (zero, mean) = (place(0.0), place(spread.mean));
            let size = ((mean - zero).abs().max(0.7), BAR);
            legend::block(svg, (zero.min(mean), y - BAR / 2.0), size, *style);
            whiskers(svg, spread, (0.0, 3.0), |value| (place(value), y));
            if spread.max > spread.min {
                for &value in &column.trials[row] {
                    svg.dot((place(value), y + 4.5), 1.3, INK.with_opacity(0.55));
                }
            }
        }
        // A bar would hide a line behind it.
        for one in column.bands.iter().filter(|(_, band)| band.is_line()) {
            shade(svg, one);
        }
        if let Some(reference) = column.reference {
            let x = place(reference);
            svg.line((x, TOP - 4.0), (x, bottom), Stroke::dashed(INK, 1.2, &[3.0, 3.0]));
        }
    }

    /// Explains the marks at the foot of the figure.
    fn legend(&self, svg: &mut SvgWriter, y: f64) {
        let mut text =
            "bar: mean of the trials · thick whisker: one standard deviation · thin: smallest to largest \
                        · dots: trials"
                .to_owned();
        if self.columns.iter().any(|column| column.reference.is_some()) {
            text.push_str(" · dashed: ideal sender");
        }
        if !self.looks.is_empty() {
            text = format!("{text} · {}", self.looks);
        }
        svg.text((4.0, y), Label::new(10.5, FAINT, Anchor::Start), &text);
    }
}

impl BarColumn {
    /// An axis from zero that contains all values, on `plot` pixels.
    fn axis(&self, spreads: &[Option<Spread>], plot: f64) -> Axis {
        let known = || spreads.iter().flatten();
        let ends = self.bands.iter().flat_map(|(_, band)| band.ends());
        let most = known()
            .map(|s| s.max.max(s.mean + s.sd))
            .chain(self.reference)
            .chain(ends);
        let least = known().map(|s| s.min).chain(self.reference);
        let ticks = (plot / 62.0).clamp(1.0, 4.0);
        Axis::linear(least.fold(0.0, f64::min), most.fold(0.0, f64::max), ticks)
    }
}

/// `2,468 ± 31`, `0.042`, or a dash if there are no trials.
fn printed(spread: Option<Spread>, decimals: usize) -> String {
    let number = |value: f64, decimals: usize| {
        if decimals == 0 {
            thousands(value)
        } else {
            axis_number(value, 10_f64.powi(-i32::try_from(decimals).unwrap_or(0)))
        }
    };
    let Some(spread) = spread else {
        return "–".to_owned();
    };
    // The mean of small counts that differ needs a decimal.
    let few = spread.mean.abs() < 100.0 && spread.max > spread.min;
    let digits = decimals.max(usize::from(few));
    if spread.max > spread.min {
        format!("{} ± {}", number(spread.mean, digits), number(spread.sd, digits))
    } else {
        number(spread.mean, decimals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::styles;
    use crate::samples::assert_has;

    fn bars() -> Bars {
        let names = ["reno", "ccp+loss=ignore"];
        Bars {
            title: "P13, figure 4".into(),
            rows: names
                .iter()
                .map(|name| (*name).to_owned())
                .zip(styles(&names))
                .collect(),
            columns: vec![
                BarColumn {
                    name: "frames discarded".into(),
                    trials: vec![vec![2_400.0, 2_500.0, 2_600.0], vec![12.0; 3]],
                    reference: Some(2_000.0),
                    ..BarColumn::default()
                },
                BarColumn {
                    name: "stall time".into(),
                    unit: "s".into(),
                    decimals: 2,
                    trials: vec![vec![1.5], vec![]],
                    ..BarColumn::default()
                },
            ],
            ..Bars::default()
        }
    }

    #[test]
    fn every_controller_and_quantity_stands_in_it_with_its_numbers() {
        let svg = bars().svg();
        let words = "P13, figure 4|reno|ccp+loss=ignore|frames discarded|stall time|>s<|2,500 ± 100\
                     |>12<|>1.50<|>–<|#0072B2|#D55E00|dashed: ideal";
        assert_has(&svg, words);
        assert_eq!(
            svg.matches("<circle").count(),
            3,
            "a dot for each trial that differs"
        );
    }

    #[test]
    fn a_band_lies_behind_the_bars_of_its_row_and_a_single_value_before_them() {
        let banded = |y| {
            let mut one = bars();
            let says = "no discarded frames".to_owned();
            let x = (f64::NEG_INFINITY, f64::INFINITY);
            one.columns.truncate(1);
            one.columns[0].bands = vec![(1, Band { x, y, says })];
            one.svg()
        };
        let bars = |svg: &str| svg.rfind("height=\"15\"").unwrap();
        let range = banded((f64::NEG_INFINITY, 4_800.0));
        assert_has(&range, "paper: no discarded frames|>6000<");
        assert!(range.find("opacity=\"0.18\"").unwrap() < bars(&range), "{range}");
        let line = banded((0.0, 0.0));
        assert!(!line.contains("opacity=\"0.18\""));
        assert!(bars(&line) < line.find("stroke=\"#E0A800\"").unwrap(), "{line}");
    }

    #[test]
    fn rows_of_the_same_name_have_one_name_and_stand_together() {
        let mut pairs = bars();
        pairs.looks = "pale: nominal world".to_owned();
        pairs.rows = [0, 0, 1, 1].map(|row| bars().rows[row].clone()).to_vec();
        for column in &mut pairs.columns {
            column.trials = vec![vec![1.0]; 4];
        }
        let svg = pairs.svg();
        assert_eq!(svg.matches(">reno<").count(), 1);
        assert_has(&svg, "pale: nominal world");
        let height = TOP + 2.0 * (ROW + CLOSE_ROW) + BOTTOM;
        assert!(svg.contains(&format!("height=\"{height}\"")), "{svg}");
    }

    #[test]
    fn the_same_data_gives_the_same_bytes() {
        assert_eq!(bars().svg(), bars().svg());
    }

    #[test]
    fn more_controllers_make_a_higher_figure_and_no_smaller_rows() {
        let mut many = bars();
        many.rows = (0..20)
            .map(|i| (format!("ccp(kp=0.{i})"), many.rows[0].1))
            .collect();
        for column in &mut many.columns {
            column.trials = vec![vec![1.0]; 20];
        }
        assert!(
            many.svg()
                .contains(&format!("height=\"{}\"", TOP + 20.0 * ROW + BOTTOM))
        );
    }
}
