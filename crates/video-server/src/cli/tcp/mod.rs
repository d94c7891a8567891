//! The same library over TCP: HTTP/2 and HTTP/1.1 on the port that HTTP/3 has on UDP, for players that know nothing
//! newer, and for browsers, which learn of HTTP/3 from the `Alt-Svc` field of such a response (RFC 9114 §3.1.1).
//!
//! What is answered is [`Site`]'s, as over HTTP/3. Congestion control is the kernel's: no controller of playrate's, nothing
//! told to it. Connections are bounded in number and each in memory (hyper's buffers, at most a [`CHUNK`] a request on top);
//! one on which nothing moves for long is closed.
//!
//! [`CHUNK`]: video_server::site::CHUNK

mod body;
mod connection;
mod idle;
mod linger;
mod listen;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use http::HeaderValue;
use hyper_util::server::graceful::GracefulShutdown;
use playrate_transport::{Identity, TlsError, time};
use quinn::TokioRuntime;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use video_server::admission::Admission;
use video_server::serve::VideoServer;
use video_server::site::Site;

pub(super) use listen::{ListenError, listen};

/// Protocols on TCP, the preferred one first (RFC 7301; RFC 9113 §3.2).
const PROTOCOLS: [&[u8]; 2] = [connection::HTTP_2, b"http/1.1"];
/// For how long browsers remember that there is HTTP/3: the default of RFC 7838 §3.1.
const ALT_SVC_AGE: Duration = Duration::from_secs(24 * 3600);
/// How long not to accept after that has failed, for want of descriptors as a rule.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What the connections share.
struct Shared {
    site: Arc<Site>,
    admission: Arc<Admission>,
    tls: RwLock<TlsAcceptor>,
    /// Where HTTP/3 is.
    alt_svc: Option<HeaderValue>,
    /// How long a connection may be silent.
    idle: Duration,
    /// Responses under way.
    running: AtomicU64,
}

impl Shared {
    fn tls(&self) -> TlsAcceptor {
        self.tls.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The library over TCP. Dropping it breaks off whatever is under way.
pub(super) struct TcpServer {
    accepting: Mutex<JoinSet<()>>,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
}

impl TcpServer {
    /// Serves what `server` does on `listener`, which has the port that HTTP/3 has on UDP.
    pub(super) fn start(
        listener: TcpListener,
        server: &VideoServer,
        identity: &Identity,
        address: SocketAddr,
        most: usize,
        idle: Duration,
    ) -> Result<Self, TlsError> {
        let alt_svc = format!("h3=\":{}\"; ma={}", address.port(), ALT_SVC_AGE.as_secs());
        let shared = Arc::new(Shared {
            site: Arc::clone(server.site()),
            admission: Arc::clone(server.admission()),
            tls: RwLock::new(identity.tcp_config(&PROTOCOLS)?.into()),
            alt_svc: HeaderValue::try_from(alt_svc).ok(),
            idle,
            running: AtomicU64::new(0),
        });
        let (stop, stopped) = watch::channel(false);
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, Arc::clone(&shared), most, stopped));
        Ok(Self {
            accepting: Mutex::new(accepting),
            shared,
            stop,
        })
    }

    /// Becomes `identity` for clients that connect from now on.
    pub(super) fn set_identity(&self, identity: &Identity) -> Result<(), TlsError> {
        let tls = identity.tcp_config(&PROTOCOLS)?.into();
        *self.shared.tls.write().unwrap_or_else(PoisonError::into_inner) = tls;
        Ok(())
    }

    /// Takes no new connections and no new requests, lets responses end, and breaks off what has not ended after
    /// `deadline`: as many responses as it says.
    pub(super) async fn shutdown(&self, deadline: Duration) -> u64 {
        self.stop.send_replace(true);
        let mut accepting = self.accepting.lock().await;
        let ended = accepting.join_next();
        if time::timeout(&TokioRuntime, deadline, ended).await.is_ok() {
            return 0;
        }
        let cut = self.shared.running.load(Relaxed);
        accepting.abort_all();
        cut
    }
}

/// Accepts until it is to stop, then waits for the connections there are.
async fn accept(listener: TcpListener, shared: Arc<Shared>, most: usize, mut stop: watch::Receiver<bool>) {
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stop.wait_for(|&stop| stop) => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept TCP connections");
                time::sleep(&TokioRuntime, ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            tracing::warn!(%peer, limit = most, "refused a TCP connection: too many are open");
            continue;
        };
        let serving = connection::serve(stream, peer, Arc::clone(&shared), graceful.watcher());
        connections.spawn(async move {
            serving.await;
            drop(place);
        });
    }
    drop(listener);
    graceful.shutdown().await;
    while connections.join_next().await.is_some() {}
}
