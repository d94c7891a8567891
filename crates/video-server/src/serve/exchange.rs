//! One request and its response.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use http::StatusCode;
use playrate_transport::{Arrival, Exchange, ExchangeError};
use tokio::sync::mpsc;

use super::Shared;
use super::connection::Tally;
use crate::site::{Content, Reply};

/// Why a response was broken off.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    #[error("cannot read it: {0}")]
    Read(#[from] std::io::Error),
}

/// Receives one request and answers it. `_running` tells the connection that this task runs.
pub(super) async fn serve(
    arrival: Arrival,
    tally: Arc<Tally>,
    shared: Arc<Shared>,
    _running: mpsc::Sender<()>,
) {
    let exchange = match arrival.receive().await {
        Ok(exchange) => exchange,
        Err(error) => {
            tracing::info!(connection = tally.id, %error, "a request did not arrive");
            return;
        }
    };
    tally.requests.fetch_add(1, Relaxed);
    let method = exchange.request().method().clone();
    let path = exchange.request().uri().path().to_owned();
    let mut progress = Progress::default();
    let done = answer(exchange, &tally, &shared, &mut progress).await;
    tally.bytes.fetch_add(progress.sent, Relaxed);
    shared.counted.bytes.fetch_add(progress.sent, Relaxed);
    let (connection, sent, length) = (tally.id, progress.sent, progress.length);
    let status = progress.status.as_u16();
    match done {
        Ok(()) => {
            tally.responses.fetch_add(1, Relaxed);
            shared.counted.responses.fetch_add(1, Relaxed);
            tracing::debug!(connection, %method, path, status, bytes = sent, "answered");
            return;
        }
        Err(Broken::Exchange(error)) => {
            tracing::info!(connection, %method, path, status, sent, length, %error, "the client left before the end");
        }
        Err(Broken::Read(error)) => {
            tracing::error!(connection, %method, path, status, sent, length, %error, "a response was broken off");
        }
    }
    tally.aborted.fetch_add(1, Relaxed);
    if shared.stopping.load(Relaxed) {
        shared.counted.cut.fetch_add(1, Relaxed);
    }
}

/// How far a response got.
#[derive(Debug, Default)]
struct Progress {
    status: StatusCode,
    length: u64,
    /// Bytes of content handed to the transport.
    sent: u64,
}

async fn answer(
    exchange: Exchange,
    tally: &Tally,
    shared: &Shared,
    progress: &mut Progress,
) -> Result<(), Broken> {
    let Reply { head, content } = shared.site.reply(exchange.request());
    progress.status = head.status();
    progress.length = content.len();
    match content {
        Content::Part(mut part) => {
            // Before the first byte: the controller's start may depend on it.
            let rate = part.resource.average_rate;
            let _live = rate.map(|rate| tally.titles.begin(part.name.clone(), rate));
            let mut writer = exchange.start(head).await?;
            // Never more than a chunk ahead of what the transport has taken.
            while let Some(chunk) = part.next_chunk()? {
                let length = chunk.len() as u64;
                writer.write(chunk).await?;
                progress.sent += length;
            }
            writer.finish().await?;
        }
        Content::Text(text) => {
            let length = text.len() as u64;
            exchange.respond(head, text).await?;
            progress.sent = length;
        }
    }
    Ok(())
}
