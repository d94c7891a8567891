//! Controllers to measure: everything registered, and some compositions.

use std::sync::Arc;
use std::time::Instant;

use playrate::cc::registry::{Entry, Key};
use playrate::cc::{Bitrate, Bytes, Registry, VideoKnowledge};
use playrate::transport::{ConnectionController, ControllerChoice, QuinnController};
use quinn::congestion::{BbrConfig, Controller, ControllerFactory, CubicConfig, NewRenoConfig};

use super::clock::PACKET;

/// Factory that quinn uses to build a controller.
pub type Factory = Arc<dyn ControllerFactory + Send + Sync>;

/// Combinations that no paper uses. One with an unregistered name is left out.
const COMPOSITIONS: &[&str] = &[
    "cubic+start=video-ssthresh+idle=new-cwv",
    "ccpd+start=hystartpp+idle=new-cwv",
];

/// Specs to measure: each algorithm alone, each component with the first algorithm that accepts it, and each algorithm
/// with a component of every key that it accepts.
pub fn specs() -> Vec<ControllerChoice> {
    let registry = Registry::builtin();
    let known = |name: &String| registry.parse(name).is_ok();
    let algorithms: Vec<&str> = registry.controllers().map(Entry::name).collect();
    let mut names: Vec<String> = algorithms.iter().map(ToString::to_string).collect();
    for key in Key::ALL {
        for component in registry.components(key).skip(1) {
            let mut with = algorithms
                .iter()
                .map(|algorithm| format!("{algorithm}+{key}={}", component.name()));
            names.extend(with.find(known));
        }
    }
    names.extend(algorithms.iter().map(|algorithm| {
        Key::ALL.iter().fold(algorithm.to_string(), |name, key| {
            let components = registry.components(*key).skip(1);
            let longer = components.map(|component| format!("{name}+{key}={}", component.name()));
            longer.filter(known).last().unwrap_or(name)
        })
    }));
    names.extend(COMPOSITIONS.iter().map(ToString::to_string));
    let mut choices: Vec<ControllerChoice> = Vec::new();
    for name in names {
        // One name may be another's canonical form.
        let choice = ControllerChoice::from_registry(&registry, &name).ok();
        choices.extend(choice.filter(|choice| !choices.contains(choice)));
    }
    choices
}

/// Knowledge of a video of 5 Mbit/s that a server has.
pub fn knowledge() -> Arc<VideoKnowledge> {
    let known = VideoKnowledge::new();
    known.set_average_rate(Some(Bitrate::from_mbps(5)));
    known.set_playout_buffer(Some(Bytes::new(655_872)));
    known.set_buffered(Some(core::time::Duration::from_secs(1)));
    Arc::new(known)
}

/// `choice` behind quinn's trait.
pub fn adapted(choice: &ControllerChoice, now: Instant) -> Box<dyn Controller> {
    let control = ConnectionController::new(choice.clone()).with_knowledge(knowledge());
    Box::new(QuinnController::new(Arc::new(control), now, PACKET))
}

/// quinn's own controllers without telemetry around them.
pub fn quinns() -> [(&'static str, Factory); 3] {
    [
        ("quinn-newreno", Arc::new(NewRenoConfig::default())),
        ("quinn-cubic", Arc::new(CubicConfig::default())),
        ("quinn-bbr", Arc::new(BbrConfig::default())),
    ]
}
