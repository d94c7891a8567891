//! [`Session`]: server and client of one viewer, on any runtime and sockets.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use playrate_media::{MediaSource, Title};
use playrate_netsim::{LinkSeries, Seed, VirtualRuntime, VirtualSocket};
use playrate_transport::{
    Client, ClientOptions, Identity, Pin, Server, ServerOptions, Target, TransportOptions, Trust,
};
use playrate_units::Bytes;
use quinn::rustls::crypto::CryptoProvider;
use quinn::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use quinn::{AsyncUdpSocket, Runtime};
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};
use video_client::cmcd::CmcdMode;
use video_client::report::QualityReport;
use video_client::{Discard, FrameSource, PlayOptions, Player, SessionOptions, SharedConnection};
use video_server::library::Library;
use video_server::serve::{Settings, VideoServer};

use super::delivery::{Delivery, DeliveryScore};
use super::recording::Recording;
use super::setup::ReceiveWindow;
use super::viewing::{ViewerSpans, Viewing};
use super::windows::Marks;
use super::{MTU, QueueSample, RunHandle, Setup, SimError, SimulatedViewer, Viewer};

/// Name in the certificate of a run's server.
pub const SERVER_NAME: &str = "server";

/// Initial receive window of an autotuned connection: three quarters of Linux's 87,380 bytes (`tcp_rmem`).
const FIRST_AUTOTUNED_WINDOW: Bytes = Bytes::new(65_535);

/// Runtime and sockets of one flow.
#[derive(Debug)]
pub(super) struct Endpoints<R: ?Sized = dyn Runtime, S: ?Sized = dyn AsyncUdpSocket> {
    pub(super) runtime: Arc<R>,
    pub(super) server: Arc<S>,
    pub(super) client: Arc<S>,
    /// Address of the server for the client.
    pub(super) address: SocketAddr,
    /// Beginning of the run, on the runtime's clock.
    pub(super) start: Instant,
    /// Maximum time for the server to notice that its client has left.
    pub(super) shutdown_timeout: Duration,
    /// Cryptography of a simulation's endpoints; `None` on a real network.
    pub(super) crypto_provider: Option<Arc<CryptoProvider>>,
}

/// Runtime and sockets of a flow in virtual time, usable by every stack.
pub(super) type VirtualEndpoints = Endpoints<VirtualRuntime, VirtualSocket>;

impl From<VirtualEndpoints> for Endpoints {
    fn from(ends: VirtualEndpoints) -> Self {
        Self {
            runtime: ends.runtime,
            server: ends.server,
            client: ends.client,
            address: ends.address,
            start: ends.start,
            shutdown_timeout: ends.shutdown_timeout,
            crypto_provider: ends.crypto_provider,
        }
    }
}

/// Creates the two ends of one flow, with the lab's fixed transport parameters.
pub(super) struct FlowEnds<'a, E = Endpoints> {
    pub(super) setup: &'a Setup,
    pub(super) endpoints: &'a E,
    pub(super) seed: Seed,
}

impl<'a, E> FlowEnds<'a, E> {
    /// The ends of the flow `name`, such as `viewer 3`, with all random choices drawn from the setup's seed.
    pub(super) fn new(setup: &'a Setup, endpoints: &'a E, name: &str) -> Self {
        let seed = setup.seed.child(name);
        Self {
            setup,
            endpoints,
            seed,
        }
    }

    /// Applies the setup's transport parameters, and draws all random choices of the end called `name` from the seed.
    pub(super) fn fix(&self, options: &mut TransportOptions, name: &str) {
        let profile = self.setup.transport;
        if !profile.mtu_discovery {
            options.initial_mtu = MTU;
            options.mtu_discovery = None;
        }
        options.loss_detection = profile.loss_detection;
        options.seed = Some(self.seed.derive(name));
    }
}

