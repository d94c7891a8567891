//! Small charts side by side with the same axes, one for each controller or case, for comparison.

use super::decimate::decimate;
use super::legend::{self, Entry, guide_stroke};
use super::{Band, Style, WIDTH_PX, band};
use crate::svg::{AXIS, Anchor, Axis, FAINT, GRID, INK, Label, Point, Stroke, SvgWriter};

/// Small charts with the same axes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Panels {
    pub(crate) title: String,
    /// Name of the x axis with its unit.
    pub(crate) x_name: String,
    /// Name of the y axis with its unit.
    pub(crate) y_name: String,
    /// From and to on the x axis; `None` for the range of the data.
    pub(crate) x: Option<(f64, f64)>,
    /// Lowest value of the y axis.
    pub(crate) y_from: f64,
    /// Highest value of the y axis; `None` for the largest of the data.
    pub(crate) y_to: Option<f64>,
    /// Horizontal lines in every panel: value and name.
    pub(crate) guides: Vec<(f64, String)>,
    pub(crate) charts: Vec<Panel>,
    /// Panels side by side; 0 for as many as suit their number.
    pub(crate) columns: usize,
    /// Number of buckets that each line is reduced to, each with its first, lowest, highest and last point; 0 for one
    /// bucket per two pixels.
    pub(crate) buckets: usize,
}

/// One of several small charts. The default leaves its place empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Panel {
    pub(crate) name: String,
    pub(crate) lines: Vec<Line>,
    /// Ranges behind the lines.
    pub(crate) bands: Vec<Band>,
}

/// One line of a panel.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// Name in the legend; a line with its panel's name is not repeated there.
    pub(crate) name: String,
    pub(crate) style: Style,
    /// x and y, in order of x. Values that are not finite interrupt the line.
    pub(crate) points: Vec<(f64, f64)>,
}

impl Panel {
    /// Counts x from `origin` on; without one the lines have no points.
    pub(crate) fn shift(&mut self, origin: Option<f64>) {
        for line in &mut self.lines {
            match origin {
                Some(origin) => line.points.iter_mut().for_each(|point| point.0 -= origin),
                None => line.points.clear(),
            }
        }
    }
}

const TOP: f64 = 34.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 8.0;
const GAP: f64 = 18.0;
/// Height of a panel's name.
const HEAD: f64 = 20.0;
/// Height of the x axis's numbers.
const FOOT: f64 = 22.0;

/// Positions of the panels.
#[derive(Clone, Copy, Debug)]
struct Grid {
    columns: usize,
    rows: usize,
    width: f64,
    height: f64,
}

