//! [`Band`]: a range that a publication states, drawn behind the data that are to be compared with it.

use super::legend::Entry;
use crate::svg::{Colour, Point, Stroke, SvgWriter};

/// A range that a publication states. Ends that it does not state are infinite.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Band {
    /// Range of the x axis; all of it in figures whose x axis has no numbers.
    pub(crate) x: (f64, f64),
    /// Range of the axis of values.
    pub(crate) y: (f64, f64),
    /// The publication's words, and where they stand.
    pub(crate) says: String,
}

/// Colours of bands, by their number in the figure.
const COLOURS: [Colour; 4] = [
    Colour(0xE0, 0xA8, 0x00),
    Colour(0x2F, 0x8F, 0x83),
    Colour(0x9B, 0x59, 0xB6),
    Colour(0xC0, 0x5A, 0x5A),
];
/// A range that is narrower, in CSS pixels, is drawn as a line.
const THIN: f64 = 1.5;

impl Band {
    /// The ends of the range of values that are stated.
    pub(crate) fn ends(&self) -> impl Iterator<Item = f64> {
        [self.y.0, self.y.1].into_iter().filter(|end| end.is_finite())
    }

    /// Returns true if it is a single value or time.
    pub(super) fn is_line(&self) -> bool {
        self.y.0 >= self.y.1 || self.x.0 >= self.x.1
    }

    /// Number of the band in the legend ([`entries`]).
    pub(super) fn number(&self, legend: &[Entry]) -> usize {
        let number = |entry: &Entry| match entry {
            Entry::Band { says, number, .. } if *says == self.says => Some(*number),
            _ => None,
        };
        legend.iter().find_map(number).unwrap_or(0)
    }
}

/// An entry of the legend for each statement that `bands` show.
pub(super) fn entries<'b>(bands: impl Iterator<Item = &'b Band>) -> Vec<Entry> {
    let mut stated: Vec<&Band> = Vec::new();
    for band in bands {
        if stated.iter().all(|known| known.says != band.says) {
            stated.push(band);
        }
    }
    let entry = |(number, band): (usize, &Band)| Entry::Band {
        says: band.says.clone(),
        number,
        line: band.is_line(),
    };
    stated.into_iter().enumerate().map(entry).collect()
}

/// Shades the rectangle between two opposite corners in the colour of the band `number`.
pub(super) fn shade(svg: &mut SvgWriter, (one, other): (Point, Point), number: usize) {
    let colour = COLOURS[number % COLOURS.len()];
    let at = (one.0.min(other.0), one.1.min(other.1));
    let size = ((one.0 - other.0).abs(), (one.1 - other.1).abs());
    if size.0 < THIN || size.1 < THIN {
        svg.line(at, (at.0 + size.0, at.1 + size.1), Stroke::solid(colour, 2.4));
    } else {
        svg.rect(at, size, colour.with_opacity(0.18));
        svg.outline(at, size, Stroke::solid(colour, 0.8));
    }
}
