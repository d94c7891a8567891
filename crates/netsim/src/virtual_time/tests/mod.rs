//! Virtual time: the executor alone, and with quinn.

mod executor;
mod faults;
mod null_protection;
mod quinn_flows;
mod sockets;

use core::time::Duration;

use playrate_units::Bitrate;

use super::*;
use crate::{Loss, PathConfig, QueueLimit};

pub(super) fn twenty_mbps() -> PathConfig {
    PathConfig::bottleneck(
        Bitrate::from_mbps(20),
        Duration::from_millis(100),
        QueueLimit::ONE_BDP,
        Loss::None,
    )
}

/// A server, a client and one path between them.
pub(super) fn pair(seed: Seed, config: &PathConfig) -> (Simulation, Host, Host, PathId) {
    let sim = Simulation::new(seed);
    let path = sim.add_path(config.build(seed.child("path")).unwrap());
    let server = sim.add_host(HostConfig::default()).unwrap();
    let client = sim.add_host(HostConfig::default()).unwrap();
    sim.connect(server, client, &[path]);
    (sim, server, client, path)
}
