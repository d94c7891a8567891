//! A server on a free port that answers with a closure, and a client for it.

use std::cell::Cell;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, Response};
use playrate_test_support::{client, eventually, until};
use playrate_transport::{
    Arrival, Body, Client, ClientOptions, Connection, ConnectionController, ControllerChoice, Exchange,
    ExchangeError, Identity, Server, ServerOptions, Target,
};
use playrate_units::Bytes as Size;
use quinn::Runtime;

/// Error code of RFC 9114 §8.1.
pub(crate) const H3_REQUEST_CANCELLED: u64 = 0x10c;

pub(crate) type Handling = Pin<Box<dyn Future<Output = Result<(), ExchangeError>> + Send>>;

/// A running server and the outcomes of its exchanges.
pub(crate) struct Rig {
    pub(crate) server: Server,
    pub(crate) identity: Identity,
    pub(crate) runtime: Arc<dyn Runtime>,
    outcomes: Outcomes,
    /// Controllers of the sessions so far, in order.
    pub(crate) controls: Arc<Mutex<Vec<ConnectionController>>>,
}

type Outcomes = Arc<Mutex<Vec<Result<(), ExchangeError>>>>;

pub(crate) fn runtime() -> Arc<dyn Runtime> {
    Arc::new(quinn::TokioRuntime)
}

pub(crate) fn rig(handle: impl Fn(Exchange) -> Handling + Clone + Send + Sync + 'static) -> Rig {
    rig_with(&["cubic"], |_| {}, handle)
}

/// A server that answers every request with `ok`.
pub(crate) fn ok_rig(change: impl FnOnce(&mut ServerOptions)) -> Rig {
    rig_with(&["cubic"], change, |exchange| {
        Box::pin(exchange.respond(with_length(2), "ok".into()))
    })
}

/// A server that streams `big` at `/big`, and its first 1,000 bytes at every other path.
pub(crate) fn big_rig(change: impl FnOnce(&mut ServerOptions), big: Bytes) -> Rig {
    rig_with(&["cubic"], change, move |exchange| {
        let is_big = exchange.request().uri().path() == "/big";
        let length = if is_big { big.len() } else { 1_000 };
        Box::pin(stream(exchange, big.slice(..length)))
    })
}

/// A server whose connections get the choices in turn.
pub(crate) fn rig_with(
    choices: &[&str],
    change: impl FnOnce(&mut ServerOptions),
    handle: impl Fn(Exchange) -> Handling + Clone + Send + Sync + 'static,
) -> Rig {
    let identity = Identity::development(&[]).unwrap();
    let mut options = ServerOptions::new(identity.clone());
    change(&mut options);
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), runtime(), options).unwrap();
    rig_of(server, identity, choices, handle)
}

/// A rig of a server that was started.
pub(crate) fn rig_of(
    server: Server,
    identity: Identity,
    choices: &[&str],
    handle: impl Fn(Exchange) -> Handling + Clone + Send + Sync + 'static,
) -> Rig {
    let runtime = runtime();
    let choices: Vec<ControllerChoice> = choices.iter().map(|choice| choice.parse().unwrap()).collect();
    let (outcomes, controls) = (Outcomes::default(), Arc::<Mutex<Vec<_>>>::default());
    runtime.spawn(Box::pin({
        let (server, runtime) = (server.clone(), Arc::clone(&runtime));
        let (outcomes, controls) = (Arc::clone(&outcomes), Arc::clone(&controls));
        async move {
            for number in 0.. {
                let Some(incoming) = server.accept().await else {
                    return;
                };
                let control = ConnectionController::new(choices[number % choices.len()].clone());
                controls.lock().unwrap().push(control.clone());
                let (handle, outcomes) = (handle.clone(), Arc::clone(&outcomes));
                let spawner = Arc::clone(&runtime);
                runtime.spawn(Box::pin(async move {
                    let Ok(mut session) = incoming.establish(control).await else {
                        return;
                    };
                    while let Ok(Some(arrival)) = session.accept().await {
                        spawner.spawn(Box::pin(answer(arrival, handle.clone(), Arc::clone(&outcomes))));
                    }
                }));
            }
        }
    }));
    Rig {
        server,
        identity,
        runtime,
        outcomes,
        controls,
    }
}

