//! TCP sockets to listen on, and [`Acceptor`], which accepts a bounded number of connections.

use std::io;
use std::net::{self, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;
use playrate_transport::{Activity, LogLimit, PlaceLimits, Places, Refusal, time};
use quinn::{Runtime, TokioRuntime};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::proxies::Proxies;

/// Maximum number of connections waiting to be accepted; Linux allows no more by default.
const BACKLOG: i32 = 4096;
/// Pause after a failure to accept, usually for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Listens on `address`. An IPv6 socket also accepts IPv4 where the system supports that.
pub(crate) fn listen(address: SocketAddr) -> io::Result<net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6()
        && let Err(error) = socket.set_only_v6(false)
    {
        tracing::debug!(%error, "the TCP socket takes IPv6 only");
    }
    // Lets a restarted server bind at once, although old connections linger in the kernel.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Totals of the TCP connections of all sockets that share it.
#[derive(Debug, Default)]
pub(crate) struct TcpTotals {
    /// Number of connections accepted.
    pub(crate) accepted: AtomicU64,
    /// Number of accepted connections that have ended.
    pub(crate) ended: AtomicU64,
    /// Number of TLS handshakes, or PROXY headers in front of them, that failed or timed out.
    pub(crate) failed_handshakes: AtomicU64,
    /// Number of connections refused because of a limit.
    pub(crate) refused: AtomicU64,
    /// Number of connections evicted to make room for another client.
    pub(crate) evicted: AtomicU64,
}

impl TcpTotals {
    /// Number of connections that are open.
    pub(crate) fn open(&self) -> u64 {
        // In this order, so that a connection that ends in between is not counted only as ended.
        let ended = self.ended.load(Relaxed);
        self.accepted.load(Relaxed).saturating_sub(ended)
    }
}

/// Accepts a limited number of concurrent connections on a socket.
pub(crate) struct Acceptor {
    listener: TcpListener,
    shared: Arc<AcceptorState>,
}

/// State that the tasks of connections share.
struct AcceptorState {
    /// Purpose of the connections, for the log.
    purpose: &'static str,
    limits: PlaceLimits,
    places: Mutex<Places<()>>,
    totals: Arc<TcpTotals>,
    proxies: Arc<Proxies>,
    refusals: Mutex<LogLimit>,
}

impl Acceptor {
    /// Creates an acceptor that counts its connections in `totals`. It believes `proxies` about
    /// the addresses of their own clients.
    pub(crate) fn new(
        listener: TcpListener,
        purpose: &'static str,
        limits: PlaceLimits,
        (totals, proxies): (Arc<TcpTotals>, Arc<Proxies>),
    ) -> Self {
        let shared = Arc::new(AcceptorState {
            purpose,
            limits,
            places: Mutex::new(Places::new(limits)),
            totals,
            proxies,
            refusals: Mutex::default(),
        });
        Self { listener, shared }
    }

    /// Accepts connections until `stop` is true, and runs `serve` as a task for each. Then closes the listening socket
    /// and waits until the last connection has ended.
    ///
    /// The task must count responses in the [`Activity`], and must end when it [expires](Activity::expired): the
    /// connection has then made room for another one. It ends by itself after `stop`.
    pub(crate) async fn run<F>(
        self,
        mut stop: watch::Receiver<bool>,
        serve: impl Fn(TcpStream, SocketAddr, Activity) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let (serve, mut connections) = (Arc::new(serve), JoinSet::new());
        let mut failure_log = LogLimit::default();
        loop {
            let accepted = tokio::select! {
                biased;
                _ = stop.wait_for(|&stop| stop) => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => continue,
                accepted = self.listener.accept() => accepted,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    if let Some(failures) = failure_log.count(TokioRuntime.now()) {
                        let purpose = self.shared.purpose;
                        tracing::warn!(%error, failures, "cannot accept TCP connections for {purpose}");
                    }
                    tokio::select! {
                        _ = stop.wait_for(|&stop| stop) => break,
                        () = time::sleep(&TokioRuntime, ACCEPT_PAUSE) => {}
                    }
                    continue;
                }
            };
            let activity = Activity::new(Arc::new(TokioRuntime));
            let Some(mut place) = TcpPlace::take(&self.shared, peer, &activity) else {
                continue;
            };
            let (serve, mut stop) = (Arc::clone(&serve), stop.clone());
            connections.spawn(async move {
                let client = tokio::select! {
                    biased;
                    client = place.client(stream, peer, &activity) => client,
                    () = activity.expired(None) => None,
                    _ = stop.wait_for(|&stop| stop) => None,
                };
                if let Some((stream, client)) = client {
                    serve(stream, client, activity).await;
                }
                // Dropped also when the task is aborted.
                drop(place);
            });
        }
        drop(self.listener);
        while connections.join_next().await.is_some() {}
    }
}

impl AcceptorState {
    /// Takes a place for a connection from `peer`, evicting an idle one if necessary. Returns its number. A refusal is
    /// counted, and logged at a limited rate.
    fn take(&self, peer: SocketAddr, activity: &Activity) -> Option<u64> {
        // A proxy's own address stands for many clients.
        let address = (!self.proxies.trusts(peer.ip())).then_some(peer.ip());
        let taken = {
            let mut places = self.places.lock();
            let before = places.evicted();
            let taken = places.take(address, activity.clone());
            self.totals.evicted.fetch_add(places.evicted() - before, Relaxed);
            taken
        };
        let Err(refusal) = taken else {
            return taken.ok();
        };
        self.totals.refused.fetch_add(1, Relaxed);
        let refused = self.refusals.lock().count(TokioRuntime.now());
        if let Some(refused) = refused {
            let limit = match refusal {
                Refusal::Address => self.limits.unused_per_address,
                _ => self.limits.connections,
            };
            let purpose = self.purpose;
            tracing::warn!(%peer, refused, limit, "refused a TCP connection for {purpose}: {refusal}");
        }
        None
    }
}

/// The place of a connection, released when this is dropped.
struct TcpPlace {
    shared: Arc<AcceptorState>,
    number: u64,
}

impl TcpPlace {
    fn take(shared: &Arc<AcceptorState>, peer: SocketAddr, activity: &Activity) -> Option<Self> {
        let number = shared.take(peer, activity)?;
        shared.totals.accepted.fetch_add(1, Relaxed);
        let shared = Arc::clone(shared);
        Some(Self { shared, number })
    }

    /// The connection with the address of its client, which a proxy may name first. Then the limit of the client's
    /// address counts in place of the proxy's. `None` if the connection must end.
    async fn client(
        &mut self,
        stream: TcpStream,
        peer: SocketAddr,
        activity: &Activity,
    ) -> Option<(TcpStream, SocketAddr)> {
        let shared = &self.shared;
        if !shared.proxies.expects_header(peer.ip()) {
            return Some((stream, peer));
        }
        let Some((stream, client)) = shared.proxies.client_of(stream, peer).await else {
            shared.totals.failed_handshakes.fetch_add(1, Relaxed);
            return None;
        };
        shared.places.lock().free(self.number);
        self.number = shared.take(client, activity)?;
        Some((stream, client))
    }
}

impl Drop for TcpPlace {
    fn drop(&mut self) {
        let mut places = self.shared.places.lock();
        places.free(self.number);
        self.shared.totals.ended.fetch_add(1, Relaxed);
    }
}
