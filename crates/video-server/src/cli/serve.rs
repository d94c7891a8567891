//! The command `video-server serve`.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use clap::builder::{OsStringValueParser, TypedValueParser as _};
use playrate_transport::{AckRequest, ControllerChoice, Pin, ServerOptions, TransportOptions, address, time};
use playrate_units::{Bytes, duration};
use quinn::{Runtime, TokioRuntime};
use video_server::http::cors::Cors;
use video_server::library::Library;
use video_server::pages::{Pages, PlayerScripts};
use video_server::serve::arms::{Arm, Arms, ChooseBy};
use video_server::serve::{Settings, VideoServer};

use super::accepting::Accepting;
use super::announce::{announcement, counted};
use super::certificate::{self, identity};
use super::handover::Handover;
use super::listen::listen;
use super::media::{self, MediaLocation};
use super::metrics::{Dashboard, Metrics};
use super::qlog::Qlog;
use super::rescan::{RescannedMedia, Rescans};
use super::signals::{Signal, Signals};
#[cfg(feature = "object-store")]
use super::store;
use super::tcp::TcpServer;
use super::workers::{WorkerCount, Workers};
use super::{Failure, descriptors, load, logging, print, quic_lb, state};

/// Both IPv6 and IPv4: `localhost` is `::1` first, and browsers forced to QUIC do not try 127.0.0.1 after it.
pub(super) const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 4433);

/// Longest time for which clients wait for the packets of `--ack-packets`: a quarter of a round trip of 20 ms. Much
/// longer ones make a controller see a whole window acknowledged at once.
const LONGEST_ACK_DELAY: Duration = Duration::from_millis(5);

const TITLES: &str = "Titles";
const ADDRESSES: &str = "Addresses and certificate";
const WEB: &str = "Web";
const CONTROL: &str = "Congestion control";
const BALANCER: &str = "Behind a load balancer";
const CONNECTIONS: &str = "Limits of connections";
const METRICS: &str = "Metrics and logs";

