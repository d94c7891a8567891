//! [`run`]: one session of a plan, in virtual time, and all observations of it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use lab::sim::{SERVER_NAME, ServedTitle, identity};
use parking_lot::Mutex;
use playrate_netsim::{Host, HostConfig, Simulation, VirtualRuntime, VirtualSocket};
use playrate_transport::{Client, ClientOptions, Pin, Target, Trust, time};
use playrate_units::Bytes;
use quinn::Runtime;
use tokio::sync::mpsc;
use video_client::dash::{BufferTargets, DashOptions};
use video_client::playout::{CatchUp, Clock, PlayoutConfig};
use video_client::{PlayError, PlayOptions, Played, ReconnectOptions, Session};

use crate::ending::Ending;
use crate::kind::FaultKind;
use crate::media::{Comparison, Counters, Viewer, compare};
use crate::plan::FaultPlan;
use crate::server::{EndedConnection, RunningServer, ServerHost};

/// Interval for checking the server's state.
const TICK: Duration = Duration::from_millis(250);
/// Deadline of a server's shutdown.
pub(crate) const SHUTDOWN: Duration = Duration::from_secs(5);
/// Time for both ends to finish their last tasks after the shutdown, in addition to [`FaultPlan::probe_timeouts`].
const AFTERMATH: Duration = Duration::from_secs(5);
/// Playout buffer of a player with a small buffer.
const LITTLE: Bytes = Bytes::from_kb(100);

/// An event and its time.
pub(crate) type Event = (Duration, String);

/// State of the last server after the session.
#[derive(Clone, Debug)]
pub(crate) struct ServerEnd {
    /// Time after the session when it had no connection left; `None` if it still had one after
    /// [`FaultPlan::freed_within`].
    pub(crate) freed: Option<Duration>,
    /// Duration of the shutdown.
    pub(crate) shutdown: Duration,
    pub(crate) connections: Vec<EndedConnection>,
    /// Totals as the server reports them.
    pub(crate) totals: video_server::serve::ServerTotals,
    /// Bytes that it had read from its disk.
    pub(crate) read: u64,
}

/// Numbers of requests that were neither answered nor aborted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpenResponses {
    /// The largest of all numbers seen.
    pub(crate) most: u64,
    /// The number at most [`TICK`] before the session ended.
    pub(crate) last: u64,
}

impl OpenResponses {
    fn see(&mut self, open: u64) {
        self.most = self.most.max(open);
        self.last = open;
    }
}

/// All observations of a session.
#[derive(Clone, Debug)]
pub(crate) struct SessionRecord {
    pub(crate) ending: Ending,
    /// The error of the client or of the run.
    pub(crate) error: Option<String>,
    /// Time at which the session ended.
    pub(crate) ended: Duration,
    /// Bytes received according to the client's report; `None` if it has none.
    pub(crate) reported: Option<u64>,
    /// Times when the client lost a connection or abandoned a response, according to its report.
    pub(crate) interruptions: Vec<Duration>,
    /// Segments fetched according to the client's report.
    pub(crate) segments: Option<usize>,
    pub(crate) comparison: Comparison,
    /// Pieces that the viewer took, and when.
    pub(crate) taken: Vec<(Duration, bytes::Bytes)>,
    pub(crate) most_ahead: u64,
    pub(crate) open_responses: OpenResponses,
    /// `None` if no server ran at the end.
    pub(crate) server: Option<ServerEnd>,
    /// Tasks left on the server and on the client at the end.
    pub(crate) tasks_left: [usize; 2],
    pub(crate) events: Vec<Event>,
    pub(crate) wire_hash: u64,
}

/// The times and texts of events, for the time line.
#[derive(Clone, Debug)]
struct Log {
    runtime: Arc<VirtualRuntime>,
    events: Arc<Mutex<Vec<Event>>>,
}

impl Log {
    fn add(&self, text: String) {
        self.events.lock().push((self.runtime.time().elapsed(), text));
    }
}

