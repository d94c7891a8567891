//! A well-behaved client that measures the service during attacks.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use http::{HeaderMap, StatusCode};
use playrate::transport::{Client, ClientOptions, Target, Trust};
use quinn::TokioRuntime;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::victim::Victim;
use crate::wire::Head;

/// Bytes of the title that a good client fetches.
pub(crate) const LENGTH: u64 = 100_000;

/// Transport that a good client uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// HTTP/3, with the product's own client.
    Quic,
    /// HTTP/1.1 with TLS, on one connection each.
    Tcp,
}

/// Times of one good client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Service {
    /// From the first packet until the handshake, with TLS, is done.
    pub(crate) connected: Duration,
    /// From the request until the last of [`LENGTH`] bytes.
    pub(crate) fetched: Duration,
}

/// Connects, fetches the beginning of the title, and leaves.
///
/// # Errors
/// A refusal, a wrong answer, or no end within `limit`.
pub(crate) async fn fetch(victim: &Victim, over: Over, limit: Duration) -> anyhow::Result<Service> {
    fetch_and_stay(victim, over, limit, async {}).await
}

/// Connects, fetches the beginning of the title, and leaves at the end of `stay`.
///
/// # Errors
/// A refusal, a wrong answer, or no end within `limit`.
pub(crate) async fn fetch_and_stay(
    victim: &Victim,
    over: Over,
    limit: Duration,
    stay: impl Future<Output = ()>,
) -> anyhow::Result<Service> {
    let fetching = async {
        match over {
            Over::Quic => fetch_over_quic(victim, limit, stay).await,
            Over::Tcp => fetch_over_tcp(victim, stay).await,
        }
    };
    let fetched = tokio::time::timeout(limit, fetching).await;
    fetched.with_context(|| format!("no service over {over:?} within {limit:?}"))?
}

async fn fetch_over_quic(
    victim: &Victim,
    limit: Duration,
    stay: impl Future<Output = ()>,
) -> anyhow::Result<Service> {
    let began = Instant::now();
    let mut options = ClientOptions::new(Trust::Pin(victim.pin));
    options.connect_timeout = limit;
    let client = Client::bind(Arc::new(TokioRuntime), options)?;
    let connection = client.connect(&Target::at("localhost", victim.address)).await?;
    let connected = Instant::now();
    let (response, mut body) = connection
        .get_range(&victim.title, 0, Some(LENGTH - 1), HeaderMap::new())
        .await?;
    ensure!(
        response.status() == StatusCode::PARTIAL_CONTENT,
        "{}",
        response.status()
    );
    while body.chunk().await?.is_some() {}
    ensure!(body.received() == LENGTH, "{} bytes", body.received());
    let service = Service {
        connected: connected - began,
        fetched: connected.elapsed(),
    };
    stay.await;
    connection.close();
    client.wait_idle().await;
    Ok(service)
}

async fn fetch_over_tcp(victim: &Victim, stay: impl Future<Output = ()>) -> anyhow::Result<Service> {
    let began = Instant::now();
    let mut stream = victim.tls_stream(Ipv4Addr::LOCALHOST, b"http/1.1").await?;
    let connected = Instant::now();
    let head = Head::get(victim.title.as_str()).with("range", &format!("bytes=0-{}", LENGTH - 1));
    stream.write_all(&head.http1()).await?;
    let mut answer = Vec::new();
    let content = |answer: &[u8]| {
        let head = answer.windows(4).position(|four| four == b"\r\n\r\n");
        head.map_or(0, |head| (answer.len() - head - 4) as u64)
    };
    while content(&answer) < LENGTH && stream.read_buf(&mut answer).await? > 0 {}
    ensure!(
        answer.starts_with(b"HTTP/1.1 206 "),
        "{}",
        String::from_utf8_lossy(&answer[..40.min(answer.len())])
    );
    ensure!(content(&answer) == LENGTH, "{} bytes", content(&answer));
    let service = Service {
        connected: connected - began,
        fetched: connected.elapsed(),
    };
    stay.await;
    Ok(service)
}
