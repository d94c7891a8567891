//! [`SvgWriter`]: the only place that writes SVG, and the colours that all figures share.
//!
//! The same calls give the same bytes. Every figure has a white ground, so that it is legible on pages of any
//! colour, and a text alternative. No font is needed at run time: the reader's own sans-serif face is used.

mod axis;
mod colour;

use std::fmt::{self, Display, Write as _};

pub use axis::Axis;
pub(crate) use axis::{axis_number, thousands};
pub(crate) use colour::{AXIS, STALLED, WAITING};
pub use colour::{Colour, FAINT, Fill, GRID, INK, PALETTE, PAPER};

/// A position or a size in CSS pixels: horizontal, then vertical (downwards).
pub type Point = (f64, f64);

/// A length in CSS pixels, printed to a tenth.
#[derive(Clone, Copy, Debug)]
struct Px(f64);

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

/// The end of a text that lies at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// The text begins at its position.
    Start,
    /// The text is centred at its position.
    Middle,
    /// The text ends at its position.
    End,
}

/// The look of a text.
#[derive(Clone, Copy, Debug)]
pub struct Label {
    size: f64,
    colour: Colour,
    anchor: Anchor,
    bold: bool,
    degrees: f64,
}

impl Label {
    /// Upright text of `size` CSS pixels in regular weight.
    pub const fn new(size: f64, colour: Colour, anchor: Anchor) -> Self {
        Self {
            size,
            colour,
            anchor,
            bold: false,
            degrees: 0.0,
        }
    }

    /// The same in bold type.
    #[must_use]
    pub const fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    /// The same, rotated clockwise around its position.
    #[must_use]
    pub const fn rotated(self, degrees: f64) -> Self {
        Self { degrees, ..self }
    }

    /// The same in smaller type if `text` would be wider than `width`, but no smaller than 7 px.
    #[must_use]
    pub(crate) fn fitted(self, text: &str, width: f64) -> Self {
        let needed = (text_width(text, self.size) * 1.15).max(1.0);
        let size = (self.size * width / needed).clamp(7.0_f64.min(self.size), self.size);
        Self { size, ..self }
    }
}

/// The look of a line.
#[derive(Clone, Copy, Debug)]
pub struct Stroke {
    colour: Colour,
    width: f64,
    /// SVG's `stroke-dasharray` in CSS pixels; empty for a solid line.
    dash: &'static [f64],
}

impl Stroke {
    /// A line without gaps, `width` in CSS pixels.
    pub const fn solid(colour: Colour, width: f64) -> Self {
        Self::dashed(colour, width, &[])
    }

    /// A line whose dashes and gaps have the lengths `dash` in CSS pixels.
    pub const fn dashed(colour: Colour, width: f64, dash: &'static [f64]) -> Self {
        Self { colour, width, dash }
    }

    fn attributes(self, scale: f64) -> String {
        let mut text = format!(
            "stroke=\"{}\" stroke-width=\"{}\"",
            self.colour,
            Px(self.width * scale)
        );
        if !self.dash.is_empty() {
            let lengths = self.dash.iter().map(|length| Px(length * scale).to_string());
            let _ = write!(
                text,
                " stroke-dasharray=\"{}\"",
                lengths.collect::<Vec<_>>().join(" ")
            );
        }
        text
    }
}

/// The reader's own sans-serif face.
const FONT: &str = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";

/// Writes one figure. Writing to a `String` cannot fail, hence the ignored results.
#[derive(Debug)]
pub struct SvgWriter {
    body: String,
}

