//! A heat map with its numbers in the cells.

use super::canvas::text_width;
use super::pen::{Anchor, FAINT, INK, PAPER, Pen, Stroke, Type};
use super::{Colour, WIDTH_PX};

/// A table whose cells are coloured by how good they are.
#[derive(Clone, Debug, Default)]
pub struct HeatMap {
    /// What is shown.
    pub title: String,
    /// What the numbers in the cells are.
    pub unit: String,
    /// Rows from the top.
    pub rows: Vec<String>,
    /// Columns from the left.
    pub columns: Vec<String>,
    /// Cells by row; `None` where nothing was measured.
    pub cells: Vec<Vec<Option<HeatCell>>>,
    /// What the scale's lower and upper end mean.
    pub ends: (String, String),
    /// After how many columns a gap is left, as between an overall column and the rest.
    pub apart: usize,
}

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatCell {
    /// From 0, best, to 1, worst.
    pub shade: f64,
    /// What stands in it.
    pub text: String,
}

/// matplotlib's cividis (Nuñez, Anderton and Renslow 2018) at nine places, made to look the same with a colour vision
/// deficiency; from its light end.
const SCALE: [Colour; 9] = [
    Colour(0xFE, 0xE8, 0x38),
    Colour(0xE1, 0xCC, 0x55),
    Colour(0xC3, 0xB3, 0x69),
    Colour(0xA5, 0x9C, 0x74),
    Colour(0x8A, 0x86, 0x79),
    Colour(0x70, 0x71, 0x73),
    Colour(0x57, 0x5D, 0x6D),
    Colour(0x35, 0x45, 0x6C),
    Colour(0x00, 0x22, 0x4E),
];

/// The colour of a shade from 0 to 1.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and 255, and an index of a short list"
)]
pub fn heat_colour(shade: f64) -> Colour {
    let shade = if shade.is_finite() {
        shade.clamp(0.0, 1.0)
    } else {
        1.0
    };
    let at = shade * (SCALE.len() - 1) as f64;
    let low = (at as usize).min(SCALE.len() - 2);
    let (below, above, part) = (SCALE[low], SCALE[low + 1], at - low as f64);
    let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * part).round() as u8;
    Colour(
        mix(below.0, above.0),
        mix(below.1, above.1),
        mix(below.2, above.2),
    )
}

/// Black or white, whichever can be read on `ground`.
pub fn text_on(ground: Colour) -> Colour {
    // Where both contrasts are equal (WCAG 2, relative luminance).
    if luminance(ground) > 0.179 {
        Colour(0, 0, 0)
    } else {
        PAPER
    }
}

/// Relative luminance of an sRGB colour, 0 to 1.
fn luminance(colour: Colour) -> f64 {
    let linear = |part: u8| {
        let part = f64::from(part) / 255.0;
        if part <= 0.04045 {
            part / 12.92
        } else {
            ((part + 0.055) / 1.055).powf(2.4)
        }
    };
    0.2126 * linear(colour.0) + 0.7152 * linear(colour.1) + 0.0722 * linear(colour.2)
}

const ROW: f64 = 24.0;
const APART: f64 = 10.0;