/// Network and hosts of a session.
struct Scene<'a> {
    simulation: &'a Simulation,
    plan: &'a FaultPlan,
    runtime: Arc<VirtualRuntime>,
    client: Host,
    /// Alternative addresses for the client's NAT.
    others: Vec<Host>,
    socket: Arc<VirtualSocket>,
    servers: ServerHost<'a>,
    log: Log,
}

/// Result of the client's task: the session's result, and when it ended.
type ClientEnd = (Duration, anyhow::Result<Played>);

/// Plays the session of `plan`.
///
/// # Errors
/// If the session cannot be set up, which would be a mistake in the plan.
pub(crate) fn run(plan: &FaultPlan) -> anyhow::Result<SessionRecord> {
    let simulation = Simulation::new(plan.seed_of("simulation"));
    let title = plan.title.served()?;
    let path = simulation.add_path(plan.path.config(&plan.faults).build(plan.seed_of("path"))?);
    let host = || simulation.add_host(HostConfig::default());
    let (server, client) = (host(), host());
    simulation.connect(server, client, &[path]);
    let mut others = Vec::new();
    for _ in plan.of_kind(FaultKind::NewAddress) {
        let other = host();
        simulation.connect(server, other, &[path]);
        others.push(other);
    }
    let (identity, pin) = identity(plan.seed_of("identity"))?;
    let counters = Counters::default();
    let runtime = simulation.runtime();
    let scene = Scene {
        plan,
        client,
        others,
        socket: simulation.bind(client, 0)?,
        servers: ServerHost {
            simulation: &simulation,
            host: server,
            plan,
            title: &title,
            identity,
            counters: counters.clone(),
        },
        log: Log {
            runtime: Arc::clone(&runtime),
            events: Arc::default(),
        },
        runtime,
        simulation: &simulation,
    };
    let viewer = Viewer::new(simulation.runtime_on(client), &plan.faults, counters.clone());
    let outcome = simulation.run(deadline(plan), scene.play(&title, pin, viewer.clone()));
    let taken = viewer.taken();
    let comparison = compare(&title, &taken)?;
    let mut record = match outcome {
        Ok(record) => record?,
        Err(error) => SessionRecord {
            error: Some(error.to_string()),
            ..SessionRecord::empty(Ending::Unended, &scene)
        },
    };
    drop(scene);
    record.comparison = comparison;
    record.taken = taken;
    record.most_ahead = counters.most_ahead();
    record.wire_hash = simulation.digest();
    Ok(record)
}

/// Time limit of the run. Every fault of a plan ends within minutes.
fn deadline(plan: &FaultPlan) -> Duration {
    let ends = plan.faults.iter().map(|fault| fault.ends().unwrap_or(fault.at));
    let last = ends.max();
    let last = last.max(plan.viewer_leaves()).unwrap_or_default();
    last + plan.title.duration * 4 + plan.freed_within(last) * 2 + Duration::from_secs(300)
}

impl SessionRecord {
    fn empty(ending: Ending, scene: &Scene<'_>) -> Self {
        Self {
            ending,
            error: None,
            ended: scene.runtime.time().elapsed(),
            reported: None,
            interruptions: Vec::new(),
            segments: None,
            comparison: Comparison::default(),
            taken: Vec::new(),
            most_ahead: 0,
            open_responses: OpenResponses::default(),
            server: None,
            tasks_left: [0; 2],
            events: scene.log.events.lock().clone(),
            wire_hash: 0,
        }
    }
}

