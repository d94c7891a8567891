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
    // Lets a restarted server bind at once, although old connections linger in the kernel. On systems other than Unix
    // it would let two programs share a port.
    #[cfg(unix)]
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
    /// Purpose of the connections, for the log.
    purpose: &'static str,
    limits: PlaceLimits,
    proxies: Arc<Proxies>,
    places: Arc<Mutex<Places<()>>>,
    connections: JoinSet<()>,
    /// Connections of proxies that have not named their client yet.
    arriving: JoinSet<Option<(TcpStream, SocketAddr, Activity, TcpPlace)>>,
    totals: Arc<TcpTotals>,
    refusal_log: LogLimit,
    failure_log: LogLimit,
}

impl Acceptor {
    /// Creates an acceptor that counts its connections in `totals`.
    pub(crate) fn new(
        listener: TcpListener,
        purpose: &'static str,
        limits: PlaceLimits,
        totals: Arc<TcpTotals>,
    ) -> Self {
        Self {
            listener,
            purpose,
            limits,
            proxies: Arc::default(),
            places: Arc::new(Mutex::new(Places::new(limits))),
            connections: JoinSet::new(),
            arriving: JoinSet::new(),
            totals,
            refusal_log: LogLimit::default(),
            failure_log: LogLimit::default(),
        }
    }

    /// Believes these proxies about their clients' addresses.
    pub(crate) fn behind(mut self, proxies: Arc<Proxies>) -> Self {
        self.proxies = proxies;
        self
    }

    /// Accepts connections until `stop` is true, and runs `serve` as a task for each. Then closes the listening socket
    /// and waits until the last connection has ended.
    ///
    /// The task must count responses in the [`Activity`], and must end when it [expires](Activity::expired): the
    /// connection has then made room for another one. It ends by itself after `stop`.
    pub(crate) async fn run<F>(
        mut self,
        mut stop: watch::Receiver<bool>,
        serve: impl Fn(TcpStream, SocketAddr, Activity) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let start = |connections: &mut JoinSet<_>, (stream, peer, activity, place)| {
            let serving = serve(stream, peer, activity);
            connections.spawn(async move {
                serving.await;
                // Dropped also when the task is aborted.
                drop::<TcpPlace>(place);
            });
        };
        loop {
            let accepted = tokio::select! {
                biased;
                _ = stop.wait_for(|&stop| stop) => break,
                Some(_) = self.connections.join_next(), if !self.connections.is_empty() => continue,
                Some(arrived) = self.arriving.join_next(), if !self.arriving.is_empty() => {
                    if let Ok(Some((stream, client, activity, mut place))) = arrived {
                        // The limit of the client's address counts from now on.
                        self.places.lock().free(place.number);
                        match self.take(client, &activity) {
                            Ok(number) => {
                                place.number = number;
                                start(&mut self.connections, (stream, client, activity, place));
                            }
                            Err(refusal) => self.refuse(client, refusal),
                        }
                    }
                    continue;
                }
                accepted = self.listener.accept() => accepted,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    if let Some(failures) = self.failure_log.count(TokioRuntime.now()) {
                        tracing::warn!(%error, failures, "cannot accept TCP connections for {}", self.purpose);
                    }
                    tokio::select! {
                        _ = stop.wait_for(|&stop| stop) => break,
                        () = time::sleep(&TokioRuntime, ACCEPT_PAUSE) => {}
                    }
                    continue;
                }
            };
            let activity = Activity::new(Arc::new(TokioRuntime));
            let place = match self.take(peer, &activity) {
                Ok(number) => self.place(number),
                Err(refusal) => {
                    self.refuse(peer, refusal);
                    continue;
                }
            };
            if self.proxies.expects_header(peer.ip()) {
                let (proxies, totals) = (Arc::clone(&self.proxies), Arc::clone(&self.totals));
                self.arriving.spawn(async move {
                    let named = tokio::select! {
                        biased;
                        () = activity.expired(None) => return None,
                        named = proxies.client_of(stream, peer) => named,
                    };
                    if named.is_none() {
                        totals.failed_handshakes.fetch_add(1, Relaxed);
                    }
                    named.map(|(stream, client)| (stream, client, activity, place))
                });
            } else {
                start(&mut self.connections, (stream, peer, activity, place));
            }
        }
        drop(self.listener);
        while self.connections.join_next().await.is_some() {}
    }

    /// Takes a place for a connection from `peer`, evicting an idle one if necessary.
    fn take(&self, peer: SocketAddr, activity: &Activity) -> Result<u64, Refusal> {
        let mut places = self.places.lock();
        let before = places.evicted();
        // A proxy's own address stands for many clients.
        let address = (!self.proxies.trusts(peer.ip())).then_some(peer.ip());
        let number = places.take(address, activity.clone());
        let evicted = places.evicted() - before;
        self.totals.evicted.fetch_add(evicted, Relaxed);
        number
    }

    /// The place that was taken for an accepted connection.
    fn place(&self, number: u64) -> TcpPlace {
        self.totals.accepted.fetch_add(1, Relaxed);
        TcpPlace {
            places: Arc::clone(&self.places),
            number,
            totals: Arc::clone(&self.totals),
        }
    }

    /// Counts a refusal and logs it at a limited rate.
    fn refuse(&mut self, peer: SocketAddr, refusal: Refusal) {
        self.totals.refused.fetch_add(1, Relaxed);
        if let Some(refused) = self.refusal_log.count(TokioRuntime.now()) {
            let limit = match refusal {
                Refusal::Address => self.limits.unused_per_address,
                _ => self.limits.connections,
            };
            let purpose = self.purpose;
            tracing::warn!(%peer, refused, limit, "refused a TCP connection for {purpose}: {refusal}");
        }
    }
}

/// The place of a connection, released when this is dropped.
struct TcpPlace {
    places: Arc<Mutex<Places<()>>>,
    number: u64,
    totals: Arc<TcpTotals>,
}

impl Drop for TcpPlace {
    fn drop(&mut self) {
        let mut places = self.places.lock();
        places.free(self.number);
        self.totals.ended.fetch_add(1, Relaxed);
    }
}