impl HeatMap {
    /// The figure as SVG; as wide as it must be.
    pub fn svg(&self) -> String {
        let widest = |names: &[String]| {
            names
                .iter()
                .map(|name| text_width(name, 11.5))
                .fold(40.0, f64::max)
                * 1.06
        };
        let left = widest(&self.rows) + 16.0;
        let head = widest(&self.columns) * 0.72 + 14.0;
        let columns = self.columns.len().max(1) as f64;
        let cell_text = self.cells.iter().flatten().flatten();
        let need = cell_text
            .map(|cell| text_width(&cell.text, 11.0))
            .fold(24.0, f64::max)
            * 1.05
            + 10.0;
        // The last column's turned name sticks out at the right.
        let right = head * 0.8;
        let wide = ((WIDTH_PX - left - right) / columns).clamp(need, 80.0_f64.max(need));
        let top = 36.0 + head;
        let size = (
            (left + wide * columns + APART + right).max(WIDTH_PX * 0.6),
            top + ROW * self.rows.len() as f64 + 52.0,
        );
        let label = format!(
            "{}: {} rows by {} columns",
            self.title,
            self.rows.len(),
            self.columns.len()
        );
        let mut pen = Pen::new(size.0, size.1, &label);
        pen.heading(&self.title, &self.unit);
        let x_of = |column: usize| {
            let gap = if self.apart > 0 && column >= self.apart {
                APART
            } else {
                0.0
            };
            left + wide * column as f64 + gap
        };
        for (column, name) in self.columns.iter().enumerate() {
            let at = (x_of(column) + wide / 2.0, top - 8.0);
            pen.turned(at, -42.0, Type::new(11.5, INK, Anchor::Start), name);
        }
        for (row, name) in self.rows.iter().enumerate() {
            let y = top + ROW * row as f64;
            pen.text(
                (left - 8.0, y + ROW / 2.0),
                Type::new(11.5, INK, Anchor::End),
                name,
            );
            let cells = self.cells.get(row).map(Vec::as_slice).unwrap_or_default();
            for (column, cell) in cells.iter().enumerate() {
                let at = (x_of(column) + 0.5, y + 0.5);
                let middle = (x_of(column) + wide / 2.0, y + ROW / 2.0);
                match cell {
                    Some(cell) => {
                        let ground = heat_colour(cell.shade);
                        pen.rect(at, (wide - 1.0, ROW - 1.0), ground, 1.0);
                        pen.text(
                            middle,
                            Type::new(11.0, text_on(ground), Anchor::Middle),
                            &cell.text,
                        );
                    }
                    None => pen.text(middle, Type::new(11.0, FAINT, Anchor::Middle), "–"),
                }
            }
        }
        self.key(&mut pen, (left, top + ROW * self.rows.len() as f64 + 18.0));
        pen.finish()
    }

    /// What the colours mean.
    fn key(&self, pen: &mut Pen, at: (f64, f64)) {
        let faint = |anchor| Type::new(11.0, FAINT, anchor);
        let (low, high) = &self.ends;
        pen.text((at.0, at.1 + 7.0), faint(Anchor::Start), low);
        let from = at.0 + text_width(low, 11.0) * 1.08 + 10.0;
        let (steps, wide) = (32_u32, 5.0);
        for step in 0..steps {
            let shade = f64::from(step) / f64::from(steps - 1);
            let x = from + wide * f64::from(step);
            pen.rect((x, at.1), (wide + 0.3, 14.0), heat_colour(shade), 1.0);
        }
        let length = wide * f64::from(steps);
        pen.frame((from, at.1), (length, 14.0), Stroke::solid(FAINT, 0.6));
        pen.text((from + length + 10.0, at.1 + 7.0), faint(Anchor::Start), high);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> HeatMap {
        let cell = |shade, text: &str| {
            Some(HeatCell {
                shade,
                text: text.into(),
            })
        };
        HeatMap {
            title: "Rank".into(),
            unit: "1 is best".into(),
            rows: vec!["cubic".into(), "reno".into()],
            columns: vec!["overall".into(), "p13-4".into(), "p13-9".into()],
            cells: vec![
                vec![cell(0.0, "1.0"), cell(0.0, "1"), None],
                vec![cell(1.0, "2.0"), cell(0.5, "2"), cell(0.0, "1")],
            ],
            ends: ("best".into(), "worst".into()),
            apart: 1,
        }
    }

    #[test]
    fn rows_columns_cells_and_the_key_are_all_there() {
        let svg = map().svg();
        for words in [
            "Rank",
            "1 is best",
            "cubic",
            "reno",
            "overall",
            "p13-9",
            ">1.0<",
            "–",
            "best",
            "worst",
        ] {
            assert!(svg.contains(words), "{words} is missing in {svg}");
        }
        assert!(svg.contains("fill=\"#FEE838\"") && svg.contains("fill=\"#00224E\""));
        assert_eq!(svg, map().svg());
    }

    #[test]
    fn numbers_can_be_read_on_every_shade() {
        for step in 0..=100 {
            let ground = heat_colour(f64::from(step) / 100.0);
            let (a, b) = (luminance(ground), luminance(text_on(ground)));
            let contrast = (a.max(b) + 0.05) / (a.min(b) + 0.05);
            assert!(contrast >= 4.5, "{ground}: {contrast}");
        }
    }

    #[test]
    fn a_shade_that_is_no_number_is_the_worst() {
        assert_eq!(heat_colour(f64::NAN), heat_colour(1.0));
    }
}