impl FlowEnds<'_> {
    /// The server's certificate, and the pin that identifies it to the client.
    pub(super) fn identity(&self) -> Result<(Identity, Pin), SimError> {
        identity(self.seed)
    }

    /// Starts the server's endpoint. Its client may stop reading for `pause`, or for the product's default.
    pub(super) fn server(&self, identity: Identity, pause: Option<Duration>) -> Result<Server, SimError> {
        let mut options = ServerOptions::new(identity);
        options.transport.send_window = self.setup.send_window();
        self.fix(&mut options.transport, "server");
        if let Some(pause) = pause {
            options.stall_timeout = pause;
        }
        if let Some(provider) = &self.endpoints.crypto_provider {
            options.crypto_provider = Arc::clone(provider);
        }
        let (runtime, socket) = (&self.endpoints.runtime, &self.endpoints.server);
        Server::new(Arc::clone(runtime), Arc::clone(socket), options)
            .map_err(|error| SimError::setup("the server", &error))
    }

    /// Creates the client's endpoint, whose connections have `window`.
    pub(super) fn client(&self, pin: Pin, window: ReceiveWindow) -> Result<Client, SimError> {
        let mut options = ClientOptions::new(Trust::Pin(pin));
        match window {
            ReceiveWindow::Fixed(size) => {
                options.transport.stream_receive_window = size;
                options.transport.receive_window = size;
            }
            ReceiveWindow::Autotuned { largest } => {
                options.transport.stream_receive_window = largest;
                options.transport.receive_window = FIRST_AUTOTUNED_WINDOW;
                options.receive_autotuning = Some(largest);
            }
        }
        self.fix(&mut options.transport, "client");
        if let Some(provider) = &self.endpoints.crypto_provider {
            options.crypto_provider = Arc::clone(provider);
        }
        let (runtime, socket) = (&self.endpoints.runtime, &self.endpoints.client);
        Client::new(Arc::clone(runtime), Arc::clone(socket), options)
            .map_err(|error| SimError::setup("the client", &error))
    }

    /// The address of the server for the client.
    pub(super) fn target(&self) -> Target {
        Target::at(SERVER_NAME, self.endpoints.address)
    }
}

/// PKCS #8 header before the 32 bytes of an Ed25519 private key (RFC 8410 §7).
const PKCS8_ED25519: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// The identity of a run's server, and its pin. It is reproducible and therefore not secret: only for runs of the lab.
///
/// An Ed25519 key derived from the seed gives the same bytes every time. A certificate with an ECDSA key, like those
/// that a server generates, has signatures of 70 to 72 bytes.
///
/// # Errors
/// If the certificate cannot be created, which no seed should cause.
pub fn identity(seed: Seed) -> Result<(Identity, Pin), SimError> {
    let failed = |error: &dyn ToString| SimError::setup("the server's certificate", &error.to_string());
    let mut der = PKCS8_ED25519.to_vec();
    der.extend_from_slice(&seed.derive("identity"));
    let der = PrivatePkcs8KeyDer::from(der);
    let key = KeyPair::from_pkcs8_der_and_sign_algo(&der, &PKCS_ED25519).map_err(|error| failed(&error))?;
    let certificate = CertificateParams::new(vec![SERVER_NAME.to_owned()])
        .and_then(|params| params.self_signed(&key))
        .map_err(|error| failed(&error))?;
    let identity = Identity::new(vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(der))
        .map_err(|error| failed(&error))?;
    let pin = identity.pin();
    Ok((identity, pin))
}

/// Name of title `number` of a viewer's connection at the server.
fn title_name(viewer: &Viewer, number: u32) -> String {
    match number {
        0 => viewer.title.name().to_owned(),
        number => format!("{number}-{}", viewer.title.name()),
    }
}

/// The player of title `number` of `viewer`, which keeps its time series if the setup of `ends` does.
fn player(ends: &FlowEnds<'_>, client: Client, viewer: &Viewer, number: u32) -> video_client::Session {
    let mut session = SessionOptions::default();
    session.seeks.clone_from(&viewer.seeks);
    if viewer.reports_speed {
        session.cmcd.mode = CmcdMode::Header;
    }
    let player: Player = if let Some(presentation) = viewer.title.representations() {
        let mut options = viewer.dash.clone();
        options.presentation = Some(Arc::clone(presentation));
        options.speed_percent = viewer.playout.speed_percent;
        options.session.cmcd.mode = session.cmcd.mode;
        options.session.seeks = session.seeks;
        if !ends.setup.taps {
            options.series_interval = Duration::ZERO;
        }
        options.into()
    } else {
        let mut options = PlayOptions::default();
        options.playout = viewer.playout.clone();
        options.session = session;
        options.frames = viewer.title.frames();
        if !viewer.seeks.is_empty() {
            // A jump also needs the index of a title with boxes.
            options.frames = FrameSource::Index(Arc::clone(viewer.title.source()));
        }
        if viewer.receive_autotuning {
            options.playout.receive_buffer = options.playout.playout_buffer;
        }
        if !ends.setup.taps {
            options.playout.series_interval = Duration::ZERO;
        }
        options.into()
    };
    let path = format!("/{}", title_name(viewer, number));
    video_client::Session::new(client, ends.target(), &path, player)
}

