//! The command `video-server serve`.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use playrate_transport::{AckRequest, Certificates, Pin, ServerOptions, time};
use playrate_units::duration;
use quinn::{Runtime, TokioRuntime};
use tokio::task::JoinSet;
use video_server::library::Library;
use video_server::pages::{Pages, PlayerScripts};
use video_server::serve::arms::{Arm, Arms, ChooseBy};
use video_server::serve::{Settings, VideoServer};

use super::acme::Acme;
use super::announce::announcement;
use super::certificate;
use super::listen::listen;
use super::logging::LogFormat;
use super::media::{self, MediaLocation};
use super::metrics::{Dashboard, Metrics};
use super::options::ServeOptions;
use super::qlog::Qlog;
use super::signals::{self, Signals};
use super::tcp::TcpServer;
use super::watch::Reason;
use super::workers::{self, Workers};
use super::{
    Failure, access_log, handover, logging, notify, options, print, quic_lb, redirect, rescan, state,
};

/// Descriptors that a server may need: one for each TCP connection and for each file being read. The default soft limit
/// on Linux is 1,024.
const DESCRIPTORS: u64 = 65_536;

pub(super) fn run(arguments: &ServeOptions) -> Result<(), Failure> {
    logging::start(arguments.records.log_format);
    match rlimit::increase_nofile_limit(DESCRIPTORS) {
        Ok(limit) => tracing::debug!(limit, "the limit of file descriptors"),
        Err(error) => tracing::warn!(%error, "cannot raise the limit of file descriptors"),
    }
    certificate::check_clock(wall_clock()).map_err(Failure::Run)?;
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.enable_all().build().map_err(Failure::run)?;
    {
        let _context = runtime.enter();
        signals::outlive_hang_ups().map_err(Failure::run)?;
    }
    let mut prepared = prepare(arguments, arguments.media.strict)?;
    if let Some(directory) = &arguments.machines.state
        && prepared.options.endpoint_key.is_none()
    {
        let key = state::create_endpoint_key(directory).map_err(Failure::Input)?;
        prepared.options.endpoint_key = Some(key);
    }
    if prepared.library.titles().next().is_none() && prepared.library.packaged().is_empty() {
        tracing::warn!(
            media = %arguments.media.location,
            "no title (.mp4, .mpd, .m3u8) in the media directory"
        );
    }
    let workers = arguments.limits.workers.unwrap_or_else(workers::default_count);
    let workers = Workers::start(workers).map_err(Failure::run)?;
    runtime.block_on(serve(arguments, prepared, &workers))
}

/// Parts of a server that need no socket.
pub(super) struct Prepared {
    pub(super) library: Library,
    pub(super) settings: Settings,
    pub(super) options: ServerOptions,
    acme: Option<Acme>,
}

/// Reads what `arguments` name. If `strict`, a single title that cannot be played is an error.
pub(super) fn prepare(arguments: &ServeOptions, strict: bool) -> Result<Prepared, Failure> {
    let library = match &arguments.media.location {
        MediaLocation::Directory(directory) => Library::scan(directory),
        #[cfg(feature = "object-store")]
        MediaLocation::Store(location) => arguments.store.scan(location, arguments.media.cache),
    };
    let mut library = library.map_err(media::failure)?;
    if strict {
        library = library.strictly().map_err(media::failure)?;
    }
    library.set_cache(arguments.media.cache);
    let mut settings = Settings::new(arguments.control.controller.clone());
    settings.arms = arms(arguments, &library)?;
    settings.access = arguments.access.access()?;
    let acme = Acme::new(&arguments.acme, arguments.machines.state.as_deref());
    let identities = certificate::identities(arguments, acme.as_ref())?;
    settings.pages = pages(arguments, identities[0].pin())?;
    let mut options = ServerOptions::new(Certificates::new(identities));
    options.max_connections = arguments.limits.max_connections.get();
    options.idle_limit = arguments.limits.idle_limit.0;
    options.max_connections_per_address = arguments.limits.max_connections_per_address.get();
    options.endpoint_key = state::endpoint_key(arguments).map_err(Failure::Input)?;
    if let Some(file) = &arguments.machines.quic_lb {
        let lb = quic_lb::read(file, arguments.machines.server_id).map_err(Failure::Input)?;
        options.quic_lb = Some(lb);
    }
    options.transport.send_window = arguments.limits.send_window;
    let checked = options.transport.to_quinn().context("--send-window");
    checked.map_err(Failure::Input)?;
    Ok(Prepared {
        library,
        settings,
        options,
        acme,
    })
}

