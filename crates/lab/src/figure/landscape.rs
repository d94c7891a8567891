//! The landscape of a search: the distribution of random worlds' scores, and the mean score by choice for each unknown.

use super::WIDTH_PX;
use crate::svg::{
    AXIS, Anchor, Axis, Colour, FAINT, GRID, INK, Label, PALETTE, PAPER, Point, Stroke, SvgWriter, text_width,
};

/// Scores of random worlds as a histogram, and below it a group of dots for each unknown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Landscape {
    pub(crate) title: String,
    /// Unit and meaning of a score.
    pub(crate) unit: String,
    /// Largest score that is possible.
    pub(crate) most: usize,
    /// Score of each random world.
    pub(crate) scores: Vec<usize>,
    /// Names and scores of single worlds.
    pub(crate) marks: Vec<(String, usize)>,
    pub(crate) unknowns: Vec<LandscapeUnknown>,
}

/// One unknown with its choices.
#[derive(Clone, Debug, Default)]
pub(crate) struct LandscapeUnknown {
    pub(crate) name: String,
    pub(crate) choices: Vec<LandscapeChoice>,
}

/// One choice for an unknown.
#[derive(Clone, Debug, Default)]
pub(crate) struct LandscapeChoice {
    pub(crate) text: String,
    /// Mean score of the random worlds with this choice, and half of its confidence interval; `None` without worlds.
    pub(crate) mean: Option<(f64, f64)>,
    pub(crate) is_nominal: bool,
    pub(crate) is_fitted: bool,
}

const FITTED: Colour = PALETTE[1];
const NOMINAL: Colour = PALETTE[0];

const HISTOGRAM_TOP: f64 = 62.0;
const HISTOGRAM_HEIGHT: f64 = 90.0;
/// Top of the unknowns.
const BELOW: f64 = 232.0;
const LINE: f64 = 15.0;
/// Height of an unknown beside the lines of its choices.
const HEAD: f64 = 26.0;
const COLUMN: f64 = WIDTH_PX / 2.0;
// Positions in a column: the end of the choices' texts, the ends of the axis, the end of the numbers.
const TEXT: f64 = 150.0;
const FROM: f64 = 162.0;
const TO: f64 = 420.0;
const NUMBER: f64 = 462.0;

impl Landscape {
    /// Draws histogram, unknowns and key.
    pub(crate) fn svg(&self) -> String {
        let columns = self.columns();
        let height =
            |unknowns: &[LandscapeUnknown]| unknowns.iter().map(LandscapeUnknown::height).sum::<f64>();
        let lower = columns.map(height).into_iter().fold(0.0, f64::max);
        let label = format!("{}: {} random worlds", self.title, self.scores.len());
        let mut svg = SvgWriter::new((WIDTH_PX, BELOW + lower + 40.0), &label);
        svg.heading(&self.title, &self.unit);
        self.histogram(&mut svg);
        let axis = self.axis();
        for (unknowns, left) in columns.into_iter().zip([0.0, COLUMN]) {
            if !unknowns.is_empty() {
                self.strips(&mut svg, unknowns, (&axis, left));
            }
        }
        key(&mut svg, BELOW + lower + 24.0);
        svg.finish()
    }

    /// The unknowns in two columns of about the same height.
    fn columns(&self) -> [&[LandscapeUnknown]; 2] {
        let all: f64 = self.unknowns.iter().map(LandscapeUnknown::height).sum();
        let mut used = 0.0;
        let mut left = self.unknowns.iter().take_while(|unknown| {
            used += unknown.height();
            used <= all / 2.0 + unknown.height() / 2.0
        });
        let number = left.by_ref().count();
        let (left, right) = self.unknowns.split_at(number);
        [left, right]
    }

    /// Mean score of all random worlds.
    fn mean(&self) -> f64 {
        self.scores.iter().sum::<usize>() as f64 / self.scores.len().max(1) as f64
    }

