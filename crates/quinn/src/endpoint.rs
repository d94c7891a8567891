//! [`EndpointFactory`]: a controller for each connection of an endpoint.

use std::sync::Arc;
use std::time::Instant;

use quinn_proto::congestion::{Controller, ControllerFactory};

use crate::{ConnectionController, ControllerChoice, QuinnController};

/// Builds a [`ConnectionController`] for each connection of an endpoint. It suits clients, and servers whose framework
/// hides [`accept_with`](quinn::Incoming::accept_with):
///
/// ```
/// use playrate_quinn::EndpointFactory;
/// use std::sync::Arc;
///
/// let factory = EndpointFactory::new("video".parse()?);
/// let mut transport = quinn::TransportConfig::default();
/// transport.congestion_controller_factory(Arc::new(factory));
/// // … server_config.transport_config(Arc::new(transport)), or client_config.transport_config(…).
/// # Ok::<(), playrate_cc::SpecError>(())
/// ```
///
/// [`controller_of`] returns the controller of a connection, which has its knowledge and its samples. quinn builds
/// another one if the peer's address changes, except for a new port of the same IPv4 address. That one starts without
/// the knowledge of the first.
///
/// The factory requests no acknowledgements. To request those of `choice`, call
/// [`request_acks`](ConnectionController::request_acks) of a `ConnectionController::new(choice)` on the same transport.
pub struct EndpointFactory {
    make: Box<dyn Fn() -> ConnectionController + Send + Sync>,
}

impl EndpointFactory {
    /// Gives each connection its own controller `choice`.
    pub fn new(choice: ControllerChoice) -> Self {
        Self::with(move || ConnectionController::new(choice.clone()))
    }

    /// Gives each connection the controller that `make` returns. So `make` may add sinks, or knowledge that connections
    /// share:
    ///
    /// ```
    /// use playrate_quinn::telemetry::{Monitor, TimeSeries};
    /// use playrate_quinn::{ConnectionController, ControllerChoice, EndpointFactory};
    /// use std::sync::Arc;
    ///
    /// let choice: ControllerChoice = "video".parse()?;
    /// let factory = EndpointFactory::with(move || {
    ///     let samples = Arc::new(TimeSeries::new(4_096));
    ///     let monitor = Monitor::default().with_sink(samples);
    ///     ConnectionController::new(choice.clone()).with_monitor(Arc::new(monitor))
    /// });
    /// # Ok::<(), playrate_cc::SpecError>(())
    /// ```
    pub fn with(make: impl Fn() -> ConnectionController + Send + Sync + 'static) -> Self {
        Self { make: Box::new(make) }
    }
}

impl ControllerFactory for EndpointFactory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(QuinnController::new(Arc::new((self.make)()), now, current_mtu))
    }
}

/// The congestion control of `connection`, with its knowledge and its samples. `None` if the connection is under a
/// controller of quinn's own or of another crate.
pub fn controller_of(connection: &quinn::Connection) -> Option<ConnectionController> {
    let state = connection.congestion_state().into_any();
    let mut path = state.downcast::<QuinnController>().ok()?;
    path.leave_samples_to_original();
    Some(path.control().clone())
}
