//! A heat map with its numbers in the cells, unless there are too many columns.

use super::WIDTH_PX;
use crate::svg::{Anchor, Colour, FAINT, INK, Label, PAPER, Point, Stroke, SvgWriter, text_width, widest};

/// A table whose cells are coloured from best to worst.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeatMap {
    pub(crate) title: String,
    /// Unit and meaning of the numbers in the cells.
    pub(crate) unit: String,
    /// Rows from the top.
    pub(crate) rows: Vec<String>,
    /// Columns from the left.
    pub(crate) columns: Vec<String>,
    /// Cells by row; `None` if nothing was measured.
    pub(crate) cells: Vec<Vec<Option<HeatCell>>>,
    /// Names of the scale's best and worst end.
    pub(crate) ends: (String, String),
    /// Number of columns before a gap, as between an overall column and the others; 0 for no gap.
    pub(crate) gap_after: usize,
}

/// One cell of a [`HeatMap`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HeatCell {
    /// From 0, best, to 1, worst.
    pub(crate) shade: f64,
    pub(crate) text: String,
}

/// matplotlib's cividis (Nuñez, Anderton and Renslow 2018) at nine places from its light end, made to look the same
/// with a colour vision deficiency.
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

/// The colour of a shade from 0 to 1; the worst one for a shade that is not a number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and 255, and an index of a short list"
)]
fn heat_colour(shade: f64) -> Colour {
    let shade = if shade.is_finite() {
        shade.clamp(0.0, 1.0)
    } else {
        1.0
    };
    let at = shade * (SCALE.len() - 1) as f64;
    let low = (at as usize).min(SCALE.len() - 2);
    let (below, above, weight) = (SCALE[low], SCALE[low + 1], at - low as f64);
    let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * weight).round() as u8;
    Colour(
        mix(below.0, above.0),
        mix(below.1, above.1),
        mix(below.2, above.2),
    )
}

/// Black or white, whichever is legible on `ground`.
fn text_on(ground: Colour) -> Colour {
    // The luminance at which both contrasts are equal (WCAG 2).
    if luminance(ground) > 0.179 {
        Colour(0, 0, 0)
    } else {
        PAPER
    }
}

/// Relative luminance of an sRGB colour, 0 to 1.
fn luminance(colour: Colour) -> f64 {
    let linear = |channel: u8| {
        let channel = f64::from(channel) / 255.0;
        if channel <= 0.04045 {
            channel / 12.92
        } else {
            ((channel + 0.055) / 1.055).powf(2.4)
        }
    };
    0.2126 * linear(colour.0) + 0.7152 * linear(colour.1) + 0.0722 * linear(colour.2)
}

const ROW: f64 = 24.0;
const GAP: f64 = 10.0;
/// Widest map with numbers. In a wider one, shrunk to a page, they are too small to be read.
const MOST_WIDE: f64 = 1.6 * WIDTH_PX;
/// Narrowest column of a map without numbers.
const NARROW: f64 = 3.0;
/// Smallest distance between the names of two columns.
const NAME_DISTANCE: f64 = 20.0;
/// A font of the browser's own may be this much wider than [`text_width`] estimates; `DejaVu Sans` is.
const WIDER_FONT: f64 = 1.15;

/// Positions of rows and columns.
struct Layout {
    left: f64,
    top: f64,
    /// Width of a column.
    wide: f64,
    /// True if there is room for numbers in the cells.
    numbers: bool,
    /// Of so many columns one has its name.
    named: usize,
    size: Point,
    gap_after: usize,
}

impl Layout {
    fn of(map: &HeatMap) -> Self {
        let names = |names: &[String]| widest(names.iter().map(String::as_str), 11.5, 40.0) * WIDER_FONT;
        let left = names(&map.rows) + 16.0;
        let head = names(&map.columns) * 0.72 + 14.0;
        let columns = map.columns.len().max(1) as f64;
        let texts = map
            .cells
            .iter()
            .flatten()
            .flatten()
            .map(|cell| cell.text.as_str());
        let need = widest(texts, 11.0, 24.0) * 1.05 + 10.0;
        // The rotated name of the last column sticks out at the right.
        let right = head * 0.8;
        let even = (WIDTH_PX - left - right - GAP) / columns;
        let numbers = left + need * columns + GAP + right <= MOST_WIDE;
        let wide = if numbers {
            even.clamp(need, 80.0_f64.max(need))
        } else {
            even.max(NARROW)
        };
        let top = 36.0 + head;
        let width = (left + wide * columns + GAP + right).max(WIDTH_PX * 0.6);
        Self {
            left,
            top,
            wide,
            numbers,
            named: (1_usize..10)
                .find(|&named| wide * named as f64 >= NAME_DISTANCE)
                .unwrap_or(10),
            size: (width, top + ROW * map.rows.len() as f64 + 52.0),
            gap_after: map.gap_after,
        }
    }

