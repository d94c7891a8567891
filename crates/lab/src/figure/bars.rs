//! Bars by controller: a row for each controller, a column for each quantity, so that names never collide and every number can
//! be read.

use super::axis::{Axis, axis_number, thousands};
use super::canvas::text_width;
use super::pen::{AXIS, Anchor, FAINT, GRID, INK, Pen, Stroke, Type};
use super::{Style, WIDTH_PX, legend};
use crate::statistics::Spread;

/// Quantities side by side for the same controllers.
#[derive(Clone, Debug, Default)]
pub struct Bars {
    /// What is shown.
    pub title: String,
    /// The controllers, from the top.
    pub rows: Vec<(String, Style)>,
    /// The quantities, from the left.
    pub columns: Vec<BarColumn>,
}

/// One quantity.
#[derive(Clone, Debug, Default)]
pub struct BarColumn {
    /// What it is.
    pub name: String,
    /// Its unit; empty for plain counts.
    pub unit: String,
    /// Decimals of the printed numbers.
    pub decimals: usize,
    /// For each row the value of every trial; none if it was not measured.
    pub trials: Vec<Vec<f64>>,
    /// A value to compare with, such as the best that any sender could do.
    pub reference: Option<f64>,
}

const TOP: f64 = 58.0;
const ROW: f64 = 26.0;
const BAR: f64 = 15.0;
const BOTTOM: f64 = 44.0;
const GAP: f64 = 16.0;

impl Bars {
    /// The figure as SVG.
    pub fn svg(&self) -> String {
        let rows = self.rows.len() as f64;
        let height = TOP + ROW * rows + BOTTOM;
        let names: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
        let label = format!("{}: {} by controller", self.title, names.join(", "));
        let mut pen = Pen::new(WIDTH_PX, height, &label);
        pen.heading(&self.title, "");
        let widest = self
            .rows
            .iter()
            .map(|row| text_width(&row.0, 12.0))
            .fold(60.0, f64::max);
        let left = (widest * 1.17 + 14.0).min(320.0);
        for (index, (name, _)) in self.rows.iter().enumerate() {
            let y = TOP + ROW * (index as f64 + 0.5);
            // A long spec gets smaller type rather than running out of the figure.
            let size = (12.0 * (left - 14.0) / (text_width(name, 12.0) * 1.17).max(1.0)).clamp(7.0, 12.0);
            pen.text((left - 8.0, y), Type::new(size, INK, Anchor::End), name);
        }
        let width = (WIDTH_PX - left) / self.columns.len().max(1) as f64;
        for (index, column) in self.columns.iter().enumerate() {
            self.column(&mut pen, column, left + width * index as f64, width - GAP);
        }
        self.legend(&mut pen, height - 10.0);
        pen.finish()
    }

