//! One request and its response.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use http::{HeaderMap, Request, Response, StatusCode, Version};
use parking_lot::Mutex;
use playrate_media::cmcd::{Cmcd, ObjectType};
use playrate_media::cmsd::{CmsdDynamic, CmsdStatic};
use playrate_media::manifest::Component;
use playrate_transport::{Arrival, Exchange, ExchangeError};
use playrate_units::{Bitrate, Bytes};
use tokio::sync::mpsc;

use super::arms::Arms;
use super::connection::ActiveConnection;
use super::playback::MediaRequest;
use super::served::{MAX_FIELD, PendingRecord};
use super::{ServerState, WorkerContext};
use crate::access::redacted;
use crate::library::CHUNK;
use crate::site::{Content, ResourceBody};

/// Reason why a response was aborted.
#[derive(Debug, thiserror::Error)]
enum ResponseError {
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    #[error("cannot read the content: {0}")]
    Read(#[from] std::io::Error),
}

/// Receives and answers one request. `_running` keeps the connection's task waiting until this one ends.
pub(super) async fn serve(
    arrival: Arrival,
    connection: Arc<ActiveConnection>,
    context: Arc<WorkerContext>,
    _running: mpsc::Sender<()>,
) {
    let id = connection.id;
    let exchange = match arrival
        .receive_content(|head| context.server.site.content_limit(head))
        .await
    {
        Ok(exchange) => exchange,
        Err(error) => {
            tracing::debug!(connection = id, %error, "a request did not arrive");
            return;
        }
    };
    let mut response = RunningResponse::begin(&context.server.state);
    connection.requests.fetch_add(1, Relaxed);
    let site = &context.server.site;
    let request = exchange.request();
    let record = PendingRecord::begin(site, &context.runtime, connection.peer, request);
    response.record = record.map(|record| (record, &*connection, context.server.settings.arms.as_ref()));
    // Kept as long as the response, so of bounded length.
    let [method, path] = [request.method().as_str(), &redacted(request.uri().path())]
        .map(|text| text.chars().take(MAX_FIELD).collect::<String>());
    let done = answer(exchange, &connection, &context, &mut response).await;
    response.is_complete = done.is_ok();
    let (status, length, sent) = (response.status.as_u16(), response.length, response.sent);
    connection.bytes.fetch_add(sent, Relaxed);
    drop(response);
    match done {
        Ok(()) => {
            connection.responses.fetch_add(1, Relaxed);
            tracing::debug!(connection = id, %method, path, status, bytes = sent, "answered");
            return;
        }
        Err(ResponseError::Exchange(error)) => {
            tracing::debug!(
                connection = id, %method, path, status, sent_bytes = sent, length_bytes = length, %error,
                "the client left before the end"
            );
        }
        Err(ResponseError::Read(error)) => {
            tracing::error!(
                connection = id, %method, path, status, sent_bytes = sent, length_bytes = length, %error,
                "aborted a response"
            );
        }
    }
    connection.aborted.fetch_add(1, Relaxed);
}

/// A running response. It ends when this is dropped, even if its task panics.
#[derive(Debug)]
struct RunningResponse<'a> {
    state: &'a Mutex<ServerState>,
    status: StatusCode,
    /// Bytes of content in total.
    length: u64,
    /// Bytes of content handed to the transport.
    sent: u64,
    /// True once the client has acknowledged all of it.
    is_complete: bool,
    /// Record for the log of responses, if there is one, with the connection and its arms.
    record: Option<(PendingRecord, &'a ActiveConnection, Option<&'a Arms>)>,
}

impl<'a> RunningResponse<'a> {
    fn begin(state: &'a Mutex<ServerState>) -> Self {
        state.lock().running += 1;
        Self {
            state,
            status: StatusCode::OK,
            length: 0,
            sent: 0,
            is_complete: false,
            record: None,
        }
    }

    /// Notes that the head is handed to the transport now.
    fn begin_response(&mut self) {
        if let Some((record, ..)) = &mut self.record {
            record.begin_response(self.status, self.length);
        }
    }
}

impl Drop for RunningResponse<'_> {
    fn drop(&mut self) {
        if let Some((record, connection, arms)) = &mut self.record {
            record.served.sent = Bytes::new(self.sent);
            record.served.controller = Some(connection.control.to_string());
            record.served.arm = arms.and_then(|arms| connection.arm.name(arms));
            record.served.stalls = connection.playback.stalls();
            record.served.is_complete = self.is_complete;
        }
        let mut state = self.state.lock();
        state.end_response(Bytes::new(self.sent), self.is_complete);
    }
}