async fn answer(arrival: Arrival, handle: impl Fn(Exchange) -> Handling, outcomes: Outcomes) {
    let outcome = match arrival.receive().await {
        Ok(exchange) => handle(exchange).await,
        Err(error) => Err(error),
    };
    outcomes.lock().unwrap().push(outcome);
}

impl Rig {
    pub(crate) fn target(&self) -> Target {
        Target::at("localhost", self.server.local_addr().unwrap())
    }

    pub(crate) fn client(&self, change: impl FnOnce(&mut ClientOptions)) -> Client {
        client(self.identity.pin(), change)
    }

    pub(crate) async fn connect(&self) -> Connection {
        self.client(|_| {}).connect(&self.target()).await.unwrap()
    }

    /// Connects once the server has a place.
    pub(crate) async fn connect_eventually(&self) -> Connection {
        eventually("a client connects", async || {
            self.client(|_| {}).connect(&self.target()).await.ok()
        })
        .await
    }

    /// Waits until the server has no connection.
    pub(crate) async fn without_connections(&self) {
        until("the server has no connection", async || {
            self.server.open_connections() == 0
        })
        .await;
    }

    /// Connects a [narrow] client.
    pub(crate) async fn connect_narrow(&self) -> Connection {
        self.client(narrow).connect(&self.target()).await.unwrap()
    }

    /// Outcome of the `number`-th exchange to end.
    pub(crate) async fn outcome(&self, number: usize) -> Result<(), ExchangeError> {
        eventually("an exchange ends", async || {
            self.outcomes.lock().unwrap().get(number).cloned()
        })
        .await
    }
}

/// Makes the client's receive window per stream small, so that the server waits for the reader of a body.
pub(crate) fn narrow(options: &mut ClientOptions) {
    options.transport.stream_receive_window = Size::new(64 << 10);
}

/// Pseudorandom bytes, so that a lost, doubled or swapped chunk is detected.
pub(crate) fn payload(length: usize) -> Bytes {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes.into()
}

/// The value of `look` once it has not changed for some time.
pub(crate) async fn settled(what: &str, look: impl Fn() -> Option<u64>) -> u64 {
    let (before, times) = (Cell::new(None), Cell::new(0));
    eventually(what, async || {
        let now = look();
        let is_same = before.replace(now) == now;
        times.set(if is_same { times.get() + 1 } else { 0 });
        now.filter(|_| times.get() >= 30)
    })
    .await
}

pub(crate) fn with_length(length: usize) -> Response<()> {
    Response::builder()
        .header("content-length", length)
        .body(())
        .unwrap()
}

pub(crate) async fn fetch(connection: &Connection, path: &str) -> Result<Vec<u8>, ExchangeError> {
    let (_, mut body) = connection.get(path, HeaderMap::new()).await?;
    rest(&mut body).await
}

/// Requests `path`. Returns the body, and its beginning that has arrived.
pub(crate) async fn begin(connection: &Connection, path: &str) -> (Body, Vec<u8>) {
    let (_, mut body) = connection.get(path, HeaderMap::new()).await.unwrap();
    let first = body.chunk().await.unwrap().unwrap();
    (body, first.to_vec())
}

/// The bytes of `body` that have not been read.
pub(crate) async fn rest(body: &mut Body) -> Result<Vec<u8>, ExchangeError> {
    let mut rest = Vec::new();
    while let Some(chunk) = body.chunk().await? {
        rest.extend_from_slice(&chunk);
    }
    Ok(rest)
}

/// Sends `payload` in pieces of 16 kB.
pub(crate) async fn stream(exchange: Exchange, payload: Bytes) -> Result<(), ExchangeError> {
    let mut writer = exchange.start(with_length(payload.len())).await?;
    let mut rest = payload;
    while !rest.is_empty() {
        writer.write(rest.split_to(rest.len().min(16_000))).await?;
    }
    writer.finish().await
}
