//! [`EndpointFactory`]: a controller for each path of an endpoint's connections.

use std::sync::Arc;
use std::time::Instant;

use noq_proto::congestion::{Controller, ControllerFactory};

use crate::{ConnectionController, ControllerChoice, NoqController};

/// Builds a [`ConnectionController`] for each path of an endpoint's connections. It suits clients, and frameworks that
/// hide [`accept_with`](noq::Incoming::accept_with), such as iroh:
///
/// ```
/// use playrate_noq::EndpointFactory;
/// use std::sync::Arc;
///
/// let factory = EndpointFactory::new("video".parse()?);
/// let mut transport = noq::TransportConfig::default();
/// transport.congestion_controller_factory(Arc::new(factory));
/// # Ok::<(), playrate_cc::SpecError>(())
/// ```
///
/// noq's factory is informed neither of the connection nor of the path. So the paths of a connection do not share what
/// is known of the video, unless `make` returns clones of one `ConnectionController`, as
/// [`install`](ConnectionController::install) does. [`NoqController::of`] finds the controller of a path.
pub struct EndpointFactory {
    make: Box<dyn Fn() -> ConnectionController + Send + Sync>,
}

impl EndpointFactory {
    /// Gives each path its own controller `choice`.
    pub fn new(choice: ControllerChoice) -> Self {
        Self::with(move || ConnectionController::new(choice.clone()))
    }

    /// Gives each path the controller that `make` returns. So `make` may add a [`Monitor`](crate::telemetry::Monitor)
    /// with sinks, or knowledge that connections share.
    pub fn with(make: impl Fn() -> ConnectionController + Send + Sync + 'static) -> Self {
        Self { make: Box::new(make) }
    }
}

impl ControllerFactory for EndpointFactory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(NoqController::new(Arc::new((self.make)()), now, current_mtu))
    }
}
