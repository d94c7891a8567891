//! [`ControllerChoice`]: controllers by name, playrate's specs and the stack's own as baselines.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use playrate_cc::registry::split_list;
use playrate_cc::{ControllerSpec, Path, Registry, SpecError};

use crate::QuicStack;

/// The controller of a connection of the stack `S`. Its text form is a [`ControllerSpec`] or the name of one of the
/// stack's own controllers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ControllerChoice<S: QuicStack> {
    /// One of playrate's controllers, or a user-defined one from the registry.
    Spec(ControllerSpec),
    /// One of the stack's own controllers, unmodified.
    Baseline(S::Baseline),
}

impl<S: QuicStack> ControllerChoice<S> {
    /// Parses the name of a baseline or a spec of `registry`. A baseline's name is never looked up in the registry.
    pub fn from_registry(registry: &Registry, text: &str) -> Result<Self, SpecError> {
        for &baseline in S::BASELINES {
            let name = S::name(baseline);
            match text.trim().strip_prefix(name).map(str::trim_start) {
                Some("") => return Ok(Self::Baseline(baseline)),
                Some(rest) if rest.starts_with(['+', '(']) => {
                    return Err(SpecError::TakesNoComponents {
                        name: name.to_owned(),
                        component: rest.to_owned(),
                    });
                }
                _ => {}
            }
        }
        match registry.parse(text) {
            Ok(spec) => Ok(Self::Spec(spec)),
            Err(error) => {
                let baselines: Vec<_> = S::BASELINES.iter().copied().map(S::name).collect();
                Err(error.with_controllers(&baselines))
            }
        }
    }

    /// Parses names separated by commas; commas in parentheses belong to their spec.
    pub fn list(text: &str) -> Result<Vec<Self>, SpecError> {
        split_list(text).map(str::parse).collect()
    }

    /// Number of packets for which this controller asks the peer to send one acknowledgement; `None` leaves the choice
    /// to the peer.
    pub fn packets_per_ack(&self) -> Option<u32> {
        match self {
            Self::Spec(spec) => spec.build(&Path::default(), Arc::default()).packets_per_ack(),
            Self::Baseline(_) => None,
        }
    }
}

impl<S: QuicStack> From<ControllerSpec> for ControllerChoice<S> {
    fn from(spec: ControllerSpec) -> Self {
        Self::Spec(spec)
    }
}

impl<S: QuicStack> fmt::Display for ControllerChoice<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spec(spec) => spec.fmt(f),
            Self::Baseline(baseline) => f.pad(S::name(*baseline)),
        }
    }
}

impl<S: QuicStack> FromStr for ControllerChoice<S> {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        Self::from_registry(Registry::installed(), text)
    }
}