    /// The axis of all means.
    fn axis(&self) -> Axis {
        let choices = self.unknowns.iter().flat_map(|unknown| &unknown.choices);
        // Without the intervals, which are wide where few worlds have a choice.
        let means = choices.filter_map(|choice| choice.mean.map(|(mean, _)| mean));
        let first = (self.mean(), self.mean());
        let (low, high) = means.fold(first, |(low, high), mean| (low.min(mean), high.max(mean)));
        Axis::linear((low - 0.5).max(0.0), high + 0.5, 4.0)
    }

    /// Numbers of worlds by score, with marks for single worlds above.
    fn histogram(&self, svg: &mut SvgWriter) {
        let (left, right) = (60.0, WIDTH_PX - 20.0);
        let bottom = HISTOGRAM_TOP + HISTOGRAM_HEIGHT;
        let wide = (right - left) / (self.most + 1) as f64;
        let x = |score: usize| left + wide * (score as f64 + 0.5);
        let number = |score: usize| self.scores.iter().filter(|one| **one == score).count();
        let tallest = (0..=self.most).map(number).max().unwrap_or(0).max(1);
        for score in 0..=self.most {
            let worlds = number(score);
            let height = HISTOGRAM_HEIGHT * worlds as f64 / tallest as f64;
            if worlds > 0 {
                let size = (wide * 0.8, height);
                svg.rect((x(score) - wide * 0.4, bottom - height), size, AXIS);
                let label = Label::new(10.0, FAINT, Anchor::Middle);
                svg.text((x(score), bottom - height - 7.0), label, &worlds.to_string());
            }
            if self.most <= 24 || score % 2 == 0 {
                let label = Label::new(10.5, FAINT, Anchor::Middle);
                svg.text((x(score), bottom + 10.0), label, &score.to_string());
            }
        }
        svg.line((left, bottom), (right, bottom), Stroke::solid(AXIS, 1.0));
        let label = Label::new(11.0, FAINT, Anchor::Start);
        svg.text(
            (left, bottom + 28.0),
            label,
            "fitted parts that hold with one short trial; bars: random worlds",
        );
        for (place, (name, score)) in self.marks.iter().enumerate() {
            let colour = if place == 0 { NOMINAL } else { FITTED };
            let top = HISTOGRAM_TOP - 26.0 + 13.0 * place as f64;
            svg.line(
                (x(*score), top + 6.0),
                (x(*score), bottom),
                Stroke::solid(colour, 1.6),
            );
            let fits = x(*score) + text_width(name, 11.0) * 1.1 < right;
            let (anchor, at) = if fits {
                (Anchor::Start, 4.0)
            } else {
                (Anchor::End, -4.0)
            };
            svg.text(
                (x(*score) + at, top + 6.0),
                Label::new(11.0, colour, anchor).bold(),
                name,
            );
        }
    }

    fn strips(&self, svg: &mut SvgWriter, unknowns: &[LandscapeUnknown], (axis, left): (&Axis, f64)) {
        let x = |value: f64| left + FROM + (TO - FROM) * axis.place(value);
        let bottom = BELOW + unknowns.iter().map(LandscapeUnknown::height).sum::<f64>() - 8.0;
        for (value, text) in axis.ticks() {
            svg.line((x(value), BELOW), (x(value), bottom), Stroke::solid(GRID, 1.0));
            let label = Label::new(10.5, FAINT, Anchor::Middle);
            svg.text((x(value), BELOW - 10.0), label, &text);
        }
        let mean = x(self.mean());
        svg.line(
            (mean, BELOW),
            (mean, bottom),
            Stroke::dashed(FAINT, 1.0, &[4.0, 3.0]),
        );
        let mut top = BELOW;
        for unknown in unknowns {
            let label = Label::new(11.5, INK, Anchor::End).bold();
            svg.text((left + TEXT, top + 8.0), label, &unknown.name);
            for (line, choice) in unknown.choices.iter().enumerate() {
                let y = top + 8.0 + LINE * (line + 1) as f64;
                choice.draw(svg, (left, y), x);
            }
            top += unknown.height();
        }
    }
}