impl Grid {
    fn of(panels: usize, columns: usize) -> Self {
        let columns = match (columns, panels) {
            (1.., _) => columns,
            (0, 0 | 1) => 1,
            (0, 2 | 4) => 2,
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

    fn corner(&self, index: usize) -> Point {
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

/// Axes and corner of one panel.
struct View {
    x: Axis,
    y: Axis,
    grid: Grid,
    corner: Point,
}

impl View {
    fn place(&self, point: Point) -> Point {
        (
            self.corner.0 + self.grid.width * self.x.place(point.0),
            self.corner.1 + self.grid.height * (1.0 - self.y.place(point.1)),
        )
    }

    /// Shades the visible part of a range.
    fn shade(&self, svg: &mut SvgWriter, band: &Band, number: usize) {
        let hidden = |axis: &Axis, range: (f64, f64)| range.0 > axis.to() || range.1 < axis.from();
        if hidden(&self.x, band.x) || hidden(&self.y, band.y) {
            return;
        }
        let corners = (self.place((band.x.0, band.y.0)), self.place((band.x.1, band.y.1)));
        band::shade(svg, corners, number);
    }

    /// Draws a line across the panel at `value`.
    fn across(&self, svg: &mut SvgWriter, value: f64, stroke: Stroke) {
        let (left, y) = self.place((self.x.from(), value));
        svg.line((left, y), (left + self.grid.width, y), stroke);
    }
}

impl Panels {
    pub(crate) fn svg(&self) -> String {
        let grid = Grid::of(self.charts.len(), self.columns);
        let entries = self.entries();
        let width = WIDTH_PX - LEFT - RIGHT;
        let height = grid.bottom() + 16.0 + legend::height(&entries, width) + 6.0;
        let names = self.charts.iter().map(|panel| panel.name.as_str());
        let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
        let (title, over) = (&self.title, &self.x_name);
        let label = format!("{title}: {} over {over}; {}", self.y_name, names.join(", "));
        let mut svg = SvgWriter::new((WIDTH_PX, height), &label);
        svg.heading(&self.title, &self.y_name);
        for (index, panel) in self.charts.iter().enumerate() {
            if panel.name.is_empty() {
                continue;
            }
            let view = View {
                x: self.x_axis(),
                y: self.y_axis(),
                grid,
                corner: grid.corner(index),
            };
            self.frame(&mut svg, &view, index.is_multiple_of(grid.columns));
            for one in &panel.bands {
                view.shade(&mut svg, one, one.number(&entries));
            }
            let name = Label::new(12.0, INK, Anchor::Start).bold();
            let at = (view.corner.0, view.corner.1 - 9.0);
            svg.text(at, name.fitted(&panel.name, grid.width), &panel.name);
            self.lines(&mut svg, &view, panel);
        }
        let middle = (LEFT + width / 2.0, grid.bottom() + 5.0);
        svg.text(middle, Label::new(11.0, FAINT, Anchor::Middle), &self.x_name);
        legend::draw(&mut svg, &entries, (LEFT, grid.bottom() + 16.0), width);
        svg.finish()
    }

    fn points(&self) -> impl Iterator<Item = Point> {
        let lines = self.charts.iter().flat_map(|panel| &panel.lines);
        let points = lines.flat_map(|line| line.points.iter().copied());
        points.filter(|point| point.0.is_finite() && point.1.is_finite())
    }

    fn bands(&self) -> impl Iterator<Item = &Band> {
        self.charts.iter().flat_map(|panel| &panel.bands)
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
            let shown = self.points().filter(|point| point.0 >= x.0 && point.0 <= x.1);
            let guides = self.guides.iter().map(|guide| guide.0);
            let ends = self.bands().flat_map(Band::ends);
            let values = shown.map(|point| point.1).chain(guides).chain(ends);
            values.fold(0.0, f64::max)
        });
        Axis::linear(self.y_from, to, 3.0)
    }

    /// The legend: lines that their panel's name does not explain, all guides and bands.
    fn entries(&self) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        for panel in &self.charts {
            for line in panel.lines.iter().filter(|line| line.name != panel.name) {
                let entry = Entry::Line(line.name.clone(), line.style);
                if !entries.contains(&entry) {
                    entries.push(entry);
                }
            }
        }
        let guides = self.guides.iter().enumerate();
        entries.extend(guides.map(|(number, guide)| Entry::Guide(guide.1.clone(), number)));
        entries.extend(band::entries(self.bands()));
        entries
    }

    /// Draws grid, axes and guides of one panel; numbers of the y axis only if it `is_leftmost`.
    fn frame(&self, svg: &mut SvgWriter, view: &View, is_leftmost: bool) {
        let bottom = view.corner.1 + view.grid.height;
        for (value, text) in view.y.ticks() {
            view.across(svg, value, Stroke::solid(GRID, 1.0));
            if is_leftmost {
                let at = (view.corner.0 - 6.0, view.place((0.0, value)).1);
                svg.text(at, Label::new(10.5, FAINT, Anchor::End), &text);
            }
        }
        view.across(svg, view.y.from(), Stroke::solid(AXIS, 1.0));
        for (value, text) in view.x.ticks() {
            let at = view.place((value, view.y.from()));
            svg.line(at, (at.0, bottom + 3.0), Stroke::solid(AXIS, 1.0));
            // Numbers of neighbours must not touch.
            let is_last = view.x.place(value) > 0.999;
            let anchor = if is_last { Anchor::End } else { Anchor::Middle };
            svg.text((at.0, bottom + 10.0), Label::new(10.5, FAINT, anchor), &text);
        }
        for (number, guide) in self.guides.iter().enumerate() {
            if guide.0 >= view.y.from() && guide.0 <= view.y.to() {
                view.across(svg, guide.0, guide_stroke(number));
            }
        }
    }

    fn lines(&self, svg: &mut SvgWriter, view: &View, panel: &Panel) {
        if panel.lines.iter().all(|line| line.points.is_empty()) {
            let (left, top) = view.corner;
            let middle = (left + view.grid.width / 2.0, top + view.grid.height / 2.0);
            svg.text(middle, Label::new(11.0, FAINT, Anchor::Middle), "not measured");
        }
        let width = if view.grid.columns > 2 { 1.2 } else { 1.6 };
        for line in &panel.lines {
            // Points outside the x axis are left out, except the last before and the first after it.
            let first = line.points.partition_point(|point| point.0 < view.x.from());
            let last = line.points.partition_point(|point| point.0 <= view.x.to());
            let shown = line
                .points
                .get(first.saturating_sub(1)..(last + 1).min(line.points.len()))
                .unwrap_or_default();
            for piece in shown.split(|point| !point.1.is_finite()) {
                let points = decimate(piece, self.buckets(view.grid.width));
                let points = points.into_iter().map(|point| view.place(point));
                svg.path(points, line.style.stroke(width));
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

/// The empirical distribution function of `values`: the corners of its steps, each a value and the share of values at
/// or below it.
pub(crate) fn distribution(values: &[f64]) -> Vec<Point> {
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
    use crate::samples::assert_has;

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
            bands: Vec::new(),
        });
        Panels {
            title: "Congestion window".into(),
            x_name: "seconds since the request".into(),
            y_name: "kB".into(),
            guides: vec![(62.5, "BDP".into())],
            charts: panels.collect(),
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
        assert_has(
            &svg,
            "Congestion window|kB|seconds since the request|ccp(kp=0.8)|BDP",
        );
        assert_eq!(svg, panels(9).svg());
    }

    #[test]
    fn a_band_is_drawn_behind_the_lines_as_far_as_it_is_visible() {
        let shaded = |x, y| {
            let mut figure = panels(2);
            let says = "around 15 Mbps".to_owned();
            figure.charts[0].bands = vec![Band { x, y, says }];
            figure.svg()
        };
        let open = (f64::NEG_INFINITY, f64::INFINITY);
        let svg = shaded(open, (20.0, 60.0));
        let place = |what: &str| svg.find(what).unwrap();
        assert_has(&svg, "paper: around 15 Mbps");
        assert!(place("opacity=\"0.18\"") < place("<path"), "{svg}");
        assert_eq!(
            svg.matches("opacity=\"0.18\"").count(),
            2,
            "one panel and the legend"
        );
        assert_eq!(
            shaded((300.0, 400.0), open).matches("opacity=\"0.18\"").count(),
            1
        );
        // A single value is a line, also in the legend.
        let line = shaded(open, (15.0, 15.0));
        assert_eq!(
            (
                line.matches("opacity=\"0.18\"").count(),
                line.matches("stroke-width=\"2.4\"").count()
            ),
            (0, 2)
        );
    }

    #[test]
    fn the_axis_of_values_contains_the_ends_of_bands() {
        let mut figure = panels(1);
        let says = "to 900".to_owned();
        figure.charts[0].bands = vec![Band {
            x: (0.0, 2.0),
            y: (f64::NEG_INFINITY, 900.0),
            says,
        }];
        assert!(figure.svg().contains(">1000<"), "{}", figure.svg());
    }

    #[test]
    fn the_legend_names_the_lines_that_their_panel_does_not() {
        let mut few = panels(2);
        assert_eq!(few.svg().matches("ccp(kp=0.1)<").count(), 1);
        let second = few.charts.pop().unwrap();
        few.charts[0].lines.extend(second.lines);
        assert_eq!(few.svg().matches("ccp(kp=0.1)<").count(), 1);
        assert_eq!(few.svg().matches("ccp(kp=0.0)<").count(), 1);
    }

    #[test]
    fn only_the_stretch_of_the_x_axis_is_drawn_and_decides_the_other() {
        let mut part = panels(1);
        part.charts[0].lines[0].points.push((500.0, 90_000.0));
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
