//! A small HTTP/3 server on the transport's primitives, that can also misbehave.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode, header};
use playrate_transport::{
    Arrival, Client, ClientOptions, ConnectionController, ControllerChoice, ExchangeError, Identity, Pin,
    Server, ServerOptions, Target, Trust,
};
use quinn::{Runtime, TokioRuntime};

/// Behaviour of the server on every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Answers with the whole file.
    Good,
    /// Answers every request with 404.
    NotFound,
    /// Shuts down after so many bytes.
    LeavesAfter(usize),
    /// Sends so many bytes and then nothing more.
    FallsSilentAfter(usize),
    /// Cancels every response after so many bytes.
    CancelsAfter(usize),
    /// The same, and does not say which version of the file it sends.
    CancelsUntaggedAfter(usize),
    /// The same with a tag, and knows no ranges.
    CancelsWholeAfter(usize),
}

/// Entity tag of the server's file.
const TAG: &str = "\"1\"";

/// Directory of the repository's media.
pub(crate) fn asset(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../assets")
        .join(name)
}

/// A file of the repository's media.
pub(crate) fn media(name: &str) -> Bytes {
    std::fs::read(asset(name)).unwrap().into()
}

/// Serves `file` on a loopback port; returns its address and the pin of its key.
pub(crate) fn serve(file: Bytes, manner: Manner) -> (SocketAddr, Pin) {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
    let identity = Identity::development(&[]).unwrap();
    let pin = identity.pin();
    let server = Server::bind(([127, 0, 0, 1], 0).into(), runtime, ServerOptions::new(identity)).unwrap();
    let address = server.local_addr().unwrap();
    let choice: ControllerChoice = "quinn-cubic".parse().unwrap();
    tokio::spawn(async move {
        while let Some(incoming) = server.accept().await {
            let (server, file, control) = (
                server.clone(),
                file.clone(),
                ConnectionController::new(choice.clone()),
            );
            tokio::spawn(async move {
                let Ok(mut session) = incoming.establish(control).await else {
                    return;
                };
                while let Ok(Some(arrival)) = session.accept().await {
                    // What becomes of an exchange with a misbehaving server is the client's to notice.
                    tokio::spawn(answer(arrival, file.clone(), manner, server.clone()));
                }
            });
        }
    });
    (address, pin)
}

/// A client that trusts the server of this pin.
pub(crate) fn client(pin: Pin) -> Client {
    Client::bind(Arc::new(TokioRuntime), ClientOptions::new(Trust::Pin(pin))).unwrap()
}

/// A client for a server of `file`, and the server's name and address.
pub(crate) fn client_of(file: &Bytes, manner: Manner) -> (Client, Target) {
    let (address, pin) = serve(file.clone(), manner);
    (client(pin), Target::at("localhost", address))
}

async fn answer(arrival: Arrival, file: Bytes, manner: Manner, server: Server) -> Result<(), ExchangeError> {
    let exchange = arrival.receive().await?;
    let response = Response::builder().header("cmsd-dynamic", "\"test\";rtt=40");
    if manner == Manner::NotFound {
        let response = response.status(StatusCode::NOT_FOUND).body(()).unwrap();
        return exchange.respond(response, "no such title".into()).await;
    }
    let begin = match exchange.request().headers().get(header::RANGE) {
        Some(range) if !matches!(manner, Manner::CancelsWholeAfter(_)) => {
            let begin = range
                .to_str()
                .unwrap()
                .trim_start_matches("bytes=")
                .trim_end_matches('-');
            assert_eq!(exchange.request().headers()[header::IF_RANGE], TAG);
            begin.parse().unwrap()
        }
        _ => 0,
    };
    let mut response = response.header(header::CONTENT_LENGTH, file.len() - begin);
    if begin > 0 {
        let part = format!("bytes {begin}-{}/{}", file.len() - 1, file.len());
        response = response
            .status(StatusCode::PARTIAL_CONTENT)
            .header(header::CONTENT_RANGE, part);
    }
    if !matches!(manner, Manner::CancelsUntaggedAfter(_)) {
        response = response.header(header::ETAG, TAG);
    }
    let mut body = exchange.start(response.body(()).unwrap()).await?;
    let end = match manner {
        Manner::Good | Manner::NotFound => file.len(),
        Manner::LeavesAfter(bytes)
        | Manner::FallsSilentAfter(bytes)
        | Manner::CancelsAfter(bytes)
        | Manner::CancelsUntaggedAfter(bytes)
        | Manner::CancelsWholeAfter(bytes) => file.len().min(begin + bytes),
    };
    for start in (begin..end).step_by(16 << 10) {
        body.write(file.slice(start..end.min(start + (16 << 10)))).await?;
    }
    match manner {
        _ if end == file.len() => body.finish().await,
        Manner::Good | Manner::NotFound => body.finish().await,
        Manner::LeavesAfter(_) => {
            // Lets what was written arrive, so that the client has something to report.
            tokio::time::sleep(Duration::from_secs(1)).await;
            server.shutdown(Duration::ZERO).await;
            Ok(())
        }
        Manner::CancelsAfter(_) | Manner::CancelsUntaggedAfter(_) | Manner::CancelsWholeAfter(_) => {
            // As above; then it is dropped before its end.
            tokio::time::sleep(Duration::from_millis(100)).await;
            Ok(())
        }
        Manner::FallsSilentAfter(_) => {
            tokio::time::sleep(Duration::from_secs(60)).await;
            body.finish().await
        }
    }
}
