//! Names of colours and dashes in lines below a figure, where they hide no data however many there are.

use super::{Style, band};
use crate::svg::{Anchor, FAINT, INK, Label, Point, Stroke, SvgWriter, text_width};

/// One entry of a legend.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Entry {
    /// A line of a controller.
    Line(String, Style),
    /// A block of a controller.
    Block(String, Style),
    /// A line to compare data with; the number chooses its dashes.
    Guide(String, usize),
    /// A range that a publication states, or a single value, which is a line; the number chooses its colour.
    Band { says: String, number: usize, line: bool },
}

/// Height of a line of the legend.
const LINE: f64 = 18.0;
const SAMPLE: f64 = 24.0;

impl Entry {
    fn name(&self) -> &str {
        match self {
            Self::Line(name, _) | Self::Block(name, _) | Self::Guide(name, _) => name,
            Self::Band { says, .. } => says,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Band { says, .. } => format!("paper: {says}"),
            other => other.name().to_owned(),
        }
    }

    fn width(&self) -> f64 {
        SAMPLE + 6.0 + text_width(&self.text(), 11.5) * 1.08 + 18.0
    }
}

/// The look of the guide `number`.
pub(super) const fn guide_stroke(number: usize) -> Stroke {
    let dash: &[f64] = match number % 3 {
        0 => &[4.0, 3.0],
        1 => &[1.5, 2.5],
        _ => &[8.0, 3.0, 1.5, 3.0],
    };
    Stroke::dashed(FAINT, 1.1, dash)
}

/// Breaks the entries into lines of at most `width`.
fn lines(entries: &[Entry], width: f64) -> Vec<&[Entry]> {
    let mut lines = Vec::new();
    let mut rest = entries;
    while !rest.is_empty() {
        let mut used = 0.0;
        let fit = rest
            .iter()
            .take_while(|entry| {
                used += entry.width();
                used <= width
            })
            .count()
            .max(1);
        let (line, after) = rest.split_at(fit);
        lines.push(line);
        rest = after;
    }
    lines
}

/// Height of the legend at this width.
pub(super) fn height(entries: &[Entry], width: f64) -> f64 {
    LINE * lines(entries, width).len() as f64
}

/// Draws the legend with its top left corner at `at`.
pub(super) fn draw(svg: &mut SvgWriter, entries: &[Entry], at: Point, width: f64) {
    for (number, line) in lines(entries, width).into_iter().enumerate() {
        let y = at.1 + LINE * (number as f64 + 0.5);
        let mut x = at.0;
        for entry in line {
            match entry {
                Entry::Line(_, style) => svg.line((x, y), (x + SAMPLE, y), style.stroke(2.4)),
                Entry::Block(_, style) => block(svg, (x + 6.0, y - 6.0), (14.0, 12.0), *style),
                Entry::Guide(_, number) => svg.line((x, y), (x + SAMPLE, y), guide_stroke(*number)),
                Entry::Band { number, line, .. } => {
                    let half = if *line { 0.0 } else { 6.0 };
                    band::shade(svg, ((x, y - half), (x + SAMPLE, y + half)), *number);
                }
            }
            let text = entry.text();
            let label = Label::new(11.5, INK, Anchor::Start).fitted(&text, width - SAMPLE - 6.0);
            svg.text((x + SAMPLE + 6.0, y), label, &text);
            x += entry.width();
        }
    }
}

/// A filled box; that of a dashed style is pale with an outline.
pub(super) fn block(svg: &mut SvgWriter, at: Point, size: Point, style: Style) {
    if style.dash == 0 {
        svg.rect(at, size, style.colour.with_opacity(0.85));
    } else {
        svg.rect(at, size, style.colour.with_opacity(0.3));
        svg.outline(at, size, style.stroke(1.2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::styles;

    #[test]
    fn entries_that_do_not_fit_go_to_the_next_line() {
        let names: Vec<String> = (0..20).map(|i| format!("ccpd(kd={i}ms)+loss=ignore")).collect();
        let entries: Vec<Entry> = names
            .iter()
            .cloned()
            .zip(styles(&names))
            .map(|(name, style)| Entry::Line(name, style))
            .collect();
        let lines = lines(&entries, 900.0);
        assert!(lines.len() > 3);
        assert_eq!(lines.iter().map(|line| line.len()).sum::<usize>(), 20);
        for line in lines {
            assert!(line.iter().map(Entry::width).sum::<f64>() <= 900.0);
        }
    }
}
