//! [`Setup`]: everything that determines the results of one run.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use playrate_media::{FrameTrace, Ladder, MediaSource, TraceSource};
use playrate_netsim::{PathConfig, Seed};
use playrate_transport::{AckRequest, LossDetection, TransportOptions};
use playrate_units::Bytes;
use video_client::dash::{DashOptions, MediaSegment, Presentation, PresentationError, Representation};
use video_client::playout::{PlayoutConfig, RECEIVE_BUFFER_PAPERS};
use video_client::{FrameSource, Seek};

use super::broadcast::Broadcast;
use super::windows::Window;
use crate::controllers::Controller;

/// Minimum receive window of a client: as much as the product's server keeps ready to send.
const LEAST_RECEIVE_WINDOW: Bytes = Bytes::from_mib(4);

/// Everything that determines the results of one run: the same setup gives the same packets at the same times.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The bottleneck that all viewers share.
    pub path: PathConfig,
    /// The viewers. The run ends with the last of them, but not before `least_length`.
    pub viewers: Vec<Viewer>,
    /// Broadcasts; the run ends with the last of them and of the viewers.
    pub broadcasts: Vec<Broadcast>,
    /// Bulk flows that share the path with the viewers. The run does not wait for them.
    pub bulk: Vec<Bulk>,
    /// Minimum duration of the run.
    pub least_length: Duration,
    /// Measurement windows; every flow is counted in each.
    pub windows: Vec<Window>,
    /// Seed of all random choices.
    pub seed: Seed,
    /// Transport parameters of all endpoints.
    pub transport: TransportProfile,
    /// Keeps time series of the link, of each connection and of each player.
    pub taps: bool,
    /// Encrypts packets in virtual time too. This changes no packet's time or size, but takes about a quarter more
    /// time. Over a real network packets are always encrypted.
    pub encrypts: bool,
}

impl Setup {
    /// A setup without flows that keeps time series.
    pub fn new(path: PathConfig, seed: Seed) -> Self {
        Self {
            path,
            viewers: Vec::new(),
            broadcasts: Vec::new(),
            bulk: Vec::new(),
            least_length: Duration::ZERO,
            windows: Vec::new(),
            seed,
            transport: TransportProfile::default(),
            taps: true,
            encrypts: false,
        }
    }

    /// Adds one more viewer.
    #[must_use]
    pub fn with_viewer(mut self, viewer: Viewer) -> Self {
        self.viewers.push(viewer);
        self
    }

    /// Keeps no time series.
    #[must_use]
    pub fn without_taps(self) -> Self {
        Self { taps: false, ..self }
    }

    /// Limit of the run's virtual time. Reaching it indicates a mistake in the setup or in the product.
    pub(super) fn deadline(&self) -> Duration {
        let longest = self
            .viewers
            .iter()
            .map(Viewer::patience)
            .chain(self.broadcasts.iter().map(Broadcast::ends))
            .max()
            .unwrap_or_default()
            .max(self.least_length);
        longest.saturating_add(Duration::from_secs(600))
    }

    /// Maximum number of bytes in flight: the bandwidth-delay product and the queue.
    fn under_way(&self) -> Bytes {
        let link = &self.path.forward;
        let pipe = link
            .rate
            .mean()
            .map_or(Bytes::ZERO, |rate| rate * self.path.longest_round_trip());
        pipe + link.queue_limit(self.path.round_trip()).unwrap_or(pipe)
    }

    /// Send window of a server's connection: twice the maximum in flight, and at least the product's.
    pub(super) fn send_window(&self) -> Bytes {
        let twice = Bytes::new(self.under_way().as_u64().saturating_mul(2));
        twice
            .max(TransportOptions::server().send_window)
            .min(TransportOptions::MAX_WINDOW)
    }

    /// Receive window of a client that reads immediately: large enough never to limit the sender.
    pub(super) fn wide_receive_window(&self) -> Bytes {
        Bytes::new(self.send_window().as_u64().saturating_mul(2))
            .max(TransportOptions::client().stream_receive_window)
            .min(TransportOptions::MAX_WINDOW)
    }

    /// Receive window of `viewer`'s client. While a player pauses, the sender runs ahead by this much, and the bytes
    /// waiting to be read take most of a run's memory. So a player that will pause gets eight times the maximum in
    /// flight. This still does not limit the sender while the player reads, because a packet may be lost several times
    /// in a row.
    pub(super) fn receive_window(&self, viewer: &Viewer) -> ReceiveWindow {
        let wide = self.wide_receive_window();
        if viewer.receive_autotuning {
            let largest = viewer.playout.receive_buffer.min(TransportOptions::MAX_WINDOW);
            return ReceiveWindow::Autotuned { largest };
        }
        ReceiveWindow::Fixed(if self.path.forward.rate.is_steady() && viewer.pauses() {
            let enough = Bytes::new(self.under_way().as_u64().saturating_mul(8));
            enough.max(LEAST_RECEIVE_WINDOW).min(wide)
        } else {
            // At times, other links may be much faster than their mean rate.
            wide
        })
    }
}

