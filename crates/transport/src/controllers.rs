//! Controllers by name: playrate's own specs, and quinn's controllers as baselines.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use playrate_cc::registry::Entry;
use playrate_cc::{Choice, CongestionController, ControllerSpec, Path, Registry, SpecError, VideoKnowledge};

use crate::baseline::Baseline;

/// Which controller a connection gets. Its text form is a [`ControllerSpec`] or the name of a [`Baseline`].
///
/// ```
/// use playrate_transport::ControllerChoice;
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
    /// One of playrate's, or of your own that is in the registry.
    Spec(ControllerSpec),
    /// One of quinn's.
    Baseline(Baseline),
}

/// What a choice makes for one path.
pub(crate) enum Built {
    Ours(Box<dyn CongestionController>),
    Baseline(Baseline),
}

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
    let mut registry = Registry::builtin();
    for baseline in Baseline::ALL {
        let entry = Entry::external(baseline.name()).about(baseline.about(), "quinn-proto 0.11");
        if let Err(error) = registry.register(entry) {
            // A test sees to it that this does not happen; a missing baseline is no reason to fail.
            tracing::error!(%error, "a baseline is missing");
        }
    }
    registry
});

/// Everything that can be named here: playrate's controllers and parts, and quinn's controllers as baselines. Add
/// your own with [`Registry::register`] and read names with [`ControllerChoice::from_registry`].
pub fn registry() -> Registry {
    REGISTRY.clone()
}

impl ControllerChoice {
    /// Reads a name of `registry`, which is [`registry()`] or has at least its baselines.
    pub fn from_registry(registry: &Registry, text: &str) -> Result<Self, SpecError> {
        Self::chosen(registry.resolve(text)?)
    }

    /// Reads names separated by commas; commas in parentheses belong to their spec.
    pub fn list(text: &str) -> Result<Vec<Self>, SpecError> {
        REGISTRY
            .resolve_list(text)?
            .into_iter()
            .map(Self::chosen)
            .collect()
    }

    fn chosen(choice: Choice) -> Result<Self, SpecError> {
        match choice {
            Choice::Spec(spec) => Ok(Self::Spec(spec)),
            Choice::External(name) => Baseline::ALL
                .into_iter()
                .find(|baseline| baseline.name() == name)
                .map(Self::Baseline)
                .ok_or_else(|| SpecError::External {
                    name: name.to_owned(),
                }),
        }
    }

    pub(crate) fn build(&self, path: &Path, knowledge: Arc<VideoKnowledge>) -> Built {
        match self {
            Self::Spec(spec) => Built::Ours(spec.build(path, knowledge)),
            Self::Baseline(baseline) => Built::Baseline(*baseline),
        }
    }

    /// Whether this controller wants an acknowledgement of every packet.
    pub fn wants_every_ack(&self) -> bool {
        match self.build(&Path::default(), Arc::default()) {
            Built::Ours(controller) => controller.wants_every_ack(),
            Built::Baseline(_) => false,
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
        Self::from_registry(&REGISTRY, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_controller_of_the_registry_can_be_chosen_by_its_name() {
        let names: Vec<_> = REGISTRY.controllers().map(Entry::name).collect();
        for name in ["reno", "cubic", "quinn-newreno", "quinn-cubic"] {
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
        let error = "quinn-bbr".parse::<ControllerChoice>().unwrap_err().to_string();
        assert!(
            error.contains("`quinn-bbr`") && error.contains("quinn-cubic"),
            "{error}"
        );
    }

    #[test]
    fn a_baseline_takes_no_parts() {
        let error = "quinn-cubic+start=hystartpp".parse::<ControllerChoice>();
        assert!(error.is_err(), "{error:?}");
    }

    #[test]
    fn a_list_may_mix_specs_and_baselines() {
        let list = ControllerChoice::list("reno,quinn-cubic,cubic(fast_convergence=off)").unwrap();
        assert_eq!(list.len(), 3);
        assert_eq!(list[1], Baseline::Cubic.into());
    }
}
