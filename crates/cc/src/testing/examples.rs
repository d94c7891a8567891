//! [`examples`]: compositions that are worth a golden trace and a figure.

use crate::registry::{Key, Registry};
use crate::{ControllerSpec, SpecError};

/// Data that the application has to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "each figure names its demand: another one has to be named there too"
)]
pub enum Demand {
    /// More data than the path carries, all the time.
    Endless,
    /// Four seconds of video every four seconds, and nothing in between.
    Segments,
}

impl Demand {
    /// The most revealing demand for a controller: segments if its idle policy acts, else endless.
    pub(crate) fn that_shows(spec: &ControllerSpec) -> Self {
        match spec.component(Key::Idle) {
            Some((component, _)) if component.name() != spec.algorithm().default_component(Key::Idle) => {
                Self::Segments
            }
            _ => Self::Endless,
        }
    }
}

/// A spec with a golden trace and a figure.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Example {
    /// The spec as written: the name of its snapshot and figure.
    pub name: String,
    /// The spec as read.
    pub spec: ControllerSpec,
    /// The demand of its trace.
    pub demand: Demand,
}

impl Example {
    fn new(name: String) -> Result<Self, SpecError> {
        let spec: ControllerSpec = name.parse()?;
        // `idle=keep` is written out for comparison with the other idle policies.
        let demand = if name.contains("idle=") {
            Demand::Segments
        } else {
            Demand::that_shows(&spec)
        };
        Ok(Self { name, spec, demand })
    }
}

/// Compositions and arguments beyond one of each.
const MORE: &[&str] = &[
    "vegas(arithmetic=original)",
    "ccp(kp=1.5)",
    "ccpd(kd=4ms)",
    "ccp-lb(pob_rate=4)",
    "ccp-lb+loss=ignore",
    "ccpd+shape=playout-buffer(pob_rate=4)",
];

/// Every algorithm that differs from the others on a single path, every alias, every component with a compatible
/// algorithm, and some more.
///
/// # Errors
/// If one of the texts is not a valid spec; a test of this crate excludes this.
pub fn examples() -> Result<Vec<Example>, SpecError> {
    let registry = Registry::builtin();
    let mut names: Vec<String> = registry
        .controllers()
        .filter(|algorithm| !["lia", "olia"].contains(&algorithm.name()))
        .map(|algorithm| algorithm.name().to_owned())
        .collect();
    names.extend(registry.aliases().map(|alias| alias.name.to_owned()));
    for key in Key::ALL {
        let algorithm = match key {
            Key::Start | Key::Ceiling => "cubic",
            Key::Idle => "reno",
            Key::Shape | Key::Loss => "ccp",
        };
        // A key's first component is the default; only a pause shows what keeping a window means.
        let components = registry.components(key).skip(usize::from(key != Key::Idle));
        names.extend(components.map(|component| format!("{algorithm}+{key}={}", component.name())));
    }
    names.extend(MORE.iter().map(|&name| name.to_owned()));
    let mut examples: Vec<Example> = Vec::new();
    for name in names {
        let example = Example::new(name)?;
        let same = |other: &Example| other.spec == example.spec && other.demand == example.demand;
        if !examples.iter().any(same) {
            examples.push(example);
        }
    }
    Ok(examples)
}
