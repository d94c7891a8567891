//! Colours that people with a colour vision deficiency can tell apart, and which controller gets which.

use std::fmt;

use super::style::{NAMED, preferred};

/// An sRGB colour. Prints as `#RRGGBB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Colour(pub u8, pub u8, pub u8);

impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:02X}{:02X}{:02X}", self.0, self.1, self.2)
    }
}

/// For every spec of one figure its colour: by name, so that it is the same in every figure. Where two of one figure
/// would get the same, the later takes the next one free.
pub fn colours(specs: &[&str]) -> Vec<Colour> {
    let mut taken = Vec::with_capacity(specs.len());
    for spec in specs {
        let first = preferred(spec);
        let free = (0..NAMED.len())
            .map(|step| NAMED[(first + step) % NAMED.len()].1)
            .find(|colour| !taken.contains(colour));
        taken.push(free.unwrap_or(NAMED[first].1));
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_has_the_same_colour_in_every_figure() {
        let pair = colours(&["reno", "cubic"]);
        let other = colours(&["cubic", "vegas", "reno"]);
        assert_eq!((pair[0], pair[1]), (other[2], other[0]));
        assert_eq!(pair[0].to_string(), "#0072B2");
    }

    #[test]
    fn no_two_controllers_of_a_figure_share_a_colour() {
        let specs = [
            "ccpd(kp=1,kd=2000us)",
            "ccpd(kp=1,kd=4000us)",
            "reno",
            "reno",
            "cubic+start=hystartpp",
            "cubic",
        ];
        let colours = colours(&specs);
        for (i, colour) in colours.iter().enumerate() {
            assert!(!colours[..i].contains(colour), "{} repeats {colour}", specs[i]);
        }
    }

    #[test]
    fn more_controllers_than_colours_still_draw() {
        let specs: Vec<String> = (0..40).map(|i| format!("ccp(kp={i})")).collect();
        let specs: Vec<&str> = specs.iter().map(String::as_str).collect();
        assert_eq!(colours(&specs).len(), 40);
    }
}
