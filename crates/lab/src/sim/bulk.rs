//! Bulk flows: one endless response each, read immediately; no title and no player.

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response};
use playrate_transport::telemetry::{Monitor, Sample};
use playrate_transport::{Arrival, Client, ConnectionController, ControllerChoice, Server, Target, time};
use quinn::{ConnectionStats, Runtime};

use super::recording::Recording;
use super::session::{Endpoints, FlowEnds};
use super::setup::ReceiveWindow;
use super::windows::{Marks, WindowCounts};
use super::{Bulk, ControlStatistics, RunHandle, Setup, SimError};

/// Payload of one write.
static PAYLOAD: [u8; 64 << 10] = [0; 64 << 10];

/// Results of one bulk flow.
#[derive(Clone, Debug)]
pub struct SimulatedBulk {
    /// Canonical spec of the controller.
    pub controller: String,
    /// Time of the request, since the run began.
    pub joined: Duration,
    /// Time from the request to the end of the download or the run.
    pub lasted: Duration,
    /// Bytes that the client received.
    pub received: playrate_units::Bytes,
    /// Error that ended the download early.
    pub error: Option<String>,
    /// Totals of the server's transport; `None` if there was no connection.
    pub totals: Option<ConnectionStats>,
    /// Statistics of the server's window, RTT and estimates.
    pub control: Option<ControlStatistics>,
    /// Samples of the server's connection, on the clock of the run; empty if the setup keeps no series.
    pub transport: Vec<Sample>,
    /// Counts in each of the setup's windows.
    pub windows: Vec<WindowCounts>,
}

/// A bulk flow during a run.
#[derive(Debug)]
pub(super) struct Download {
    runtime: Arc<dyn Runtime>,
    bulk: Bulk,
    client: Client,
    target: Target,
    recording: Recording,
    state: Mutex<DownloadState>,
}

#[derive(Debug, Default)]
struct DownloadState {
    server: Option<quinn::Connection>,
    received: u64,
    marks: Marks,
    error: Option<String>,
    /// End of the download, since the beginning of the run.
    ended: Option<Duration>,
}

impl Download {
    /// Sets up server and client of `bulk`, the `index`th of the run, counted from 0.
    pub(super) fn new(
        setup: &Setup,
        index: usize,
        bulk: &Bulk,
        endpoints: &Endpoints,
    ) -> Result<Arc<Self>, SimError> {
        let runtime = Arc::clone(&endpoints.runtime);
        let ends = FlowEnds::new(setup, endpoints, &format!("bulk {index}"));
        let (identity, pin) = ends.identity()?;
        let server = ends.server(identity, None)?;
        let controller = bulk.controller.quinn();
        let controller = controller.map_err(|error| SimError::setup("the controller", &error))?;
        let flow = Arc::new(Self {
            client: ends.client(pin, ReceiveWindow::Fixed(setup.wide_receive_window()))?,
            bulk: bulk.clone(),
            target: ends.target(),
            recording: Recording::new(setup, bulk.access, endpoints.start, Arc::clone(&runtime)),
            state: Mutex::new(DownloadState {
                marks: Marks::new(&setup.windows),
                ..DownloadState::default()
            }),
            runtime,
        });
        flow.runtime
            .spawn(Box::pin(Arc::clone(&flow).serve(server, controller)));
        Ok(flow)
    }

    fn state<T>(&self, look: impl FnOnce(&mut DownloadState) -> T) -> T {
        look(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn serve(self: Arc<Self>, server: Server, controller: ControllerChoice) {
        while let Some(incoming) = server.accept().await {
            let mut monitor = Monitor::default();
            for sink in self.recording.sinks() {
                monitor = monitor.with_sink(sink);
            }
            let control = ConnectionController::new(controller.clone()).with_monitor(Arc::new(monitor));
            let Ok(mut session) = incoming.establish(control).await else {
                continue;
            };
            self.state(|state| state.server = Some(session.quinn().clone()));
            while let Ok(Some(arrival)) = session.accept().await {
                self.runtime.spawn(Box::pin(pour(arrival)));
            }
        }
    }

    /// Downloads until the flow's time is over or `handle` stops the run.
    pub(super) async fn run(self: Arc<Self>, handle: Arc<RunHandle>) {
        time::sleep(&*self.runtime, self.bulk.joins).await;
        let joined = self.recording.since_start(self.runtime.now());
        self.state(|state| state.marks.see(joined, 0));
        let result = tokio::select! {
            biased;
            result = self.pull(&handle) => result,
            () = handle.sleep(&*self.runtime, self.bulk.leaves_after) => Ok(()),
        };
        let now = self.recording.since_start(self.runtime.now());
        self.state(|state| {
            state.ended = Some(now);
            state.error = result.err().map(|error| error.to_string());
        });
    }

    async fn pull(&self, handle: &RunHandle) -> Result<(), Box<dyn Error + Send + Sync>> {
        let connection = self.client.connect(&self.target).await?;
        let (_, mut body) = connection.get("/", HeaderMap::new()).await?;
        while let Some(chunk) = body.chunk().await? {
            let now = self.recording.since_start(self.runtime.now());
            let length = chunk.len() as u64;
            handle.add_received(length);
            self.state(|state| {
                state.received = state.received.saturating_add(length);
                state.marks.see(now, state.received);
            });
        }
        Ok(())
    }

    /// The flow's results, after a run of `length`.
    pub(super) fn collect(&self, length: Duration) -> SimulatedBulk {
        self.state(|state| SimulatedBulk {
            controller: self.bulk.controller.to_string(),
            joined: self.bulk.joins,
            lasted: state.ended.unwrap_or(length).saturating_sub(self.bulk.joins),
            received: playrate_units::Bytes::new(state.received),
            error: state.error.clone(),
            totals: state.server.as_ref().map(quinn::Connection::stats),
            control: self.recording.statistics().map(|(control, _)| control),
            transport: self.recording.samples(Duration::ZERO),
            windows: self.recording.counts(length, &state.marks),
        })
    }
}

/// Answers a request with an endless body.
async fn pour(arrival: Arrival) {
    let Ok(exchange) = arrival.receive().await else {
        return;
    };
    let Ok(mut writer) = exchange.start(Response::new(())).await else {
        return;
    };
    while writer.write(Bytes::from_static(&PAYLOAD)).await.is_ok() {}
}
