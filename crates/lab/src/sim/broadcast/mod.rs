//! Broadcasts: an encoder's frames, sent as they are made over QUIC.
//!
//! A *group* is a key frame and the frames up to the next one. As in Media over QUIC, each group is one unidirectional
//! stream, the newest group has priority, and a group is reset when its last frame is late. The receiver reads all
//! streams at once and records the arrival of every frame.

mod encoder;
mod frames;
mod over_noq;
mod over_quinn;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use playrate_cc::VideoKnowledge;
use playrate_media::Frame;
use playrate_transport::telemetry::{Monitor, Sample};
use playrate_transport::time;
use playrate_units::{Bitrate, Bytes};
use quinn::{ConnectionStats, Runtime};
use tokio::sync::mpsc::{self, UnboundedReceiver};

pub use encoder::{Encoder, EncoderRate};
pub use frames::BroadcastStatistics;

use super::recording::Recording;
use super::session::{FlowEnds, VirtualEndpoints};
use super::windows::{Marks, WindowCounts};
use super::{Access, ControlStatistics, RunHandle, ServedTitle, Setup, SimError};
use crate::controllers::{Controller, Stack};
use encoder::Pace;
use frames::Frames;

/// Error that ended a broadcast.
type LinkError = Box<dyn std::error::Error + Send + Sync>;

/// The ends of a broadcast, for any stack.
type BroadcastEnds<'a> = FlowEnds<'a, VirtualEndpoints>;

/// A group of frames to be sent.
#[derive(Debug)]
struct OutgoingGroup {
    /// Groups of a higher number are sent first.
    priority: i32,
    /// Numbers and sizes of the group's frames, as they are made.
    frames: UnboundedReceiver<(u32, u32)>,
    /// Time until the group is reset.
    limit: Duration,
}

/// The connection of a broadcast over its stack.
#[derive(Debug)]
enum StackLink {
    Quinn(over_quinn::Link),
    Noq(over_noq::Link),
}

/// Calls a method that the links of all stacks have.
macro_rules! on_link {
    ($transmission:expr, $link:ident => $call:expr) => {
        match &$transmission.link {
            StackLink::Quinn($link) => $call,
            StackLink::Noq($link) => $call,
        }
    };
}

/// A broadcast of a run.
#[derive(Clone, Debug)]
pub struct Broadcast {
    /// Controller of the sender.
    pub controller: Controller,
    /// QUIC implementation of both ends.
    pub stack: Stack,
    /// Frames at the encoder's highest rate.
    pub title: ServedTitle,
    /// The encoder's choice of its rate.
    pub encoder: Encoder,
    /// Time at which the receiver connects, since the run began.
    pub joins: Duration,
    /// Maximum time that the receiver stays; `None` means up to the last frame.
    pub leaves_after: Option<Duration>,
    /// Delays between both ends and the bottleneck.
    pub access: Access,
}

impl Broadcast {
    /// Highest rate of the encoder.
    fn highest(&self) -> Bitrate {
        self.title.source().title().average_rate()
    }

    /// Time at which the broadcast ends at the latest, since the run began.
    pub(super) fn ends(&self) -> Duration {
        self.joins.saturating_add(self.title.source().title().duration())
    }
}

/// Results of one broadcast.
#[derive(Clone, Debug)]
pub struct SimulatedBroadcast {
    /// Time at which the receiver connected, since the run began.
    pub joined: Duration,
    /// Time from then to the end.
    pub lasted: Duration,
    /// True if the receiver left, or the run ended, before the last frame.
    pub stopped: bool,
    /// Error that ended the broadcast early.
    pub error: Option<String>,
    /// Bytes of the frames that arrived.
    pub received: Bytes,
    /// Latency and rate of the frames; `None` if fewer than two were made.
    pub frames: Option<BroadcastStatistics>,
    /// Totals of the sender's transport; `None` without a connection.
    pub totals: Option<ConnectionStats>,
    /// Statistics of the sender's window, RTT and estimates.
    pub control: Option<ControlStatistics>,
    /// Samples of the sender's connection since the receiver connected; empty if the setup keeps no series.
    pub transport: Vec<Sample>,
    /// Counts in each of the setup's windows.
    pub windows: Vec<WindowCounts>,
}

/// A broadcast during a run.
#[derive(Debug)]
pub(super) struct Transmission {
    runtime: Arc<dyn Runtime>,
    broadcast: Broadcast,
    knowledge: Arc<VideoKnowledge>,
    link: StackLink,
    recording: Recording,
    state: Mutex<TransmissionState>,
}

#[derive(Debug)]
struct TransmissionState {
    frames: Frames,
    received: Marks,
    joined: Duration,
    ended: Option<Duration>,
    stopped: bool,
    error: Option<String>,
}

