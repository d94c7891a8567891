//! [`Setup`]: everything that one run depends on.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use playrate_media::{Ladder, MediaSource, TraceSource};
use playrate_netsim::{PathConfig, Rate, Seed};
use playrate_transport::{ControllerChoice, TransportOptions};
use playrate_units::Bytes;
use video_client::FrameSource;
use video_client::dash::{DashOptions, Presentation, PresentationError};
use video_client::playout::{PlayoutConfig, RECEIVE_BUFFER_PAPERS};

use super::windows::Window;

/// The smallest window of a client in a run: as much as the product's server keeps ready to send.
const LEAST_RECEIVE_WINDOW: Bytes = Bytes::from_mib(4);

/// Everything that one run depends on: the same setup gives the same packets at the same times.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The bottleneck that all viewers share.
    pub path: PathConfig,
    /// Who watches.
    pub viewers: Vec<Viewer>,
    /// Who else downloads. The run does not wait for them.
    pub bulk: Vec<Bulk>,
    /// The parts of the run in which flows are counted apart.
    pub windows: Vec<Window>,
    /// Seeds everything that is random.
    pub seed: Seed,
    /// Whether time series are kept: of the link, of each connection and of each player.
    pub taps: bool,
}

impl Setup {
    /// A path that nobody uses yet, with taps.
    pub fn new(path: PathConfig, seed: Seed) -> Self {
        Self {
            path,
            viewers: Vec::new(),
            bulk: Vec::new(),
            windows: Vec::new(),
            seed,
            taps: true,
        }
    }

    /// The same with one more viewer.
    #[must_use]
    pub fn with_viewer(mut self, viewer: Viewer) -> Self {
        self.viewers.push(viewer);
        self
    }

    /// The same with one more download.
    #[must_use]
    pub fn with_bulk(mut self, bulk: Bulk) -> Self {
        self.bulk.push(bulk);
        self
    }

    /// The same without time series.
    #[must_use]
    pub fn without_taps(self) -> Self {
        Self { taps: false, ..self }
    }

    /// How much virtual time the run may take: a run that goes on for longer has something wrong with it.
    pub(super) fn deadline(&self) -> Duration {
        let longest = self
            .viewers
            .iter()
            .map(Viewer::patience)
            .max()
            .unwrap_or_default();
        longest.saturating_add(Duration::from_secs(600))
    }

    /// What can be under way at most: what fits into the pipe and its queue.
    fn under_way(&self) -> Bytes {
        let link = &self.path.forward;
        let pipe = link
            .rate
            .mean()
            .map_or(Bytes::ZERO, |rate| rate * self.path.round_trip());
        let queue = link
            .build(self.path.round_trip(), self.seed)
            .ok()
            .and_then(|link| link.queue_limit())
            .unwrap_or(pipe);
        pipe + queue
    }

    /// What a server's connection must be able to hold: twice what can be under way, and no less than the product's own send
    /// window.
    pub(super) fn send_window(&self) -> Bytes {
        let twice = Bytes::new(self.under_way().as_u64().saturating_mul(2));
        twice
            .max(TransportOptions::server().send_window)
            .min(TransportOptions::MAX_WINDOW)
    }

    /// What a client's connection takes ahead of one who reads at once, so that it never binds.
    pub(super) fn wide_receive_window(&self) -> Bytes {
        Bytes::new(self.send_window().as_u64().saturating_mul(2))
            .max(TransportOptions::client().stream_receive_window)
            .min(TransportOptions::MAX_WINDOW)
    }

    /// What the connection of `viewer`'s client takes ahead of its player. While a player pauses, the sender runs ahead by
    /// this much, and most of a run's memory is what then waits to be read. So a player that will pause gets eight times
    /// what can be under way, which still does not bind while it reads: a packet may be lost several times in a row.
    pub(super) fn receive_window(&self, viewer: &Viewer) -> Bytes {
        let wide = self.wide_receive_window();
        match self.path.forward.rate {
            Rate::Constant(_) | Rate::Wifi(_) if viewer.pauses() => {
                let enough = Bytes::new(self.under_way().as_u64().saturating_mul(8));
                enough.max(LEAST_RECEIVE_WINDOW).min(wide)
            }
            // Other links may be much faster now and then than they are on average.
            _ => wide,
        }
    }
}

/// One viewer of a run.
#[derive(Clone, Debug)]
pub struct Viewer {
    /// The controller that its server sends with.
    pub controller: ControllerChoice,
    /// What it watches.
    pub title: Played,
    /// Its modelled player, of a title that comes in one piece.
    pub playout: PlayoutConfig,
    /// Its player, of a ladder.
    pub dash: DashOptions,
    /// Whether the server is told the size of the playout buffer.
    pub server_knows_buffer: bool,
    /// When it comes, from the beginning of the run.
    pub joins: Duration,
    /// How long it watches at most; `None` is to the end.
    pub leaves_after: Option<Duration>,
    /// How far both ends are from the bottleneck.
    pub access: Access,
}