#[derive(Debug, clap::Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
pub(super) struct ServeOptions {
    /// TOML file with options: keys are their names without --; options on the command line take precedence
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Directory of titles (.mp4 with H.264, DASH, HLS), or their place in an object store, such as
    /// `s3://BUCKET/PREFIX`; other files in it are served unchanged
    #[arg(
        long,
        value_name = "DIR|URL",
        value_parser = OsStringValueParser::new().map(MediaLocation::from),
        value_hint = clap::ValueHint::AnyPath,
        help_heading = TITLES
    )]
    pub(super) media: MediaLocation,

    /// Address and port: UDP for HTTP/3, TCP for HTTP/2 and HTTP/1.1; by default all IPv6 and IPv4 addresses,
    /// port 4433
    #[arg(long, value_name = "ADDR", value_parser = address::parse, help_heading = ADDRESSES)]
    pub(super) listen: Option<SocketAddr>,

    /// Serve HTTP/3 only, nothing over TCP
    #[arg(long, help_heading = ADDRESSES)]
    pub(super) no_tcp: bool,

    /// Do not start if a title in the directory cannot be played, a manifest cannot be used or a directory cannot be
    /// read, and keep the previous titles if one comes later; otherwise these are logged, and served as far as possible
    #[arg(long, help_heading = TITLES)]
    strict: bool,

    /// Memory for the bytes of files that several viewers request, each read once; 0 for none. Of an object store all
    /// that is read is kept, in at least 32 MiB
    #[arg(long, value_name = "SIZE", default_value = "256MB", help_heading = TITLES)]
    cache: Bytes,

    /// Do not watch the directory for changes, or list the store from time to time: it is read again on SIGHUP only
    #[arg(long, help_heading = TITLES)]
    no_watch: bool,

    /// Origins whose pages may read responses (CORS), separated by commas; * for all
    #[arg(long, value_name = "ORIGINS", help_heading = WEB)]
    cors: Option<Cors>,

    /// No web page at / that lists and plays the titles
    #[arg(long, help_heading = WEB)]
    pub(super) no_pages: bool,

    /// Directory with dash.all.min.js, hls.min.js or both, with which the web page plays manifests; also
    /// the directory into which npm installs dashjs and hls.js
    #[arg(long, value_name = "DIR", conflicts_with = "no_pages", help_heading = WEB)]
    player_scripts: Option<PathBuf>,

    /// Congestion controller of HTTP/3 connections; `video-server controllers` lists them
    #[arg(long, value_name = "SPEC", default_value = "video", help_heading = CONTROL)]
    pub(super) controller: ControllerChoice,

    /// Named controller that requests can choose instead; may be repeated
    #[arg(long = "arm", value_name = "NAME=SPEC", requires = "choose_by", help_heading = CONTROL)]
    pub(super) arms: Vec<Arm>,

    /// Part of a connection's first media request that names its arm: path (/NAME/film.mp4 is /film.mp4),
    /// query (?arm=NAME) or representation (its id in the manifest)
    #[arg(long, value_name = "WHAT", requires = "arms", help_heading = CONTROL)]
    choose_by: Option<ChooseBy>,

    /// PEM certificate chain, leaf first; by default a development certificate is generated
    #[arg(long, value_name = "FILE", requires = "key", help_heading = ADDRESSES)]
    pub(super) cert: Option<PathBuf>,

    /// PEM private key of the certificate
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = ADDRESSES)]
    pub(super) key: Option<PathBuf>,

    /// Size of the players' buffers, such as 656kB, for controllers that use it
    #[arg(long, value_name = "SIZE", help_heading = CONTROL)]
    playout_buffer: Option<Bytes>,

    /// Ask clients to acknowledge N packets at once, or what there is after 5 ms, whatever the controller asks for.
    /// Only clients with QUIC's ACK frequency extension do so; others, such as browsers, keep their habit
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=64),
        help_heading = CONTROL
    )]
    ack_packets: Option<u32>,

    /// Directory of this server alone, for a key with which it recognizes its clients after a restart. A server that is
    /// started with the directory and address of a running one takes over its port
    #[arg(long, value_name = "DIR", help_heading = ADDRESSES)]
    pub(super) state: Option<PathBuf>,

    /// TOML file with the QUIC-LB configuration of the load balancer, which then finds this server in connection IDs,
    /// also after a client's address has changed
    #[arg(long, value_name = "FILE", help_heading = BALANCER)]
    pub(super) quic_lb: Option<PathBuf>,

    /// Number of this server in its connection IDs, if the file of --quic-lb has none: decimal, or hexadecimal after 0x
    #[arg(
        long,
        value_name = "N",
        requires = "quic_lb",
        value_parser = quic_lb::server_id,
        help_heading = BALANCER
    )]
    pub(super) server_id: Option<u64>,

    /// File of 32 random bytes that all servers behind the load balancer have, so that each accepts the tokens of the
    /// others, and resets its own connections after a restart; by default the one in --state, or none
    #[arg(long, value_name = "FILE", requires = "quic_lb", help_heading = BALANCER)]
    pub(super) endpoint_key: Option<PathBuf>,

    /// Time from SIGINT or SIGTERM on in which the server is not ready (/readyz) and goes on as before, so that the
    /// load balancer sends it no more clients by the time it refuses them
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration::parse, help_heading = BALANCER)]
    drain_delay: Duration,

    /// Maximum number of HTTP/3 connections, and of TCP connections; beyond it a further one takes the place of an idle
    /// one, or is refused
    #[arg(long, value_name = "N", default_value_t = 1024, help_heading = CONNECTIONS)]
    max_connections: usize,

    /// Maximum time that an HTTP/3 connection may go without a request in progress, such as 60s, or none; after that it
    /// is closed in order
    #[arg(long, value_name = "TIME", default_value = "60s", help_heading = CONNECTIONS)]
    idle_limit: IdleLimit,

    /// Maximum number of HTTP/3 connections of one IPv4 address or IPv6 /64 network; a further one takes the place of
    /// an idle one of them, or is refused
    #[arg(long, value_name = "N", default_value = "256", help_heading = CONNECTIONS)]
    max_connections_per_address: NonZeroUsize,

    /// Number of threads for HTTP/3 connections, each with a socket of its own on the port; by default as many as
    /// processors
    #[arg(long, value_name = "N", help_heading = CONNECTIONS)]
    workers: Option<WorkerCount>,

    #[command(flatten)]
    load: load::AdmissionOptions,

    #[cfg(feature = "object-store")]
    #[command(flatten)]
    store: store::StoreOptions,

    /// Maximum number of bytes per connection that are unsent or unacknowledged
    #[arg(
        long,
        value_name = "SIZE",
        default_value_t = TransportOptions::server().send_window,
        help_heading = CONNECTIONS
    )]
    send_window: Bytes,

    /// Maximum time for responses in progress after SIGINT or SIGTERM and the delay; a second signal ends them at once
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration::parse, help_heading = CONNECTIONS)]
    drain_timeout: Duration,

    /// Address of metrics for Prometheus (/metrics) and a page of live connections (/), such as
    /// 127.0.0.1:9433, over HTTP without TLS: keep it private
    #[arg(long, value_name = "ADDR", value_parser = address::parse, help_heading = METRICS)]
    pub(super) metrics: Option<SocketAddr>,

    /// Directory for qlog files of the HTTP/3 connections' congestion control
    #[arg(long, value_name = "DIR", help_heading = METRICS)]
    qlog: Option<PathBuf>,

    /// Write a qlog file for one connection of every N only
    #[arg(long, value_name = "N", default_value = "1", requires = "qlog", help_heading = METRICS)]
    qlog_sample: NonZeroU64,

    /// Format of log lines
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = logging::LogFormat::Text, help_heading = METRICS)]
    log_format: logging::LogFormat,
}

