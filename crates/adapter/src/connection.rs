//! [`ConnectionController`]: one connection's congestion control.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use playrate_cc::{CoupledPaths, Estimate, Path, VideoKnowledge};
use playrate_units::Bytes;

use crate::estimator::Measurement;
use crate::share::PathShare;
use crate::telemetry::{Monitor, Recorder};
use crate::{ControllerChoice, QuicStack, UnsentBytes, WireOverhead};

/// One connection's congestion control, ready for the stack `S`: the controller's name, the knowledge of the video, and
/// the monitor of its samples. Create a new one for every connection; all paths of that connection share it.
#[derive(Clone, Debug)]
pub struct ConnectionController<S: QuicStack> {
    choice: ControllerChoice<S>,
    knowledge: Arc<VideoKnowledge>,
    monitor: Arc<Monitor>,
    fits_rates: bool,
    overhead: Arc<WireOverhead>,
    unsent: Arc<UnsentBytes>,
    /// Bytes delivered on all paths.
    delivered: Arc<AtomicU64>,
    /// All paths, for controllers that couple them.
    paths: CoupledPaths,
    measured: Arc<Mutex<Option<Measurement>>>,
    /// Packets per ACK frame that the most demanding controller of this connection requires.
    packets_per_ack: Option<u32>,
    /// Acknowledgements requested from the peer, in place of the controller's choice.
    ack_request: Option<AckRequest>,
    /// The controller after the switch; `None` if the connection keeps its first controller for life.
    switched_to: Option<Arc<OnceLock<ControllerChoice<S>>>>,
}

/// The acknowledgements requested from a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AckRequest {
    /// Packets per acknowledgement, at least 1.
    pub packets: u32,
    /// Longest time that it waits for this many; `None` keeps its own `max_ack_delay` (RFC 9000 §18.2).
    pub longest: Option<Duration>,
}

impl AckRequest {
    /// Requests one acknowledgement for this many packets. If it is more than one, the peer waits for 10 ms at most:
    /// after a longer wait, one acknowledgement would cover a whole window of a short path; after a shorter one, they
    /// would fill a slow uplink.
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

impl<S: QuicStack> ConnectionController<S> {
    /// Controller `choice` for one connection, with nothing known of its video.
    pub fn new(choice: ControllerChoice<S>) -> Self {
        Self {
            packets_per_ack: choice.packets_per_ack(),
            choice,
            knowledge: Arc::default(),
            monitor: Arc::default(),
            fits_rates: true,
            overhead: Arc::default(),
            unsent: Arc::default(),
            delivered: Arc::default(),
            paths: CoupledPaths::default(),
            measured: Arc::default(),
            ack_request: None,
            switched_to: None,
        }
    }

    /// Permits [`switch`](Self::switch) to replace the controller by one of `others`. The peer is asked for as many
    /// acknowledgements as the most demanding of them requires: the request is only possible when the connection
    /// begins, and controllers that are compared should receive the same acknowledgements.
    #[must_use]
    pub fn with_alternatives(mut self, others: &[ControllerChoice<S>]) -> Self {
        let of_others = others.iter().filter_map(ControllerChoice::packets_per_ack);
        self.packets_per_ack = of_others.chain(self.packets_per_ack).min();
        self.switched_to = Some(Arc::default());
        self
    }

    /// Replaces the controller by `choice` with the next packet sent, at most once in a connection's life. The new
    /// controller starts with its own initial window and the path's current MTU, and receives the fastest round trip,
    /// the last congestion event and the bytes in flight. Returns false if the controller was replaced before or
    /// [`with_alternatives`](Self::with_alternatives) did not permit it.
    pub fn switch(&self, choice: ControllerChoice<S>) -> bool {
        let switched_to = self.switched_to.as_ref();
        switched_to.is_some_and(|switched_to| switched_to.set(choice).is_ok())
    }

    /// Returns true if the next [`switch`](Self::switch) will succeed.
    pub(crate) fn may_switch(&self) -> bool {
        let switched_to = self.switched_to.as_ref();
        switched_to.is_some_and(|switched_to| switched_to.get().is_none())
    }

    /// Adapts windows derived from the video's rate to QUIC (on by default): one MTU is added if the stack is
    /// [strict](QuicStack::IS_STRICT), and the rate is scaled by [`WireOverhead`]. This diverges from the papers, whose
    /// windows are TCP's; without it such a window carries less than the video's rate.
    #[must_use]
    pub fn with_fitted_rates(mut self, on: bool) -> Self {
        self.fits_rates = on;
        self
    }

    /// Sets the [`ack_request`](Self::ack_request), regardless of the controller's requirement. Peers without the
    /// extension (draft-ietf-quic-ack-frequency), such as browsers, acknowledge as they always do; a quinn peer can be
    /// made to behave like them.
    #[must_use]
    pub fn with_ack_request(mut self, request: Option<AckRequest>) -> Self {
        self.ack_request = request;
        self
    }

