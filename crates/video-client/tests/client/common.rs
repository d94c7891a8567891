//! A small HTTP/3 server on the transport's primitives that can also misbehave.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Response, StatusCode, header};
use playrate_test_support::{asset, client};
use playrate_transport::{
    Arrival, Client, ConnectionController, ControllerChoice, ExchangeError, Identity, Pin, Server,
    ServerOptions, Target,
};
use quinn::{Runtime, TokioRuntime};
use tokio::sync::watch;
use video_client::{Observer, Played, Session};

/// Behaviour of the server on every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Answers with the whole file.
    Good,
    /// Answers every request with 404.
    NotFound,
    /// Answers every HEAD with 503.
    FullForHead,
    /// Shuts down after this many bytes.
    LeavesAfter(usize),
    /// Sends this many bytes and then nothing more.
    FallsSilentAfter(usize),
    /// Cancels responses before their end, and sends the rest on request.
    Interrupts(Interrupts),
}

/// Behaviour of a server that cancels each response after some bytes, once its client has taken them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interrupts {
    /// Length of the parts. If one is the whole file, it is cancelled instead of ended.
    pub(crate) after: usize,
    /// True if the response names the version of the file.
    pub(crate) tagged: bool,
    /// True if a range request is answered with that range instead of the whole file.
    pub(crate) ranges: bool,
    /// True if the first response declares its length.
    pub(crate) declared: bool,
    /// Delay before a range request is answered.
    pub(crate) delay: Duration,
    /// Number of excess (or, if negative, missing) bytes in the response to a range request, which is then not
    /// cancelled.
    pub(crate) surplus: isize,
}

impl Interrupts {
    /// Behaviour that is normal except for the cancellation.
    pub(crate) fn after(after: usize) -> Self {
        Self {
            after,
            tagged: true,
            ranges: true,
            declared: true,
            delay: Duration::ZERO,
            surplus: 0,
        }
    }
}

/// Entity tag of the server's file.
const TAG: &str = "\"1\"";

/// A file of the repository's media.
pub(crate) fn media(name: &str) -> Bytes {
    std::fs::read(asset(name)).unwrap().into()
}

/// Serves `file` on a loopback port; returns its address and the pin of its key.
pub(crate) fn serve(file: Bytes, manner: Manner) -> (SocketAddr, Pin) {
    let (_, taken) = watch::channel(0);
    serve_watched(file, manner, taken)
}

/// The same for a server that knows how many bytes its client has `taken`.
pub(crate) fn serve_watched(file: Bytes, manner: Manner, taken: watch::Receiver<usize>) -> (SocketAddr, Pin) {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
    let identity = Identity::development(&[]).unwrap();
    let pin = identity.pin();
    let mut options = ServerOptions::new(identity);
    // All written bytes have been acknowledged, except this many.
    options.transport.send_window = playrate_units::Bytes::new(64 << 10);
    let server = Server::bind(([127, 0, 0, 1], 0).into(), runtime, options).unwrap();
    let address = server.local_addr().unwrap();
    let choice: ControllerChoice = "quinn-cubic".parse().unwrap();
    tokio::spawn(async move {
        while let Some(incoming) = server.accept().await {
            let (server, file, taken) = (server.clone(), file.clone(), taken.clone());
            let control = ConnectionController::new(choice.clone());
            tokio::spawn(async move {
                let Ok(mut session) = incoming.establish(control).await else {
                    return;
                };
                while let Ok(Some(arrival)) = session.accept().await {
                    // The client must notice what happens to an exchange with a misbehaving server.
                    match manner {
                        Manner::Interrupts(how) => {
                            tokio::spawn(interrupt(arrival, file.clone(), how, taken.clone()))
                        }
                        _ => tokio::spawn(answer(arrival, file.clone(), manner, server.clone())),
                    };
                }
            });
        }
    });
    (address, pin)
}

/// A client for a server of `file`, and the server's name and address.
pub(crate) fn client_of(file: &Bytes, manner: Manner) -> (Client, Target) {
    let (address, pin) = serve(file.clone(), manner);
    (client(pin, |_| {}), Target::at("localhost", address))
}

/// Plays to the end of the session, into memory.
pub(crate) async fn play(session: Session, observer: &mut impl Observer) -> (Played, Vec<u8>) {
    let (mut bytes, never) = (Vec::new(), std::future::pending());
    let played = session.play(&mut bytes, observer, never).await.unwrap();
    (played, bytes)
}

