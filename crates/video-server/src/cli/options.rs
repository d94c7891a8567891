//! [`ServeOptions`]: the options of the command `video-server serve`.

use std::net::{IpAddr, SocketAddr};
use std::num::{NonZeroU8, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser as _};
use instant_acme::LetsEncrypt;
#[cfg(feature = "object-store")]
use playrate_origin::{DiskOptions, Origin, OriginOptions};
use playrate_transport::{ControllerChoice, TransportOptions, address};
use playrate_units::{Bitrate, Bytes, Probability, duration};
use rustix::time::{ClockId, clock_gettime};
use video_server::admission::Limits;
use video_server::http::caching::HeaderRule;
use video_server::http::cors::Cors;
#[cfg(feature = "object-store")]
use video_server::library::{Library, LibraryError};
use video_server::serve::arms::{Arm, ChooseBy};

use super::access::{AccessOptions, ProxyOptions};
use super::access_log::AccessLogFormat;
use super::media::MediaLocation;
use super::{acme, logging, quic_lb, workers};

#[derive(Debug, clap::Args)]
pub(super) struct ServeOptions {
    /// TOML file with options: each key is an option's name without --. Options on the command line take precedence
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,

    #[command(flatten)]
    pub(super) media: MediaOptions,

    #[cfg(feature = "object-store")]
    #[command(flatten)]
    pub(super) store: StoreOptions,

    #[command(flatten)]
    pub(super) address: AddressOptions,

    #[command(flatten)]
    pub(super) acme: AcmeOptions,

    #[command(flatten)]
    pub(super) access: AccessOptions,

    #[command(flatten)]
    pub(super) proxies: ProxyOptions,

    #[command(flatten)]
    pub(super) control: ControlOptions,

    #[command(flatten)]
    pub(super) limits: LimitOptions,

    #[command(flatten)]
    pub(super) load: AdmissionOptions,

    #[command(flatten)]
    pub(super) machines: MachineOptions,

    #[command(flatten)]
    pub(super) records: RecordOptions,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Media")]
pub(super) struct MediaOptions {
    /// Directory of titles (MP4, DASH or HLS), or their location in an object store, such as
    /// `s3://BUCKET/PREFIX`. Other files are served unchanged
    #[arg(
        long = "media",
        value_name = "DIR|URL",
        value_parser = OsStringValueParser::new().map(MediaLocation::from),
        value_hint = clap::ValueHint::AnyPath
    )]
    pub(super) location: MediaLocation,

    /// Refuse to start if a title or a manifest is unusable or a directory cannot be read; if one becomes so later,
    /// keep serving the previous titles. Without this option such faults are only logged
    #[arg(long)]
    pub(super) strict: bool,

    /// Memory for files that several viewers request, so that each is read once; 0B for none. With an object store, it
    /// keeps everything that was read, in at least 32 MiB
    #[arg(long, value_name = "SIZE", default_value = "256MB")]
    pub(super) cache: Bytes,

    /// Do not watch the directory for changes or list the store regularly; rescan on SIGHUP only
    #[arg(long)]
    pub(super) no_watch: bool,

    /// Origins whose pages may read responses (CORS), separated by commas; * for all
    #[arg(long, value_name = "ORIGINS")]
    pub(super) cors: Option<Cors>,

    /// Header field for successful responses whose path matches a pattern, such as
    /// '*.m4s: Cache-Control: max-age=31536000, immutable'; may be repeated, and the last match wins. A pattern without
    /// / matches file names; ** matches any directories, as in /films/**
    #[arg(long = "header", value_name = "PATTERN: NAME: VALUE")]
    pub(super) headers: Vec<HeaderRule>,

    /// Path, such as /cmcd, at which event reports of players (CMCD version 2) are received, counted and logged
    #[arg(long, value_name = "PATH", value_parser = event_path)]
    pub(super) cmcd_events: Option<String>,

    /// Do not serve the web page at / that lists and plays the titles
    #[arg(long)]
    pub(super) no_pages: bool,

    /// Directory with dash.all.min.js, hls.min.js or both, which the web page needs to play manifests. A directory
    /// where npm installed dashjs and hls.js works too
    #[arg(long, value_name = "DIR", conflicts_with = "no_pages")]
    pub(super) player_scripts: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Addresses and certificate")]