    fn column(&self, pen: &mut Pen, column: &BarColumn, left: f64, width: f64) {
        let spreads: Vec<Option<Spread>> = column
            .trials
            .iter()
            .map(|trials| Spread::of(trials.iter().copied().filter(|value| value.is_finite())))
            .collect();
        let texts: Vec<String> = spreads
            .iter()
            .map(|spread| printed(*spread, column.decimals))
            .collect();
        let room = texts
            .iter()
            .map(|text| text_width(text, 10.5))
            .fold(20.0, f64::max)
            * 1.2
            + 8.0;
        let plot = (width - room).max(40.0);
        let most = spreads.iter().flatten().map(|s| s.max.max(s.mean + s.sd));
        let most = most.chain(column.reference).fold(0.0, f64::max);
        let least = spreads
            .iter()
            .flatten()
            .map(|s| s.min)
            .chain(column.reference)
            .fold(0.0, f64::min);
        let ticks = (plot / 62.0).clamp(1.0, 4.0);
        let axis = Axis::linear(least, most, ticks);
        let place = |value: f64| left + plot * axis.place(value);
        let bottom = TOP + ROW * self.rows.len() as f64;

        pen.text(
            (left, TOP - 20.0),
            Type::new(12.5, INK, Anchor::Start).bold(),
            &column.name,
        );
        if !column.unit.is_empty() {
            let after = left + text_width(&column.name, 12.5) * 1.24 + 7.0;
            pen.text(
                (after, TOP - 20.0),
                Type::new(11.0, FAINT, Anchor::Start),
                &column.unit,
            );
        }
        for (value, text) in axis.ticks() {
            let x = place(value);
            let colour = if value.abs() < 1e-12 { AXIS } else { GRID };
            pen.line((x, TOP), (x, bottom), Stroke::solid(colour, 1.0));
            pen.text((x, bottom + 10.0), Type::new(10.5, FAINT, Anchor::Middle), &text);
        }
        for (row, ((spread, text), (_, style))) in spreads.iter().zip(&texts).zip(&self.rows).enumerate() {
            let y = TOP + ROW * (row as f64 + 0.5);
            pen.text((left + width, y), Type::new(10.5, INK, Anchor::End), text);
            let Some(spread) = spread else { continue };
            bar(pen, (place(0.0), place(spread.mean)), y, *style);
            whiskers(pen, *spread, y, place);
            if spread.max > spread.min {
                for &value in &column.trials[row] {
                    pen.dot((place(value), y + 4.5), 1.3, INK, 0.55);
                }
            }
        }
        if let Some(reference) = column.reference {
            let x = place(reference);
            pen.line((x, TOP - 4.0), (x, bottom), Stroke::dashed(INK, 1.2, &[3.0, 3.0]));
        }
    }

    /// What the marks mean, at the foot.
    fn legend(&self, pen: &mut Pen, y: f64) {
        let mut words = "bar: mean of the trials · thick whisker: one standard deviation · thin: smallest to largest · dots: trials".to_owned();
        if self.columns.iter().any(|column| column.reference.is_some()) {
            words.push_str(" · dashed: ideal, the best that any sender could do");
        }
        pen.text((4.0, y), Type::new(10.5, FAINT, Anchor::Start), &words);
    }
}

/// A bar from `x.0` to `x.1`.
fn bar(pen: &mut Pen, x: (f64, f64), y: f64, style: Style) {
    let (from, to) = (x.0.min(x.1), x.0.max(x.1));
    let (at, size) = ((from, y - BAR / 2.0), ((to - from).max(0.7), BAR));
    legend::block(pen, at, size, style);
}

fn whiskers(pen: &mut Pen, spread: Spread, y: f64, place: impl Fn(f64) -> f64) {
    if spread.max <= spread.min {
        return;
    }
    pen.line(
        (place(spread.min), y),
        (place(spread.max), y),
        Stroke::solid(INK, 0.9),
    );
    for end in [spread.min, spread.max] {
        let x = place(end);
        pen.line((x, y - 3.0), (x, y + 3.0), Stroke::solid(INK, 0.9));
    }
    let sd = (place(spread.mean - spread.sd), place(spread.mean + spread.sd));
    pen.line((sd.0, y), (sd.1, y), Stroke::solid(INK, 2.4));
}

/// `2,468 ± 31`, `0.042`, or a dash for what was not measured.
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
    // A mean of counts that differ is not whole.
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
                    name: "pictures discarded".into(),
                    trials: vec![vec![2_400.0, 2_500.0, 2_600.0], vec![12.0; 3]],
                    reference: Some(2_000.0),
                    ..BarColumn::default()
                },
                BarColumn {
                    name: "frozen".into(),
                    unit: "s".into(),
                    decimals: 2,
                    trials: vec![vec![1.5], vec![]],
                    reference: None,
                },
            ],
        }
    }

    #[test]
    fn every_controller_and_quantity_stands_in_it_with_its_numbers() {
        let svg = bars().svg();
        for words in [
            "P13, figure 4",
            "reno",
            "ccp+loss=ignore",
            "pictures discarded",
            "frozen",
            ">s<",
            "2,500 ± 100",
            ">12<",
            ">1.50<",
            ">–<",
            "#0072B2",
            "#E69F00",
            "dashed: ideal",
        ] {
            assert!(svg.contains(words), "{words} is missing in {svg}");
        }
        assert_eq!(
            svg.matches("<circle").count(),
            3,
            "a dot for each trial that differs"
        );
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
