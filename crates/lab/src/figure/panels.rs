//! Small charts side by side with the same axes: one for each controller or case, so that many can be compared.

use super::axis::Axis;
use super::canvas::text_width;
use super::legend::{self, Entry, guide_stroke};
use super::pen::{AXIS, Anchor, FAINT, GRID, INK, Pen, Stroke, Type};
use super::{Style, WIDTH_PX, decimate};

/// Small charts with the same axes.
#[derive(Clone, Debug, Default)]
pub struct Panels {
    /// What is shown.
    pub title: String,
    /// What the x axis is, with its unit.
    pub x_name: String,
    /// What the y axis is, with its unit.
    pub y_name: String,
    /// From and to on the x axis; by default what the data needs.
    pub x: Option<(f64, f64)>,
    /// Lowest value of the y axis; by default zero.
    pub y_from: f64,
    /// Highest value of the y axis; by default what the data needs.
    pub y_to: Option<f64>,
    /// Horizontal lines in every panel: value and name.
    pub guides: Vec<(f64, String)>,
    /// The charts.
    pub panels: Vec<Panel>,
    /// How many buckets each line is reduced to, each with its first, lowest, highest and last point; 0 for one in every two
    /// pixels.
    pub buckets: usize,
}

/// One small chart.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Its name.
    pub name: String,
    /// Its lines.
    pub lines: Vec<Line>,
}

/// One line.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its name in the legend, which stands there if a panel has more than one line.
    pub name: String,
    /// How it is drawn.
    pub style: Style,
    /// x and y, in order of x. Values that are not finite interrupt the line.
    pub points: Vec<(f64, f64)>,
}

const TOP: f64 = 34.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 8.0;
const GAP: f64 = 18.0;
/// Room for a panel's name.
const HEAD: f64 = 20.0;
/// Room for the x axis's numbers.
const FOOT: f64 = 22.0;

/// Where panels stand.
#[derive(Clone, Copy, Debug)]
struct Grid {
    columns: usize,
    rows: usize,
    width: f64,
    height: f64,
}

impl Grid {
    fn of(panels: usize) -> Self {
        let columns = match panels {
            0 | 1 => 1,
            2 | 4 => 2,
            _ => 3,
        };
        let between = GAP * (columns - 1) as f64;
        Self {
            columns,
            rows: panels.div_ceil(columns).max(1),
            width: (WIDTH_PX - LEFT - RIGHT - between) / columns as f64,
            height: match columns {
                1 => 220.0,
                2 => 150.0,
                _ => 110.0,
            },
        }
    }

    fn corner(&self, index: usize) -> (f64, f64) {
        let (row, column) = (index / self.columns, index % self.columns);
        (
            LEFT + (self.width + GAP) * column as f64,
            TOP + HEAD + (self.height + HEAD + FOOT) * row as f64,
        )
    }

    fn bottom(&self) -> f64 {
        TOP + (self.height + HEAD + FOOT) * self.rows as f64
    }
}

impl Panels {
    /// The figure as SVG.
    pub fn svg(&self) -> String {
        let grid = Grid::of(self.panels.len());
        let entries = self.entries();
        let width = WIDTH_PX - LEFT - RIGHT;
        let height = grid.bottom() + 16.0 + legend::height(&entries, width) + 6.0;
        let names: Vec<&str> = self.panels.iter().map(|panel| panel.name.as_str()).collect();
        let label = format!(
            "{}: {} over {}; {}",
            self.title,
            self.y_name,
            self.x_name,
            names.join(", ")
        );
        let mut pen = Pen::new(WIDTH_PX, height, &label);
        pen.heading(&self.title, &self.y_name);
        let axes = (self.x_axis(), self.y_axis());
        for (index, panel) in self.panels.iter().enumerate() {
            self.panel(&mut pen, panel, &axes, (index, grid));
        }
        let middle = (LEFT + width / 2.0, grid.bottom() + 5.0);
        pen.text(middle, Type::new(11.0, FAINT, Anchor::Middle), &self.x_name);
        legend::draw(&mut pen, &entries, (LEFT, grid.bottom() + 16.0), width);
        pen.finish()
    }

