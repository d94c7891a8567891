//! SVG written directly: what figures need that have hundreds of marks, dashes and turned text, in few bytes.

use std::fmt::{self, Display, Write as _};

use super::Colour;
use super::canvas::{FONT, escape};

/// Text and lines of the first rank.
pub(super) const INK: Colour = Colour(0x22, 0x26, 0x2B);
/// Numbers, units and captions.
pub(super) const FAINT: Colour = Colour(0x5F, 0x66, 0x6E);
/// Lines of the grid.
pub(super) const GRID: Colour = Colour(0xE7, 0xE9, 0xEC);
/// Axes.
pub(super) const AXIS: Colour = Colour(0xA9, 0xAF, 0xB5);
/// What figures lie on, so that they are legible on a page of any colour.
pub(super) const PAPER: Colour = Colour(0xFF, 0xFF, 0xFF);

/// A length in CSS pixels, printed to a tenth.
#[derive(Clone, Copy, Debug)]
pub(super) struct Px(pub(super) f64);

impl Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round();
        let tenths = if tenths.is_finite() { tenths + 0.0 } else { 0.0 };
        if (tenths % 10.0).abs() < 0.5 {
            write!(f, "{:.0}", tenths / 10.0)
        } else {
            write!(f, "{:.1}", tenths / 10.0)
        }
    }
}

/// Where a text stands relative to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    /// It begins there.
    Start,
    /// It is centred there.
    Middle,
    /// It ends there.
    End,
}

impl Anchor {
    const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// How a text looks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Type {
    pub(super) size: f64,
    pub(super) colour: Colour,
    pub(super) anchor: Anchor,
    pub(super) bold: bool,
}

impl Type {
    pub(super) const fn new(size: f64, colour: Colour, anchor: Anchor) -> Self {
        Self {
            size,
            colour,
            anchor,
            bold: false,
        }
    }

    pub(super) const fn bold(self) -> Self {
        Self { bold: true, ..self }
    }
}

/// How a line looks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stroke {
    pub(super) colour: Colour,
    pub(super) width: f64,
    /// SVG's `stroke-dasharray` in CSS pixels; empty for a solid line.
    pub(super) dash: &'static [f64],
}

impl Stroke {
    pub(super) const fn solid(colour: Colour, width: f64) -> Self {
        Self {
            colour,
            width,
            dash: &[],
        }
    }

    pub(super) const fn dashed(colour: Colour, width: f64, dash: &'static [f64]) -> Self {
        Self { colour, width, dash }
    }

    fn attributes(self, scale: f64) -> String {
        let mut text = format!(
            "stroke=\"{}\" stroke-width=\"{}\"",
            self.colour,
            Px(self.width * scale)
        );
        if !self.dash.is_empty() {
            let dash: Vec<String> = self
                .dash
                .iter()
                .map(|part| Px(part * scale).to_string())
                .collect();
            let _ = write!(text, " stroke-dasharray=\"{}\"", dash.join(" "));
        }
        text
    }
}

/// Writes one figure. Writing to a String cannot fail, hence the ignored results.
#[derive(Debug)]
pub(super) struct Pen {
    body: String,
}

