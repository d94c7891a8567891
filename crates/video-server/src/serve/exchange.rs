//! One request and its response.

use core::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::SystemTime;

use bytes::Bytes;
use http::{Request, StatusCode};
use playrate_transport::{Arrival, BodyWriter, Exchange, ExchangeError};
use tokio::sync::mpsc;

use super::connection::Tally;
use super::{CHUNK, Shared};
use crate::http::answer::{Answer, Body, Route, represent, route};
use crate::http::path::ResourceName;
use crate::library::{Library, Resource};

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
    let now = shared.settings.wall_clock.map(|clock| clock());
    let (answer, found) = look_up(exchange.request(), &shared.library, now);
    progress.status = answer.head.status();
    progress.length = answer.content_length();
    let Answer { head, body } = answer.dated(now);
    match (body, found) {
        (Body::Bytes(part), Some((name, resource))) => {
            // Before the first byte: the controller's start may depend on it.
            let _live = resource.average_rate.map(|rate| tally.titles.begin(name, rate));
            let mut writer = exchange.start(head).await?;
            stream(&resource, part, &mut writer, progress).await?;
            writer.finish().await?;
        }
        (Body::Text(text), _) => {
            let text = Bytes::from(text);
            let length = text.len() as u64;
            exchange.respond(head, text).await?;
            progress.sent = length;
        }
        (Body::Empty | Body::Bytes(_), _) => exchange.respond(head, Bytes::new()).await?,
    }
    Ok(())
}

/// What to answer, and what of the library that is about.
fn look_up(
    request: &Request<()>,
    library: &Library,
    now: Option<SystemTime>,
) -> (Answer, Option<(ResourceName, Resource)>) {
    let method = request.method();
    let name = match route(method, request.uri()) {
        Route::Answer(answer) => return (answer, None),
        Route::LookUp(name) => name,
    };
    match library.open(&name) {
        Ok(Some(resource)) => {
            let answer = represent(method, request.headers(), &resource.representation, now);
            (answer, Some((name, resource)))
        }
        Ok(None) => (Answer::not_found(method), None),
        Err(error) => {
            tracing::error!(%name, %error, "cannot open what was asked for");
            let why = "the server cannot read this resource".to_owned();
            let answer = Answer::refusal(StatusCode::INTERNAL_SERVER_ERROR, why);
            (answer.for_method(method), None)
        }
    }
}

/// Hands `part` of `resource` to the transport, never more than a chunk ahead of what that has taken.
async fn stream(
    resource: &Resource,
    part: Range<u64>,
    writer: &mut BodyWriter,
    progress: &mut Progress,
) -> Result<(), Broken> {
    let mut offset = part.start;
    while offset < part.end {
        let left = usize::try_from(part.end - offset).unwrap_or(usize::MAX);
        let chunk = resource.read_at(offset, left.min(CHUNK.as_usize()))?;
        if chunk.is_empty() {
            return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
        }
        let length = chunk.len() as u64;
        writer.write(chunk).await?;
        offset += length;
        progress.sent += length;
    }
    Ok(())
}
