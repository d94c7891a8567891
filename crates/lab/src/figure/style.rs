//! The look of each controller and its short name.

use playrate_cc::registry::{Entry, Registry};

use crate::result::IDEAL;
use crate::svg::{Colour, PALETTE, Stroke};

/// The look of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Style {
    pub(crate) colour: Colour,
    /// Number of the dash pattern of its lines, below [`DASHES`]; 0 for a solid line. A bar with dashes is pale with
    /// an outline.
    pub(crate) dash: usize,
}

/// Dash patterns in CSS pixels, as `stroke-dasharray` of SVG.
const DASHES: [&[f64]; 4] = [&[], &[5.0, 2.5], &[1.5, 2.0], &[7.0, 2.0, 1.5, 2.0]];

impl Style {
    /// A line of the controller, `width` in CSS pixels.
    pub(super) const fn stroke(self, width: f64) -> Stroke {
        Stroke::dashed(self.colour, width, DASHES[self.dash % DASHES.len()])
    }
}

/// The ideal sender, which has no controller.
pub(crate) const IDEAL_STYLE: Style = Style {
    colour: Colour(0x8C, 0x93, 0x9A),
    dash: 2,
};

/// The look of a controller in the world `place`, from 0, of `count` worlds in the same figure: solid in the last, with
/// dashes of its own in each before it.
pub(crate) const fn world_style(style: Style, place: usize, count: usize) -> Style {
    Style {
        dash: count.saturating_sub(place + 1),
        ..style
    }
}

/// A style for each of `specs`, the controllers of one page, by their order: first those of the registry in its order,
/// then the others as they come. No two are alike up to four times as many as [`PALETTE`] has colours.
///
/// A controller with `loss=` beside the same controller without it has the same colour, dashed.
pub(crate) fn styles<S: AsRef<str>>(specs: &[S]) -> Vec<Style> {
    let registry = Registry::installed();
    let names = registry.controllers().map(Entry::name);
    let names: Vec<&str> = names.chain(registry.aliases().map(|alias| alias.name)).collect();
    let rank = |spec: &str| names.iter().position(|name| *name == spec).unwrap_or(names.len());
    let plain: Vec<String> = specs.iter().map(|spec| without_loss(spec.as_ref())).collect();
    let mut order: Vec<&str> = Vec::new();
    for spec in plain.iter().map(String::as_str) {
        if spec != IDEAL && !order.contains(&spec) {
            order.push(spec);
        }
    }
    order.sort_by_key(|spec| rank(spec));

    let mut taken: Vec<Style> = Vec::with_capacity(specs.len());
    for (spec, plain) in specs.iter().zip(&plain) {
        let Some(number) = order.iter().position(|known| known == plain) else {
            taken.push(IDEAL_STYLE);
            continue;
        };
        let has_loss = usize::from(short_name(spec.as_ref()) != *plain);
        // Beyond one round of the palette controllers without `loss=` are dashed too, but differently.
        let dash = 2 * (number / PALETTE.len()) + has_loss;
        let wanted = number + dash / DASHES.len();
        let mut free = (0..PALETTE.len() * DASHES.len()).map(|step| Style {
            colour: PALETTE[(wanted + step / DASHES.len()) % PALETTE.len()],
            dash: (dash + step) % DASHES.len(),
        });
        let style = free.find(|style| !taken.contains(style));
        taken.push(style.unwrap_or(IDEAL_STYLE));
    }
    taken
}

/// The short name of a spec without its loss policy.
fn without_loss(spec: &str) -> String {
    let name = short_name(spec);
    let kept = split_components(&name)
        .into_iter()
        .filter(|component| !component.starts_with("loss="));
    kept.collect::<Vec<_>>().join("+")
}

/// The paper's name for a canonical spec, if there is one, else the spec: `ccp-lb(pob_rate=2)` for
/// `ccp+shape=playout-buffer(pob_rate=2)`. Both are specs of the same controller.
pub(crate) fn short_name(spec: &str) -> String {
    let registry = Registry::installed();
    let components = split_components(spec);
    for alias in registry.aliases() {
        let Some((algorithm, component)) = alias.expansion.split_once('+') else {
            continue;
        };
        let found = components.iter().skip(1).position(|have| {
            have.strip_prefix(component)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('('))
        });
        if let Some(found) = found.filter(|_| components.first() == Some(&algorithm)) {
            let arguments = &components[found + 1][component.len()..];
            let others = components
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
fn split_components(spec: &str) -> Vec<&str> {
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
    fn the_order_of_a_page_does_not_change_the_look_of_known_controllers() {
        let one = styles(&["reno", "ccp+loss=ignore", "cubic", "ccp"]);
        let other = styles(&["ccp", "cubic", "reno", "ccp+loss=ignore"]);
        assert_eq!(
            [one[0], one[1], one[2], one[3]],
            [other[2], other[3], other[1], other[0]]
        );
    }

    #[test]
    fn a_loss_policy_changes_the_dashes_and_not_the_colour() {
        let styles = styles(&["ccp+loss=ignore", "ccp"]);
        assert_eq!(styles[0].colour, styles[1].colour);
        assert_eq!((styles[0].dash, styles[1].dash), (1, 0));
    }

    #[test]
    fn the_ideal_sender_takes_no_colour_from_a_controller() {
        let styles = styles(&["ideal", "reno"]);
        assert_eq!((styles[0], styles[1].colour), (IDEAL_STYLE, PALETTE[0]));
    }

    #[rstest]
    #[case::the_registry(&Registry::builtin().controllers().map(|known| known.name().to_owned()).collect::<Vec<_>>())]
    #[case::twenty_six(&numbered(26))]
    #[case::as_many_as_there_are_styles(&numbered(56))]
    fn no_two_controllers_of_a_page_look_alike(#[case] specs: &[String]) {
        let mut all: Vec<String> = specs.to_vec();
        if specs.len() <= 26 {
            all.extend(specs.iter().map(|spec| format!("{spec}+loss=ignore")));
        }
        let styles = styles(&all);
        for (i, style) in styles.iter().enumerate() {
            assert!(!styles[..i].contains(style), "{} repeats {style:?}", all[i]);
        }
    }

    fn numbered(count: u32) -> Vec<String> {
        (0..count).map(|i| format!("ccp(kp=0.{i:02})")).collect()
    }

    #[test]
    fn the_first_round_of_colours_is_solid() {
        let styles = styles(&numbered(14));
        assert!(styles.iter().all(|style| style.dash == 0));
    }
}