/// Number of bytes that a client's connection accepts ahead of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReceiveWindow {
    /// Always the same number.
    Fixed(Bytes),
    /// Twice the bytes read in a round trip, at most `largest`.
    Autotuned { largest: Bytes },
}

/// Transport parameters that differ between the papers' TCP and the product. The default is the product's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransportProfile {
    /// Thresholds beyond which an overtaken packet counts as lost.
    pub loss_detection: LossDetection,
    /// Discovers the path's MTU with probes. Otherwise it is 1,452 bytes, the value that quinn finds on Ethernet.
    pub mtu_discovery: bool,
}

impl TransportProfile {
    /// The values closest to the papers' TCP: RFC 9002's thresholds, and no probes in the traffic.
    pub const PAPERS: Self = Self {
        loss_detection: LossDetection::RFC_9002,
        mtu_discovery: false,
    };
}

impl Default for TransportProfile {
    fn default() -> Self {
        Self {
            loss_detection: LossDetection::default(),
            mtu_discovery: true,
        }
    }
}

/// One viewer of a run.
#[derive(Clone, Debug)]
pub struct Viewer {
    /// Controller of the viewer's server.
    pub controller: Controller,
    /// Title that the viewer watches.
    pub title: ServedTitle,
    /// Modelled player for a title in one file.
    pub playout: PlayoutConfig,
    /// Player for a title in several representations.
    pub dash: DashOptions,
    /// True if the server is informed of the size of the playout buffer.
    pub server_knows_buffer: bool,
    /// Acknowledgement behaviour of a client that receives no request for another.
    pub ack_request: Option<AckRequest>,
    /// True if the player reads no more than its playout buffer can hold. The rest waits in a receive window sized like
    /// Linux's TCP, up to the size of the receive buffer.
    pub receive_autotuning: bool,
    /// Number of copies of the title, each with its own player, that the viewer's connection carries at once. The
    /// results are those of the first. Only for titles in one file.
    pub titles_per_connection: u32,
    /// Jumps of the viewer, ordered by their times since the request.
    pub seeks: Vec<Seek>,
    /// True if requests have CMCD, including the playback speed (`pr`) unless it is normal.
    pub reports_speed: bool,
    /// The server's library knows this multiple of the title's rate.
    pub declared_rate_factor: f64,
    /// Time of the viewer's request, since the run began.
    pub joins: Duration,
    /// Maximum time that the viewer watches; `None` means up to the title's end.
    pub leaves_after: Option<Duration>,
    /// Delays between both ends and the bottleneck.
    pub access: Access,
}

/// Propagation delays of a flow's own links in each direction, in addition to the path's. Their rate is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Delay between the server and the path.
    pub server: Duration,
    /// Delay between the path and the client.
    pub client: Duration,
}

impl Access {
    /// The sum of these delays over a round trip.
    pub(crate) fn round_trip(self) -> Duration {
        self.server.saturating_add(self.client).saturating_mul(2)
    }
}

/// A bulk flow: one endless response, read immediately.
#[derive(Clone, Debug)]
pub struct Bulk {
    /// Controller of the flow's server.
    pub controller: Controller,
    /// Time of the flow's request, since the run began.
    pub joins: Duration,
    /// Duration of the flow; `None` means up to the end of the run.
    pub leaves_after: Option<Duration>,
    /// Delays between both ends and the bottleneck.
    pub access: Access,
}

impl Viewer {
    /// A viewer with the papers' player (catch-up clock, 448 packets of playout buffer, a receive buffer of 256 MB),
    /// from the beginning of the run to the end of the title.
    pub fn new(controller: Controller, title: ServedTitle) -> Self {
        let playout = PlayoutConfig {
            receive_buffer: RECEIVE_BUFFER_PAPERS,
            ..PlayoutConfig::default()
        };
        Self {
            controller,
            title,
            playout,
            dash: DashOptions::default(),
            server_knows_buffer: true,
            ack_request: None,
            receive_autotuning: false,
            titles_per_connection: 1,
            seeks: Vec::new(),
            reports_speed: false,
            declared_rate_factor: 1.0,
            joins: Duration::ZERO,
            leaves_after: None,
            access: Access::default(),
        }
    }

    /// Returns true if the player will stop reading because its receive buffer is full. The papers' 256 MB are there
    /// "so that flow control never binds"; a player with that much also keeps its wide window. An adaptive player
    /// requests only what it has room for.
    fn pauses(&self) -> bool {
        let holds = self.playout.receive_buffer;
        self.title.representations().is_none()
            && holds < RECEIVE_BUFFER_PAPERS
            && holds.as_u64() < self.title.source().len()
    }

    /// Limit of the viewer's time: if the path is so slow that the title takes a hundred times its length, something is
    /// wrong.
    fn patience(&self) -> Duration {
        let whole = self.title.source().title().duration().saturating_mul(100);
        let stays = self
            .leaves_after
            .unwrap_or(whole)
            .saturating_add(super::SHUTDOWN_TIMEOUT);
        self.joins.saturating_add(stays)
    }
}