/// Propagation delay of a flow's own links, each way, beside the path's. They have no limit of rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Between the server and the path.
    pub server: Duration,
    /// Between the path and the client.
    pub client: Duration,
}

impl Access {
    /// What they add to the round trip.
    pub fn round_trip(self) -> Duration {
        self.server.saturating_add(self.client).saturating_mul(2)
    }
}

/// A flow that downloads as much as it can: one endless response, read at once.
#[derive(Clone, Debug)]
pub struct Bulk {
    /// The controller that its server sends with.
    pub controller: ControllerChoice,
    /// When it comes, from the beginning of the run.
    pub joins: Duration,
    /// How long it downloads; `None` is to the end of the run.
    pub leaves_after: Option<Duration>,
    /// How far both ends are from the bottleneck.
    pub access: Access,
}

impl Bulk {
    /// A flow from the beginning of the run to its end, whose ends are at the bottleneck itself.
    pub fn new(controller: ControllerChoice) -> Self {
        Self {
            controller,
            joins: Duration::ZERO,
            leaves_after: None,
            access: Access::default(),
        }
    }
}

impl Viewer {
    /// A viewer with the papers' player (catch-up clock, 448 packets of playout buffer, a receive buffer of 256 MB), who
    /// comes at once and stays to the end.
    pub fn new(controller: ControllerChoice, title: Played) -> Self {
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
            joins: Duration::ZERO,
            leaves_after: None,
            access: Access::default(),
        }
    }

    /// Whether its player will stop reading because what it holds is full. The papers' 256 MB are there "so that flow control
    /// never binds"; a player with so much keeps its wide window as well. A player of a ladder asks only for what it has room for.
    fn pauses(&self) -> bool {
        let holds = self.playout.receive_buffer;
        self.title.representations().is_none()
            && holds < RECEIVE_BUFFER_PAPERS
            && holds.as_u64() < self.title.source().len()
    }

    /// How long it may take at most: a path so slow that the title takes a hundred times its length is a mistake.
    fn patience(&self) -> Duration {
        let whole = self.title.source().title().duration().saturating_mul(100);
        let stays = self.leaves_after.unwrap_or(whole).saturating_add(super::FAREWELL);
        self.joins.saturating_add(stays)
    }
}

/// A title as it is served and watched. Clones share it.
#[derive(Clone)]
pub struct Played {
    name: String,
    source: Arc<dyn MediaSource>,
    generated: bool,
    ladder: Option<Rungs>,
}

/// The representations of a ladder.
#[derive(Clone)]
struct Rungs {
    ladder: Arc<Ladder>,
    presentation: Arc<Presentation>,
}

impl Played {
    /// A title that is an MP4: the client reads its boxes.
    pub fn mp4(name: &str, source: Arc<dyn MediaSource>) -> Self {
        Self {
            name: name.to_owned(),
            source,
            generated: false,
            ladder: None,
        }
    }

    /// A title of generated payload: the client is given its frames.
    pub fn trace(name: &str, source: TraceSource) -> Self {
        Self {
            name: name.to_owned(),
            source: Arc::new(source),
            generated: true,
            ladder: None,
        }
    }

    /// A title in several representations, each of them one resource of which a client fetches ranges.
    ///
    /// # Errors
    /// If it has no representation that can be played.
    pub fn ladder(name: &str, ladder: Ladder) -> Result<Self, PresentationError> {
        let presentation = Arc::new(super::dash::presentation(name, &ladder)?);
        let top = ladder.representations().last().ok_or(PresentationError::Empty)?;
        Ok(Self {
            name: name.to_owned(),
            source: Arc::clone(top.source()),
            generated: true,
            ladder: Some(Rungs {
                presentation,
                ladder: Arc::new(ladder),
            }),
        })
    }

    /// Its representations, if it has several.
    pub fn representations(&self) -> Option<&Arc<Presentation>> {
        self.ladder.as_ref().map(|rungs| &rungs.presentation)
    }

    /// What a server has of it: names and bytes.
    pub fn resources(&self) -> Vec<(String, Arc<dyn MediaSource>)> {
        let Some(Rungs { ladder, .. }) = &self.ladder else {
            return vec![(self.name.clone(), Arc::clone(&self.source))];
        };
        let representations = ladder.representations().iter();
        representations
            .map(|it| {
                (
                    super::dash::resource(&self.name, it.name()),
                    Arc::clone(it.source()),
                )
            })
            .collect()
    }

    /// The name under which it is served.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its bytes and its index; of a ladder, those of the highest representation.
    pub fn source(&self) -> &Arc<dyn MediaSource> {
        &self.source
    }

    pub(super) fn frames(&self) -> FrameSource {
        if self.generated {
            FrameSource::Index(Arc::clone(&self.source))
        } else {
            FrameSource::Boxes
        }
    }
}

impl fmt::Debug for Played {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Played")
            .field("name", &self.name)
            .field("bytes", &self.source.len())
            .finish_non_exhaustive()
    }
}
