//! Attacks on a server, each with its own scale: numbers of connections, of source addresses, and of actions per
//! second.

mod http;
mod initials;
mod paths;
mod quic;

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

pub(crate) use paths::SECRET_FILE;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, WriteHalf};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_rustls::client::TlsStream;

use crate::victim::{Victim, endpoint};
use crate::wire::{Head, h2};

/// Content of a file outside the media directory; no client may receive it.
pub(crate) const SECRET: &str = "not below the media directory";

/// Pause before an attacker reconnects after its connection ended.
const RECONNECT: Duration = Duration::from_secs(1);
/// Time that an attacker allows the server for a TCP connection, and for TLS on it, before it retries.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time between the keep-alive packets of an attacker's QUIC connection.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// Protocols of TLS connections, as ALPN names them.
const HTTP_1: &[u8] = b"http/1.1";
const HTTP_2: &[u8] = b"h2";

/// A kind of attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "kebab-case")]
pub(crate) enum Attack {
    /// First packets of QUIC clients from forged addresses, without a second one
    Initials,
    /// QUIC connections without a request
    IdleQuic,
    /// TCP connections without a byte
    IdleTcp,
    /// TLS connections without a request
    IdleTls,
    /// HTTP/2 connections with nothing but PINGs
    Pings,
    /// Connections with a request for the title's head every 5 s (HTTP/1.1, HTTP/3)
    FewRequests,
    /// HTTP/3 connections with 100 unread responses each
    StalledHttp3,
    /// HTTP/2 connections with 100 unread responses each
    StalledHttp2,
    /// Heads of requests, a byte at a time (HTTP/1.1, HTTP/3)
    SlowHeads,
    /// Heads of requests without an end (CONTINUATION frames of HTTP/2, fields of HTTP/1.1, a HEADERS frame of HTTP/3)
    EndlessHeads,
    /// HTTP/2 requests that are reset at once (CVE-2023-44487)
    ResetHttp2,
    /// HTTP/3 requests that are reset at once
    ResetHttp3,
    /// Requests for many small ranges, and many requests for one byte (HTTP/3, HTTP/1.1)
    Ranges,
    /// Paths that lead out of the directory, over each version of HTTP
    Paths,
    /// Content without an end in requests, over each version of HTTP
    EndlessContent,
    /// False reports of players (CMCD), each of another session, over HTTP/3
    FalseCmcd,
    /// QUIC clients that change their address all the time during a download
    Migration,
    /// QUIC clients with the smallest packets and windows of 64 bytes, which read 16 bytes at a time
    TinyWindows,
}

/// Size of an attack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    /// Number of connections at once.
    pub(crate) connections: usize,
    /// Number of their source addresses.
    pub(crate) addresses: usize,
    /// Actions per second in total: packets, connects, requests, resets, or bytes of slow ones.
    pub(crate) rate: f64,
}

/// Counts of an attack.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) actions: AtomicU64,
    /// Number of connections that are open.
    pub(crate) open: AtomicU64,
    pub(crate) most_open: AtomicU64,
    /// Connections that failed, or that the server ended.
    pub(crate) ended: AtomicU64,
    /// Answers that contain [`SECRET`].
    pub(crate) leaks: AtomicU64,
}

/// An attacker's connection, until this is dropped.
struct Open<'a>(&'a Tally);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Relaxed);
    }
}

impl Tally {
    fn open(&self) -> Open<'_> {
        let open = self.open.fetch_add(1, Relaxed) + 1;
        self.most_open.fetch_max(open, Relaxed);
        Open(self)
    }
}

/// Address of the attacker with this number, each of the first 16,384 in a /24 network of its own; all belong to this
/// machine.
fn attacker(number: usize) -> Ipv4Addr {
    let [.., low] = (number >> 14).to_be_bytes();
    let [.., high, middle] = (number & 0x3fff).to_be_bytes();
    Ipv4Addr::new(127, 64 + high, middle, low)
}

/// State shared by the connections of an attack.
struct Force {
    victim: Victim,
    scale: Scale,
    tally: Arc<Tally>,
    /// One for each source address, if the attack has QUIC connections.
    endpoints: Vec<quinn::Endpoint>,
    began: Instant,
    /// Number of scheduled actions.
    scheduled: AtomicU64,
}

impl Force {
    fn source(&self, number: usize) -> Ipv4Addr {
        attacker(number % self.scale.addresses.max(1))
    }

    /// Waits until the next action is due, and counts it.
    async fn act(&self) {
        let turn = self.scheduled.fetch_add(1, Relaxed);
        let due = self.began + Duration::from_secs_f64(turn as f64 / self.scale.rate);
        tokio::time::sleep_until(due).await;
        tokio::task::yield_now().await;
        self.tally.actions.fetch_add(1, Relaxed);
    }

    /// A QUIC connection of the attacker `number`, with its settings changed.
    async fn quic(
        &self,
        number: usize,
        change: impl FnOnce(&mut quinn::TransportConfig),
    ) -> io::Result<quinn::Connection> {
        let endpoint = &self.endpoints[number % self.endpoints.len()];
        let mut transport = quinn::TransportConfig::default();
        transport.keep_alive_interval(Some(KEEP_ALIVE));
        change(&mut transport);
        let config = self.victim.quic_config(transport);
        self.victim.quic(endpoint, config).await
    }

    /// A TCP connection of the attacker `number`.
    async fn tcp(&self, number: usize) -> io::Result<TcpStream> {
        tokio::time::timeout(PATIENCE, self.victim.tcp(self.source(number))).await?
    }