pub(super) struct AddressOptions {
    /// Address and port: UDP for HTTP/3, TCP for HTTP/2 and HTTP/1.1; by default port 4433 on all IPv6 and IPv4
    /// addresses
    #[arg(long, value_name = "ADDR", value_parser = address::parse)]
    pub(super) listen: Option<SocketAddr>,

    /// Serve HTTP/3 only, without HTTP/2 and HTTP/1.1
    #[arg(long)]
    pub(super) no_tcp: bool,

    /// PEM certificate chain, leaf first; by default the server generates a development certificate. May be repeated,
    /// each with its --key: a client gets the first that is for the name that it requests, or else the first of all
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(super) cert: Vec<PathBuf>,

    /// PEM private key of the certificate, in a file that other users cannot read
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(super) key: Vec<PathBuf>,

    /// Address, such as '[::]:80', at which requests over HTTP without TLS are redirected to HTTPS, to names of the
    /// certificates
    #[arg(long, value_name = "ADDR", value_parser = address::parse, conflicts_with = "no_tcp")]
    pub(super) redirect_from: Option<SocketAddr>,
}

impl AddressOptions {
    /// Configured IP address, if a client can connect to it.
    pub(super) fn specific_ip(&self) -> Option<IpAddr> {
        self.listen
            .map(|address| address.ip())
            .filter(|ip| !ip.is_unspecified())
    }
}

#[derive(Debug, clap::Args)]
#[expect(clippy::struct_field_names, reason = "they are the names of the options")]
#[command(next_help_heading = "Certificate that renews itself (ACME, such as Let's Encrypt)")]
pub(super) struct AcmeOptions {
    /// Domain for which the server obtains a certificate and renews it; may be repeated. The authority must reach the
    /// server's TCP port as port 443 of each domain. The certificate and its key are kept in --state
    #[arg(
        long,
        value_name = "DOMAIN",
        value_parser = acme::domain,
        requires_all = ["state", "acme_agree"],
        conflicts_with_all = ["cert", "no_tcp"]
    )]
    pub(super) acme_domain: Vec<String>,

    /// Agree to the authority's terms of service
    #[arg(long, requires = "acme_domain")]
    pub(super) acme_agree: bool,

    /// Use the staging authority of Let's Encrypt, for trials: no client trusts its certificates
    #[arg(long, requires = "acme_domain", conflicts_with = "acme_directory")]
    pub(super) acme_staging: bool,

    /// Directory of another authority, whose own certificate the system trusts; by default that of Let's Encrypt
    #[arg(long, value_name = "URL", requires = "acme_domain", value_parser = acme::directory)]
    pub(super) acme_directory: Option<String>,
}

impl AcmeOptions {
    /// URL of the authority's directory.
    pub(super) fn directory(&self) -> String {
        let default = if self.acme_staging {
            LetsEncrypt::Staging
        } else {
            LetsEncrypt::Production
        };
        self.acme_directory
            .clone()
            .unwrap_or_else(|| default.url().to_owned())
    }
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Congestion control")]
pub(super) struct ControlOptions {
    /// Congestion controller of HTTP/3 connections; `video-server controllers` lists them
    #[arg(long, value_name = "SPEC", default_value = "video")]
    pub(super) controller: ControllerChoice,

    /// Named controller that requests can select instead; may be repeated
    #[arg(long = "arm", value_name = "NAME=SPEC", requires = "choose_by")]
    pub(super) arms: Vec<Arm>,

