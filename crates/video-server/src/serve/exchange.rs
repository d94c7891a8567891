//! One request and its response.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use http::{HeaderMap, Request, StatusCode};
use playrate_media::manifest::Component;
use playrate_transport::{Arrival, Exchange, ExchangeError};
use playrate_units::Bitrate;
use tokio::sync::mpsc;

use super::Shared;
use super::connection::Tally;
use super::throughput::Throughput;
use super::watching::Asked;
use crate::cmcd::Cmcd;
use crate::cmsd;
use crate::site::{Content, Part, Reply, Site};

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
    let Reply { mut head, content } =
        tally
            .entrance
            .reply(&shared.site, exchange.request(), shared.runtime.now());
    progress.status = head.status();
    progress.length = content.len();
    match content {
        Content::Part(mut part) => {
            // Before the first byte: which controller it is and how it starts may depend on it.
            if let Some(arms) = &shared.settings.arms {
                let request = exchange.request();
                tally
                    .arm
                    .hear(arms, request.uri(), &part, exchange.control(), tally.id);
            }
            let asked = asked(exchange.request(), &part);
            let _watching = tally.watching.begin(&asked);
            if asked.cmcd.is_some() {
                tally.watching.log(tally.id);
                describe(
                    &part,
                    &exchange,
                    &tally.throughput,
                    &shared.site,
                    head.headers_mut(),
                );
            }
            if part.is_media() {
                shared.line.wait(part.len()).await;
            }
            let mut writer = exchange.start(head).await?;
            while !part.is_empty() {
                writer.ready().await?;
                let Some(chunk) = part.next_chunk()? else {
                    break;
                };
                // Before it is written: the client may have had a part of one that is broken off.
                progress.sent += chunk.len() as u64;
                writer.write(chunk).await?;
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

/// What a request for `part` says of who watches what.
fn asked(request: &Request<()>, part: &Part) -> Asked {
    let (title, set) = match part.resource.representation() {
        Some(representation) => (representation.title.clone(), representation.set),
        None => (part.name.clone(), 0),
    };
    Asked {
        title,
        set,
        rate: part.resource.average_rate,
        cmcd: Cmcd::of(request.headers(), request.uri()),
    }
}

/// Says with CMSD what `part` is and what the way to this client carries.
fn describe(part: &Part, exchange: &Exchange, throughput: &Throughput, site: &Site, headers: &mut HeaderMap) {
    let representation = part.resource.representation();
    let object = cmsd::Static {
        bitrate: part.resource.average_rate,
        duration: part.resource.duration_of(part.bytes()),
        object_type: representation.and_then(|representation| match representation.component {
            Component::Video => Some('v'),
            Component::Audio => Some('a'),
            _ => None,
        }),
    };
    object.apply(headers);
    let estimate = throughput.estimate();
    let fitting = |rate: &Bitrate| estimate.is_some_and(|estimate| *rate <= estimate);
    let ladder = representation.filter(|representation| representation.component == Component::Video);
    let ladder = ladder
        .map(|representation| site.library().alternatives(representation))
        .unwrap_or_default();
    let lowest = ladder.iter().min().copied().filter(|_| estimate.is_some());
    let sampled = exchange.control().monitor().latest();
    let way = cmsd::Dynamic {
        throughput: estimate,
        // Before the first sample, that of the handshake.
        rtt: sampled
            .and_then(|sample| sample.smoothed_rtt)
            .or_else(|| Some(exchange.quinn().rtt())),
        // Even the lowest may be too much; there is nothing below it.
        most: ladder.iter().copied().filter(fitting).max().or(lowest),
    };
    way.apply(headers);
}
