//! Flows that download as much as they can: no title, no player, one endless response.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response};
use playrate_transport::telemetry::{Monitor, Totals};
use playrate_transport::{Arrival, Client, ConnectionController, Server, ServerOptions, Target, time};
use quinn::Runtime;

use super::collect::transport;
use super::ends::{Place, SERVER_NAME, client, pin_down};
use super::windows::{Marks, WindowCounts, counts};
use super::{Bulk, Measured, Recording, Setup, SimError, Watch, identity};
use crate::record::TransportSample;

/// What is written at once.
static PAYLOAD: [u8; 64 << 10] = [0; 64 << 10];

/// What one flow leaves behind.
#[derive(Clone, Debug)]
pub struct SimulatedBulk {
    /// Spec of its controller.
    pub controller: String,
    /// From the beginning of the run to that of the flow.
    pub joined: Duration,
    /// How long it went on.
    pub lasted: Duration,
    /// Bytes received.
    pub received: playrate_units::Bytes,
    /// Why it broke off, if it did.
    pub error: Option<String>,
    /// What the server's transport counted; `None` if there was no connection.
    pub totals: Option<Totals>,
    /// What the server's window and estimates did.
    pub measured: Option<Measured>,
    /// The server's window and RTT over time, if the setup has taps, on the clock of the run.
    pub transport: Vec<TransportSample>,
    /// What it did in the setup's windows.
    pub windows: Vec<WindowCounts>,
}

/// A flow that runs.
#[derive(Debug)]
pub(super) struct Download {
    runtime: Arc<dyn Runtime>,
    bulk: Bulk,
    client: Client,
    target: Target,
    recording: Recording,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    server: Option<quinn::Connection>,
    received: u64,
    marks: Marks,
    error: Option<String>,
    /// When it was over, in the run.
    ended: Option<Duration>,
}

impl Download {
    /// Sets up server and client of `bulk`, the run's `index`th, at `place`.
    pub(super) fn new(setup: &Setup, index: usize, bulk: &Bulk, place: Place) -> Result<Arc<Self>, SimError> {
        let failed = |error: &dyn ToString| SimError::setup("a bulk flow's server", &error.to_string());
        let seed = setup.seed.child(&format!("bulk {index}"));
        let runtime = place.runtime;
        let recording = Recording::since(place.start, Arc::clone(&runtime)).of_flow(setup, bulk.access);
        recording.keep_series(setup.taps);
        let (identity, pin) = identity(seed)?;
        let mut options = ServerOptions::new(identity);
        options.transport.send_window = setup.send_window();
        pin_down(&mut options.transport, seed, "server");
        let server =
            Server::new(Arc::clone(&runtime), place.server, options).map_err(|error| failed(&error))?;
        let flow = Arc::new(Self {
            client: client(
                setup.wide_receive_window(),
                seed,
                Arc::clone(&runtime),
                place.client,
                pin,
            )?,
            runtime,
            bulk: bulk.clone(),
            target: Target::at(SERVER_NAME, place.address),
            state: Mutex::new(State {
                marks: Marks::new(&setup.windows),
                ..State::default()
            }),
            recording,
        });
        flow.runtime.spawn(Box::pin(Arc::clone(&flow).serve(server)));
        Ok(flow)
    }

    fn state<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn serve(self: Arc<Self>, server: Server) {
        while let Some(incoming) = server.accept().await {
            let mut monitor = Monitor::default();
            for sink in self.recording.listen() {
                monitor = monitor.with_sink(sink);
            }
            let control =
                ConnectionController::new(self.bulk.controller.clone()).with_monitor(Arc::new(monitor));
            let Ok(mut session) = incoming.establish(control).await else {
                continue;
            };
            self.state(|state| state.server = Some(session.quinn().clone()));
            while let Ok(Some(arrival)) = session.accept().await {
                self.runtime.spawn(Box::pin(pour(arrival)));
            }
        }
    }

    /// Downloads until it is time to leave, or the run is over.
    pub(super) async fn run(self: Arc<Self>, watch: Arc<Watch>) {
        time::sleep(&*self.runtime, self.bulk.joins).await;
        let joined = self.recording.since_start(self.runtime.now());
        self.state(|state| state.marks.see(joined, 0));
        let pulled = self.pull(&watch);
        let result = match self.bulk.leaves_after {
            Some(after) => match time::timeout(&*self.runtime, after, pulled).await {
                Ok(result) => result,
                Err(time::Elapsed) => Ok(()),
            },
            None => pulled.await,
        };
        let now = self.recording.since_start(self.runtime.now());
        self.state(|state| {
            state.ended = Some(now);
            state.error = result.err();
        });
    }

    async fn pull(&self, watch: &Watch) -> Result<(), String> {
        let text = |error: &dyn ToString| error.to_string();
        let connection = self
            .client
            .connect(&self.target)
            .await
            .map_err(|error| text(&error))?;
        let (_, mut body) = connection
            .get("/", HeaderMap::new())
            .await
            .map_err(|error| text(&error))?;
        while let Some(chunk) = body.chunk().await.map_err(|error| text(&error))? {
            let now = self.recording.since_start(self.runtime.now());
            let length = chunk.len() as u64;
            watch.add(length);
            self.state(|state| {
                state.received = state.received.saturating_add(length);
                state.marks.see(now, state.received);
            });
            if watch.is_stopped() {
                break;
            }
        }
        Ok(())
    }

    /// What came of it in a run of length `length`, which is over.
    pub(super) fn collect(&self, setup: &Setup, length: Duration) -> SimulatedBulk {
        self.state(|state| SimulatedBulk {
            controller: self.bulk.controller.to_string(),
            joined: self.bulk.joins,
            lasted: state.ended.unwrap_or(length).saturating_sub(self.bulk.joins),
            received: playrate_units::Bytes::new(state.received),
            error: state.error.clone(),
            totals: state.server.as_ref().map(|server| server.stats().into()),
            measured: self.recording.measured(),
            transport: transport(&self.recording.samples_of_run()).0,
            windows: counts(&setup.windows, length, &state.marks, &self.recording.sent()),
        })
    }
}

/// Answers a request without end.
async fn pour(arrival: Arrival) {
    let Ok(exchange) = arrival.receive().await else {
        return;
    };
    let Ok(mut writer) = exchange.start(Response::new(())).await else {
        return;
    };
    while writer.write(Bytes::from_static(&PAYLOAD)).await.is_ok() {}
}
