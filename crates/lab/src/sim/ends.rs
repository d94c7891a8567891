//! Server and client of one viewer, on whatever runtime and sockets they are given.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use playrate_netsim::Seed;
use playrate_transport::telemetry::{Sample, Totals};
use playrate_transport::{
    Client, ClientOptions, Identity, Pin, Server, ServerOptions, Target, TransportOptions, Trust, time,
};
use playrate_units::Bytes;
use quinn::{AsyncUdpSocket, Runtime};
use video_client::report::QualityReport;
use video_server::library::Library;
use video_server::serve::{Settings, VideoServer};

use super::collect::{LinkTap, record};
use super::dash::Player;
use super::meter::Measured;
use super::windows::{Sent, Window, counts};
use super::{Recording, Seat, Setup, SimError, SimulatedViewer, Viewer, Viewing, Watch, identity};

/// The name in the certificate of a run's server.
pub const SERVER_NAME: &str = "server";

/// The MTU of every run: what quinn finds on Ethernet. It is fixed, so that no probes mix with the traffic.
pub(super) const MTU: u16 = 1_452;

/// Makes transport parameters those of the lab: fixed MTU, and all random choices from `seed`.
pub(super) fn pin_down(options: &mut TransportOptions, seed: Seed, name: &str) {
    options.initial_mtu = MTU;
    options.mtu_discovery = None;
    options.seed = Some(seed.derive(name));
}

/// Starts the viewer's server.
///
/// # Errors
/// If a part cannot be set up.
pub fn server(
    viewer: &Viewer,
    setup: &Setup,
    seed: Seed,
    runtime: Arc<dyn Runtime>,
    socket: Arc<dyn AsyncUdpSocket>,
    identity: Identity,
    recording: &Arc<Recording>,
) -> Result<VideoServer, SimError> {
    let failed = |error: &dyn ToString| SimError::setup("the server", &error.to_string());
    let mut options = ServerOptions::new(identity);
    options.transport.send_window = setup.send_window();
    pin_down(&mut options.transport, seed, "server");
    // A player of the papers may pause for as long as its receive buffer plays.
    options.stall_timeout = Duration::from_secs(3_600);
    let transport = Server::new(Arc::clone(&runtime), socket, options).map_err(|error| failed(&error))?;
    let mut library = Library::new();
    for (name, source) in viewer.title.resources() {
        library = library
            .with_source(&name, source)
            .map_err(|error| failed(&error))?;
    }
    let mut settings = Settings::new(viewer.controller.clone());
    let buffer = match viewer.title.representations() {
        Some(presentation) => viewer.dash.playout_buffer(presentation),
        None => viewer.playout.playout_buffer,
    };
    settings.playout_buffer = viewer.server_knows_buffer.then_some(buffer);
    recording.keep_series(setup.taps);
    settings.observer = Some(Arc::clone(recording) as Arc<_>);
    Ok(VideoServer::start(transport, runtime, library, settings))
}

/// Makes a client whose connections take `window` ahead of what is read.
///
/// # Errors
/// If a part cannot be set up.
pub fn client(
    window: Bytes,
    seed: Seed,
    runtime: Arc<dyn Runtime>,
    socket: Arc<dyn AsyncUdpSocket>,
    pin: Pin,
) -> Result<Client, SimError> {
    let mut options = ClientOptions::new(Trust::Pin(pin));
    options.transport.stream_receive_window = window;
    options.transport.receive_window = window;
    pin_down(&mut options.transport, seed, "client");
    Client::new(runtime, socket, options).map_err(|error| SimError::setup("the client", &error))
}

/// Where a session takes place.
#[derive(Debug)]
pub struct Place {
    /// Time, timers and tasks.
    pub runtime: Arc<dyn Runtime>,
    /// The server's socket.
    pub server: Arc<dyn AsyncUdpSocket>,
    /// The client's socket.
    pub client: Arc<dyn AsyncUdpSocket>,
    /// Where the client finds the server.
    pub address: SocketAddr,
    /// When the run began, on the runtime's clock.
    pub start: Instant,
}

/// One viewer's server and client, about to begin.
#[derive(Debug)]
pub struct Session {
    runtime: Arc<dyn Runtime>,
    server: VideoServer,
    client: Client,
    player: Player,
    recording: Arc<Recording>,
    viewing: Viewing,
    leaves_after: Option<Duration>,
    farewell: Duration,
}

/// A session that is over, its records not yet put together.
#[derive(Debug)]
pub struct Ended {
    pub(super) report: QualityReport,
    pub(super) samples: Vec<(Duration, Sample)>,
    pub(super) totals: Option<Totals>,
    pub(super) min_rtt: Option<Duration>,
    pub(super) measured: Option<Measured>,
    pub(super) sent: Sent,
    pub(super) viewing: Viewing,
    /// From the beginning of the run to the beginning of the session.
    pub(super) joined: Duration,
}