    fn points(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let lines = self.panels.iter().flat_map(|panel| &panel.lines);
        let points = lines.flat_map(|line| line.points.iter().copied());
        points.filter(|point| point.0.is_finite() && point.1.is_finite())
    }

    fn x_axis(&self) -> Axis {
        let (from, to) = self.x.unwrap_or_else(|| {
            let most = self.points().map(|point| point.0).fold(0.0, f64::max);
            (0.0, most)
        });
        Axis::exact(from, to, 4.0)
    }

    fn y_axis(&self) -> Axis {
        let to = self.y_to.unwrap_or_else(|| {
            let x = self.x.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
            let seen = self.points().filter(|point| point.0 >= x.0 && point.0 <= x.1);
            let guides = self.guides.iter().map(|guide| guide.0);
            seen.map(|point| point.1).chain(guides).fold(0.0, f64::max)
        });
        Axis::linear(self.y_from, to, 3.0)
    }

    /// The legend: guides always, lines if a panel's name does not say which line is which.
    fn entries(&self) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        if self.panels.iter().any(|panel| panel.lines.len() > 1) {
            for line in self.panels.iter().flat_map(|panel| &panel.lines) {
                let entry = Entry::Line(line.name.clone(), line.style);
                if !entries.contains(&entry) {
                    entries.push(entry);
                }
            }
        }
        let guides = self.guides.iter().enumerate();
        entries.extend(guides.map(|(number, guide)| Entry::Guide(guide.1.clone(), number)));
        entries
    }

    fn panel(&self, pen: &mut Pen, panel: &Panel, (x, y): &(Axis, Axis), (index, grid): (usize, Grid)) {
        let (left, top) = grid.corner(index);
        let place = |point: (f64, f64)| {
            (
                left + grid.width * x.place(point.0),
                top + grid.height * (1.0 - y.place(point.1)),
            )
        };
        let bottom = top + grid.height;
        let size = (12.0 * grid.width / (text_width(&panel.name, 12.0) * 1.1).max(1.0)).clamp(7.5, 12.0);
        let name = Type::new(size, INK, Anchor::Start).bold();
        pen.text((left, top - 9.0), name, &panel.name);
        for (value, text) in y.ticks() {
            let at = place((x.from(), value));
            pen.line(at, (left + grid.width, at.1), Stroke::solid(GRID, 1.0));
            if index.is_multiple_of(grid.columns) {
                pen.text((left - 6.0, at.1), Type::new(10.5, FAINT, Anchor::End), &text);
            }
        }
        pen.line(
            (left, bottom),
            (left + grid.width, bottom),
            Stroke::solid(AXIS, 1.0),
        );
        for (value, text) in x.ticks() {
            let at = place((value, y.from()));
            pen.line(at, (at.0, bottom + 3.0), Stroke::solid(AXIS, 1.0));
            pen.text(
                (at.0, bottom + 10.0),
                Type::new(10.5, FAINT, Anchor::Middle),
                &text,
            );
        }
        for (number, guide) in self.guides.iter().enumerate() {
            if guide.0 >= y.from() && guide.0 <= y.to() {
                let at = place((x.from(), guide.0));
                pen.line(at, (left + grid.width, at.1), guide_stroke(number));
            }
        }
        if panel.lines.iter().all(|line| line.points.is_empty()) {
            let middle = (left + grid.width / 2.0, top + grid.height / 2.0);
            pen.text(middle, Type::new(11.0, FAINT, Anchor::Middle), "not measured");
        }
        let width = if grid.columns > 2 { 1.2 } else { 1.6 };
        for line in &panel.lines {
            // What lies outside of the x axis is not drawn, except the point that the line comes from and the one it leaves to.
            let first = line.points.partition_point(|point| point.0 < x.from());
            let last = line.points.partition_point(|point| point.0 <= x.to());
            let shown = line
                .points
                .get(first.saturating_sub(1)..(last + 1).min(line.points.len()))
                .unwrap_or_default();
            let stroke = Stroke::dashed(line.style.colour, width, line.style.dashes());
            for piece in shown.split(|point| !point.1.is_finite()) {
                let points = decimate(piece, self.buckets(grid.width));
                pen.path(points.into_iter().map(place), stroke);
            }
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a panel is a few hundred pixels wide"
    )]
    fn buckets(&self, width: f64) -> usize {
        let fine = (width / 2.0) as usize;
        if self.buckets == 0 {
            fine
        } else {
            self.buckets.min(fine)
        }
    }
}