/// A title as served by servers and played by clients. Clones share its bytes.
#[derive(Clone)]
pub struct ServedTitle {
    name: String,
    source: Arc<dyn MediaSource>,
    /// The frames of a generated title in one file.
    trace: Option<Arc<FrameTrace>>,
    ladder: Option<ServedLadder>,
}

#[derive(Clone)]
struct ServedLadder {
    ladder: Arc<Ladder>,
    presentation: Arc<Presentation>,
}

impl ServedTitle {
    /// An MP4 title; the client reads its boxes.
    pub fn mp4(name: &str, source: Arc<dyn MediaSource>) -> Self {
        Self {
            name: name.to_owned(),
            source,
            trace: None,
            ladder: None,
        }
    }

    /// A title of generated payload. The client knows its frames in advance.
    pub fn trace(name: &str, source: TraceSource) -> Self {
        Self {
            name: name.to_owned(),
            trace: Some(Arc::new(source.trace().clone())),
            source: Arc::new(source),
            ladder: None,
        }
    }

    /// A title in several representations. Each is one resource, and clients fetch ranges of it.
    ///
    /// # Errors
    /// If the ladder has no playable representation.
    pub fn ladder(name: &str, ladder: Ladder) -> Result<Self, PresentationError> {
        let presentation = Arc::new(presentation(name, &ladder)?);
        let top = ladder.representations().last().ok_or(PresentationError::Empty)?;
        Ok(Self {
            name: name.to_owned(),
            source: Arc::clone(&top.source),
            trace: None,
            ladder: Some(ServedLadder {
                presentation,
                ladder: Arc::new(ladder),
            }),
        })
    }

    /// Number of positions where the title can begin: the frames of a trace, the segments of a ladder. An MP4 has only
    /// one, because its bytes are fixed.
    pub(crate) fn beginnings(&self) -> u64 {
        match (&self.trace, &self.ladder) {
            (Some(trace), _) => trace.frame_count() as u64,
            (None, Some(ladder)) => ladder.ladder.segment_count() as u64,
            (None, None) => 1,
        }
    }

    /// The title started at another of its [`Self::beginnings`], counted from 0, with the preceding part moved to the
    /// end. A trace begins with the last key frame up to that one ([`FrameTrace::rotated_to`]).
    pub(crate) fn rotated_to(&self, beginning: u64) -> Self {
        let beginning = usize::try_from(beginning).unwrap_or(usize::MAX);
        match (&self.trace, &self.ladder) {
            (Some(trace), _) => Self::trace(&self.name, TraceSource::new(&trace.rotated_to(beginning))),
            // It has the same representations as this one, so it can also be played.
            (None, Some(ladder)) => {
                Self::ladder(&self.name, ladder.ladder.rotated_to(beginning)).unwrap_or_else(|_| self.clone())
            }
            (None, None) => self.clone(),
        }
    }

    /// The presentation of a title in several representations.
    pub fn representations(&self) -> Option<&Arc<Presentation>> {
        self.ladder.as_ref().map(|ladder| &ladder.presentation)
    }

    /// The resources of the title's server: names and sources.
    pub fn resources(&self) -> Vec<(String, Arc<dyn MediaSource>)> {
        let Some(ServedLadder { ladder, .. }) = &self.ladder else {
            return vec![(self.name.clone(), Arc::clone(&self.source))];
        };
        let representations = ladder.representations().iter();
        representations
            .map(|it| (resource(&self.name, &it.name), Arc::clone(&it.source)))
            .collect()
    }

    /// Path of the title on the server, without the leading slash.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes and index of the title; for several representations, those of the highest.
    pub fn source(&self) -> &Arc<dyn MediaSource> {
        &self.source
    }

    /// Origin of the frame index of a title in one file.
    pub fn frames(&self) -> FrameSource {
        if self.trace.is_some() || self.ladder.is_some() {
            FrameSource::Index(Arc::clone(&self.source))
        } else {
            FrameSource::Boxes
        }
    }
}

/// Name of a representation's resource on the server.
fn resource(title: &str, representation: &str) -> String {
    format!("{title}/{representation}")
}

/// The presentation of `ladder` as in a manifest: every representation is one resource, every segment a range of it
/// (DASH's on-demand profile).
fn presentation(title: &str, ladder: &Ladder) -> Result<Presentation, PresentationError> {
    let representations = ladder.representations().iter();
    let representations = representations.map(|it| Representation {
        name: it.name.clone(),
        rate: it.rate,
        initializations: Vec::new(),
        segments: it
            .source
            .title()
            .segments()
            .into_iter()
            .map(|segment| MediaSegment {
                path: format!("/{}", resource(title, &it.name)),
                duration: segment.duration,
                frames: u32::try_from(segment.frames.len()).unwrap_or(u32::MAX),
                hidden: Duration::ZERO,
                is_gap: false,
                bytes: Some(segment.bytes),
            })
            .collect(),
    });
    Presentation::new(representations.collect())
}

impl fmt::Debug for ServedTitle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServedTitle")
            .field("name", &self.name)
            .field("bytes", &self.source.len())
            .finish_non_exhaustive()
    }
}
