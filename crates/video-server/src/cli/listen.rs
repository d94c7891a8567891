//! The sockets of a server: newly opened, or taken over from its older process.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
#[cfg(target_os = "linux")]
use playrate_transport::further_sockets;
use playrate_transport::{BindError, EndpointError, Server, ServerOptions, time, udp_socket};
use quinn::Runtime;

use super::Failure;
use super::handover::{self, Offered, Older, Predecessor};
use super::metrics;
use super::options::ServeOptions;
use super::tcp::{self, TcpServices};
use super::workers::Workers;

/// Both IPv6 and IPv4: `localhost` resolves to `::1` first, and browsers forced to use QUIC do not try 127.0.0.1 next.
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 4433);

/// Number of attempts to find a port that is free for both UDP and TCP, if any port is acceptable.
const TRIES: usize = 16;

/// Maximum wait while an older process ends or a further one takes over from it; then this one fails.
const PATIENCE: Duration = Duration::from_secs(5);
/// Shortest and longest pause between attempts.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// The sockets of a server, and its endpoints on those for UDP.
pub(super) struct Listening {
    pub(super) server: Server,
    pub(super) tcp: TcpServices<TcpListener>,
    /// The process that passed on the sockets, if it still runs.
    pub(super) older: Option<Older>,
    /// Second descriptors of the sockets, to be offered to a newer process; `None` without a key for it.
    pub(super) offered: Option<Offered>,
}

/// Opens the sockets named by `arguments`, or takes them over from the process of this server that has them. Retries
/// for some seconds if that process is ending or being taken over.
pub(super) async fn listen(
    arguments: &ServeOptions,
    (runtime, workers): (&Arc<dyn Runtime>, &Workers),
    options: &ServerOptions,
) -> Result<Listening, Failure> {
    let began = runtime.now();
    let (mut pause, longest) = PAUSES;
    loop {
        match attempt(arguments, workers, options) {
            Err(Failure::Run(error))
                if arguments.machines.state.is_some()
                    && runtime.now().saturating_duration_since(began) < PATIENCE =>
            {
                tracing::debug!(error = %Failure::Run(error), "trying again");
                time::sleep(&**runtime, pause).await;
                pause = longest.min(pause.saturating_mul(2));
            }
            done => return done,
        }
    }
}

fn attempt(
    arguments: &ServeOptions,
    workers: &Workers,
    options: &ServerOptions,
) -> Result<Listening, Failure> {
    let mut predecessor = predecessor(arguments, options)?;
    let metrics = match arguments.records.metrics {
        None => None,
        Some(address) => {
            let is_same = |socket: &mut TcpListener| socket.local_addr().is_ok_and(|local| local == address);
            let older = predecessor.as_mut();
            Some(match older.and_then(|older| older.tcp[1].take_if(is_same)) {
                Some(listener) => listener,
                None => metrics::listen(address, arguments.machines.state.is_some())?,
            })
        }
    };
    let mut options = options.clone();
    let (udp, tcp, older) = match predecessor {
        None => {
            let (udp, tcp) = open(arguments)?;
            (vec![udp], tcp, None)
        }
        Some(mut predecessor) => {
            let tcp = if arguments.address.no_tcp {
                None
            } else {
                let address = predecessor.address;
                Some(match predecessor.tcp[0].take() {
                    Some(listener) => listener,
                    None => tcp::listen(address).map_err(|error| unusable_tcp(arguments, address, &error))?,
                })
            };
            let process = predecessor.process_id;
            // Done last, because the older process goes on serving all clients until then.
            let taken = predecessor.link.take(predecessor.tcp);
            let taken = taken.context("--state: cannot take over the port");
            let (succession, older) = taken.map_err(Failure::Run)?;
            tracing::info!(
                process,
                "took over the port: the older process goes on with its connections"
            );
            options.succession = succession;
            (predecessor.udp, tcp, Some(older))
        }
    };
    let (process, key) = (options.succession.process, options.fingerprint());
    let udp = for_all(udp, workers).map_err(|error| Failure::Run(error.context("--workers")))?;
    let second = udp.iter().map(UdpSocket::try_clone).collect::<Result<_, _>>();
    let second = second.map_err(Failure::run)?;
    let tcp = [tcp, metrics];
    let runtimes = workers.runtimes(udp.len()).cloned();
    let sockets = udp.into_iter().zip(runtimes).collect();
    let server = Server::on_sockets(sockets, options).map_err(|error| match error {
        EndpointError::Options(_) => Failure::Input(anyhow::Error::new(error).context("--send-window")),
        EndpointError::Tls(_) => Failure::input(error),
        other => Failure::run(other),
    })?;
    let offered = match (key, server.router()) {
        (Some(key), Some(router)) => Some(Offered {
            process,
            key,
            address: server.local_addr().map_err(Failure::run)?,
            udp: second,
            tcp: second_descriptors(&tcp).map_err(Failure::run)?,
            router: Arc::clone(router),
        }),
        _ => None,
    };
    Ok(Listening {
        server,
        tcp,
        older,
        offered,
    })
}

