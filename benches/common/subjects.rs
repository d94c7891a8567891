//! Which controllers are measured: everything that is registered, and some compositions.

use std::sync::Arc;
use std::time::Instant;

use playrate::cc::registry::{Entry, Key, Kind};
use playrate::cc::{Bitrate, Bytes, VideoKnowledge};
use playrate::transport::{ConnectionController, ControllerChoice, controllers};
use quinn::congestion::{BbrConfig, Controller, ControllerFactory, CubicConfig, NewRenoConfig};

use super::clock::PACKET;

/// What quinn builds controllers with.
pub type Factory = Arc<dyn ControllerFactory + Send + Sync>;

/// Combinations that no paper has. One that names what is not registered is left out.
const COMPOSITIONS: &[&str] = &[
    "cubic+start=video-ssthresh+idle=new-cwv",
    "ccpd+start=hystartpp+idle=new-cwv",
];

/// Specs to measure: each law by itself, each part beside the first law that takes it, and each law with a part of every
/// key that takes one.
pub fn specs() -> Vec<ControllerChoice> {
    let registry = controllers::registry();
    let known = |name: &String| registry.parse(name).is_ok();
    let laws: Vec<&str> = registry
        .controllers()
        .filter(|entry| entry.kind() != Kind::External)
        .map(Entry::name)
        .collect();
    let mut names: Vec<String> = laws.iter().map(ToString::to_string).collect();
    for key in Key::ALL {
        for part in registry.parts(key).skip(1) {
            let mut with = laws.iter().map(|law| format!("{law}+{key}={}", part.name()));
            names.extend(with.find(known));
        }
    }
    names.extend(laws.iter().map(|law| {
        Key::ALL.iter().fold(law.to_string(), |name, key| {
            let parts = registry.parts(*key).skip(1);
            let longer = parts.map(|part| format!("{name}+{key}={}", part.name()));
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

/// What a server knows of a video of 5 Mbit/s.
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
    Arc::new(control).build(now, PACKET)
}

/// quinn's own controllers, with nothing around them.
pub fn quinns() -> [(&'static str, Factory); 3] {
    [
        ("quinn-newreno", Arc::new(NewRenoConfig::default())),
        ("quinn-cubic", Arc::new(CubicConfig::default())),
        ("quinn-bbr", Arc::new(BbrConfig::default())),
    ]
}