/// One viewer's server and client, ready to begin.
#[derive(Debug)]
pub(super) struct Session {
    runtime: Arc<dyn Runtime>,
    server: VideoServer,
    client: Client,
    player: video_client::Session,
    /// Players of the connection's other titles.
    others: Vec<video_client::Session>,
    connection: SharedConnection,
    recording: Arc<Recording>,
    pub(super) viewing: Viewing,
    leaves_after: Option<Duration>,
    shutdown_timeout: Duration,
}

/// A session that has ended before the run.
#[derive(Debug)]
pub(super) struct FinishedSession {
    report: QualityReport,
    recording: Arc<Recording>,
    received: Marks,
    spans: ViewerSpans,
    delivery: Option<DeliveryScore>,
    /// Time of the request, since the run began.
    joined: Duration,
}

impl Session {
    /// Sets up server and client of `viewer`, the `index`th of the run, counted from 0.
    ///
    /// # Errors
    /// If server, client or player cannot be set up.
    pub(super) fn new(
        setup: &Setup,
        index: usize,
        viewer: &Viewer,
        endpoints: &Endpoints,
    ) -> Result<Self, SimError> {
        let runtime = Arc::clone(&endpoints.runtime);
        let recording = Recording::new(setup, viewer.access, endpoints.start, Arc::clone(&runtime));
        let recording = Arc::new(recording);
        let ends = FlowEnds::new(setup, endpoints, &format!("viewer {index}"));
        let (identity, pin) = ends.identity()?;
        // A player of the papers may pause for the playing time of its receive buffer.
        let server = ends.server(identity, Some(Duration::from_secs(3_600)))?;
        let settings = settings(viewer, &recording)?;
        let server = VideoServer::start(server, Arc::clone(&runtime), library(viewer)?, settings);
        let client = ends.client(pin, setup.receive_window(viewer))?;
        let title = viewer.title.source().title();
        let frames = u32::try_from(title.frames().len()).unwrap_or(u32::MAX).max(1);
        let in_one_piece = viewer.title.representations().is_none();
        let delivery = in_one_piece.then(|| Delivery::new(title, &viewer.playout));
        let frame_time = viewer.playout.viewing_time(title.duration() / frames);
        let connection = SharedConnection::default();
        let is_shared = viewer.titles_per_connection > 1;
        let mut players = (0..viewer.titles_per_connection.max(1)).map(|number| {
            let player = player(&ends, client.clone(), viewer, number);
            if is_shared {
                player.over(&connection)
            } else {
                player
            }
        });
        let first = players.next();
        let player = first.ok_or_else(|| SimError::setup("the player", &"the viewer has no title"))?;
        let others = players.collect();
        Ok(Self {
            player,
            others,
            viewing: Viewing::new(frame_time, Arc::clone(&recording), delivery),
            runtime,
            server,
            client,
            connection,
            recording,
            leaves_after: viewer.leaves_after,
            shutdown_timeout: endpoints.shutdown_timeout,
        })
    }