    /// Returns true if the column has its name: those before the gap, and behind it every nth.
    fn has_name(&self, column: usize) -> bool {
        column < self.gap_after || (column - self.gap_after).is_multiple_of(self.named)
    }

    fn x(&self, column: usize) -> f64 {
        let has_gap = self.gap_after > 0 && column >= self.gap_after;
        self.left + self.wide * column as f64 + if has_gap { GAP } else { 0.0 }
    }

    fn y(&self, row: usize) -> f64 {
        self.top + ROW * row as f64
    }
}

impl HeatMap {
    /// Draws the figure, as wide as its columns need. With very many of them it has no numbers, and only every nth
    /// column has its name.
    pub(crate) fn svg(&self) -> String {
        let layout = Layout::of(self);
        let (rows, columns) = (self.rows.len(), self.columns.len());
        let label = format!("{}: {rows} rows by {columns} columns", self.title);
        let mut svg = SvgWriter::new(layout.size, &label);
        svg.heading(&self.title, &self.unit);
        let named = self.columns.iter().enumerate();
        for (column, name) in named.filter(|(column, _)| layout.has_name(*column)) {
            let at = (layout.x(column) + layout.wide / 2.0, layout.top - 8.0);
            svg.text(at, Label::new(11.5, INK, Anchor::Start).rotated(-42.0), name);
        }
        for (row, name) in self.rows.iter().enumerate() {
            let at = (layout.left - 8.0, layout.y(row) + ROW / 2.0);
            svg.text(at, Label::new(11.5, INK, Anchor::End), name);
            let cells = self.cells.get(row).map(Vec::as_slice).unwrap_or_default();
            for (column, cell) in cells.iter().enumerate() {
                let (x, y) = (layout.x(column), layout.y(row));
                let middle = (x + layout.wide / 2.0, y + ROW / 2.0);
                match cell {
                    Some(cell) => {
                        let ground = heat_colour(cell.shade);
                        let gap = if layout.numbers { 0.5 } else { 0.2 };
                        svg.rect((x + gap, y + 0.5), (layout.wide - 2.0 * gap, ROW - 1.0), ground);
                        if layout.numbers {
                            let label = Label::new(11.0, text_on(ground), Anchor::Middle);
                            svg.text(middle, label, &cell.text);
                        }
                    }
                    None => svg.text(middle, Label::new(11.0, FAINT, Anchor::Middle), "–"),
                }
            }
        }
        self.key(&mut svg, (layout.left, layout.y(rows) + 18.0));
        svg.finish()
    }

    /// Draws the scale of colours with the names of its ends.
    fn key(&self, svg: &mut SvgWriter, at: Point) {
        let label = Label::new(11.0, FAINT, Anchor::Start);
        let (low, high) = &self.ends;
        svg.text((at.0, at.1 + 7.0), label, low);
        let from = at.0 + text_width(low, 11.0) * 1.08 + 10.0;
        let (steps, wide) = (32_u32, 5.0);
        for step in 0..steps {
            let shade = f64::from(step) / f64::from(steps - 1);
            let x = from + wide * f64::from(step);
            svg.rect((x, at.1), (wide + 0.3, 14.0), heat_colour(shade));
        }
        let length = wide * f64::from(steps);
        svg.outline((from, at.1), (length, 14.0), Stroke::solid(FAINT, 0.6));
        svg.text((from + length + 10.0, at.1 + 7.0), label, high);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::assert_has;

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
            gap_after: 1,
        }
    }

    #[test]
    fn rows_columns_cells_and_the_key_are_all_there() {
        let svg = map().svg();
        assert_has(&svg, "Rank|1 is best|cubic|reno|overall|p13-9|>1.0<|–|best|worst");
        assert!(svg.contains("fill=\"#FEE838\"") && svg.contains("fill=\"#00224E\""));
        assert_eq!(svg, map().svg());
    }

    #[test]
    fn a_map_of_very_many_columns_keeps_to_the_width_of_a_page_with_some_names_and_no_numbers() {
        let of = |columns: usize| {
            let mut map = map();
            let paths = (1..columns).map(|path| format!("g{path:03}-20M-100ms"));
            map.columns = ["overall".to_owned()].into_iter().chain(paths).collect();
            let cell = HeatCell {
                shade: 0.5,
                text: "37".into(),
            };
            map.cells = vec![vec![Some(cell); columns]; 2];
            map
        };
        let (few, many) = (of(30), of(97));
        assert!(few.svg().contains(">37<") && few.svg().contains("g029-"));
        assert!(Layout::of(&many).size.0 <= WIDTH_PX + 1.0);
        let svg = many.svg();
        assert!(svg.contains("overall") && svg.contains("g001-") && !svg.contains(">37<"));
        let names = svg.matches("-20M-").count();
        assert!((25..60).contains(&names), "{names} names");
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
    fn a_shade_that_is_not_a_number_counts_as_the_worst() {
        assert_eq!(heat_colour(f64::NAN), heat_colour(1.0));
    }
}
