//! The sockets of a server: opened, or taken over from an older process of it.

use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener, UdpSocket};
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use playrate_transport::{BindError, EndpointError, Server, ServerOptions, udp_socket};
use quinn::Runtime;
use tokio::net::TcpListener;

use super::Failure;
use super::handover::{Offered, Older, Predecessor};
use super::metrics;
use super::serve::{DEFAULT_LISTEN, ServeOptions};
use super::tcp::{self, ListenError};

/// Number of attempts to find a port that is free for both UDP and TCP, if any port will do.
const TRIES: usize = 16;

/// The sockets of a server, and its endpoint on the one for UDP.
pub(super) struct Listening {
    pub(super) server: Server,
    pub(super) tcp: Option<TcpListener>,
    pub(super) metrics: Option<TcpListener>,
    /// The process from which the sockets come, if it is still there.
    pub(super) older: Option<Older>,
    /// First byte of the endpoint's connection IDs.
    process: u8,
    /// A second descriptor of the UDP socket.
    udp: UdpSocket,
}

/// Opens the sockets that `arguments` name, or takes them over from the process of this server that has them.
pub(super) fn listen(
    arguments: &ServeOptions,
    runtime: &Arc<dyn Runtime>,
    options: &ServerOptions,
) -> Result<Listening, Failure> {
    let mut predecessor = predecessor(arguments)?;
    let metrics = match arguments.metrics {
        None => None,
        Some(address) => {
            let inherited = predecessor.as_mut().and_then(|older| older.take_metrics(address));
            Some(match inherited {
                Some(listener) => inherit(listener)?,
                None => metrics::listen(address)?,
            })
        }
    };
    let mut options = options.clone();
    let (udp, tcp, older) = match predecessor {
        None => {
            let (udp, tcp) = open(arguments)?;
            (udp, tcp, None)
        }
        Some(mut predecessor) => {
            let tcp = if arguments.no_tcp {
                None
            } else {
                Some(match predecessor.take_tcp() {
                    Some(listener) => inherit(listener)?,
                    None => tcp::listen(predecessor.address()).map_err(unusable)?,
                })
            };
            let process = predecessor.process_id();
            // Last, as that one goes on serving all clients until then.
            let taken = predecessor.take().context("--state: cannot take over the port");
            let (udp, succession, older) = taken.map_err(Failure::Input)?;
            tracing::info!(
                process,
                "took over the port: the older process goes on with its connections"
            );
            options.succession = succession;
            (udp, tcp, Some(older))
        }
    };
    let process = options.succession.process;
    let second = udp.try_clone().map_err(Failure::run)?;
    let server = Server::on_socket(udp, Arc::clone(runtime), options).map_err(|error| match error {
        EndpointError::Options(_) => Failure::Input(anyhow::Error::new(error).context("--send-window")),
        EndpointError::Tls(_) => Failure::input(error),
        other => Failure::run(other),
    })?;
    Ok(Listening {
        server,
        tcp,
        metrics,
        older,
        process,
        udp: second,
    })
}

/// The process that has the port, if it offers it.
fn predecessor(arguments: &ServeOptions) -> Result<Option<Predecessor>, Failure> {
    let Some(directory) = &arguments.state else {
        return Ok(None);
    };
    let found = Predecessor::find(directory).map_err(Failure::Input)?;
    let Some(older) = found else { return Ok(None) };
    let is_wanted = match arguments.listen {
        Some(address) => address == older.address(),
        None => [DEFAULT_LISTEN, without_ipv6()].contains(&older.address()),
    };
    if is_wanted {
        return Ok(Some(older));
    }
    Err(Failure::Input(anyhow!(
        "--state {}: it belongs to a server on {} (process {}); give each server a directory of its own, or stop that \
         one before this one listens elsewhere",
        directory.display(),
        older.address(),
        older.process_id()
    )))
}

fn inherit(listener: StdListener) -> Result<TcpListener, Failure> {
    let listening = listener
        .set_nonblocking(true)
        .and_then(|()| TcpListener::from_std(listener));
    listening.map_err(Failure::run)
}

impl Listening {
    /// Second descriptors of the sockets, to offer them to a newer process; `None` without a key for it.
    pub(super) fn offered(&mut self) -> std::io::Result<Option<Offered>> {
        let Some(router) = self.server.router() else {
            return Ok(None);
        };
        Ok(Some(Offered {
            process: self.process,
            address: self.server.local_addr()?,
            udp: self.udp.try_clone()?,
            tcp: second_descriptor(&mut self.tcp)?,
            metrics: second_descriptor(&mut self.metrics)?,
            router: Arc::clone(router),
        }))
    }
}

/// Returns a further descriptor of the socket of `listener`, if there is one.
pub(super) fn second_descriptor(listener: &mut Option<TcpListener>) -> std::io::Result<Option<StdListener>> {
    let Some(first) = listener.take() else {
        return Ok(None);
    };
    let first = first.into_std()?;
    let second = first.try_clone()?;
    *listener = Some(TcpListener::from_std(first)?);
    Ok(Some(second))
}

/// Opens the UDP socket and, unless disabled, TCP on the same port.
fn open(arguments: &ServeOptions) -> Result<(UdpSocket, Option<TcpListener>), Failure> {
    let any_port = arguments.listen.is_some_and(|address| address.port() == 0);
    let mut tries = if any_port { TRIES } else { 1 };
    loop {
        let udp = open_udp(arguments.listen)?;
        if arguments.no_tcp {
            return Ok((udp, None));
        }
        tries -= 1;
        match tcp::listen(udp.local_addr().map_err(Failure::run)?) {
            Ok(listener) => return Ok((udp, Some(listener))),
            Err(ListenError::InUse { .. }) if tries > 0 => {}
            Err(error) => return Err(unusable(error)),
        }
    }
}

fn open_udp(wanted: Option<SocketAddr>) -> Result<UdpSocket, Failure> {
    let opened = match wanted {
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
    opened.map_err(unusable)
}

/// The default address on a machine without IPv6.
fn without_ipv6() -> SocketAddr {
    SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), DEFAULT_LISTEN.port())
}

fn unusable(error: impl Into<anyhow::Error>) -> Failure {
    Failure::Input(error.into().context("--listen"))
}
