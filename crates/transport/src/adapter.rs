//! The quinn adapter: [`ConnectionController`] makes controllers for quinn, [`QuinnController`] drives them.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use playrate_cc::{Path, VideoKnowledge};
use playrate_units::Bytes;
use quinn_proto::congestion::{Controller, ControllerFactory};

use crate::backlog::Backlog;
use crate::baseline::Observed;
use crate::controllers::{Built, ControllerChoice};
use crate::overhead::WireOverhead;
use crate::telemetry::{Monitor, Recorder};

mod controller;
mod switch;

pub use controller::QuinnController;
use switch::Switchable;

/// One connection's congestion control, ready for quinn: which controller, what is known of the video, and who
/// watches. Make a fresh one for every connection; all paths of that connection share it.
///
/// ```
/// use playrate_transport::{ConnectionController, ControllerChoice};
///
/// let control = ConnectionController::new("cubic+start=hystartpp".parse::<ControllerChoice>()?);
/// let mut transport = quinn::TransportConfig::default();
/// control.install(&mut transport);
/// # Ok::<(), playrate_cc::SpecError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ConnectionController {
    choice: ControllerChoice,
    knowledge: Arc<VideoKnowledge>,
    monitor: Arc<Monitor>,
    fits_rates: bool,
    overhead: Arc<WireOverhead>,
    backlog: Arc<Backlog>,
    /// What it may yet become, and what it became.
    others: Option<Arc<Others>>,
}

/// Controllers that may take another one's place.
#[derive(Debug, Default)]
struct Others {
    any_wants_every_ack: bool,
    chosen: OnceLock<ControllerChoice>,
}

impl ConnectionController {
    /// `choice` for one connection of whose video nothing is known yet.
    pub fn new(choice: ControllerChoice) -> Self {
        Self {
            choice,
            knowledge: Arc::default(),
            monitor: Arc::default(),
            fits_rates: true,
            overhead: Arc::default(),
            backlog: Arc::default(),
            others: None,
        }
    }

    /// Lets one of `others` take over later, by [`switch`](Self::switch). If any of them wants an acknowledgement of every packet,
    /// the peer is asked for that whichever it becomes: it can be asked only as the connection begins, and controllers that are
    /// compared should see the same.
    #[must_use]
    pub fn switchable(mut self, others: &[ControllerChoice]) -> Self {
        self.others = Some(Arc::new(Others {
            any_wants_every_ack: others.iter().any(ControllerChoice::wants_every_ack),
            chosen: OnceLock::new(),
        }));
        self
    }

    /// Has `choice` take over with the next packet that leaves, once in a connection's life. It starts with its own initial
    /// window, on the path's present MTU, knowing the fastest round trip, the last congestion and the bytes in flight.
    /// Returns whether it will: not if another one was chosen before or the connection is not
    /// [`switchable`](Self::switchable).
    pub fn switch(&self, choice: ControllerChoice) -> bool {
        let others = self.others.as_ref();
        others.is_some_and(|others| others.chosen.set(choice).is_ok())
    }

    fn chosen(&self) -> Option<&ControllerChoice> {
        self.others.as_ref()?.chosen.get()
    }

    /// Whether windows that follow from the video's rate are fitted to QUIC (on by default): one MTU more, because quinn sends
    /// only while `in_flight + mtu < window`, and in proportion to what packets add to the video's bytes. A divergence
    /// from the papers, whose windows are TCP's; without it such a window carries less than the video.
    #[must_use]
    pub fn fitting_rates(mut self, on: bool) -> Self {
        self.fits_rates = on;
        self
    }

    /// Where response bodies are counted, if windows are fitted to them.
    pub(crate) fn overhead(&self) -> Option<&WireOverhead> {
        self.fits_rates.then_some(&*self.overhead)
    }

    /// What of the bodies waits to be sent.
    pub(crate) fn backlog(&self) -> &Backlog {
        &self.backlog
    }

    /// Has samples go to `monitor`.
    #[must_use]
    pub fn with_monitor(mut self, monitor: Arc<Monitor>) -> Self {
        self.monitor = monitor;
        self
    }

    /// Has the controller read `knowledge`.
    #[must_use]
    pub fn with_knowledge(mut self, knowledge: Arc<VideoKnowledge>) -> Self {
        self.knowledge = knowledge;
        self
    }

    /// Which controller: the one it was [switched](Self::switch) to, if it was.
    pub fn choice(&self) -> &ControllerChoice {
        self.chosen().unwrap_or(&self.choice)
    }

    /// What the controller is told about the video. Write to it at any time.
    pub fn knowledge(&self) -> &Arc<VideoKnowledge> {
        &self.knowledge
    }

    /// Who watches.
    pub fn monitor(&self) -> &Arc<Monitor> {
        &self.monitor
    }

    /// Makes connections that use `transport` use this controller, and asks their peer for an acknowledgement of
    /// every packet if the controller wants that. `transport` must be one connection's own.
    pub fn install(&self, transport: &mut quinn::TransportConfig) {
        let others = self.others.as_ref();
        let every_ack =
            self.choice.wants_every_ack() || others.is_some_and(|others| others.any_wants_every_ack);
        transport.congestion_controller_factory(Arc::new(self.clone()));
        transport.ack_frequency_config(every_ack.then(|| {
            let mut frequency = quinn::AckFrequencyConfig::default();
            // Counts the packets that may go unacknowledged: none (draft-ietf-quic-ack-frequency §4).
            frequency.ack_eliciting_threshold(quinn::VarInt::from_u32(0));
            frequency
        }));
    }
}

impl ConnectionController {
    fn recorder(&self, now: Instant) -> Recorder {
        Recorder::new(Arc::clone(&self.monitor), Arc::clone(&self.backlog), now)
    }

    /// The controller that is chosen by now.
    fn build_choice(&self, now: Instant, current_mtu: u16, recorder: Recorder) -> Box<dyn Controller> {
        let path = Path::new(Bytes::new(u64::from(current_mtu)));
        let path = if self.fits_rates { path.strict() } else { path };
        match self.choice().build(&path, Arc::clone(&self.knowledge)) {
            Built::Ours(controller) => Box::new(QuinnController::new(controller, now, current_mtu, recorder)),
            Built::Baseline(baseline) => Box::new(Observed::new(
                baseline.factory(current_mtu).build(now, current_mtu),
                recorder,
            )),
        }
    }
}

impl ControllerFactory for ConnectionController {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        if self.others.is_some() && self.chosen().is_none() {
            return Box::new(Switchable::new(self, now, current_mtu));
        }
        let recorder = self.recorder(now);
        self.build_choice(now, current_mtu, recorder)
    }
}

impl fmt::Display for ConnectionController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.choice().fmt(f)
    }
}

#[cfg(test)]
mod tests;
