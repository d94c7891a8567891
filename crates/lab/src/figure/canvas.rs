//! What every figure shares: the SVG it is drawn on, sizes, greys and text.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use thiserror::Error;

use super::Colour;

/// A figure could not be drawn.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FigureError {
    /// The drawing library refused; the text is its own.
    #[error("the figure could not be drawn: {0}")]
    Drawing(String),
}

impl<E: std::error::Error + Send + Sync> From<DrawingAreaErrorKind<E>> for FigureError {
    fn from(error: DrawingAreaErrorKind<E>) -> Self {
        Self::Drawing(error.to_string())
    }
}

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Units of the drawing per CSS pixel: the backend has integer coordinates only, which alone would make lines
/// jagged.
pub(super) const FINE: i32 = 4;

/// Width of every figure in CSS pixels; the page scales it.
pub(super) const WIDTH: i32 = 960;

/// Space left of the plot, for the y axis's numbers.
pub(super) const LEFT: i32 = 52;

/// Space right of the plot, for the names of lanes and of horizontal lines.
pub(super) const RIGHT: i32 = 122;

/// CSS pixels as drawing units.
pub(super) const fn px(pixels: i32) -> i32 {
    pixels * FINE
}

/// A length that is not a whole number of pixels.
#[expect(
    clippy::cast_possible_truncation,
    reason = "figures are a few thousand units wide"
)]
pub(super) fn fine(pixels: f64) -> i32 {
    (pixels * f64::from(FINE)).round() as i32
}

/// A stroke's width in drawing units.
pub(super) fn stroke(pixels: f64) -> u32 {
    u32::try_from(fine(pixels)).unwrap_or(1).max(1)
}

pub(super) const INK: RGBColor = RGBColor(0x22, 0x26, 0x2B);
pub(super) const FAINT: RGBColor = RGBColor(0x6A, 0x71, 0x78);
pub(super) const GRID: RGBColor = RGBColor(0xE7, 0xE9, 0xEC);
pub(super) const AXIS: RGBColor = RGBColor(0xA9, 0xAF, 0xB5);

/// The viewer's own sans-serif face.
pub(super) const FONT: &str = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";

impl From<Colour> for RGBColor {
    fn from(colour: Colour) -> Self {
        Self(colour.0, colour.1, colour.2)
    }
}

/// Text size in CSS pixels as plotters wants it: it divides by 1.24 when it writes SVG.
pub(super) fn text_style(size: f64, colour: RGBColor, align: HPos) -> TextStyle<'static> {
    TextStyle {
        font: (FONT, size * 1.24 * f64::from(FINE)).into_font(),
        color: colour.to_backend_color(),
        pos: Pos::new(align, VPos::Center),
    }
}

/// Draws on an SVG of `height` CSS pixels and gives its text, ready to stand in a page or a file of its own.
/// `label` is what a screen reader says.
pub(super) fn draw(
    height: i32,
    label: &str,
    paint: impl FnOnce(&Area<'_>) -> Result<(), FigureError>,
) -> Result<String, FigureError> {
    let size = [WIDTH, height].map(|pixels| u32::try_from(px(pixels)).unwrap_or(1));
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (size[0], size[1])).into_drawing_area();
        paint(&area)?;
        area.present()?;
    }
    // The backend writes a size in drawing units; a page wants one it can scale.
    let body = svg.find('>').map_or(svg.as_str(), |end| &svg[end + 1..]);
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" width=\"{WIDTH}\" height=\"{height}\" \
         role=\"img\" aria-label=\"{}\" stroke-linejoin=\"round\" stroke-linecap=\"butt\">{body}",
        size[0],
        size[1],
        escape(label),
    ))
}

/// Text as XML and HTML want it, in elements and in attributes.
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

/// Roughly how wide `text` will be, in CSS pixels. The face is the viewer's, so nobody knows exactly.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_outside_cannot_break_out_of_the_page() {
        assert_eq!(
            escape(r#"<script>"a"&'b'"#),
            "&lt;script&gt;&quot;a&quot;&amp;&#39;b&#39;"
        );
    }

    #[test]
    fn a_figure_scales_and_says_what_it_is() {
        let svg = draw(100, "cwnd & \"RTT\"", |_| Ok(())).unwrap();
        assert!(svg.starts_with("<svg xmlns="), "{svg}");
        assert!(svg.contains("viewBox=\"0 0 3840 400\""), "{svg}");
        assert!(svg.contains("aria-label=\"cwnd &amp; &quot;RTT&quot;\""), "{svg}");
        assert!(svg.trim_end().ends_with("</svg>"), "{svg}");
    }
}