impl LandscapeUnknown {
    fn height(&self) -> f64 {
        HEAD + LINE * self.choices.len() as f64
    }
}

impl LandscapeChoice {
    /// Text, dot with interval, and number of one choice.
    fn draw(&self, svg: &mut SvgWriter, (left, y): Point, x: impl Fn(f64) -> f64) {
        let label = Label::new(11.0, INK, Anchor::End).fitted(&self.text, TEXT - 8.0);
        let label = if self.is_fitted { label.bold() } else { label };
        svg.text((left + TEXT, y), label, &self.text);
        let Some((mean, error)) = self.mean else {
            svg.text((left + NUMBER, y), Label::new(10.5, FAINT, Anchor::End), "–");
            return;
        };
        svg.line(
            (x(mean - error), y),
            (x(mean + error), y),
            Stroke::solid(AXIS, 1.6),
        );
        dot(svg, (x(mean), y), (self.is_nominal, self.is_fitted));
        let text = format!("{mean:.1}");
        svg.text((left + NUMBER, y), Label::new(10.5, FAINT, Anchor::End), &text);
    }
}

/// A dot for a choice: with a ring if it is the nominal one, filled in colour if it is the fitted one.
fn dot(svg: &mut SvgWriter, at: Point, (is_nominal, is_fitted): (bool, bool)) {
    if is_nominal {
        svg.dot(at, 6.6, NOMINAL);
        svg.dot(at, 4.8, PAPER);
    }
    if is_fitted {
        svg.dot(at, 4.0, FITTED);
    } else {
        svg.dot(at, 2.6, FAINT);
    }
}

/// The meaning of dots and lines.
fn key(svg: &mut SvgWriter, y: f64) {
    let mut x = 12.0;
    let entries = [
        ((true, false), "nominal choice"),
        ((false, true), "choice of the fitted world"),
        (
            (false, false),
            "other choices; line: 95 % interval of the mean; dashed: mean of all random worlds",
        ),
    ];
    for (kind, text) in entries {
        dot(svg, (x, y), kind);
        svg.text((x + 12.0, y), Label::new(11.0, FAINT, Anchor::Start), text);
        x += 12.0 + text_width(text, 11.0) * 1.1 + 24.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::assert_has;

    fn landscape() -> Landscape {
        let choice = |text: &str, mean, [is_nominal, is_fitted]: [bool; 2]| LandscapeChoice {
            text: text.into(),
            mean,
            is_nominal,
            is_fitted,
        };
        let unknown = |name: &str| LandscapeUnknown {
            name: name.into(),
            choices: vec![
                choice("50packets", Some((2.0, 0.5)), [true, false]),
                choice("300packets", Some((4.25, 0.5)), [false, true]),
                choice("1000packets", None, [false, false]),
            ],
        };
        Landscape {
            title: "kyutech".into(),
            unit: "fitted parts".into(),
            most: 6,
            scores: vec![1, 3, 3, 5],
            marks: vec![("nominal world: 2".into(), 2), ("fitted world: 6".into(), 6)],
            unknowns: vec![unknown("queue"), unknown("loss")],
        }
    }

    #[test]
    fn scores_choices_marks_and_the_key_are_all_there() {
        let svg = landscape().svg();
        assert_has(
            &svg,
            "kyutech|fitted parts|queue|loss|300packets|>4.2<|–|nominal world: 2|fitted world: 6|nominal choice",
        );
        assert_eq!(svg, landscape().svg());
    }

    #[test]
    fn a_landscape_without_worlds_is_drawn_too() {
        assert_has(&Landscape::default().svg(), "0 random worlds");
    }
}
