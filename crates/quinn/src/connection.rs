//! [`ConnectionController`]: one connection's congestion control, in the form that quinn takes.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use playrate_cc::{Path, VideoKnowledge};
use playrate_units::Bytes;
use quinn_proto::congestion::{Controller, ControllerFactory};

use crate::baseline::ObservedBaseline;
use crate::controller::QuinnController;
use crate::controllers::ControllerChoice;
use crate::overhead::WireOverhead;
use crate::switchable::SwitchableController;
use crate::telemetry::{Monitor, Recorder};
use crate::unsent::UnsentBytes;

/// One connection's congestion control, ready for quinn: the controller's name, the knowledge of the video, and the
/// monitor of its samples. Create a new one for every connection; all paths of that connection share it.
///
/// ```
/// use playrate_quinn::{ConnectionController, ControllerChoice};
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
    unsent: Arc<UnsentBytes>,
    /// Acknowledgements requested from the peer, in place of the controller's choice.
    ack_request: Option<AckRequest>,
    /// `None` if the connection keeps its first controller for life.
    alternatives: Option<Arc<Alternatives>>,
}

/// The acknowledgements requested from a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AckRequest {
    /// Packets that it acknowledges at once, at least 1.
    pub packets: u32,
    /// Longest time that it waits for this many; `None` keeps its own `max_ack_delay` (RFC 9000 §18.2).
    pub longest: Option<Duration>,
}

impl AckRequest {
    /// One for this many packets. If it is more than one, the peer waits for 10 ms at most: after a longer wait, one
    /// acknowledgement would cover a whole window of a short path; after a shorter one, they would fill a slow uplink.
    pub const fn new(packets: u32) -> Self {
        let longest = if packets > 1 {
            Some(Duration::from_millis(10))
        } else {
            None
        };
        Self { packets, longest }
    }

    /// The same, but fewer packets are acknowledged after `longest`.
    #[must_use]
    pub const fn within(mut self, longest: Duration) -> Self {
        self.longest = Some(longest);
        self
    }
}

/// Controllers that may replace the first one.
#[derive(Debug, Default)]
struct Alternatives {
    fewest_packets_per_ack: Option<u32>,
    switched_to: OnceLock<ControllerChoice>,
}

impl ConnectionController {
    /// Controller `choice` for one connection, with nothing known of its video.
    pub fn new(choice: ControllerChoice) -> Self {
        Self {
            choice,
            knowledge: Arc::default(),
            monitor: Arc::default(),
            fits_rates: true,
            overhead: Arc::default(),
            unsent: Arc::default(),
            ack_request: None,
            alternatives: None,
        }
    }

    /// Permits [`switch`](Self::switch) to replace the controller by one of `others`. The peer is asked for as many
    /// acknowledgements as the most demanding of them requires: the request is only possible when the connection
    /// begins, and controllers that are compared should receive the same acknowledgements.
    #[must_use]
    pub fn switchable(mut self, others: &[ControllerChoice]) -> Self {
        self.alternatives = Some(Arc::new(Alternatives {
            fewest_packets_per_ack: others.iter().filter_map(ControllerChoice::packets_per_ack).min(),
            switched_to: OnceLock::new(),
        }));
        self
    }

    /// Replaces the controller by `choice` with the next packet sent, at most once in a connection's life. The new
    /// controller starts with its own initial window and the path's present MTU, and receives the fastest round trip,
    /// the last congestion event and the bytes in flight. Returns false if the controller was replaced before or the
    /// connection is not [`switchable`](Self::switchable).
    pub fn switch(&self, choice: ControllerChoice) -> bool {
        let alternatives = self.alternatives.as_ref();
        alternatives.is_some_and(|alternatives| alternatives.switched_to.set(choice).is_ok())
    }

    pub(crate) fn switched_to(&self) -> Option<&ControllerChoice> {
        self.alternatives.as_ref()?.switched_to.get()
    }

    /// Adapts windows derived from the video's rate to QUIC (on by default): one MTU is added, because quinn sends only
    /// while `in_flight + mtu < window`, and the rate is scaled by [`WireOverhead`]. This diverges from the papers,
    /// whose windows are TCP's; without it such a window carries less than the video's rate.
    #[must_use]
    pub fn fitting_rates(mut self, on: bool) -> Self {
        self.fits_rates = on;
        self
    }