    /// Counter of response bodies; the application reports its writes to it.
    /// `None` if windows are not [fitted](Self::with_fitted_rates) to them.
    pub fn overhead(&self) -> Option<&WireOverhead> {
        self.fits_rates.then_some(&*self.overhead)
    }

    /// Estimate of the bytes written to the stack and not sent yet.
    pub fn unsent(&self) -> &UnsentBytes {
        &self.unsent
    }

    /// Waits until few enough bytes are unsent on `connection` to write one more chunk. Every waiting writer may then
    /// write one chunk, regardless of what the others have written meanwhile, so that all bodies make progress.
    pub async fn wait_for_room(&self, connection: &S::Connection) {
        self.unsent.room(|| S::synchronize(connection)).await;
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

    /// Name of the current controller: after a [switch](Self::switch), the new one.
    pub fn current_choice(&self) -> &ControllerChoice<S> {
        let switched_to = self.switched_to.as_ref();
        switched_to
            .and_then(|choice| choice.get())
            .unwrap_or(&self.choice)
    }

    /// Knowledge of the video for the controller. It may be written at any time, from any thread.
    pub fn knowledge(&self) -> &Arc<VideoKnowledge> {
        &self.knowledge
    }

    /// Receiver of this connection's samples.
    pub fn monitor(&self) -> &Arc<Monitor> {
        &self.monitor
    }

    /// The rate that the connection was observed to carry, as of `now`; `None` before the first measurement. It is
    /// measured in the same way under every controller, about thirteen times per second while packets are acknowledged.
    /// If the connection has several paths, it is that of the path measured last. May be called from any thread.
    pub fn estimate(&self, now: Instant) -> Option<Estimate> {
        let measured = *self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        measured.map(|measured| measured.estimate(now))
    }

    pub(crate) fn set_measured(&self, measured: Measurement) {
        *self.measured.lock().unwrap_or_else(PoisonError::into_inner) = Some(measured);
    }

    /// Makes the connection that uses `transport` use this controller. This sets the factory of congestion controllers
    /// and nothing else; [`request_acks`](Self::request_acks) configures the peer's acknowledgements. Each connection
    /// needs its own `transport`.
    pub fn install(&self, transport: &mut S::TransportConfig) {
        S::install(self.clone(), transport);
    }

    /// The acknowledgements that this controller requires from the peer, or those of
    /// [`with_ack_request`](Self::with_ack_request). `None` if the peer may acknowledge as it likes.
    pub fn ack_request(&self) -> Option<AckRequest> {
        self.ack_request.or(self.packets_per_ack.map(AckRequest::new))
    }

    /// Makes the connection that uses `transport` send [`ack_request`](Self::ack_request) to its peer, in place of any
    /// request in `transport`. Does nothing if there is none. A controller also works without this call, with the
    /// acknowledgements that the peer sends anyway.
    pub fn request_acks(&self, transport: &mut S::TransportConfig) {
        if let Some(request) = self.ack_request() {
            S::request_acks(request, transport);
        }
    }

    /// Configuration of a transport for the connection: the stack's default with
    /// [`request_acks`](Self::request_acks), then with the changes of `configure`, then with
    /// [`install`](Self::install). So `configure` may change everything except the controller.
    ///
    /// A stack's configuration cannot be copied. A program passes the same `configure` for each of its connections.
    pub fn transport(&self, configure: impl FnOnce(&mut S::TransportConfig)) -> Arc<S::TransportConfig>
    where
        S::TransportConfig: Default,
    {
        let mut transport = S::TransportConfig::default();
        self.request_acks(&mut transport);
        configure(&mut transport);
        self.install(&mut transport);
        Arc::new(transport)
    }

    pub(crate) fn recorder(&self, now: Instant) -> Recorder {
        Recorder::new(Arc::clone(&self.monitor), Arc::clone(&self.unsent), now)
    }

    /// The share of a path that begins at `now` and has counted `delivered` so far.
    pub(crate) fn share(&self, now: Instant, delivered: Bytes) -> PathShare {
        PathShare::new(Arc::clone(&self.delivered), now, delivered)
    }

    /// A path with an MTU of `mtu` bytes.
    pub(crate) fn path(&self, mtu: u16) -> Path {
        let mut path = Path::new(Bytes::new(mtu.into()));
        path.coupled = S::IS_MULTIPATH.then(|| self.paths.clone());
        path.paced = S::PACES_BY_RATE;
        if self.fits_rates && S::IS_STRICT {
            path.strict()
        } else {
            path
        }
    }
}

impl<S: QuicStack> fmt::Display for ConnectionController<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.current_choice().fmt(f)
    }
}
