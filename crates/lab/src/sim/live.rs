//! The same run over real UDP and in real time: the path is a [`Relay`] instead of a simulation.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use playrate_netsim::{Aqm, LinkConfig, NetworkStats, Relay, RelayConfig, RelayReport};
use playrate_transport::udp_socket;
use quinn::{AsyncUdpSocket, Runtime, TokioRuntime};
use tokio::task::JoinSet;

use super::session::{Endpoints, Session};
use super::{Access, RunHandle, Setup, SimError, Simulated, StatusCell, in_order};

/// Interval for checking on running sessions.
const TICK: Duration = Duration::from_millis(100);

/// Maximum time for a server to notice that its client has left.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

/// Results of a live run.
#[derive(Clone, Debug)]
pub struct LiveRun {
    /// The same results as a run in virtual time, except for the wire hash, because no two live runs are equal.
    pub run: Simulated,
    /// The relay's counters, including lateness.
    pub relay: RelayReport,
}

/// The reason why `setup` can only run in virtual time; `None` if it can run live.
pub(crate) fn virtual_only(setup: &Setup) -> Option<&'static str> {
    let marks = |link: &LinkConfig| matches!(link.aqm, Aqm::Codel(codel) if codel.ecn);
    if marks(&setup.path.forward) || marks(&setup.path.backward) {
        return Some("its queue sets ECN marks instead of dropping packets, which the relay cannot do");
    }
    let none = Access::default();
    if !setup.broadcasts.is_empty() {
        return Some("broadcasts run in virtual time only");
    }
    if !setup.bulk.is_empty() || setup.viewers.iter().any(|viewer| viewer.access != none) {
        return Some("bulk flows and access links are modelled in virtual time only");
    }
    None
}

/// Makes the run described by `setup` on loopback sockets. `statuses` are cells for the status of the viewers, in
/// viewer order; viewers without a cell report none. If `handle` stops it, it ends early, and the outcome of its
/// viewers is `stopped`.
///
/// # Errors
/// If the path cannot be built, the setup is `virtual_only`, or a component cannot be set up. A failed session is part
/// of the results.
pub async fn run_live(
    setup: &Setup,
    statuses: &[StatusCell],
    handle: &Arc<RunHandle>,
) -> Result<LiveRun, SimError> {
    if let Some(reason) = virtual_only(setup) {
        return Err(SimError::setup("a run over real UDP", &reason));
    }
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
    let sockets = setup.viewers.iter().map(|_| socket(&runtime));
    let sockets = sockets.collect::<Result<Vec<_>, _>>()?;
    let start = Instant::now();
    let relay = relay(setup, &sockets)?;
    let mut sessions = JoinSet::new();
    let servers = sockets.into_iter().zip(relay.addresses());
    for (index, (viewer, (server, &address))) in setup.viewers.iter().zip(servers).enumerate() {
        let endpoints = Endpoints {
            runtime: Arc::clone(&runtime),
            server,
            client: socket(&runtime)?,
            address,
            start,
            shutdown_timeout: SHUTDOWN_TIMEOUT,
            crypto_provider: None,
        };
        let mut session = Session::new(setup, index, viewer, &endpoints)?;
        session.viewing.status = statuses.get(index).cloned();
        let (handle, joins) = (Arc::clone(handle), viewer.joins);
        sessions.spawn(async move {
            handle.sleep(&TokioRuntime, Some(joins)).await;
            (index, Box::pin(session.play(&handle)).await)
        });
    }
    let sessions = join_all(&mut sessions).await?;
    let relay = tokio::task::spawn_blocking(|| relay.stop())
        .await
        .map_err(|error| SimError::setup("the relay", &error))?
        .map_err(|error| SimError::setup("the relay", &error))?;
    let length = start.elapsed();
    let viewers = sessions
        .into_iter()
        .map(|session| session.collect(length, Some(&relay.forward_series)));
    let run = Simulated {
        broadcasts: Vec::new(),
        viewers: viewers.collect(),
        bulk: Vec::new(),
        forward: relay.totals.forward.link,
        backward: relay.totals.backward.link,
        network: NetworkStats::default(),
        wire_hash: None,
        length,
    };
    Ok(LiveRun { run, relay })
}

fn socket(runtime: &Arc<dyn Runtime>) -> Result<Arc<dyn AsyncUdpSocket>, SimError> {
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let socket = udp_socket(loopback).map_err(|error| SimError::setup("a socket", &error))?;
    runtime
        .wrap_udp_socket(socket)
        .map_err(|error| SimError::setup("a socket", &error))
}

/// The relay in front of these servers, with the same random choices as the simulated path.
fn relay(setup: &Setup, servers: &[Arc<dyn AsyncUdpSocket>]) -> Result<Relay, SimError> {
    let addresses = servers.iter().map(|server| server.local_addr());
    let addresses = addresses
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| SimError::setup("the servers", &error))?;
    let Some(&first) = addresses.first() else {
        return Err(SimError::setup("the relay", &"the setup has no viewer"));
    };
    let mut config = RelayConfig::new(first, setup.path.clone()).with_seed(setup.seed.child("path"));
    config.max_clients = config.max_clients.max(addresses.len());
    config.servers = addresses;
    Relay::start(&config).map_err(|error| SimError::setup("the relay", &error))
}

/// Waits for all sessions and returns their results in the order of their numbers.
///
/// # Errors
/// The error of the first session that fails or panics.
pub(crate) async fn join_all<T: 'static>(
    sessions: &mut JoinSet<(usize, Result<T, SimError>)>,
) -> Result<Vec<T>, SimError> {
    let mut all = Vec::new();
    while let Some(finished) = sessions.join_next().await {
        let (index, session) = finished.map_err(|error| SimError::setup("a session", &error))?;
        all.push((index, session?));
    }
    Ok(in_order(all))
}

/// Waits for `work`, and calls `tick` ten times a second in the meantime.
pub(crate) async fn ticking<T>(work: impl Future<Output = T>, mut tick: impl FnMut()) -> T {
    let mut work = std::pin::pin!(work);
    let mut interval = tokio::time::interval(TICK);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            _ = interval.tick() => tick(),
        }
    }
}