impl Session {
    /// Sets up server and client of `viewer`, the run's `index`th, at `place`.
    ///
    /// # Errors
    /// If a part cannot be set up.
    pub fn stage(setup: &Setup, index: usize, viewer: &Viewer, place: Place) -> Result<Self, SimError> {
        let seed = setup.seed.child(&format!("viewer {index}"));
        let runtime = place.runtime;
        let recording = Recording::since(place.start, Arc::clone(&runtime));
        let recording = Arc::new(recording.of_flow(setup, viewer.access));
        let (identity, pin) = identity(seed)?;
        let server = server(
            viewer,
            setup,
            seed,
            Arc::clone(&runtime),
            place.server,
            identity,
            &recording,
        )?;
        let window = setup.receive_window(viewer);
        let client = client(window, seed, Arc::clone(&runtime), place.client, pin)?;
        let target = Target::at(SERVER_NAME, place.address);
        Ok(Self::new(
            runtime, server, client, target, viewer, setup.taps, recording,
        ))
    }

    /// A session of `viewer`, who finds the server at `target`.
    pub fn new(
        runtime: Arc<dyn Runtime>,
        server: VideoServer,
        client: Client,
        target: Target,
        viewer: &Viewer,
        taps: bool,
        recording: Arc<Recording>,
    ) -> Self {
        let title = viewer.title.source().title();
        let frames = u32::try_from(title.frames().len()).unwrap_or(u32::MAX).max(1);
        let player = Player::new(Arc::clone(&runtime), client.clone(), target, viewer, taps);
        Self {
            runtime,
            server,
            client,
            player,
            viewing: Viewing::new(title.duration() / frames),
            recording,
            leaves_after: viewer.leaves_after,
            farewell: Duration::from_secs(3),
        }
    }

    /// Leaves every moment at `seat`.
    #[must_use]
    pub fn with_seat(mut self, seat: Seat) -> Self {
        self.viewing.sit(seat, Arc::clone(&self.recording));
        self
    }

    /// Gives the server so long to see that its client has left.
    #[must_use]
    pub fn with_farewell(self, farewell: Duration) -> Self {
        Self { farewell, ..self }
    }

    /// Plays the title until it is in, the viewer leaves or `watch` stops everything, and shuts the server down.
    ///
    /// # Errors
    /// If the player cannot be set up.
    pub async fn play(mut self, watch: &Arc<Watch>) -> Result<Ended, SimError> {
        let began = self.runtime.now();
        let joined = self.recording.since_start(began);
        self.viewing
            .tell(Arc::clone(watch), joined, self.recording.windows());
        let leaving = leave(Arc::clone(&self.runtime), self.leaves_after, Arc::clone(watch));
        let played = self.player.play(&mut self.viewing, leaving).await?;
        let network = &played.report.network;
        self.viewing.ended(network.ended, network.received);
        self.client.wait_idle().await;
        self.server.shutdown(self.farewell).await;
        let seen = &played.report.playout;
        self.viewing.close(seen.ended.unwrap_or(seen.at));
        Ok(Ended {
            report: played.report,
            samples: self.recording.samples(began),
            totals: self.recording.totals(),
            min_rtt: self.recording.min_rtt(),
            measured: self.recording.measured(),
            sent: self.recording.sent(),
            viewing: self.viewing,
            joined,
        })
    }
}

/// Resolves when the viewer has had enough, or when the run is stopped.
async fn leave(runtime: Arc<dyn Runtime>, after: Option<Duration>, watch: Arc<Watch>) {
    let enough = async {
        match after {
            Some(after) => time::sleep(&*runtime, after).await,
            None => std::future::pending().await,
        }
    };
    let (mut enough, mut stopped) = (pin!(enough), pin!(watch.stopped()));
    let mut listens = false;
    poll_fn(|cx| {
        // Once is enough to be woken, and after that a look costs less than listening again.
        if watch.is_stopped() || (!listens && stopped.as_mut().poll(cx).is_ready()) {
            return Poll::Ready(());
        }
        listens = true;
        enough.as_mut().poll(cx)
    })
    .await;
}

/// What of a whole run a session's results need.
#[derive(Clone, Copy, Debug)]
pub struct RunFacts<'a> {
    /// The parts of it that are looked at.
    pub windows: &'a [Window],
    /// How long it was.
    pub length: Duration,
}

impl Ended {
    /// Puts the records together.
    pub fn collect(self, viewer: &Viewer, link: &LinkTap<'_>, run: &RunFacts<'_>) -> SimulatedViewer {
        let windows = counts(run.windows, run.length, self.viewing.received(), &self.sent);
        let (totals, min_rtt) = (self.totals, self.min_rtt);
        let record = record(&viewer.controller.to_string(), &self, link);
        SimulatedViewer {
            joined: self.joined,
            windows,
            measured: self.measured,
            report: self.report,
            record,
            totals,
            min_rtt,
        }
    }
}