/// The web page, unless it is switched off.
fn pages(arguments: &ServeOptions, pin: Pin) -> Result<Option<Pages>, Failure> {
    if arguments.media.no_pages {
        return Ok(None);
    }
    let pages = Pages::new(pin);
    let Some(directory) = &arguments.media.player_scripts else {
        return Ok(Some(pages));
    };
    let scripts = PlayerScripts::read(directory).context("--player-scripts");
    Ok(Some(pages.with_scripts(scripts.map_err(Failure::Input)?)))
}

/// Arms of the command line, if there are any.
fn arms(arguments: &ServeOptions, library: &Library) -> Result<Option<Arms>, Failure> {
    let Some(by) = arguments.control.choose_by else {
        return Ok(None);
    };
    let arms = Arms::new(by, arguments.control.arms.clone())
        .context("--arm")
        .map_err(Failure::Input)?;
    // A path must be unambiguous.
    let taken = |arm: &&Arm| arguments.media.location.contains(&arm.name, library);
    match arms.arms().iter().find(taken).filter(|_| by == ChooseBy::Path) {
        None => Ok(Some(arms)),
        Some(arm) => Err(Failure::Input(anyhow::anyhow!(
            "--arm {0}: {1} contains {0}, so /{0}/… would be ambiguous; give the arm another name",
            arm.name,
            arguments.media.location
        ))),
    }
}

async fn serve(arguments: &ServeOptions, prepared: Prepared, workers: &Workers) -> Result<(), Failure> {
    // Before the server starts, to miss no signal.
    let mut signals = Signals::new().map_err(Failure::run)?;
    let Prepared {
        library,
        mut settings,
        options,
        acme,
    } = prepared;
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
    let qlog = qlog(arguments)?;
    let records = &arguments.records;
    settings.response_log = access_log::start(&records.access_log, records.access_log_format)?;
    let listening = listen(arguments, (&runtime, workers), &options).await?;
    settings.playout_buffer = arguments.control.playout_buffer;
    settings.ack_request = arguments.control.ack_packets.map(AckRequest::new);
    settings.wall_clock = Some(wall_clock);
    settings.cors.clone_from(&arguments.media.cors);
    settings.headers.clone_from(&arguments.media.headers);
    settings.event_path.clone_from(&arguments.media.cmcd_events);
    let seen = Arc::new(Metrics::default());
    if arguments.records.metrics.is_some() {
        settings.observers.push(Arc::clone(&seen) as _);
    }
    settings
        .observers
        .extend(qlog.as_ref().map(|qlog| Arc::clone(qlog) as _));
    settings.limits = arguments.load.limits();
    settings.processor_time = Some(options::processor_time);
    settings.processors = workers.processors();
    let server = VideoServer::start(listening.server, runtime, library, settings);
    let totals = seen.tcp();
    let [media, metrics] = listening.tcp;
    let names = arguments.records.metrics_host.clone();
    let dashboard = metrics.map(|listener| Dashboard::start(listener, seen, server.clone(), names));
    let dashboard = dashboard.transpose().map_err(Failure::run)?;
    let shared = (totals, arguments.proxies.proxies());
    let tcp = media.map(|listener| TcpServer::start(listener, &server, &options, shared));
    let tcp = tcp.transpose().map_err(Failure::input)?;
    let causes = match &arguments.media.location {
        _ if arguments.media.no_watch => (false, None),
        MediaLocation::Directory(_) => (true, None),
        #[cfg(feature = "object-store")]
        MediaLocation::Store(_) => (false, Some(arguments.store.store_listing)),
    };
    let rescans = rescan::start(server.clone(), arguments.media.strict, causes).map_err(Failure::run)?;
    let monitored = dashboard.as_ref().map(Dashboard::address);
    let older = listening.older;
    let upkeep = upkeep(arguments, &server, acme, older.is_some())?;
    let services = [
        tcp.as_ref().map(|tcp| Arc::clone(&tcp.service)),
        dashboard.as_ref().map(|dashboard| Arc::clone(&dashboard.service)),
    ];
    let state = arguments.machines.state.as_ref().zip(listening.offered);
    let offer = state.and_then(|(directory, offered)| handover::offer(directory, offered, services));
    let tcp = tcp.as_ref();
    let text = announcement(arguments, &server, monitored).map_err(Failure::run)?;
    match (&arguments.records.access_log, arguments.records.log_format) {
        (target, _) if target.as_os_str() != access_log::STDOUT => print(&text)?,
        (_, LogFormat::Text) => logging::print(&text),
        // All lines there are JSON.
        (_, LogFormat::Json) => tracing::info!("{text}"),
    }
    // The older process waits for this; if this one fails first, the older one keeps the port.
    if let Some(older) = &older {
        older.serving();
    }
    notify::ready();

    let reload = || {
        notify::reloading();
        logging::ACCESS.reopen();
        certificate::reload(arguments, &server);
        arguments.access.reload(server.settings().access.as_deref());
        // The receiver lives as long as the process.
        let _ = rescans.send(Reason::Request);
        notify::ready();
    };
    let signal = tokio::select! {
        biased;
        signal = signals.end(reload) => Some(signal),
        () = handover::over(offer.as_ref(), older.as_ref(), &server) => None,
    };
    if let Some(dashboard) = &dashboard {
        dashboard.drain();
    }
    let deadline = match signal {
        None => arguments.machines.drain_timeout,
        Some(signal) => tokio::select! {
            biased;
            deadline = delay(arguments, signal, signals.end(reload)) => deadline,
            () = handover::over(offer.as_ref(), older.as_ref(), &server) => arguments.machines.drain_timeout,
        },
    };
    drop(upkeep);
    if let Some(offer) = &offer {
        offer.withdraw_tcp();
    }
    let drained = shut_down(&server, tcp, deadline, signals).await;
    if let Some(qlog) = qlog {
        qlog.finish();
    }
    drained
}