impl SvgWriter {
    /// Starts a figure of `size`; `alternative` is the text that a screen reader reads instead.
    pub fn new(size: Point, alternative: &str) -> Self {
        let (w, h) = (Px(size.0), Px(size.1));
        let mut writer = Self {
            body: format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" \
                 role=\"img\" aria-label=\"{}\" font-family=\"{}\">\n",
                escape(alternative),
                escape(FONT)
            ),
        };
        writer.rect((0.0, 0.0), size, PAPER);
        writer
    }

    /// Fills a rectangle whose top left corner is `at`.
    pub fn rect(&mut self, at: Point, size: Point, fill: impl Into<Fill>) {
        let _ = writeln!(self.body, "<rect {} {}/>", bounds(at, size), fill.into());
    }

    /// Draws the outline of a rectangle whose top left corner is `at`.
    pub fn outline(&mut self, at: Point, size: Point, stroke: Stroke) {
        let stroke = stroke.attributes(1.0);
        let _ = writeln!(self.body, "<rect {} fill=\"none\" {stroke}/>", bounds(at, size));
    }

    /// Draws a straight line.
    pub fn line(&mut self, from: Point, to: Point, stroke: Stroke) {
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

    /// Draws a line through `points`.
    pub fn path(&mut self, points: impl IntoIterator<Item = Point>, stroke: Stroke) {
        let outline = outline_data(points);
        if !outline.is_empty() {
            let _ = writeln!(
                self.body,
                "<path transform=\"scale(.1)\" fill=\"none\" stroke-linejoin=\"round\" {} d=\"{outline}\"/>",
                stroke.attributes(10.0)
            );
        }
    }

    /// Fills the area that the line through `points` and from the last back to the first encloses.
    pub fn area(&mut self, points: impl IntoIterator<Item = Point>, fill: impl Into<Fill>) {
        let outline = outline_data(points);
        if !outline.is_empty() {
            let fill = fill.into();
            let _ = writeln!(
                self.body,
                "<path transform=\"scale(.1)\" {fill} d=\"{outline}Z\"/>"
            );
        }
    }

    /// Fills a circle around `at`.
    pub fn dot(&mut self, at: Point, radius: f64, fill: impl Into<Fill>) {
        let (x, y, radius, fill) = (Px(at.0), Px(at.1), Px(radius), fill.into());
        let _ = writeln!(self.body, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" {fill}/>");
    }

    /// Writes one line of text, vertically centred at `at.1`.
    pub fn text(&mut self, at: Point, label: Label, text: &str) {
        let (x, y) = (Px(at.0), Px(at.1));
        let anchor = match label.anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let weight = if label.bold { " font-weight=\"600\"" } else { "" };
        let rotation = if label.degrees == 0.0 {
            String::new()
        } else {
            format!(" transform=\"rotate({} {x} {y})\"", Px(label.degrees))
        };
        let _ = writeln!(
            self.body,
            "<text x=\"{x}\" y=\"{y}\" dy=\".35em\" font-size=\"{}\" text-anchor=\"{anchor}\" \
             fill=\"{}\"{weight}{rotation}>{}</text>",
            Px(label.size),
            label.colour,
            escape(text)
        );
    }

    /// Writes the figure's title at the top left and, in grey behind it, its unit.
    pub(crate) fn heading(&mut self, title: &str, unit: &str) {
        let y = 16.0;
        self.text((4.0, y), Label::new(14.0, INK, Anchor::Start).bold(), title);
        if !unit.is_empty() {
            let x = 4.0 + text_width(title, 14.0) * 1.24 + 12.0;
            self.text((x, y), Label::new(12.0, FAINT, Anchor::Start), unit);
        }
    }

    /// The figure's text, ready for a page or a file of its own.
    pub fn finish(mut self) -> String {
        self.body.push_str("</svg>\n");
        self.body
    }
}

fn bounds(at: Point, size: Point) -> String {
    format!(
        "x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
        Px(at.0),
        Px(at.1),
        Px(size.0),
        Px(size.1)
    )
}

/// SVG's path data in tenths of pixels, relative from point to point: half the bytes of absolute pixels. Points that
/// would lie on the one before are left out. Empty if there are no points.
fn outline_data(points: impl IntoIterator<Item = Point>) -> String {
    let mut text = String::new();
    let mut before: Option<Point> = None;
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
    if text.ends_with('l') {
        // A single point becomes a dot of a tenth of a pixel.
        text.push_str("1 0");
    }
    text
}

/// Escapes text for XML and HTML, in elements and in attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

/// Approximate width of `text` in CSS pixels. The face is the reader's own, so the exact width is not known.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    text.chars()
        .map(|c| match c {
            'i' | 'l' | 'j' | 't' | 'f' | '.' | ',' | '(' | ')' | ' ' | ':' => 0.33,
            'm' | 'w' | 'M' | 'W' | '%' => 0.88,
            c if c.is_ascii_uppercase() => 0.68,
            _ => 0.56,
        })
        .sum::<f64>()
        * size
}

/// Width of the widest of `texts` in CSS pixels, at least `least`.
pub(crate) fn widest<'a>(texts: impl IntoIterator<Item = &'a str>, size: f64, least: f64) -> f64 {
    let widths = texts.into_iter().map(|text| text_width(text, size));
    widths.fold(least, f64::max)
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
        let mut svg = SvgWriter::new((100.0, 50.0), "x");
        let points = [(0.0, 0.0), (0.01, 0.0), (1.0, 2.0), (1.0, 1.0)];
        svg.path(points, Stroke::solid(INK, 1.5));
        svg.area(points, GRID.with_opacity(0.5));
        let svg = svg.finish();
        assert!(svg.contains("d=\"M0 0l10 20 0-10\""), "{svg}");
        assert!(svg.contains("stroke-width=\"15\""), "{svg}");
        assert!(svg.contains("opacity=\"0.5\" d=\"M0 0l10 20 0-10Z\""), "{svg}");
    }

    #[test]
    fn text_from_outside_cannot_break_out_of_the_figure() {
        let mut svg = SvgWriter::new((10.0, 10.0), "a \"b\"");
        svg.text((0.0, 0.0), Label::new(10.0, INK, Anchor::Start), "<x>");
        let svg = svg.finish();
        assert!(
            svg.contains("&lt;x&gt;") && svg.contains("aria-label=\"a &quot;b&quot;\""),
            "{svg}"
        );
        assert_eq!(escape("<script>&'b'"), "&lt;script&gt;&amp;&#39;b&#39;");
    }

    #[test]
    fn a_figure_has_a_size_that_scales_and_a_white_ground() {
        let svg = SvgWriter::new((960.0, 100.0), "cwnd").finish();
        assert!(
            svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"),
            "{svg}"
        );
        assert!(svg.contains("viewBox=\"0 0 960 100\""), "{svg}");
        assert!(
            svg.contains("width=\"960\" height=\"100\" fill=\"#FFFFFF\""),
            "{svg}"
        );
    }
}
