//! Colours that people with a colour vision deficiency can tell apart, and which controller gets which.

use std::fmt;

/// An sRGB colour. Prints as `#RRGGBB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Colour(pub u8, pub u8, pub u8);

impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:02X}{:02X}{:02X}", self.0, self.1, self.2)
    }
}

/// Controllers that figures of the papers show together, each with its own colour everywhere.
///
/// The first seven are Okabe and Ito's palette ("Color Universal Design", 2008), the rest Paul Tol's muted scheme.
const NAMED: [(&str, Colour); 13] = [
    ("reno", Colour(0x00, 0x72, 0xB2)),
    ("cubic", Colour(0xD5, 0x5E, 0x00)),
    ("compound", Colour(0x00, 0x9E, 0x73)),
    ("vegas", Colour(0xCC, 0x79, 0xA7)),
    ("ccp", Colour(0xE6, 0x9F, 0x00)),
    ("ccpd", Colour(0x56, 0xB4, 0xE9)),
    ("stream", Colour(0x22, 0x22, 0x22)),
    ("quinn-newreno", Colour(0x33, 0x22, 0x88)),
    ("quinn-cubic", Colour(0x88, 0x22, 0x55)),
    ("ccp-lss", Colour(0x11, 0x77, 0x33)),
    ("ccp-lca", Colour(0x99, 0x99, 0x33)),
    ("ccp-lb", Colour(0x44, 0xAA, 0x99)),
    ("ccp-vs", Colour(0xAA, 0x44, 0x99)),
];

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

/// Index of the colour that `spec` gets when nothing else is shown.
fn preferred(spec: &str) -> usize {
    NAMED
        .iter()
        .position(|(name, _)| *name == spec)
        .unwrap_or_else(|| {
            // FNV-1a: any fixed hash will do, so long as it is the same in every build.
            let hash = spec.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
            });
            usize::try_from(hash % NAMED.len() as u64).unwrap_or(0)
        })
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
