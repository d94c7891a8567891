//! How a controller looks wherever it is drawn, and what it is called there.

use playrate_cc::registry::Registry;

use super::Colour;

/// How a controller is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Style {
    /// Its colour.
    pub colour: Colour,
    /// Which dashes its line has: 0 for a solid line. Bars with dashes are pale with an outline.
    pub dash: u8,
}

impl Style {
    /// SVG's `stroke-dasharray` in CSS pixels.
    pub(super) const fn dashes(self) -> &'static [f64] {
        match self.dash % 4 {
            0 => &[],
            1 => &[5.0, 2.5],
            2 => &[1.5, 2.0],
            _ => &[7.0, 2.0, 1.5, 2.0],
        }
    }
}

/// The best that any sender could do: no controller.
pub const IDEAL_STYLE: Style = Style {
    colour: Colour(0x8C, 0x93, 0x9A),
    dash: 2,
};

/// Short names with a colour of their own, the same in every figure of every report.
///
/// The first seven are Okabe and Ito's palette ("Color Universal Design", 2008), then Paul Tol's muted scheme, then
/// `ColorBrewer`'s Dark2 and darker shades of kin. Nobody can tell more than a dozen colours apart, so figures with many
/// controllers also name each where it is drawn.
pub(super) const NAMED: [(&str, Colour); 26] = [
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
    ("ccp-sss", Colour(0xCC, 0x66, 0x77)),
    ("ccpd(kd=4ms)", Colour(0x6A, 0x51, 0xA3)),
    ("ccp-lb(pob_rate=0.5)", Colour(0x8C, 0x51, 0x0A)),
    ("ccp-lb(pob_rate=2)", Colour(0x00, 0x5F, 0x73)),
    ("reno-cwv", Colour(0xA6, 0x76, 0x1D)),
    ("reno-new-cwv", Colour(0x75, 0x70, 0xB3)),
    ("reno-new-cwv-p21", Colour(0xE7, 0x29, 0x8A)),
    ("reno+idle=cwv(forget_ssthresh=on)", Colour(0x66, 0x11, 0x00)),
    ("cubic+start=hystartpp", Colour(0xF0, 0x85, 0x4A)),
    ("cubic+ceiling=pace", Colour(0xA6, 0x36, 0x03)),
    ("reno+idle=rfc5681", Colour(0x41, 0x8F, 0xDE)),
    ("reno+start=hystartpp", Colour(0x1D, 0x4E, 0x89)),
    ("vegas+ceiling=pace", Colour(0x8E, 0x4B, 0x6E)),
];

/// For every spec its style. A controller has its own colour everywhere; `loss=ignore` beside it is dashed. Those without a
/// colour of their own get one by their name, and where two of `specs` would look alike the later has other dashes, so the same
/// list gives the same styles.
pub fn styles<S: AsRef<str>>(specs: &[S]) -> Vec<Style> {
    let mut taken: Vec<Style> = Vec::with_capacity(specs.len());
    for spec in specs {
        let name = short_name(spec.as_ref());
        let plain = name.replace("+loss=ignore", "").replace("+loss=guard", "");
        let preferred = Style {
            colour: NAMED[preferred(&plain)].1,
            dash: u8::from(plain != name),
        };
        let free = (0..4_u8)
            .map(|more| Style {
                dash: (preferred.dash + more) % 4,
                ..preferred
            })
            .chain(NAMED.iter().map(|(_, colour)| Style {
                colour: *colour,
                dash: 3,
            }))
            .find(|style| !taken.contains(style));
        let style = match spec.as_ref() {
            "ideal" => IDEAL_STYLE,
            _ => free.unwrap_or(preferred),
        };
        taken.push(style);
    }
    taken
}

/// Index of the colour that a controller gets when nothing else is shown.
pub(super) fn preferred(spec: &str) -> usize {
    let name = short_name(spec);
    let known = NAMED.iter().position(|(known, _)| *known == name);
    known.unwrap_or_else(|| {
        // FNV-1a: any fixed hash will do, so long as it is the same in every build.
        let hash = name.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        });
        usize::try_from(hash % NAMED.len() as u64).unwrap_or(0)
    })
}

/// A canonical spec under the paper's name for the combination if it has one: `ccp+shape=playout-buffer(pob_rate=2)` is
/// `ccp-lb(pob_rate=2)`. It names the same controller.
pub fn short_name(spec: &str) -> String {
    let registry = Registry::builtin();
    let parts = split_parts(spec);
    for alias in registry.aliases() {
        let Some((law, part)) = alias.expansion.split_once('+') else {
            continue;
        };
        let found = parts.iter().skip(1).position(|have| {
            have.strip_prefix(part)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('('))
        });
        if let Some(found) = found.filter(|_| parts.first() == Some(&law)) {
            let arguments = &parts[found + 1][part.len()..];
            let others = parts
                .iter()
                .enumerate()
                .filter(|(index, _)| *index != 0 && *index != found + 1);
            return others.fold(format!("{}{arguments}", alias.name), |name, (_, other)| {
                format!("{name}+{other}")
            });
        }
    }
    spec.to_owned()
}

/// Splits a spec at the `+` outside of parentheses.
fn split_parts(spec: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    spec.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == '+' && depth == 0
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use playrate_transport::ControllerChoice;
    use rstest::rstest;

    #[rstest]
    #[case("ccp+shape=playout-buffer(pob_rate=2)", "ccp-lb(pob_rate=2)")]
    #[case("ccp+shape=playout-buffer+loss=ignore", "ccp-lb+loss=ignore")]
    #[case("reno+idle=new-cwv-restart", "reno-new-cwv-p21")]
    #[case("reno+idle=new-cwv", "reno-new-cwv")]
    #[case("ccpd(kd=4ms)", "ccpd(kd=4ms)")]
    #[case("cubic+idle=new-cwv", "cubic+idle=new-cwv")]
    fn short_names_are_the_papers_and_name_the_same_controller(#[case] spec: &str, #[case] name: &str) {
        assert_eq!(short_name(spec), name);
        let choice: ControllerChoice = name.parse().unwrap();
        assert_eq!(choice.to_string(), spec);
    }

    #[test]
    fn a_controller_looks_the_same_in_every_figure() {
        let one = styles(&["reno", "ccp+loss=ignore", "ccp"]);
        let other = styles(&["ccp", "cubic", "reno", "ccp+loss=ignore"]);
        assert_eq!((one[0], one[1], one[2]), (other[2], other[3], other[0]));
        assert_eq!((one[1].colour, one[1].dash), (one[2].colour, 1));
        assert_eq!(one[0].colour.to_string(), "#0072B2");
    }

    #[test]
    fn no_two_of_forty_controllers_look_alike() {
        let specs: Vec<String> = (0..40).map(|i| format!("ccp(kp=0.{i:02})")).collect();
        let styles = styles(&specs);
        for (i, style) in styles.iter().enumerate() {
            assert!(!styles[..i].contains(style), "{} repeats {style:?}", specs[i]);
        }
    }

    #[test]
    fn named_controllers_have_a_colour_each() {
        for (i, (name, colour)) in NAMED.iter().enumerate() {
            assert!(NAMED[..i].iter().all(|(_, other)| other != colour), "{name}");
        }
    }
}