/// Starts tasks of `server` that a process taking over does itself. An older process of this server `may_end` soon.
fn upkeep(
    arguments: &ServeOptions,
    server: &VideoServer,
    acme: Option<Acme>,
    may_end: bool,
) -> Result<JoinSet<()>, Failure> {
    let mut upkeep = JoinSet::new();
    if let Some(address) = arguments.address.redirect_from {
        // The authority validates at port 443, so clients find the server there too.
        let port = match &acme {
            Some(_) => 443,
            None => server.local_addr().map_err(Failure::run)?.port(),
        };
        let behind = (port, arguments.proxies.proxies());
        upkeep.spawn(redirect::start(address, may_end, server, behind)?);
    }
    upkeep.spawn(certificate::watch(server.transport().certificates().clone()));
    upkeep.extend(acme.map(|acme| acme.run(server.clone())));
    Ok(upkeep)
}

/// Waits for the delay after `signal`, or for a `further` signal. Returns the time left for responses in progress.
async fn delay(
    arguments: &ServeOptions,
    signal: &'static str,
    further: impl Future<Output = &'static str>,
) -> Duration {
    let [delay, deadline] =
        [arguments.machines.drain_delay, arguments.machines.drain_timeout].map(duration::display);
    tracing::info!(signal, %delay, %deadline, "shutting down; a second signal ends it at once");
    notify::stopping(
        arguments
            .machines
            .drain_delay
            .saturating_add(arguments.machines.drain_timeout),
    );
    tokio::select! {
        biased;
        signal = further => {
            tracing::warn!(signal, "shutting down at once");
            Duration::ZERO
        }
        () = time::sleep(&TokioRuntime, arguments.machines.drain_delay) => arguments.machines.drain_timeout,
    }
}

/// Waits at most `deadline` for responses to end, or until a further signal.
///
/// # Errors
/// Some responses were aborted.
async fn shut_down(
    server: &VideoServer,
    tcp: Option<&TcpServer>,
    deadline: Duration,
    mut signals: Signals,
) -> Result<(), Failure> {
    let shutdown = async |deadline| {
        let tcp = async {
            match tcp {
                Some(tcp) => tcp.shutdown(deadline).await,
                None => 0,
            }
        };
        tokio::join!(server.shutdown(deadline), tcp)
    };
    let (report, cut_over_tcp) = tokio::select! {
        biased;
        report = shutdown(deadline) => report,
        // A new certificate would be for new connections, which are refused.
        signal = signals.end(|| logging::ACCESS.reopen()) => {
            tracing::warn!(signal, "shutting down at once");
            shutdown(Duration::ZERO).await
        }
    };
    let cut = report.cut.saturating_add(cut_over_tcp);
    tracing::info!(
        drained = report.drained,
        cut_responses = cut,
        sessions = report.totals.sessions,
        responses = report.totals.responses,
        bytes = report.totals.bytes.as_u64(),
        "server stopped"
    );
    // Connections without a response may fail to end in time because their clients are gone; they abort nothing.
    if cut == 0 {
        Ok(())
    } else {
        Err(Failure::run(anyhow::anyhow!(
            "the shutdown aborted {cut} response{}; allow more time with --drain-timeout",
            if cut == 1 { "" } else { "s" }
        )))
    }
}

/// Writer of qlog files, if configured.
fn qlog(arguments: &ServeOptions) -> Result<Option<Arc<Qlog>>, Failure> {
    let Some(directory) = &arguments.records.qlog else {
        return Ok(None);
    };
    let started = Qlog::start(directory, arguments.records.qlog_sample, wall_clock())
        .with_context(|| format!("--qlog {}", directory.display()));
    started.map(|qlog| Some(Arc::new(qlog))).map_err(Failure::Input)
}

#[expect(clippy::disallowed_methods, reason = "this is where the real date comes in")]
pub(super) fn wall_clock() -> SystemTime {
    SystemTime::now()
}