impl Pen {
    /// On white paper of this size; `label` is what a screen reader says.
    pub(super) fn new(width: f64, height: f64, label: &str) -> Self {
        let (w, h) = (Px(width), Px(height));
        let mut pen = Self {
            body: format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" \
                 role=\"img\" aria-label=\"{}\" font-family=\"{}\">\n",
                escape(label),
                escape(FONT)
            ),
        };
        pen.rect((0.0, 0.0), (width, height), PAPER, 1.0);
        pen
    }

    pub(super) fn rect(&mut self, at: (f64, f64), size: (f64, f64), fill: Colour, opacity: f64) {
        let opacity = if opacity < 1.0 {
            format!(" opacity=\"{opacity}\"")
        } else {
            String::new()
        };
        let _ = writeln!(
            self.body,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{fill}\"{opacity}/>",
            Px(at.0),
            Px(at.1),
            Px(size.0),
            Px(size.1)
        );
    }

    /// A frame without a fill.
    pub(super) fn frame(&mut self, at: (f64, f64), size: (f64, f64), stroke: Stroke) {
        let _ = writeln!(
            self.body,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" {}/>",
            Px(at.0),
            Px(at.1),
            Px(size.0),
            Px(size.1),
            stroke.attributes(1.0)
        );
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: Stroke) {
        let _ = writeln!(
            self.body,
            "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" {}/>",
            Px(from.0),
            Px(from.1),
            Px(to.0),
            Px(to.1),
            stroke.attributes(1.0)
        );
    }

    /// A line through `points`; in tenths of pixels relative to each other, which takes half the bytes. Points that would
    /// lie on the one before are left out.
    pub(super) fn path(&mut self, points: impl IntoIterator<Item = (f64, f64)>, stroke: Stroke) {
        let mut text = String::new();
        let mut before: Option<(f64, f64)> = None;
        for (x, y) in points {
            let here = ((x * 10.0).round(), (y * 10.0).round());
            match before {
                None => {
                    let _ = write!(text, "M{:.0} {:.0}l", here.0 + 0.0, here.1 + 0.0);
                }
                Some(last) if last == here => continue,
                Some(last) => {
                    let (dx, dy) = (here.0 - last.0 + 0.0, here.1 - last.1 + 0.0);
                    let gap = if text.ends_with('l') { "" } else { " " };
                    // A minus sign separates as well as a space.
                    let between = if dy < 0.0 { "" } else { " " };
                    let _ = write!(text, "{gap}{dx:.0}{between}{dy:.0}");
                }
            }
            before = Some(here);
        }
        if text.is_empty() {
            return;
        }
        if text.ends_with('l') {
            // A single point is a dot.
            text.push_str("1 0");
        }
        let _ = writeln!(
            self.body,
            "<path transform=\"scale(.1)\" fill=\"none\" stroke-linejoin=\"round\" {} d=\"{text}\"/>",
            stroke.attributes(10.0)
        );
    }

    pub(super) fn dot(&mut self, at: (f64, f64), radius: f64, fill: Colour, opacity: f64) {
        let _ = writeln!(
            self.body,
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{fill}\" opacity=\"{opacity}\"/>",
            Px(at.0),
            Px(at.1),
            Px(radius)
        );
    }

    /// A text whose middle line is at `at.1`.
    pub(super) fn text(&mut self, at: (f64, f64), kind: Type, words: &str) {
        self.put_text(at, kind, words, "");
    }

    /// A text turned by so many degrees around its point.
    pub(super) fn turned(&mut self, at: (f64, f64), degrees: f64, kind: Type, words: &str) {
        let turn = format!(" transform=\"rotate({} {} {})\"", Px(degrees), Px(at.0), Px(at.1));
        self.put_text(at, kind, words, &turn);
    }

    fn put_text(&mut self, at: (f64, f64), kind: Type, words: &str, extra: &str) {
        let weight = if kind.bold { " font-weight=\"600\"" } else { "" };
        let _ = writeln!(
            self.body,
            "<text x=\"{}\" y=\"{}\" dy=\".35em\" font-size=\"{}\" text-anchor=\"{}\" fill=\"{}\"{weight}{extra}>{}</text>",
            Px(at.0),
            Px(at.1),
            Px(kind.size),
            kind.anchor.name(),
            kind.colour,
            escape(words)
        );
    }

    /// Title at the top left, its unit in grey behind it.
    pub(super) fn heading(&mut self, title: &str, unit: &str) {
        let y = 16.0;
        self.text((4.0, y), Type::new(14.0, INK, Anchor::Start).bold(), title);
        if !unit.is_empty() {
            let x = 4.0 + super::canvas::text_width(title, 14.0) * 1.24 + 12.0;
            self.text((x, y), Type::new(12.0, FAINT, Anchor::Start), unit);
        }
    }

    pub(super) fn finish(mut self) -> String {
        self.body.push_str("</svg>\n");
        self.body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_printed_to_a_tenth_and_without_needless_digits() {
        let printed = [1.0, 1.26, -0.01, 12.96, f64::NAN].map(|value| Px(value).to_string());
        assert_eq!(printed, ["1", "1.3", "0", "13", "0"]);
    }

    #[test]
    fn a_path_is_relative_and_leaves_out_points_that_add_nothing() {
        let mut pen = Pen::new(100.0, 50.0, "x");
        let points = [(0.0, 0.0), (0.01, 0.0), (1.0, 2.0), (1.0, 1.0)];
        pen.path(points, Stroke::solid(INK, 1.5));
        let svg = pen.finish();
        assert!(svg.contains("d=\"M0 0l10 20 0-10\""), "{svg}");
        assert!(svg.contains("stroke-width=\"15\""), "{svg}");
    }

    #[test]
    fn names_from_outside_are_escaped() {
        let mut pen = Pen::new(10.0, 10.0, "a \"b\"");
        pen.text((0.0, 0.0), Type::new(10.0, INK, Anchor::Start), "<x>");
        let svg = pen.finish();
        assert!(
            svg.contains("&lt;x&gt;") && svg.contains("aria-label=\"a &quot;b&quot;\""),
            "{svg}"
        );
    }
}