    /// A TCP connection of the attacker `number` with TLS, for one protocol.
    async fn tls(&self, number: usize, protocol: &[u8]) -> io::Result<TlsStream<TcpStream>> {
        let connecting = self.victim.tls_stream(self.source(number), protocol);
        tokio::time::timeout(PATIENCE * 2, connecting).await?
    }

    /// A connection of the attacker `number` over TLS where `send` sends until either side has ended.
    async fn over_tls(
        &self,
        number: usize,
        protocol: &[u8],
        send: impl AsyncFnOnce(&mut WriteHalf<TlsStream<TcpStream>>) -> io::Result<()>,
    ) -> io::Result<()> {
        let stream = self.tls(number, protocol).await?;
        let _open = self.tally.open();
        let (reading, mut writing) = tokio::io::split(stream);
        let sending = async {
            if protocol == HTTP_2 {
                writing.write_all(&h2::start()).await?;
            }
            send(&mut writing).await
        };
        tokio::select! {
            biased;
            ended = self.drain(reading) => ended,
            failed = sending => failed,
        }
    }

    /// Sends a request over HTTP/3.
    async fn request(&self, connection: &quinn::Connection, head: &Head) -> io::Result<quinn::RecvStream> {
        let (mut sending, response) = connection.open_bi().await?;
        sending.write_all(&head.http3()).await?;
        sending.finish().map_err(io::Error::other)?;
        Ok(response)
    }

    /// Sends the requests that `next` returns, on one connection of the attacker `number`: with this much time between
    /// them, or at the attack's rate. Over HTTP/3, each waits for the previous response; over HTTP/1.1, none waits.
    async fn requests(
        &self,
        number: usize,
        over_quic: bool,
        every: Option<Duration>,
        next: impl Fn(u64) -> Head,
    ) -> io::Result<()> {
        let pace = async |turn: u64| match every {
            Some(time) => tokio::time::sleep(time * u32::from(turn > 0)).await,
            None => self.act().await,
        };
        if !over_quic {
            let send = async |writing: &mut WriteHalf<_>| {
                for turn in 0.. {
                    pace(turn).await;
                    writing.write_all(&next(turn).http1()).await?;
                }
                Ok(())
            };
            return self.over_tls(number, HTTP_1, send).await;
        }
        let connection = self.quic(number, |_| {}).await?;
        let _open = self.tally.open();
        for turn in 0.. {
            pace(turn).await;
            let response = self.request(&connection, &next(turn)).await?;
            // The server may reset a response instead of refusing its request.
            let _ = self.drain(response).await;
        }
        Ok(())
    }

    /// Reads until the server has ended its side, and counts the pieces that contain the secret.
    async fn drain(&self, mut stream: impl AsyncRead + Unpin) -> io::Result<()> {
        let mut buffer = vec![0; 64 << 10];
        loop {
            let length = stream.read(&mut buffer).await?;
            if length == 0 {
                return Ok(());
            }
            let mut windows = buffer[..length].windows(SECRET.len());
            let leaks = windows.any(|window| window == SECRET.as_bytes());
            self.tally.leaks.fetch_add(leaks.into(), Relaxed);
        }
    }
}

impl Attack {
    /// Attacks until this is dropped.
    ///
    /// # Errors
    /// The attack cannot be made on this machine.
    pub(crate) async fn run(self, victim: Victim, scale: Scale, tally: Arc<Tally>) -> io::Result<()> {
        if self == Self::Initials {
            return initials::flood(&victim, scale, &tally).await;
        }
        let addresses = scale.addresses.min(scale.connections).max(1);
        let force = Arc::new(Force {
            victim,
            scale,
            tally,
            endpoints: (0..addresses)
                .map(|number| endpoint(attacker(number)))
                .collect::<io::Result<_>>()?,
            began: Instant::now(),
            scheduled: AtomicU64::new(0),
        });
        let mut attackers = JoinSet::new();
        for number in 0..scale.connections {
            let force = Arc::clone(&force);
            attackers.spawn(async move {
                loop {
                    // Refusals and closed connections are the expected answers of the server.
                    let _ = self.connection(&force, number).await;
                    force.tally.ended.fetch_add(1, Relaxed);
                    tokio::time::sleep(RECONNECT).await;
                }
            });
        }
        while attackers.join_next().await.is_some() {}
        Ok(())
    }

    /// One connection of the attack, until it ends.
    async fn connection(self, force: &Force, number: usize) -> io::Result<()> {
        match self {
            Self::Initials => Ok(()),
            Self::IdleQuic => quic::idle(force, number).await,
            Self::IdleTcp => http::idle_tcp(force, number).await,
            Self::IdleTls => http::idle_tls(force, number).await,
            Self::Pings => http::pings(force, number).await,
            Self::FewRequests => http::few_requests(force, number).await,
            Self::StalledHttp3 => http::stalled_http3(force, number).await,
            Self::StalledHttp2 => http::stalled_http2(force, number).await,
            Self::SlowHeads => http::slow_heads(force, number).await,
            Self::EndlessHeads => http::endless_heads(force, number).await,
            Self::ResetHttp2 => http::reset_http2(force, number).await,
            Self::ResetHttp3 => http::reset_http3(force, number).await,
            Self::Ranges => http::ranges(force, number).await,
            Self::Paths => paths::tricks(force, number).await,
            Self::EndlessContent => http::endless_content(force, number).await,
            Self::FalseCmcd => http::false_cmcd(force, number).await,
            Self::Migration => quic::migration(force, number).await,
            Self::TinyWindows => quic::tiny_windows(force, number).await,
        }
    }
}
