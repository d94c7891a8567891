//! [`Controller`]: a controller of any QUIC stack, by name; [`Controllers`]: a list of them on a command line;
//! [`short_name`]: a controller's name in tables.

use std::fmt;
use std::str::FromStr;

use playrate_cc::registry::{Registry, split_list};
use playrate_cc::{ControllerSpec, SpecError};
use playrate_transport::ControllerChoice;

/// QUIC implementation of a flow's endpoints. The default is quinn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names of the crates")]
pub enum Stack {
    #[default]
    Quinn,
    Noq,
}

/// The controller of a sender. Its text form is a spec or the name of one of quinn's or noq's own controllers.
#[derive(Clone, Debug, PartialEq)]
pub enum Controller {
    /// One of playrate's controllers, over any stack.
    Spec(ControllerSpec),
    /// One of quinn's own, over quinn only.
    Quinn(playrate_transport::Baseline),
    /// One of noq's own, over noq only.
    Noq(playrate_noq::Baseline),
}

impl Controller {
    /// The controller over quinn.
    ///
    /// # Errors
    /// If it is one of noq's own; the text says what would be right.
    pub(crate) fn quinn(&self) -> Result<ControllerChoice, String> {
        match self {
            Self::Spec(spec) => Ok(spec.clone().into()),
            Self::Quinn(baseline) => Ok((*baseline).into()),
            Self::Noq(_) => Err(format!(
                "`{self}` runs over noq only, and only live encoders do: write `encoder.stack = \"noq\"`, or leave \
                 it out"
            )),
        }
    }

    /// The controller over noq.
    ///
    /// # Errors
    /// If it is one of quinn's own; the text says what would be right.
    pub(crate) fn noq(&self) -> Result<playrate_noq::ControllerChoice, String> {
        match self {
            Self::Spec(spec) => Ok(spec.clone().into()),
            Self::Noq(baseline) => Ok((*baseline).into()),
            Self::Quinn(_) => Err(format!(
                "`{self}` runs over quinn only: write `encoder.stack = \"quinn\"`, or a controller such as `cubic` or \
                 `noq-cubic`"
            )),
        }
    }

    /// Checks that the controller runs over `stack`.
    ///
    /// # Errors
    /// If it is another stack's own; the text says what would be right.
    pub(crate) fn check(&self, stack: Stack) -> Result<(), String> {
        match stack {
            Stack::Quinn => self.quinn().map(drop),
            Stack::Noq => self.noq().map(drop),
        }
    }
}

impl FromStr for Controller {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        use playrate_noq::ControllerChoice as OverNoq;
        match (text.parse::<OverNoq>(), text.parse::<ControllerChoice>()) {
            (Ok(OverNoq::Baseline(baseline)), _) => Ok(Self::Noq(baseline)),
            (_, Ok(ControllerChoice::Baseline(baseline))) => Ok(Self::Quinn(baseline)),
            (Err(error @ SpecError::TakesNoComponents { .. }), _) => Err(error),
            (_, Err(error)) => {
                let noqs = playrate_noq::Baseline::ALL.map(playrate_noq::Baseline::name);
                Err(error.with_controllers(&noqs))
            }
            _ => Registry::installed().parse(text).map(Self::Spec),
        }
    }
}

impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spec(spec) => spec.fmt(f),
            Self::Quinn(baseline) => f.pad(baseline.name()),
            Self::Noq(baseline) => f.pad(baseline.name()),
        }
    }
}

/// Controllers to compare, at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Controllers(pub Vec<Controller>);

impl FromStr for Controllers {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let all = split_list(text).map(str::parse).collect::<Result<_, _>>()?;
        Ok(Self(all))
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
        let controller: Controller = name.parse().unwrap();
        assert_eq!(controller.to_string(), spec);
    }

    #[rstest]
    #[case("cubic+start=hystartpp", [true, true])]
    #[case("quinn-cubic", [true, false])]
    #[case("noq-bbr3", [false, true])]
    fn a_stacks_own_controller_runs_over_no_other_stack(#[case] name: &str, #[case] runs: [bool; 2]) {
        let controller: Controller = name.parse().unwrap();
        assert_eq!(controller.to_string(), name);
        let over = [Stack::Quinn, Stack::Noq].map(|stack| controller.check(stack).is_ok());
        assert_eq!(over, runs);
    }

    #[rstest]
    #[case("noq-qubic", &["quinn-cubic", "noq-cubic"])]
    #[case("noq-cubic+start=hystartpp", &["noq-cubic", "+start=hystartpp"])]
    #[case("quinn-cubic+start=hystartpp", &["quinn-cubic", "+start=hystartpp"])]
    fn a_wrong_name_is_reported_with_those_of_all_stacks(#[case] name: &str, #[case] expected: &[&str]) {
        let error = name.parse::<Controller>().unwrap_err().to_string();
        assert!(expected.iter().all(|part| error.contains(part)), "{error}");
    }
}
