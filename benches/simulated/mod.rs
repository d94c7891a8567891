//! [`SimulatedPair`]: a server and a client in virtual time, with one path between them.

use std::sync::Arc;

use playrate::transport::{Client, ClientOptions, Identity, Server, ServerOptions, Trust};
use playrate_netsim::{HostConfig, PathConfig, PathId, Seed, Simulation};
use quinn::Runtime;

/// A server on one simulated host, and a client that trusts it on another one.
pub(crate) struct SimulatedPair {
    pub(crate) sim: Simulation,
    /// Path from the server to the client; data flows in its forward direction.
    pub(crate) path: PathId,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) server: Server,
    pub(crate) client: Client,
}

impl SimulatedPair {
    /// A pair on the path `config`, with `change` applied to the server's options. Both have the same seed.
    pub(crate) fn new(config: &PathConfig, change: impl FnOnce(&mut ServerOptions)) -> anyhow::Result<Self> {
        let seed = Seed::new(1);
        let sim = Simulation::new(seed);
        let path = sim.add_path(config.build(seed.child("path"))?);
        let (near, far) = (
            sim.add_host(HostConfig::default()),
            sim.add_host(HostConfig::default()),
        );
        sim.connect(near, far, &[path]);
        let runtime: Arc<dyn Runtime> = sim.runtime();
        let identity = Identity::development(&[])?;
        let mut options = ClientOptions::new(Trust::Pin(identity.pin()));
        options.transport.seed = Some(seed.derive("client"));
        let client = Client::new(Arc::clone(&runtime), sim.bind(far, 0)?, options)?;
        let mut options = ServerOptions::new(identity);
        options.transport.seed = Some(seed.derive("server"));
        change(&mut options);
        let server = Server::new(Arc::clone(&runtime), sim.bind(near, 443)?, options)?;
        Ok(Self {
            sim,
            path,
            runtime,
            server,
            client,
        })
    }
}