/// A limit of idle time, or none.
#[derive(Clone, Copy, Debug)]
struct IdleLimit(Option<Duration>);

impl FromStr for IdleLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self(None));
        }
        match duration::parse(text) {
            Ok(Duration::ZERO) => Err("must be above zero, or `none` for no limit".to_owned()),
            Ok(limit) => Ok(Self(Some(limit))),
            Err(error) => Err(format!("{error}, or `none` for no limit")),
        }
    }
}

/// Clap's identifier of the option `--long`.
pub(super) fn id(long: &str) -> Option<String> {
    let command = <ServeOptions as clap::Args>::augment_args(clap::Command::new("serve"));
    let mut options = command.get_arguments();
    let option = options.find(|option| option.get_long() == Some(long))?;
    Some(option.get_id().to_string())
}

pub(super) fn run(arguments: &ServeOptions) -> Result<(), Failure> {
    logging::start(arguments.log_format);
    descriptors::raise_limit();
    let mut prepared = prepare(arguments, arguments.strict)?;
    if let Some(directory) = &arguments.state
        && prepared.options.endpoint_key.is_none()
    {
        let key = state::create_endpoint_key(directory).map_err(Failure::Input)?;
        prepared.options.endpoint_key = Some(key);
    }
    if prepared.library.titles().next().is_none() && prepared.library.packaged().is_empty() {
        tracing::warn!(
            media = %arguments.media,
            "no title (.mp4, .mpd, .m3u8) in the media directory"
        );
    }
    let workers = Workers::start(arguments.workers.unwrap_or_default()).map_err(Failure::run)?;
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Failure::run)?
        .block_on(serve(arguments, prepared, &workers))
}

/// Parts of a server that need no socket.
struct Prepared {
    library: Library,
    arms: Option<Arms>,
    pages: Option<Pages>,
    options: ServerOptions,
}

/// Reads what `arguments` name; if `strict`, a single title that cannot be played is an error.
fn prepare(arguments: &ServeOptions, strict: bool) -> Result<Prepared, Failure> {
    let library = match &arguments.media {
        MediaLocation::Directory(directory) if strict => Library::scan_strictly(directory),
        MediaLocation::Directory(directory) => Library::scan(directory),
        #[cfg(feature = "object-store")]
        MediaLocation::Store(location) => {
            let library = arguments.store.scan(location, arguments.cache);
            if strict {
                library.and_then(Library::strictly)
            } else {
                library
            }
        }
    };
    let mut library = library.map_err(media::failure)?;
    library.set_cache(arguments.cache);
    let arms = arms(arguments, &library)?;
    let identity = identity(arguments)?;
    let pages = pages(arguments, identity.pin())?;
    let mut options = ServerOptions::new(identity);
    options.max_connections = arguments.max_connections;
    options.idle_limit = arguments.idle_limit.0;
    options.max_connections_per_address = arguments.max_connections_per_address.get();
    options.endpoint_key = state::endpoint_key(arguments).map_err(Failure::Input)?;
    if let Some(file) = &arguments.quic_lb {
        let lb = quic_lb::read(file, arguments.server_id).map_err(Failure::Input)?;
        options.quic_lb = Some(lb);
    }
    options.transport.send_window = arguments.send_window;
    options
        .transport
        .to_quinn()
        .context("--send-window")
        .map_err(Failure::Input)?;
    Ok(Prepared {
        library,
        arms,
        pages,
        options,
    })
}