impl Scene<'_> {
    /// Plays the title, applies the plan's changes in the meantime, and shuts both ends down.
    async fn play(&self, title: &ServedTitle, pin: Pin, viewer: Viewer) -> anyhow::Result<SessionRecord> {
        let mut key = "first".to_owned();
        let mut server = Some(self.servers.start(0, &key)?);
        let mut returns = true;
        let (sender, mut receiver) = mpsc::unbounded_channel();
        self.start_client(title, pin, viewer, sender)?;
        // The end of a restart's gap is a separate change.
        let changes = self.plan.faults.iter().flat_map(|fault| {
            let returns = match fault.kind {
                FaultKind::Restart { gap, .. } => Some((fault.at + gap, fault.kind, true)),
                _ => None,
            };
            [(fault.at, fault.kind, false)].into_iter().chain(returns)
        });
        let mut changes: Vec<_> = changes.collect();
        changes.sort_by_key(|(at, ..)| *at);
        let mut changes = changes.into_iter().peekable();
        let (mut starts, mut rebinds, mut open) = (0, 0, OpenResponses::default());
        let end = loop {
            let now = self.runtime.time().elapsed();
            let next = changes
                .peek()
                .map_or(now + TICK, |(at, ..)| (*at).min(now + TICK));
            tokio::select! {
                biased;
                end = receiver.recv() => break end,
                () = self.runtime.sleep(next.saturating_sub(now)) => {}
            }
            if let Some(server) = &server {
                open.see(server.open_responses());
            }
            let now = self.runtime.time().elapsed();
            while let Some((_, kind, is_return)) = changes.next_if(|(at, ..)| *at <= now) {
                match kind {
                    FaultKind::Restart { .. } | FaultKind::ServerGone if !is_return => {
                        self.simulation.crash(self.servers.host);
                        server = None;
                        returns &= kind != FaultKind::ServerGone;
                    }
                    FaultKind::Restart { same_key, .. } if server.is_none() && returns => {
                        starts += 1;
                        if !same_key {
                            key = format!("other {starts}");
                        }
                        server = Some(self.servers.start(starts, &key)?);
                    }
                    FaultKind::ClientGone => self.simulation.crash(self.client),
                    FaultKind::NewPort => self.rebind(self.client)?,
                    FaultKind::NewAddress => {
                        self.rebind(self.others.get(rebinds).copied().unwrap_or(self.client))?;
                        rebinds += 1;
                    }
                    FaultKind::ServerSuspended(lasts) if server.is_some() => {
                        self.simulation.suspend(self.servers.host, lasts);
                    }
                    FaultKind::ClientSuspended(lasts) => self.simulation.suspend(self.client, lasts),
                    _ => {}
                }
            }
        };
        self.finish(end, server, open).await
    }

    /// Gives the client's NAT a new port of `host`.
    fn rebind(&self, host: Host) -> anyhow::Result<()> {
        let seen_as = self.simulation.rebind(&self.socket, host)?;
        self.log
            .add(format!("the server sees the client at {seen_as} from now on"));
        Ok(())
    }

    /// Starts the client's session on its host; its result goes to `sender`.
    fn start_client(
        &self,
        title: &ServedTitle,
        pin: Pin,
        mut viewer: Viewer,
        sender: mpsc::UnboundedSender<ClientEnd>,
    ) -> anyhow::Result<()> {
        let runtime = self.simulation.runtime_on(self.client);
        let mut options = ClientOptions::new(Trust::Pin(pin));
        options.transport.seed = Some(self.plan.seed_of("client").derive("endpoint"));
        options.transport.receive_window = self.plan.receive_window;
        options.transport.stream_receive_window = self.plan.receive_window;
        let client = Client::new(
            Arc::clone(&runtime) as Arc<dyn Runtime>,
            self.socket.clone(),
            options,
        )
        .context("cannot set up the client")?;
        let target = Target::at(SERVER_NAME, (self.servers.host.ip(), crate::server::PORT).into());
        let session = session(self.plan, title, client.clone(), target);
        let (leaves, log) = (self.plan.viewer_leaves(), self.log.clone());
        let clock = Arc::clone(&runtime);
        runtime.spawn(Box::pin(async move {
            let leaving = async {
                match leaves {
                    Some(leaves) => time::sleep(&*clock, leaves).await,
                    None => std::future::pending().await,
                }
            };
            let outcome = Box::pin(session.play(&mut viewer, &mut (), leaving)).await;
            log.add(match &outcome {
                Ok(Played { result: Ok(()), .. }) => "the client has all of the title".to_owned(),
                Ok(Played {
                    result: Err(PlayError::Stopped),
                    ..
                }) => "the viewer leaves".to_owned(),
                Ok(Played {
                    result: Err(error), ..
                }) => format!("the client ends: {error}"),
                Err(error) => format!("the client cannot be set up: {error}"),
            });
            let ended = clock.time().elapsed();
            client.wait_idle().await;
            // The run waits for it; if it is gone, the result is not needed.
            let _ = sender.send((ended, outcome.map_err(Into::into)));
        }));
        Ok(())
    }

    /// Waits until the last server has noticed that the client has left, shuts it down, and assembles the record.
    async fn finish(
        &self,
        end: Option<ClientEnd>,
        server: Option<RunningServer>,
        open: OpenResponses,
    ) -> anyhow::Result<SessionRecord> {
        let mut record = SessionRecord::empty(Ending::Vanished, self);
        record.open_responses = open;
        if let Some((ended, played)) = end {
            let Played { report, result, .. } = played?;
            record.ending = Ending::of(&result);
            record.error = result.err().map(|error| error.to_string());
            record.ended = ended;
            record.reported = Some(report.network.received.as_u64());
            let interruptions = report.network.interruptions.recorded.iter();
            record.interruptions = interruptions.map(|it| it.began).collect();
            record.segments = report.dash.map(|dash| dash.segments.len());
        } else {
            self.log.add("the client has vanished".to_owned());
        }
        if let Some(running) = server {
            let freed_within = self.plan.freed_within(record.ended);
            record.server = Some(self.shut_down(running, freed_within).await);
        }
        let tasks = || [self.servers.host, self.client].map(|host| self.simulation.tasks_on(host));
        let until = self.runtime.time().elapsed() + AFTERMATH + self.plan.probe_timeouts(record.ended);
        while tasks() != [0; 2] && self.runtime.time().elapsed() < until {
            self.runtime.sleep(TICK).await;
        }
        record.tasks_left = tasks();
        record.events.clone_from(&self.log.events.lock());
        Ok(record)
    }

    async fn shut_down(&self, running: RunningServer, freed_within: Duration) -> ServerEnd {
        let since = self.runtime.time().elapsed();
        let now = || self.runtime.time().elapsed().saturating_sub(since);
        while running.server.transport().open_connections() > 0 && now() < freed_within {
            self.runtime.sleep(TICK).await;
        }
        let freed = (running.server.transport().open_connections() == 0).then(now);
        let began = now();
        let report = running.server.shutdown(SHUTDOWN).await;
        let shutdown = now().saturating_sub(began);
        for ended in running.ended() {
            let summary = &ended.summary;
            let (requests, responses) = (summary.state.requests, summary.state.responses);
            let text = format!(
                "the server's connection {} ended {}: {requests} requests, {responses} answered, {} aborted, {} B",
                summary.connection.id,
                summary.end,
                summary.aborted,
                summary.bytes.as_u64(),
            );
            self.log.events.lock().push((ended.at, text));
        }
        ServerEnd {
            freed,
            shutdown,
            connections: running.ended(),
            totals: report.totals,
            read: self.servers.counters.read(),
        }
    }
}

/// The session that plays a plan's title.
fn session(plan: &FaultPlan, title: &ServedTitle, client: Client, target: Target) -> Session {
    let path = format!("/{}", title.name());
    let reconnect = plan.reconnects.then(|| {
        let mut reconnect = ReconnectOptions::default();
        reconnect.seed = plan.seed_of("reconnect").number();
        reconnect
    });
    if let Some(presentation) = title.representations() {
        let mut options = DashOptions::default();
        options.presentation = Some(Arc::clone(presentation));
        options.series_interval = Duration::ZERO;
        options.session.reconnect = reconnect;
        if plan.holds_little {
            options.buffer = BufferTargets {
                stable: Duration::from_secs(4),
                top: Duration::from_secs(4),
                ..options.buffer
            };
        }
        return Session::new(client, target, &path, options);
    }
    let mut options = PlayOptions::default();
    options.playout = PlayoutConfig::new(LITTLE, Clock::CatchUp(CatchUp::default()));
    options.playout.series_interval = Duration::ZERO;
    if plan.holds_little {
        options.playout.receive_buffer = LITTLE;
    }
    options.frames = title.frames();
    options.session.reconnect = reconnect;
    Session::new(client, target, &path, options)
}