    /// Property of a connection's first media request that selects its arm: path (/NAME/film.mp4 is /film.mp4), query
    /// (?arm=NAME) or representation (its id in the manifest)
    #[arg(long, value_name = "WHAT", requires = "arms", hide_possible_values = true)]
    pub(super) choose_by: Option<ChooseBy>,

    /// Size of the players' buffers, such as 656kB; only some controllers use it
    #[arg(long, value_name = "SIZE")]
    pub(super) playout_buffer: Option<Bytes>,

    /// Ask clients for one ACK frame per N packets, or after 10 ms, instead of the number that the controller requests
    /// (`video`: 6). Only clients with QUIC's ACK frequency extension comply; browsers do not have it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(super) ack_packets: Option<u32>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Restarts and multiple servers")]
pub(super) struct MachineOptions {
    /// Directory, for this server alone, with the key by which it recognizes its clients after a restart. A server that
    /// is started with the directory and address of a running one takes over its port
    #[arg(long, value_name = "DIR")]
    pub(super) state: Option<PathBuf>,

    /// TOML file with the load balancer's QUIC-LB configuration. Connection IDs then identify this server, so that its
    /// packets reach it even after a client's address has changed
    #[arg(long, value_name = "FILE")]
    pub(super) quic_lb: Option<PathBuf>,

    /// Number of this server in its connection IDs if the file of --quic-lb has none: decimal, or hexadecimal after 0x
    #[arg(long, value_name = "N", requires = "quic_lb", value_parser = quic_lb::server_id)]
    pub(super) server_id: Option<u64>,

    /// File of 32 random bytes, the same for all servers behind the load balancer. Each then accepts the others' tokens
    /// and can reset its own connections after a restart; by default the key in --state, or none
    #[arg(long, value_name = "FILE", requires = "quic_lb")]
    pub(super) endpoint_key: Option<PathBuf>,

    /// Time after SIGINT or SIGTERM during which /readyz says that the server is not ready, while it serves as before.
    /// The load balancer can stop sending clients before the server refuses them
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration::parse)]
    pub(super) drain_delay: Duration,

    /// Maximum time for responses in progress after the signal and --drain-delay; a second signal ends them immediately
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration::parse)]
    pub(super) drain_timeout: Duration,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
pub(super) struct LimitOptions {
    /// Maximum number of HTTP/3 connections, and separately of TCP connections. At the limit, a new connection replaces
    /// an idle one or is refused
    #[arg(long, value_name = "N", default_value = "1024")]
    pub(super) max_connections: NonZeroUsize,

    /// Maximum time that an HTTP/3 connection stays open without a request in progress, such as 60s, or none
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(super) idle_limit: IdleLimit,

    /// Maximum number of connections that have not requested anything, per IPv4 address or IPv6 /64 network; HTTP/3
    /// and TCP count separately. At the limit, a new connection replaces the oldest of these or is refused
    #[arg(long, value_name = "N", default_value = "256")]
    pub(super) max_connections_per_address: NonZeroUsize,

    /// Number of threads for HTTP/3 connections, each with its own socket on the port; by default the number of
    /// processors
    #[arg(long, value_name = "N", value_parser = workers::parse_count)]
    pub(super) workers: Option<NonZeroU8>,

    /// Maximum unsent and unacknowledged data per connection
    #[arg(long, value_name = "SIZE", default_value_t = TransportOptions::server().send_window)]
    pub(super) send_window: Bytes,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Metrics and logs")]
pub(super) struct RecordOptions {
    /// Address for Prometheus metrics (/metrics) and a page of live connections (/), such as 127.0.0.1:9433. It is
    /// plain HTTP: keep it private
    #[arg(long, value_name = "ADDR", value_parser = address::parse)]
    pub(super) metrics: Option<SocketAddr>,

    /// Name under which clients reach --metrics, besides IP addresses and localhost; may be repeated. Requests with
    /// other names get 421, except for /healthz and /readyz
    #[arg(long, value_name = "NAME", requires = "metrics")]
    pub(super) metrics_host: Vec<String>,

