//! Controllers by name: playrate's specs, and quinn's controllers as baselines.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use playrate_cc::registry::split_list;
use playrate_cc::{ControllerSpec, Path, Registry, SpecError};

use crate::baseline::Baseline;

/// The controller of a connection. Its text form is a [`ControllerSpec`] or the name of a [`Baseline`].
///
/// ```
/// use playrate_quinn::ControllerChoice;
///
/// for name in ["cubic+start=hystartpp", "quinn-cubic"] {
///     let choice: ControllerChoice = name.parse()?;
///     assert_eq!(choice.to_string(), name);
/// }
/// # Ok::<(), playrate_cc::SpecError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ControllerChoice {
    /// One of playrate's controllers, or a user-defined one from the registry.
    Spec(ControllerSpec),
    /// One of quinn's own controllers.
    Baseline(Baseline),
}

impl ControllerChoice {
    /// Parses the name of a baseline or a spec of `registry`. A baseline's name is never looked up in the registry.
    pub fn from_registry(registry: &Registry, text: &str) -> Result<Self, SpecError> {
        for baseline in Baseline::ALL {
            let rest = text.trim().strip_prefix(baseline.name()).map(str::trim_start);
            match rest.and_then(|rest| rest.chars().next()) {
                None if rest.is_some() => return Ok(Self::Baseline(baseline)),
                Some('+' | '(') => {
                    return Err(SpecError::TakesNoComponents {
                        name: baseline.name().to_owned(),
                        component: rest.unwrap_or_default().to_owned(),
                    });
                }
                _ => {}
            }
        }
        match registry.parse(text) {
            Ok(spec) => Ok(Self::Spec(spec)),
            Err(error) => Err(error.with_controllers(&Baseline::ALL.map(Baseline::name))),
        }
    }

    /// Parses names separated by commas; commas in parentheses belong to their spec.
    pub fn list(text: &str) -> Result<Vec<Self>, SpecError> {
        split_list(text).map(str::parse).collect()
    }

    /// Packets that this controller asks the peer to acknowledge at once; `None` leaves the choice to the peer.
    pub fn packets_per_ack(&self) -> Option<u32> {
        match self {
            Self::Spec(spec) => spec.build(&Path::default(), Arc::default()).packets_per_ack(),
            Self::Baseline(_) => None,
        }
    }
}

impl From<ControllerSpec> for ControllerChoice {
    fn from(spec: ControllerSpec) -> Self {
        Self::Spec(spec)
    }
}

impl From<Baseline> for ControllerChoice {
    fn from(baseline: Baseline) -> Self {
        Self::Baseline(baseline)
    }
}

impl fmt::Display for ControllerChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spec(spec) => spec.fmt(f),
            Self::Baseline(baseline) => f.pad(baseline.name()),
        }
    }
}

impl FromStr for ControllerChoice {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        Self::from_registry(Registry::installed(), text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use playrate_cc::registry::Entry;

    #[test]
    fn every_controller_of_the_registry_can_be_chosen_by_its_name() {
        let registry = Registry::builtin();
        let ours = registry.controllers().map(Entry::name);
        let names: Vec<_> = ours.chain(Baseline::ALL.map(Baseline::name)).collect();
        for name in [
            "reno",
            "cubic",
            "bbr",
            "quinn-newreno",
            "quinn-cubic",
            "quinn-bbr",
        ] {
            assert!(names.contains(&name), "{name} is missing from {names:?}");
        }
        for name in names {
            let choice: ControllerChoice = name.parse().unwrap();
            assert_eq!(choice.to_string(), name);
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
    }

    #[test]
    fn an_unknown_controller_is_named_and_the_baselines_are_among_what_there_is() {
        let error = "quinn-vegas".parse::<ControllerChoice>().unwrap_err().to_string();
        assert!(
            error.contains("`quinn-vegas`") && error.contains("quinn-cubic"),
            "{error}"
        );
    }

    #[test]
    fn a_baseline_accepts_neither_components_nor_arguments() {
        for more in ["+start=hystartpp", "(1)"] {
            let error = format!("quinn-cubic{more}")
                .parse::<ControllerChoice>()
                .unwrap_err();
            let whole = format!("`quinn-cubic` is a whole controller: leave out `{more}`");
            assert_eq!(error.to_string(), whole);
        }
    }

    #[test]
    fn a_list_may_mix_specs_and_baselines() {
        let list = ControllerChoice::list("reno,quinn-cubic,cubic(fast_convergence=off)").unwrap();
        assert_eq!(list.len(), 3);
        assert_eq!(list[1], Baseline::Cubic.into());
    }
}
