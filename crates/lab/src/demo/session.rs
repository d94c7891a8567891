//! One controller's session: server, relay and client, from the request to the record.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use playrate_media::MediaSource;
use playrate_netsim::{MAX_LATENESS, PathConfig, Relay, RelayConfig, RelayFlaw, RelayReport, Seed};
use playrate_transport::telemetry::Sample;
use playrate_transport::{
    Client, ClientOptions, ControllerChoice, Identity, Server, ServerOptions, Target, Trust,
};
use playrate_units::Bytes;
use quinn::{Runtime, TokioRuntime};
use tokio::sync::watch;
use video_client::playout::{CatchUp, Clock, PlayoutConfig};
use video_client::report::{Outcome as Ended, QualityReport};
use video_client::{Discard, PlayOptions, Session};
use video_server::library::Library;
use video_server::serve::{Settings, VideoServer};

use super::DemoError;
use super::listen::{Recording, Viewing};
use super::progress::Watch;
use crate::record::{
    LinkCounts, Outcome, PlayoutSample, QueueSample, RunRecord, Sender, TransportSample, Viewer, WindowCut,
};
use crate::words;

/// How long the server may take to see that its client has left.
const FAREWELL: Duration = Duration::from_secs(3);

/// What a session needs.
pub(super) struct Setup {
    pub(super) choice: ControllerChoice,
    pub(super) source: Arc<dyn MediaSource>,
    pub(super) name: String,
    pub(super) path: PathConfig,
    pub(super) seed: Seed,
    pub(super) playout_buffer: Bytes,
    pub(super) watch: Watch,
    pub(super) stopped: watch::Receiver<bool>,
}

