//! noq's own server and client in virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use futures_util::future::join;
use noq::{Endpoint, PathId, Runtime as _};
use playrate_netsim::{DelaySchedule, HostConfig, LinkConfig, LinkStats, PathConfig, Rate, Seed, Simulation};
use tokio::sync::mpsc;

use super::configs::configs;
use crate::ConnectionController;

/// An arbitrary origin for instants.
#[expect(
    clippy::disallowed_methods,
    reason = "only differences between instants matter here"
)]
pub(super) fn origin() -> Instant {
    Instant::now()
}

/// A path without a limit of its rate, whose delay in each direction follows the schedule `delay`.
pub(super) fn path(delay: &str) -> PathConfig {
    let delay: DelaySchedule = delay.parse().unwrap();
    let link = LinkConfig::new(Rate::Unlimited, delay);
    PathConfig::new(link.clone(), link)
}

/// A client, a server that sends with the controller under test, and the paths between them.
pub(super) struct Wire {
    simulation: Simulation,
    path: playrate_netsim::PathId,
    pub(super) server: noq::Connection,
    pub(super) client: noq::Connection,
    writer: mpsc::UnboundedSender<usize>,
    received: Arc<AtomicUsize>,
}

impl Wire {
    /// A connected pair on `path` after the handshake.
    pub(super) fn new(control: &ConnectionController, path: &PathConfig) -> Self {
        let simulation = Simulation::new(Seed::new(7));
        let path = simulation.add_path(path.build(Seed::new(7)).unwrap());
        // Datagrams of one burst are received together, so one ACK frame acknowledges them.
        let host = HostConfig::default().with_interrupt_interval(Duration::from_micros(100));
        let hosts = [(); 2].map(|()| simulation.add_host(host));
        simulation.connect(hosts[0], hosts[1], &[path]);
        let runtime = simulation.runtime();
        let (server_config, client_config) = configs(control);
        let endpoint = |name, host, config| {
            let socket = Box::new((*simulation.bind(host, 0).unwrap()).clone());
            let endpoint = simulation.noq_endpoint_config(name);
            Endpoint::new_with_abstract_socket(endpoint, config, socket, simulation.runtime()).unwrap()
        };
        let server = endpoint("server", hosts[0], Some(server_config));
        let client = endpoint("client", hosts[1], None);
        let connecting = client
            .connect_with(client_config, server.local_addr().unwrap(), "localhost")
            .unwrap();
        let accepting = async { server.accept().await.unwrap().await.unwrap() };
        let (client, server) = simulation
            .run(Simulation::DAY, join(connecting, accepting))
            .unwrap();
        let (writer, mut lengths) = mpsc::unbounded_channel();
        runtime.spawn(Box::pin({
            let server = server.clone();
            async move {
                let mut stream = server.open_uni().await.unwrap();
                while let Some(length) = lengths.recv().await {
                    if stream.write_all(&vec![0; length]).await.is_err() {
                        return;
                    }
                }
            }
        }));
        let (received, client) = (Arc::<AtomicUsize>::default(), client.unwrap());
        runtime.spawn(Box::pin({
            let (received, client) = (Arc::clone(&received), client.clone());
            async move {
                let mut stream = client.accept_uni().await.unwrap();
                while let Ok(Some(chunk)) = stream.read_chunk(usize::MAX).await {
                    received.fetch_add(chunk.len(), Relaxed);
                }
            }
        }));
        Self {
            simulation,
            path,
            server,
            client,
            writer,
            received,
        }
    }

    /// Makes the server's application write `bytes` more.
    pub(super) fn server_sends(&mut self, bytes: usize) {
        self.writer.send(bytes).unwrap();
    }

    pub(super) fn server_window(&self) -> u64 {
        self.server.congestion_state(PathId::ZERO).unwrap().window()
    }

    /// noq's statistics of the server's path.
    pub(super) fn server_stats(&self) -> noq::PathStats {
        self.server.path_stats(PathId::ZERO).unwrap()
    }

    /// Bytes that the client has received on the stream.
    pub(super) fn received(&self) -> usize {
        self.received.load(Relaxed)
    }

    /// Counters of the link that carries the data.
    pub(super) fn link_stats(&self) -> LinkStats {
        self.simulation.link_stats(self.path.forward)
    }

    /// Time since the simulation began, and as noq gets it.
    pub(super) fn now(&self) -> Duration {
        Duration::from_nanos(self.simulation.now().as_nanos())
    }

    pub(super) fn instant(&self) -> Instant {
        self.simulation.runtime().now()
    }

    /// Runs both ends and the path for `time`.
    pub(super) fn run_for(&mut self, time: Duration) {
        let sleep = self.simulation.runtime().sleep(time);
        self.simulation.run(Simulation::DAY, sleep).unwrap();
    }
}
