//! The one palette of all figures.

use std::fmt::{self, Display};

/// An sRGB colour. Prints as `#RRGGBB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Colour(pub u8, pub u8, pub u8);

impl Colour {
    /// The colour at an opacity between 0 and 1.
    pub const fn with_opacity(self, opacity: f64) -> Fill {
        Fill {
            colour: self,
            opacity,
        }
    }
}

impl Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:02X}{:02X}{:02X}", self.0, self.1, self.2)
    }
}

/// A colour that may be partly transparent. Prints as attributes of SVG.
#[derive(Clone, Copy, Debug)]
pub struct Fill {
    colour: Colour,
    opacity: f64,
}

impl From<Colour> for Fill {
    fn from(colour: Colour) -> Self {
        colour.with_opacity(1.0)
    }
}

impl Display for Fill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fill=\"{}\"", self.colour)?;
        if self.opacity < 1.0 {
            write!(f, " opacity=\"{}\"", self.opacity)?;
        }
        Ok(())
    }
}

/// Titles, names and marks.
pub const INK: Colour = Colour(0x22, 0x26, 0x2B);
/// Numbers, units and captions.
pub const FAINT: Colour = Colour(0x5F, 0x66, 0x6E);
/// Lines of the grid behind the data.
pub const GRID: Colour = Colour(0xE7, 0xE9, 0xEC);
/// The ground of every figure.
pub const PAPER: Colour = Colour(0xFF, 0xFF, 0xFF);
pub(crate) const AXIS: Colour = Colour(0xA9, 0xAF, 0xB5);
/// Playback that has not begun yet.
pub(crate) const WAITING: Colour = Colour(0xDD, 0xE0, 0xE4);
/// Stalled playback and discarded frames.
pub(crate) const STALLED: Colour = Colour(0x1B, 0x1B, 0x1F);

/// Colours of controllers, most distinct first: Okabe and Ito's palette ("Color Universal Design", 2008), then Paul
/// Tol's muted scheme. Both remain distinct with a colour vision deficiency.
pub const PALETTE: [Colour; 14] = [
    Colour(0x00, 0x72, 0xB2),
    Colour(0xD5, 0x5E, 0x00),
    Colour(0x00, 0x9E, 0x73),
    Colour(0xCC, 0x79, 0xA7),
    Colour(0xE6, 0x9F, 0x00),
    Colour(0x56, 0xB4, 0xE9),
    Colour(0x22, 0x22, 0x22),
    Colour(0x33, 0x22, 0x88),
    Colour(0x88, 0x22, 0x55),
    Colour(0x11, 0x77, 0x33),
    Colour(0x99, 0x99, 0x33),
    Colour(0x44, 0xAA, 0x99),
    Colour(0xAA, 0x44, 0x99),
    Colour(0xCC, 0x66, 0x77),
];