fn second_descriptors([media, metrics]: &TcpServices<TcpListener>) -> io::Result<TcpServices<TcpListener>> {
    let second = |first: &Option<TcpListener>| first.as_ref().map(TcpListener::try_clone).transpose();
    Ok([second(media)?, second(metrics)?])
}

/// Opens further sockets on the port of `sockets`, so that each of the `workers` has at least one. A process that takes
/// over keeps surplus sockets: closing them would lose the datagrams in them.
fn for_all(mut sockets: Vec<UdpSocket>, workers: &Workers) -> anyhow::Result<Vec<UdpSocket>> {
    let missing = workers.count().saturating_sub(sockets.len());
    #[cfg(target_os = "linux")]
    if let Some(first) = sockets.first() {
        let further = further_sockets(first, missing)?;
        sockets.extend(further);
        return Ok(sockets);
    }
    anyhow::ensure!(missing == 0, "this system cannot share a port among sockets");
    Ok(sockets)
}

/// The process that owns the port, if it offers it.
fn predecessor(arguments: &ServeOptions, options: &ServerOptions) -> Result<Option<Predecessor>, Failure> {
    let (Some(directory), Some(key)) = (&arguments.machines.state, options.fingerprint()) else {
        return Ok(None);
    };
    let Some(older) = handover::find(directory, key)? else {
        return Ok(None);
    };
    let is_wanted = match arguments.address.listen {
        Some(address) => address == older.address,
        None => [DEFAULT_LISTEN, without_ipv6()].contains(&older.address),
    };
    if is_wanted {
        return Ok(Some(older));
    }
    Err(Failure::Input(anyhow!(
        "--state {}: it belongs to a server on {} (process {}); give each server a directory of its own, or stop that \
         one before this one listens elsewhere",
        directory.display(),
        older.address,
        older.process_id
    )))
}

/// Opens the UDP socket and, unless disabled, TCP on the same port.
fn open(arguments: &ServeOptions) -> Result<(UdpSocket, Option<TcpListener>), Failure> {
    let listen = arguments.address.listen;
    let any_port = listen.is_some_and(|address| address.port() == 0);
    let mut tries = if any_port { TRIES } else { 1 };
    loop {
        let udp = open_udp(arguments)?;
        if arguments.address.no_tcp {
            return Ok((udp, None));
        }
        tries -= 1;
        let address = udp.local_addr().map_err(Failure::run)?;
        match tcp::listen(address) {
            Ok(listener) => return Ok((udp, Some(listener))),
            Err(error) if tries > 0 && error.kind() == io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(unusable_tcp(arguments, address, &error)),
        }
    }
}

fn open_udp(arguments: &ServeOptions) -> Result<UdpSocket, Failure> {
    let opened = match arguments.address.listen {
        Some(address) => udp_socket(address),
        None => match udp_socket(DEFAULT_LISTEN) {
            Err(BindError::Other { source, .. }) => {
                let address = without_ipv6();
                tracing::warn!(error = %source, "no IPv6 on this machine: listening on {address} only");
                udp_socket(address)
            }
            opened => opened,
        },
    };
    opened.map_err(|error| {
        let is_in_use = matches!(error, BindError::InUse { .. });
        unusable(error, is_in_use && arguments.machines.state.is_some())
    })
}

/// The default address on a machine without IPv6.
fn without_ipv6() -> SocketAddr {
    SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), DEFAULT_LISTEN.port())
}

fn unusable_tcp(arguments: &ServeOptions, address: SocketAddr, error: &io::Error) -> Failure {
    let is_in_use = error.kind() == io::ErrorKind::AddrInUse;
    let error = if is_in_use {
        anyhow!(
            "TCP port {} of {} is in use by another program: choose another port with --listen, stop that program, \
             or serve HTTP/3 alone with --no-tcp",
            address.port(),
            address.ip()
        )
    } else {
        anyhow!("cannot listen on TCP {address}: {error}; --no-tcp serves HTTP/3 alone")
    };
    unusable(error, is_in_use && arguments.machines.state.is_some())
}

/// Failure to listen. Another attempt may succeed if an older process of this server `may_end`.
fn unusable(error: impl Into<anyhow::Error>, may_end: bool) -> Failure {
    let error = error.into().context("--listen");
    if may_end {
        Failure::Run(error)
    } else {
        Failure::Input(error)
    }
}