/// The web page, unless it is switched off.
fn pages(arguments: &ServeOptions, pin: Pin) -> Result<Option<Pages>, Failure> {
    if arguments.no_pages {
        return Ok(None);
    }
    let pages = Pages::new(pin);
    let Some(directory) = &arguments.player_scripts else {
        return Ok(Some(pages));
    };
    let scripts = PlayerScripts::read(directory).context("--player-scripts");
    Ok(Some(pages.with_scripts(scripts.map_err(Failure::Input)?)))
}

/// Checks everything that `serve` would use except its addresses; returns a summary.
pub(super) fn check(arguments: &ServeOptions) -> Result<String, Failure> {
    let Prepared {
        library,
        arms,
        options,
        ..
    } = prepare(arguments, true)?;
    let mut found = format!(
        "{} and {} in {}, {}",
        counted(library.title_count(), "title"),
        counted(library.other_files(), "other file"),
        arguments.media,
        arguments.controller
    );
    if let Some(arms) = arms {
        let _ = write!(
            found,
            ", {} chosen by {}",
            counted(arms.arms().len(), "arm"),
            arms.by()
        );
    }
    found.push_str(match &arguments.cert {
        Some(_) => ", certificate and key that match",
        None => ", a certificate for development",
    });
    if let Some(lb) = &options.quic_lb {
        let _ = write!(found, ", {}", quic_lb::describe(lb));
    }
    Ok(found)
}

/// Arms of the command line, if there are any.
fn arms(arguments: &ServeOptions, library: &Library) -> Result<Option<Arms>, Failure> {
    let Some(by) = arguments.choose_by else {
        return Ok(None);
    };
    let arms = Arms::new(by, arguments.arms.clone())
        .context("--arm")
        .map_err(Failure::Input)?;
    // A path must be unambiguous.
    let taken = |arm: &&Arm| arguments.media.contains(&arm.name, library);
    match arms.arms().iter().find(taken).filter(|_| by == ChooseBy::Path) {
        None => Ok(Some(arms)),
        Some(arm) => Err(Failure::Input(anyhow::anyhow!(
            "--arm {0}: {1} contains {0}, so /{0}/… would be ambiguous; give the arm another name",
            arm.name,
            arguments.media
        ))),
    }
}

/// Configured address, if a client can connect to it.
pub(super) fn specific(listen: Option<SocketAddr>) -> Option<IpAddr> {
    listen
        .map(|address| address.ip())
        .filter(|ip| !ip.is_unspecified())
}

