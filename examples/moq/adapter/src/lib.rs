//! `playrate-noq` over moq-noq 1.3.5: the same sources, with noq's crates renamed in `Cargo.toml`.
//!
//! Do not install moq-noq's own controllers through [`ConnectionController`]: they implement only the methods with
//! packet number spaces, which these sources do not call. [`Baseline::factory`] gives the unmodified controller.

#[path = "../../../../crates/noq/src/baseline.rs"]
mod baseline;
#[path = "../../../../crates/noq/src/controller.rs"]
mod controller;
#[path = "../../../../crates/noq/src/endpoint.rs"]
mod endpoint;
#[path = "../../../../crates/noq/src/stack.rs"]
mod stack;

use noq_proto::congestion::ControllerMetrics;
use playrate_units::Bitrate;

pub use baseline::Baseline;
pub use controller::NoqController;
pub use endpoint::EndpointFactory;
pub use stack::Noq;

/// One connection's congestion control, ready for moq-noq.
pub type ConnectionController = playrate_adapter::ConnectionController<Noq>;

/// The controller of a connection: one of playrate's specs, or the name of a [`Baseline`].
pub type ControllerChoice = playrate_adapter::ControllerChoice<Noq>;

/// Does nothing, because the path statistics of moq-noq 1.3.5 have no field for the capacity.
fn show_capacity(_metrics: &mut ControllerMetrics, _capacity: Option<Bitrate>) {}
