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
    /// More than the path carries, all the time.
    Endless,
    /// Every four seconds as much as four seconds of video, and nothing in between.
    Segments,
}

impl Demand {
    /// The demand that shows a controller at work: segments for one whose idle policy acts, else endless.
    pub(crate) fn that_shows(spec: &ControllerSpec) -> Self {
        match spec.component(Key::Idle) {
            Some((component, _)) if component.name() != spec.algorithm().default_component(Key::Idle) => {
                Self::Segments
            }
            _ => Self::Endless,
        }
    }
}

/// A spec that is worth a trace and a figure.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Example {
    /// The spec as it was written: the name of its snapshot and figure.
    pub name: String,
    /// The spec as read.
    pub spec: ControllerSpec,
    /// The demand that shows it at work.
    pub demand: Demand,
}

impl Example {
    fn new(name: String) -> Result<Self, SpecError> {
        let spec: ControllerSpec = name.parse()?;
        // `idle=keep` written out is there to be compared with the other idle policies.
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

/// Every algorithm, every alias, every component with an algorithm that it fits, and some more.
///
/// # Errors
/// If one of the texts is no spec, which a test of this crate rules out.
pub fn examples() -> Result<Vec<Example>, SpecError> {
    let registry = Registry::builtin();
    let mut names: Vec<String> = registry
        .controllers()
        .map(|algorithm| algorithm.name().to_owned())
        .collect();
    names.extend(registry.aliases().map(|alias| alias.name.to_owned()));
    for key in Key::ALL {
        let algorithm = match key {
            Key::Start | Key::Ceiling => "cubic",
            Key::Idle => "reno",
            Key::Shape | Key::Loss => "ccp",
        };
        // The first component of a key is the default; only a pause shows what keeping a window means.
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