async fn answer(arrival: Arrival, file: Bytes, manner: Manner, server: Server) -> Result<(), ExchangeError> {
    let exchange = arrival.receive().await?;
    let response = Response::builder().header("cmsd-dynamic", "\"test\";rtt=40");
    if manner == Manner::NotFound {
        let response = response.status(StatusCode::NOT_FOUND).body(()).unwrap();
        return exchange.respond(response, "no such title".into()).await;
    }
    if manner == Manner::FullForHead && exchange.request().method() == Method::HEAD {
        let response = response.status(StatusCode::SERVICE_UNAVAILABLE);
        let response = response.header(header::RETRY_AFTER, "1").body(()).unwrap();
        return exchange.respond(response, "full".into()).await;
    }
    let response = response
        .header(header::CONTENT_LENGTH, file.len())
        .header(header::ETAG, TAG);
    let mut body = exchange.start(response.body(()).unwrap()).await?;
    let end = match manner {
        Manner::LeavesAfter(bytes) | Manner::FallsSilentAfter(bytes) => file.len().min(bytes),
        _ => file.len(),
    };
    for start in (0..end).step_by(16 << 10) {
        body.write(file.slice(start..end.min(start + (16 << 10)))).await?;
    }
    match manner {
        Manner::LeavesAfter(_) => {
            // Lets the written bytes arrive, so that the client has something to report.
            tokio::time::sleep(Duration::from_secs(1)).await;
            server.shutdown(Duration::ZERO).await;
            Ok(())
        }
        Manner::FallsSilentAfter(bytes) if bytes < file.len() => {
            tokio::time::sleep(Duration::from_secs(60)).await;
            body.finish().await
        }
        _ => body.finish().await,
    }
}

/// Answers with `file` or the requested rest of it, according to `how`.
async fn interrupt(
    arrival: Arrival,
    file: Bytes,
    how: Interrupts,
    mut taken: watch::Receiver<usize>,
) -> Result<(), ExchangeError> {
    let exchange = arrival.receive().await?;
    let length = file.len();
    let begin = exchange.request().headers().get(header::RANGE).map(|range| {
        assert_eq!(exchange.request().headers()[header::IF_RANGE], TAG);
        let range = range.to_str().unwrap().trim_start_matches("bytes=");
        range.trim_end_matches('-').parse::<usize>().unwrap()
    });
    let is_repeated = begin.is_some();
    let begin = begin.filter(|_| how.ranges);
    let mut response = Response::builder();
    if how.tagged {
        response = response.header(header::ETAG, TAG);
    }
    let (status, part) = match begin {
        None => (StatusCode::OK, None),
        Some(begin) if begin == length => (
            StatusCode::RANGE_NOT_SATISFIABLE,
            Some(format!("bytes */{length}")),
        ),
        Some(begin) => (
            StatusCode::PARTIAL_CONTENT,
            Some(format!("bytes {begin}-{}/{length}", length - 1)),
        ),
    };
    if let Some(part) = part {
        tokio::time::sleep(how.delay).await;
        response = response.header(header::CONTENT_RANGE, part);
    } else if how.declared {
        response = response.header(header::CONTENT_LENGTH, length);
    }
    let mut body = exchange.start(response.status(status).body(()).unwrap()).await?;
    let begin = begin.unwrap_or(0);
    if begin > 0 && how.surplus != 0 {
        let mut rest = file.slice(begin..).to_vec();
        rest.resize(rest.len().saturating_add_signed(how.surplus), 0);
        body.write(rest.into()).await?;
        return body.finish().await;
    }
    // A repeat from the beginning is not cancelled: the client has already taken as many bytes, so the cancellation
    // would come before it reads the head.
    let is_last = is_repeated && (begin == 0 || begin + how.after >= length);
    let end = if is_last {
        length
    } else {
        length.min(begin + how.after)
    };
    if begin < end {
        body.write(file.slice(begin..end)).await?;
    }
    if is_last {
        return body.finish().await;
    }
    // A reset discards bytes that have arrived but were not read. If the test ends first, the response is not needed.
    drop(taken.wait_for(|&taken| taken >= end).await);
    Ok(())
}
