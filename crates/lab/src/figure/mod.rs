//! Figures as SVG: a small chart toolkit with one style for every figure of the lab.
//!
//! What belongs here: turning plain numbers into pictures. What does not: deciding what to show, which is the
//! report's. The same input gives the same bytes. Needs no font at run time: the viewer's own is used.

mod canvas;
mod chart;
mod decimate;
mod diagram;
mod palette;
mod timeline;

pub use canvas::FigureError;
pub(crate) use canvas::escape;
pub use chart::{Band, Chart, Guide, Mark, Series};
pub use decimate::decimate;
pub use diagram::{PathDiagram, path_diagram};
pub use palette::{Colour, colours};
pub use timeline::{Lane, Part, PartKind, timeline};