    /// Directory for qlog files that trace the congestion control of HTTP/3 connections
    #[arg(long, value_name = "DIR")]
    pub(super) qlog: Option<PathBuf>,

    /// Write a qlog file for only one connection in N
    #[arg(long, value_name = "N", default_value = "1", requires = "qlog")]
    pub(super) qlog_sample: NonZeroU64,

    /// Access log, one line for each response over HTTPS: a file, - for stdout, or none. SIGHUP opens the file again
    /// after a rotation. With -, what the server announces at its start goes to stderr
    #[arg(
        long,
        value_name = "FILE|-|none",
        default_value = "-",
        value_hint = clap::ValueHint::FilePath
    )]
    pub(super) access_log: PathBuf,

    /// Format of the access log
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = AccessLogFormat::Json)]
    pub(super) access_log_format: AccessLogFormat,

    /// Format of the program's own log, on stderr
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = logging::LogFormat::Text)]
    pub(super) log_format: logging::LogFormat,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Admission: beyond these limits new sessions get 503 (none by default)")]
pub(super) struct AdmissionOptions {
    /// Maximum number of connections that carry media
    #[arg(long, value_name = "N")]
    max_sessions: Option<usize>,

    /// Maximum total rate of the media being watched, such as 4000Mbit/s
    #[arg(long, value_name = "RATE")]
    capacity: Option<Bitrate>,

    /// Maximum lateness of timers (90th percentile), such as 10ms. The load of other programs counts too
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    max_lag: Option<Duration>,

    /// Maximum CPU use, such as 65%: a share of all processors, counting at most one per worker
    #[arg(long, value_name = "SHARE")]
    max_cpu: Option<Probability>,
}

impl AdmissionOptions {
    pub(super) fn limits(&self) -> Limits {
        Limits {
            sessions: self.max_sessions,
            capacity: self.capacity,
            lag: self.max_lag,
            cpu: self.max_cpu,
            ..Limits::default()
        }
    }
}

/// Processor time of the process.
pub(super) fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

#[cfg(feature = "object-store")]
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Object store (--media s3://…)")]
pub(super) struct StoreOptions {
    /// Directory, for this server alone, that keeps objects across restarts; by default they are kept in memory only
    /// (--cache)
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,

    /// Maximum size of the objects in --cache-dir
    #[arg(long, value_name = "SIZE", default_value = "10GB", requires = "cache_dir")]
    disk_cache: Bytes,

    /// Time for which a kept object is served without asking the store whether it has changed
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration::parse)]
    store_freshness: Duration,

    /// Maximum time without data from the store, including retries
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration::parse)]
    store_timeout: Duration,

    /// Time between two listings of the store, which find new and changed titles; SIGHUP also causes one
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration::parse)]
    pub(super) store_listing: Duration,
}

#[cfg(feature = "object-store")]
impl StoreOptions {
    /// Reads the store at `location` and keeps its objects in `memory`.
    pub(super) fn scan(&self, location: &str, memory: Bytes) -> Result<Library, LibraryError> {
        let mut options = OriginOptions::new(location);
        options.memory = memory;
        options.freshness = self.store_freshness;
        options.timeout = self.store_timeout;
        options.disk = self.cache_dir.clone().map(|directory| DiskOptions {
            directory,
            size: self.disk_cache,
        });
        Library::scan_store(Origin::open(&options)?)
    }
}

/// Path of a URL, as requests have it.
fn event_path(text: &str) -> Result<String, String> {
    let is_path = |uri: &http::Uri| uri.host().is_none() && uri.path() == text && text.len() > 1;
    let is_path = text.starts_with('/') && text.parse().is_ok_and(|uri| is_path(&uri));
    is_path
        .then(|| text.to_owned())
        .ok_or_else(|| "expected a path such as /cmcd".to_owned())
}

/// A limit of idle time, or none.
#[derive(Clone, Copy, Debug)]
pub(super) struct IdleLimit(pub(super) Option<Duration>);

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