impl Transmission {
    /// Sets up sender and receiver of `broadcast`, the `index`th of the run, counted from 0.
    pub(super) fn new(
        setup: &Setup,
        index: usize,
        broadcast: &Broadcast,
        endpoints: &VirtualEndpoints,
    ) -> Result<Arc<Self>, SimError> {
        let runtime: Arc<dyn Runtime> = endpoints.runtime.clone();
        let ends = BroadcastEnds::new(setup, endpoints, &format!("broadcast {index}"));
        let recording = Recording::new(setup, broadcast.access, endpoints.start, Arc::clone(&runtime));
        let mut monitor = Monitor::default();
        for sink in recording.sinks() {
            monitor = monitor.with_sink(sink);
        }
        let (monitor, knowledge) = (Arc::new(monitor), Arc::new(VideoKnowledge::default()));
        knowledge.set_highest_rate(Some(broadcast.highest()));
        knowledge.set_follows_path(broadcast.encoder.rate != EncoderRate::Constant);
        let wrong = |error: String| SimError::setup("the controller", &error);
        let link = match broadcast.stack {
            Stack::Quinn => {
                let choice = broadcast.controller.quinn().map_err(wrong)?;
                let control = over_quinn::ConnectionController::new(choice).with_monitor(monitor);
                let control = control.with_knowledge(Arc::clone(&knowledge));
                StackLink::Quinn(over_quinn::Link::new(&ends, control)?)
            }
            Stack::Noq => {
                let choice = broadcast.controller.noq().map_err(wrong)?;
                let control = over_noq::ConnectionController::new(choice).with_monitor(monitor);
                let control = control.with_knowledge(Arc::clone(&knowledge));
                StackLink::Noq(over_noq::Link::new(&ends, control)?)
            }
        };
        Ok(Arc::new(Self {
            link,
            knowledge,
            broadcast: broadcast.clone(),
            recording,
            runtime,
            state: Mutex::new(TransmissionState {
                frames: Frames::default(),
                received: Marks::new(&setup.windows),
                joined: Duration::ZERO,
                ended: None,
                stopped: false,
                error: None,
            }),
        }))
    }

    fn state<T>(&self, look: impl FnOnce(&mut TransmissionState) -> T) -> T {
        look(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Time since the run began.
    fn now(&self) -> Duration {
        self.recording.since_start(self.runtime.now())
    }

    /// Broadcasts all frames, until `handle` stops the run or the receiver leaves.
    pub(super) async fn run(self: Arc<Self>, handle: Arc<RunHandle>) {
        time::sleep(&*self.runtime, self.broadcast.joins).await;
        let joined = self.now();
        self.state(|state| {
            state.joined = joined;
            state.received.see(joined, 0);
        });
        let done = tokio::select! {
            biased;
            done = self.transmit(&handle) => done.map(|()| false),
            () = handle.sleep(&*self.runtime, self.broadcast.leaves_after) => Ok(true),
        };
        let ended = self.now();
        self.state(|state| {
            state.ended = Some(ended);
            state.stopped = matches!(done, Ok(true));
            state.error = done.err().map(|error| error.to_string());
        });
        on_link!(self, link => link.close().await);
    }

    /// Connects, and sends frames from then on until the last of them is late.
    async fn transmit(self: &Arc<Self>, handle: &Arc<RunHandle>) -> Result<(), LinkError> {
        let (this, handle) = (Arc::clone(self), Arc::clone(handle));
        let arrived = move |number| this.arrived(number, &handle);
        on_link!(self, link => link.connect(arrived).await?);
        let began = self.now();
        let encoder = self.broadcast.encoder;
        let mut pace = Pace::new(encoder, self.broadcast.highest());
        let frames = self.broadcast.title.source().title().frames();
        for (priority, group) in (0..).zip(frames.chunk_by(|_, next| !next.key)) {
            let due = |frame: &Frame| began.saturating_add(frame.dts).saturating_sub(self.now());
            let (queue, queued) = mpsc::unbounded_channel();
            time::sleep(&*self.runtime, group.first().map(due).unwrap_or_default()).await;
            let group_to_send = OutgoingGroup {
                priority,
                frames: queued,
                limit: group.last().map(due).unwrap_or_default() + encoder.latency_bound,
            };
            let this = Arc::clone(self);
            self.runtime.spawn(Box::pin(async move {
                on_link!(this, link => link.send(group_to_send).await);
            }));
            for frame in group {
                time::sleep(&*self.runtime, due(frame)).await;
                let (now, (smoothed_rtt, rates)) = (self.now(), on_link!(self, link => link.path()));
                let rate = pace.rate(now, rates);
                self.knowledge.set_average_rate(Some(rate));
                let size = pace.size(frame.size);
                let number = self.state(|state| state.frames.make(now, size, smoothed_rtt));
                // An error means that the group was reset: the frame is lost.
                let _ = queue.send((number, size));
            }
        }
        time::sleep(&*self.runtime, encoder.latency_bound).await;
        on_link!(self, link => link.failure().map_or(Ok(()), |reason| Err(reason.into())))
    }

    /// Records the arrival of a frame.
    fn arrived(&self, number: u32, handle: &RunHandle) {
        let now = self.now();
        self.state(|state| {
            let before = state.frames.received();
            let bound = self.broadcast.encoder.latency_bound;
            state.frames.arrive(number, now, bound);
            let received = state.frames.received();
            handle.add_received((received - before).as_u64());
            state.received.see(now, received.as_u64());
        });
    }

    /// The broadcast's results, after a run of `length`.
    pub(super) fn collect(&self, length: Duration) -> SimulatedBroadcast {
        self.state(|state| SimulatedBroadcast {
            joined: state.joined,
            lasted: state.ended.unwrap_or(length).saturating_sub(state.joined),
            stopped: state.stopped || state.ended.is_none(),
            error: state.error.clone(),
            received: state.frames.received(),
            frames: state.frames.statistics(),
            totals: on_link!(self, link => link.totals()),
            control: self.recording.statistics().map(|(control, _)| control),
            transport: self.recording.samples(state.joined),
            windows: self.recording.counts(length, &state.received),
        })
    }
}
