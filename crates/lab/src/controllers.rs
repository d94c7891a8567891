//! [`Controllers`]: a list of controllers on a command line; [`short_name`]: a controller's name in tables.

use std::str::FromStr;

use playrate_cc::SpecError;
use playrate_cc::registry::Registry;
use playrate_transport::ControllerChoice;

/// Controllers to compare, at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Controllers(pub Vec<ControllerChoice>);

impl FromStr for Controllers {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        ControllerChoice::list(text).map(Self)
    }
}

impl Controllers {
    /// Canonical specs, in the order of the list.
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.iter().map(ToString::to_string).collect()
    }
}

/// The paper's name for a canonical spec, if there is one, otherwise the spec: `ccp-lb(pob_rate=2)` for
/// `ccp+shape=playout-buffer(pob_rate=2)`. Both specify the same controller.
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

/// Splits a spec at each `+` outside parentheses.
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
}