    /// Plays the title until it has arrived, the viewer leaves or `handle` stops the run, and shuts the server down.
    ///
    /// # Errors
    /// If the player cannot be set up.
    pub(super) async fn play(mut self, handle: &Arc<RunHandle>) -> Result<FinishedSession, SimError> {
        let joined = self.recording.since_start(self.runtime.now());
        self.viewing.begin(joined, Arc::clone(handle));
        for other in std::mem::take(&mut self.others) {
            self.runtime.spawn(Box::pin(async move {
                // Its results are discarded, and if the viewer's player can be set up, so can this one.
                let _ = other.play(&mut Discard, &mut (), std::future::pending()).await;
            }));
        }
        let leaving = handle.sleep(&*self.runtime, self.leaves_after);
        let played = Box::pin(self.player.play(&mut Discard, &mut self.viewing, leaving)).await;
        let report = played
            .map_err(|error| SimError::setup("the player", &error))?
            .report;
        let network = &report.network;
        self.viewing.see(network.ended, network.received);
        self.connection.close();
        self.client.wait_idle().await;
        self.server.shutdown(self.shutdown_timeout).await;
        Ok(FinishedSession {
            recording: self.recording,
            received: self.viewing.received().clone(),
            delivery: self.viewing.delivery(network.ended),
            spans: self
                .viewing
                .finish(report.playback.ended.unwrap_or(network.ended)),
            report,
            joined,
        })
    }
}

/// The titles of the server of `viewer`.
fn library(viewer: &Viewer) -> Result<Library, SimError> {
    let factor = viewer.declared_rate_factor;
    let mut resources = viewer.title.resources();
    for number in 1..viewer.titles_per_connection {
        resources.push((title_name(viewer, number), Arc::clone(viewer.title.source())));
    }
    #[expect(clippy::float_cmp, reason = "the default, as it is written")]
    if factor != 1.0 {
        for (_, source) in &mut resources {
            *source = Arc::new(Misdeclared::new(Arc::clone(source), factor));
        }
    }
    Library::new()
        .with_representations(resources)
        .map_err(|error| SimError::setup("the server's library", &error))
}

/// A title with an index that is wrong by a factor, and the bytes of `source`.
#[derive(Debug)]
struct Misdeclared {
    source: Arc<dyn MediaSource>,
    title: Title,
}

impl Misdeclared {
    fn new(source: Arc<dyn MediaSource>, factor: f64) -> Self {
        let title = source.title().misdeclared(factor);
        Self { source, title }
    }
}

impl MediaSource for Misdeclared {
    fn len(&self) -> u64 {
        self.source.len()
    }

    fn read_at(&self, offset: u64, max: usize) -> io::Result<bytes::Bytes> {
        self.source.read_at(offset, max)
    }

    fn title(&self) -> &Title {
        &self.title
    }

    fn identity(&self) -> &str {
        self.source.identity()
    }
}

fn settings(viewer: &Viewer, recording: &Arc<Recording>) -> Result<Settings, SimError> {
    let controller = viewer.controller.quinn();
    let controller = controller.map_err(|error| SimError::setup("the controller", &error))?;
    let mut settings = Settings::new(controller);
    let buffer = match viewer.title.representations() {
        Some(presentation) => viewer.dash.playout_buffer(presentation),
        None => viewer.playout.playout_buffer,
    };
    settings.playout_buffer = viewer.server_knows_buffer.then_some(buffer);
    settings.ack_request = viewer.ack_request;
    settings.observers.push(Arc::clone(recording) as Arc<_>);
    Ok(settings)
}

impl FinishedSession {
    /// The session's results after a run of `length`, including the series of the bottleneck if it has one.
    pub(super) fn collect(self, length: Duration, link: Option<&LinkSeries>) -> SimulatedViewer {
        let (control, restarts) = self.recording.statistics().unzip();
        SimulatedViewer {
            joined: self.joined,
            windows: self.recording.counts(length, &self.received),
            control,
            restarts: restarts.flatten(),
            transport: self.recording.samples(self.joined),
            queue: link.map_or_else(Vec::new, |link| queue(link, self.joined)),
            totals: self.recording.totals(),
            spans: self.spans,
            delivery: self.delivery,
            report: self.report,
        }
    }
}

/// The largest queue in every bin of the link's series, for a viewer who joined `joined` after the run began.
fn queue(series: &LinkSeries, joined: Duration) -> Vec<QueueSample> {
    let samples = series.iter().filter_map(|(time, bin)| {
        Some(QueueSample {
            at: time.elapsed().checked_sub(joined)?,
            queued: bin.max_queue,
        })
    });
    samples.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_identity_every_time_and_another_seed_another() {
        let pin = |seed| identity(Seed::new(seed)).unwrap().1;
        assert_eq!(pin(1), pin(1));
        assert_ne!(pin(1), pin(2));
    }
}