/// The empirical distribution function of `values` as the corners of its steps: share of values at or below x.
pub fn distribution(values: &[f64]) -> Vec<(f64, f64)> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let mut corners = Vec::with_capacity(sorted.len() * 2);
    let mut below = 0.0;
    for (index, value) in sorted.iter().enumerate() {
        if sorted
            .get(index + 1)
            .is_some_and(|next| next.total_cmp(value).is_eq())
        {
            continue;
        }
        let share = (index + 1) as f64 / count;
        corners.push((*value, below));
        corners.push((*value, share));
        below = share;
    }
    corners
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::styles;

    fn panels(count: usize) -> Panels {
        let names: Vec<String> = (0..count).map(|i| format!("ccp(kp=0.{i})")).collect();
        let panels = names.iter().zip(styles(&names)).map(|(name, style)| Panel {
            name: name.clone(),
            lines: vec![Line {
                name: name.clone(),
                style,
                points: (0..2_000)
                    .map(|i| (f64::from(i) / 10.0, f64::from(i % 97)))
                    .collect(),
            }],
        });
        Panels {
            title: "Congestion window".into(),
            x_name: "seconds since the request".into(),
            y_name: "kB".into(),
            guides: vec![(62.5, "BDP".into())],
            panels: panels.collect(),
            ..Panels::default()
        }
    }

    #[test]
    fn every_controller_has_a_panel_with_the_same_axes_and_a_line() {
        let svg = panels(9).svg();
        assert_eq!(svg.matches("<path").count(), 9);
        assert_eq!(
            svg.matches(">100<").count(),
            3 + 9,
            "y numbers at the left, x numbers below each"
        );
        for words in [
            "Congestion window",
            "kB",
            "seconds since the request",
            "ccp(kp=0.8)",
            "BDP",
        ] {
            assert!(svg.contains(words), "{words} is missing");
        }
        assert_eq!(svg, panels(9).svg());
    }

    #[test]
    fn lines_are_named_in_a_legend_when_a_panel_has_several() {
        let mut few = panels(2);
        assert_eq!(few.svg().matches("ccp(kp=0.1)<").count(), 1);
        let second = few.panels.pop().unwrap();
        few.panels[0].lines.extend(second.lines);
        assert_eq!(few.svg().matches("ccp(kp=0.1)<").count(), 1);
        assert_eq!(few.svg().matches("ccp(kp=0.0)<").count(), 2);
    }

    #[test]
    fn only_the_stretch_of_the_x_axis_is_drawn_and_decides_the_other() {
        let mut part = panels(1);
        part.panels[0].lines[0].points.push((500.0, 90_000.0));
        part.x = Some((0.0, 30.0));
        let svg = part.svg();
        assert!(svg.contains(">30<") && !svg.contains("90,000"), "{svg}");
    }

    #[test]
    fn more_buckets_make_a_bigger_file() {
        let size = |buckets| Panels { buckets, ..panels(9) }.svg().len();
        assert!(size(20) < size(60) && size(60) < size(0));
        assert!(size(0) < 120_000, "{}", size(0));
    }

    #[test]
    fn a_distribution_rises_at_its_values_by_their_share() {
        let steps = distribution(&[3.0, 1.0, 3.0, f64::NAN, 2.0]);
        assert_eq!(
            steps,
            [
                (1.0, 0.0),
                (1.0, 0.25),
                (2.0, 0.25),
                (2.0, 0.5),
                (3.0, 0.5),
                (3.0, 1.0)
            ]
        );
        assert_eq!(distribution(&[]), []);
    }
}