/// Plays the title once.
pub(super) async fn play(setup: Setup) -> Result<RunRecord, DemoError> {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
    let identity =
        Identity::development(&[]).map_err(|error| DemoError::setup("the server's certificate", &error))?;
    let pin = identity.pin();
    let recording = Arc::new(Recording::default());
    let server = serve(&setup, &runtime, identity, &recording)?;
    let address = server
        .local_addr()
        .map_err(|error| DemoError::setup("the server", &error))?;

    let relay_began = Instant::now();
    let relay = RelayConfig::new(address, setup.path.clone()).with_seed(setup.seed);
    let relay = Relay::start(&relay).map_err(|error| DemoError::setup("the relay", &error))?;

    let client = Client::bind(Arc::clone(&runtime), ClientOptions::new(Trust::Pin(pin)))
        .map_err(|error| DemoError::setup("the client", &error))?;
    let mut options = PlayOptions::default();
    let target = Target::at("localhost", relay.local_addr());
    options.playout = PlayoutConfig::new(setup.playout_buffer, Clock::CatchUp(CatchUp::default()));
    let session = Session::new(
        runtime,
        client.clone(),
        target,
        &format!("/{}", setup.name),
        options,
    );

    let title = setup.source.title();
    let picture = title.duration() / u32::try_from(title.frames().len()).unwrap_or(u32::MAX).max(1);
    let mut viewing = Viewing::new(picture, setup.watch.clone(), Arc::clone(&recording));
    let mut stopped = setup.stopped.clone();
    let stop = async move {
        // An error means that nobody can stop it any more.
        if stopped.wait_for(|&stop| stop).await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    let began = Instant::now();
    let played = session
        .play(&mut Discard, &mut viewing, stop)
        .await
        .map_err(|error| DemoError::setup("the player", &error))?;
    client.wait_idle().await;
    server.shutdown(FAREWELL).await;
    let relay = tokio::task::spawn_blocking(|| relay.stop())
        .await
        .map_err(|error| DemoError::setup("the relay", &error))?
        .map_err(|error| DemoError::setup("the relay", &error))?;

    let samples = recording.samples(began);
    let (transport, cuts) = transport(&samples);
    Ok(RunRecord {
        spec: setup.choice.to_string(),
        viewer: viewer(&played.report, viewing),
        sender: sender(&recording),
        link: counts(&relay),
        playout: playout(&played.report),
        transport,
        queue: queue(&relay, relay_began, began),
        cuts,
    })
}

fn serve(
    setup: &Setup,
    runtime: &Arc<dyn Runtime>,
    identity: Identity,
    recording: &Arc<Recording>,
) -> Result<VideoServer, DemoError> {
    let failed = |error: &dyn ToString| DemoError::setup("the server", &error.to_string());
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let transport = Server::bind(loopback, Arc::clone(runtime), ServerOptions::new(identity))
        .map_err(|error| failed(&error))?;
    let library = Library::new()
        .with_source(&setup.name, Arc::clone(&setup.source))
        .map_err(|error| failed(&error))?;
    let mut settings = Settings::new(setup.choice.clone());
    settings.playout_buffer = Some(setup.playout_buffer);
    settings.observer = Some(Arc::clone(recording) as Arc<_>);
    Ok(VideoServer::start(
        transport,
        Arc::clone(runtime),
        library,
        settings,
    ))
}

fn viewer(report: &QualityReport, viewing: Viewing) -> Viewer {
    let seen = &report.playout;
    let length = seen.ended.unwrap_or(seen.at);
    let (freezes, discard_times) = viewing.into_parts(length);
    Viewer {
        startup: seen.startup_delay,
        pictures: seen.frames,
        discarded: seen.discarded,
        underflows: seen.underflows,
        frozen: seen.frozen,
        freezes,
        discard_times,
        rebases: seen.rebases,
        delivered: report.network.received,
        receiving: report.network.ended,
        length,
        outcome: match &report.outcome {
            Ended::Complete => Outcome::Played,
            Ended::Stopped => Outcome::Stopped,
            Ended::Failed(reason) => Outcome::Failed(reason.clone()),
            other => Outcome::Failed(format!("{other:?}")),
        },
    }
}

fn playout(report: &QualityReport) -> Vec<PlayoutSample> {
    let points = report.series.iter();
    points
        .map(|point| PlayoutSample {
            at: point.at,
            ahead: point.held_time,
            delivered: point.received,
        })
        .collect()
}

fn sender(recording: &Recording) -> Sender {
    recording.totals().map_or_else(Sender::default, |totals| Sender {
        packets: totals.sent_packets,
        lost: totals.lost_packets,
    })
}

fn counts(relay: &RelayReport) -> LinkCounts {
    let link = &relay.totals.forward.link;
    LinkCounts {
        forwarded: relay.totals.forward.forwarded,
        overflowed: link.dropped.queue_full.packets,
        lost: link.dropped.loss.packets,
        lateness: relay.totals.lateness.max,
        flaws: relay.flaws().iter().map(|flaw| say(flaw, relay)).collect(),
    }
}

/// A flaw as people read it.
fn say(flaw: &RelayFlaw, relay: &RelayReport) -> String {
    let totals = &relay.totals;
    match flaw {
        RelayFlaw::Late(by) => format!(
            "{} late at worst, {} of {} packets more than {}",
            words::time(*by),
            words::grouped(totals.lateness.beyond_limit),
            words::grouped(totals.forward.forwarded + totals.backward.forwarded),
            words::time(MAX_LATENESS),
        ),
        other => other.to_string(),
    }
}

/// The samples of telemetry as records; where the window shrank at a congestion signal, a cut.
fn transport(samples: &[(Duration, Sample)]) -> (Vec<TransportSample>, Vec<WindowCut>) {
    let records = samples.iter().map(|(at, sample)| TransportSample {
        at: *at,
        window: sample.snapshot.window,
        ssthresh: sample.snapshot.ssthresh,
        rtt: sample.smoothed_rtt,
        latest_rtt: sample.latest_rtt,
        capacity: sample.snapshot.capacity,
    });
    let cuts = samples.windows(2).filter_map(|pair| {
        let ((_, before), (at, after)) = (&pair[0], &pair[1]);
        let signalled = after.congestion_events > before.congestion_events;
        let cut = WindowCut {
            at: *at,
            before: before.snapshot.window,
            after: after.snapshot.window,
        };
        (signalled && cut.after < cut.before).then_some(cut)
    });
    (records.collect(), cuts.collect())
}

/// The longest queue of every bin of the relay's series, on the viewer's clock.
fn queue(relay: &RelayReport, relay_began: Instant, began: Instant) -> Vec<QueueSample> {
    let ahead = began.saturating_duration_since(relay_began);
    let bins = relay.forward_series.iter();
    bins.filter_map(|(time, bin)| {
        let at = Duration::from_nanos(time.as_nanos()).checked_sub(ahead)?;
        Some(QueueSample {
            at,
            queued: bin.max_queue,
        })
    })
    .collect()
}