async fn answer(
    exchange: Exchange,
    connection: &ActiveConnection,
    context: &WorkerContext,
    running: &mut RunningResponse<'_>,
) -> Result<(), ResponseError> {
    let (request, now) = (exchange.request(), context.runtime.now());
    let site = &context.server.site;
    let own = || {
        connection
            .state(now, context.server.settings.arms.as_ref())
            .to_json()
    };
    let client = (connection.quinn.remote_address().ip(), &connection.admission, now);
    let reply = site.reply_to(request, client, own);
    let (head, body) = reply.await.into_parts();
    let mut head = Response::from_parts(head, ());
    site.count_reply(Version::HTTP_3, head.status());
    running.status = head.status();
    running.length = body.len();
    match body {
        Content::Resource(mut body) => {
            // Before the first byte: the controller and its start may depend on it.
            if let Some(arms) = &context.server.settings.arms {
                let uri = exchange.request().uri();
                let request = (site.path(uri), uri, &body);
                if let Some(arm) = connection.arm.decide(connection.id, arms, request) {
                    exchange.control().switch(arm.controller.clone());
                    tracing::debug!(
                        connection = connection.id,
                        arm = arm.name,
                        controller = %arm.controller,
                        "an arm was chosen"
                    );
                }
            }
            let request = media_request(exchange.request(), &body);
            let _playback = connection.playback.begin(&request, context.runtime.now());
            if request.cmcd.is_some() {
                connection.playback.log(connection.id);
                add_cmsd(head.headers_mut(), &body, connection, context);
            }
            #[cfg(feature = "object-store")]
            site.read_ahead(&connection.ahead, &body, request.cmcd.as_ref());
            if body.is_media() {
                context.start_queue.wait(body.len()).await;
            }
            running.begin_response();
            let mut writer = exchange.start(head).await?;
            while !body.is_empty() {
                writer.ready().await?;
                let Some(chunk) = body.next_chunk(CHUNK).await? else {
                    break;
                };
                // Counted before it is written, because the client may have received a part of an aborted chunk.
                running.sent += chunk.len() as u64;
                let bytes = Bytes::from(chunk.len());
                connection.playback.delivered(bytes, context.runtime.now());
                writer.write(chunk).await?;
            }
            writer.finish().await?;
        }
        Content::Text(text) => {
            let length = text.len() as u64;
            running.begin_response();
            exchange.respond(head, text).await?;
            running.sent = length;
        }
    }
    Ok(())
}

/// Title, rate and CMCD of a request for `body`.
fn media_request<B>(request: &Request<B>, body: &ResourceBody) -> MediaRequest {
    let (title, set) = match body.resource.representation() {
        Some(representation) => (representation.title.clone(), representation.set),
        None => (body.name.clone(), 0),
    };
    MediaRequest {
        title,
        set,
        rate: body.resource.average_rate,
        highest_rate: body.resource.highest_rate,
        cmcd: Cmcd::read(request.headers(), request.uri()),
    }
}

/// Adds CMSD fields: the properties of `body`, and the throughput of the path to the client.
fn add_cmsd(
    headers: &mut HeaderMap,
    body: &ResourceBody,
    connection: &ActiveConnection,
    context: &WorkerContext,
) {
    let representation = body.resource.representation();
    let mut object = CmsdStatic::default();
    object.bitrate = body.resource.average_rate;
    object.duration = body.resource.duration_of(body.bytes());
    object.object_type = representation.and_then(|representation| match representation.component {
        Component::Video => Some(ObjectType::Video),
        Component::Audio => Some(ObjectType::Audio),
        _ => None,
    });
    object.write(headers);
    let estimate = connection.throughput.estimate();
    let fitting = |rate: &Bitrate| estimate.is_some_and(|estimate| *rate <= estimate);
    let ladder = representation.filter(|representation| representation.component == Component::Video);
    let ladder = ladder
        .map(|representation| context.server.site.library().alternatives(representation))
        .unwrap_or_default();
    let lowest = ladder.iter().min().copied().filter(|_| estimate.is_some());
    let sampled = connection.control.monitor().latest();
    let mut path = CmsdDynamic::default();
    path.throughput = estimate;
    // Before the first sample, the RTT of the handshake.
    path.rtt = sampled
        .and_then(|sample| sample.smoothed_rtt)
        .or_else(|| Some(connection.quinn.rtt()));
    // The lowest rate if none fits.
    path.max_bitrate = ladder.iter().copied().filter(fitting).max().or(lowest);
    path.write(headers);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn responses_that_are_not_complete_after_the_stop_count_once_and_those_before_it_do_not() {
        let state = Mutex::new(ServerState::default());
        let [early, complete, failed, last] = [(); 4].map(|()| RunningResponse::begin(&state));
        drop(early);
        assert_eq!(state.lock().not_complete(), 3);
        state.lock().is_stopping = true;
        for (mut response, is_complete, expected) in
            [(complete, true, 2), (failed, false, 2), (last, true, 1)]
        {
            response.is_complete = is_complete;
            drop(response);
            assert_eq!(state.lock().not_complete(), expected);
        }
    }

    #[test]
    fn a_response_whose_task_panics_is_no_longer_in_progress() {
        for (is_stopping, aborted) in [(false, 0), (true, 1)] {
            let state = Mutex::new(ServerState {
                is_stopping,
                ..ServerState::default()
            });
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                let _response = RunningResponse::begin(&state);
                panic!("a fault of the server");
            }));
            assert!(panicked.is_err());
            let state = state.into_inner();
            assert_eq!((state.running, state.not_complete()), (0, aborted));
        }
    }
}