async fn serve(arguments: &ServeOptions, prepared: Prepared, workers: &Workers) -> Result<(), Failure> {
    // Before the server starts, so that no signal is missed.
    let mut signals = Signals::new().map_err(Failure::run)?;
    let Prepared {
        library,
        arms,
        pages,
        options,
    } = prepared;
    let pin = options.identity.pin();
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
    let qlog = qlog(arguments)?;
    let mut listening = listen(arguments, (&runtime, workers), &options).await?;
    let mut settings = Settings::new(arguments.controller.clone());
    settings.arms = arms;
    settings.pages = pages;
    settings.playout_buffer = arguments.playout_buffer;
    settings.ack_request = arguments
        .ack_packets
        .map(|packets| AckRequest::new(packets).within(LONGEST_ACK_DELAY));
    settings.wall_clock = Some(wall_clock);
    settings.cors.clone_from(&arguments.cors);
    let seen = Arc::new(Metrics::default());
    if listening.metrics.is_some() {
        settings.observers.push(Arc::clone(&seen) as _);
    }
    settings
        .observers
        .extend(qlog.as_ref().map(|qlog| Arc::clone(qlog) as _));
    settings.limits = arguments.load.limits();
    settings.processor_time = load::PROCESSOR_TIME;
    settings.processors = workers.processors();
    let offered = listening.offered().map_err(Failure::run)?;
    let server = VideoServer::start(listening.server, runtime, library, settings);
    let totals = seen.tcp();
    let dashboard = listening
        .metrics
        .map(|listener| Dashboard::start(listener, seen, server.clone()).map(Arc::new))
        .transpose()
        .map_err(Failure::run)?;
    let tcp = listening
        .tcp
        .map(|listener| TcpServer::start(listener, &server, &options, totals).map(Arc::new))
        .transpose()
        .map_err(Failure::input)?;
    let (watched, media) = match &arguments.media {
        MediaLocation::Directory(directory) => {
            (!arguments.no_watch, RescannedMedia::Directory(directory.clone()))
        }
        #[cfg(feature = "object-store")]
        MediaLocation::Store(_) => {
            let interval = Some(arguments.store.listing()).filter(|_| !arguments.no_watch);
            (false, RescannedMedia::Store { interval })
        }
    };
    let rescans = Rescans::start(media, (arguments.strict, watched), server.clone()).map_err(Failure::run)?;
    let monitored = dashboard.as_ref().map(|dashboard| dashboard.address());
    let accepting = Accepting { tcp, dashboard };
    let tcp = accepting.tcp.as_deref();
    let mut handover = Handover::new(listening.older);
    if let (Some(directory), Some(offered)) = (&arguments.state, offered) {
        handover.offer(directory, offered, accepting.clone());
    }
    print(&announcement(arguments, &server, monitored, pin).map_err(Failure::run)?)?;
    // The older process waits for this, and goes on with the port if this one fails before.
    handover.serving();

    let signal = loop {
        tokio::select! {
            biased;
            signal = signals.next() => match signal {
                Signal::End(name) => break Some(name),
                Signal::Reload => {
                    certificate::reload(arguments, &server, tcp);
                    rescans.request();
                }
            },
            () = handover.over(&server, &accepting) => break None,
        }
    };
    if let Some(dashboard) = &accepting.dashboard {
        dashboard.drain();
    }
    let deadline = match signal {
        None => arguments.drain_timeout,
        Some(signal) => tokio::select! {
            biased;
            deadline = delay(arguments, signal, &mut signals) => deadline,
            () = handover.over(&server, &accepting) => arguments.drain_timeout,
        },
    };
    handover.close_tcp();
    let drained = shut_down(&server, tcp, deadline, signals).await;
    if let Some(qlog) = qlog {
        qlog.finish();
    }
    drained
}

/// Waits for the delay after `signal`, or a further one. Returns the time that responses in progress then have.
async fn delay(arguments: &ServeOptions, signal: &'static str, signals: &mut Signals) -> Duration {
    let [delay, deadline] = [arguments.drain_delay, arguments.drain_timeout].map(duration::display);
    tracing::info!(signal, %delay, %deadline, "shutting down; a second signal ends it at once");
    tokio::select! {
        biased;
        signal = signals.end() => {
            tracing::warn!(signal, "shutting down at once");
            Duration::ZERO
        }
        () = time::sleep(&TokioRuntime, arguments.drain_delay) => arguments.drain_timeout,
    }
}

/// Lets responses end within `deadline`, or until a further signal.
///
/// # Errors
/// Some were aborted.
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
        signal = signals.end() => {
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
    // Connections without a response that did not end in time, as their clients may be gone, abort nothing.
    if cut == 0 {
        Ok(())
    } else {
        Err(Failure::run(anyhow::anyhow!(
            "the shutdown aborted {}; allow more time with --drain-timeout",
            counted(usize::try_from(cut).unwrap_or(usize::MAX), "response")
        )))
    }
}

/// Writer of qlog files, if configured.
fn qlog(arguments: &ServeOptions) -> Result<Option<Arc<Qlog>>, Failure> {
    let Some(directory) = &arguments.qlog else {
        return Ok(None);
    };
    let started = Qlog::start(directory, arguments.qlog_sample, wall_clock())
        .with_context(|| format!("--qlog {}", directory.display()));
    started.map(|qlog| Some(Arc::new(qlog))).map_err(Failure::Input)
}

#[expect(clippy::disallowed_methods, reason = "this is where the real date comes in")]
fn wall_clock() -> SystemTime {
    SystemTime::now()
}