    /// Requests these acknowledgements from the peer (draft-ietf-quic-ack-frequency), whatever the controller requires.
    /// Peers without that extension, such as browsers, keep their habit; a quinn peer can be made to behave like them.
    #[must_use]
    pub fn with_ack_request(mut self, request: Option<AckRequest>) -> Self {
        self.ack_request = request;
        self
    }

    /// Counter of response bodies; the application reports its writes to it. `None` if windows are not
    /// [fitted](Self::fitting_rates).
    pub fn overhead(&self) -> Option<&WireOverhead> {
        self.fits_rates.then_some(&*self.overhead)
    }

    /// Estimate of the bytes written to quinn and not sent yet.
    pub fn unsent(&self) -> &UnsentBytes {
        &self.unsent
    }

    /// Lifts the congestion window, so that the close is sent. Call it directly before closing the connection, because
    /// the window stays lifted. quinn-proto 0.11 holds a `CONNECTION_CLOSE` back while data waits behind a full window,
    /// and no longer reads acknowledgements that would make room (`docs/upstream/quinn-close-blocked.md`). A closed
    /// connection sends nothing else.
    pub fn lift_window(&self) {
        self.unsent.close();
    }

    /// Sends samples to `monitor`.
    #[must_use]
    pub fn with_monitor(mut self, monitor: Arc<Monitor>) -> Self {
        self.monitor = monitor;
        self
    }

    /// Makes the controller read `knowledge`, which several connections may share.
    #[must_use]
    pub fn with_knowledge(mut self, knowledge: Arc<VideoKnowledge>) -> Self {
        self.knowledge = knowledge;
        self
    }

    /// Name of the present controller: after a [switch](Self::switch), the new one.
    pub fn choice(&self) -> &ControllerChoice {
        self.switched_to().unwrap_or(&self.choice)
    }

    /// Knowledge of the video for the controller. It may be written at any time, from any thread.
    pub fn knowledge(&self) -> &Arc<VideoKnowledge> {
        &self.knowledge
    }

    /// Receiver of this connection's samples.
    pub fn monitor(&self) -> &Arc<Monitor> {
        &self.monitor
    }

    /// Makes connections that use `transport` use this controller, and requests as many acknowledgements from their
    /// peer as the controller requires. Each connection needs its own `transport`.
    pub fn install(&self, transport: &mut quinn::TransportConfig) {
        let alternatives = self.alternatives.as_ref();
        let of_others = alternatives.and_then(|alternatives| alternatives.fewest_packets_per_ack);
        let packets = self.choice.packets_per_ack().into_iter().chain(of_others).min();
        transport.congestion_controller_factory(Arc::new(self.clone()));
        let request = self.ack_request.or(packets.map(AckRequest::new));
        transport.ack_frequency_config(request.map(|request| {
            let mut frequency = quinn::AckFrequencyConfig::default();
            // The threshold is the number of packets that may go unacknowledged (draft-ietf-quic-ack-frequency §4).
            let threshold = quinn::VarInt::from_u32(request.packets.saturating_sub(1));
            frequency.ack_eliciting_threshold(threshold);
            frequency.max_ack_delay(request.longest);
            frequency
        }));
    }

    pub(crate) fn recorder(&self, now: Instant) -> Recorder {
        Recorder::new(Arc::clone(&self.monitor), Arc::clone(&self.unsent), now)
    }

    /// Makes the [present](Self::choice) controller.
    pub(crate) fn build_present(&self, now: Instant, mtu: u16, recorder: Recorder) -> Box<dyn Controller> {
        match self.choice() {
            ControllerChoice::Spec(spec) => {
                let path = Path::new(Bytes::new(u64::from(mtu)));
                let path = if self.fits_rates { path.strict() } else { path };
                let controller = spec.build(&path, Arc::clone(&self.knowledge));
                Box::new(QuinnController::new(controller, now, mtu, recorder))
            }
            ControllerChoice::Baseline(baseline) => {
                let controller = baseline.factory(mtu).build(now, mtu);
                Box::new(ObservedBaseline::new(controller, recorder))
            }
        }
    }
}

impl ControllerFactory for ConnectionController {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        if self.alternatives.is_some() && self.switched_to().is_none() {
            return Box::new(SwitchableController::new(self, now, current_mtu));
        }
        let recorder = self.recorder(now);
        self.build_present(now, current_mtu, recorder)
    }
}

impl fmt::Display for ConnectionController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.choice().fmt(f)
    }
}
