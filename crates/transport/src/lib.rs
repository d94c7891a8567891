//! HTTP/3 over quinn; each connection's congestion controller receives facts of the video.
//!
//! Belongs here: endpoints, TLS, the HTTP/3 sender and receiver. Does not belong here: controllers and telemetry
//! (`playrate-quinn`, re-exported here), titles, playout, files, clocks of its own (time and spawning come through
//! [`quinn::Runtime`]).
//!
//! - [`Server`] and [`Client`] speak HTTP/3 on UDP or on a simulated network.
//! - [`ConnectionController`] is a connection's congestion control; [`ControllerChoice`] names its controller.
//! - [`telemetry`] shows the behaviour of a connection's congestion control.

#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

pub mod address;
mod autotuning;
mod client;
mod endpoint;
mod error;
mod log_limit;
mod merging;
mod options;
mod quic;
mod receiving;
mod self_waking;
mod server;
mod socket_layer;
pub mod time;
mod tls;
mod trust;

pub use client::{Body, Client, ClientOptions, Connection, Target};
#[cfg(target_os = "linux")]
pub use endpoint::further_sockets;
pub use endpoint::{BindError, SOCKET_BUFFER, udp_socket};
pub use error::{ConnectError, ConnectionLost, EndpointError, ExchangeError, Refusal};
pub use log_limit::LogLimit;
pub use options::{LossDetection, OptionsError, TransportOptions};
pub use playrate_quic_lb::{QuicLbConfig, QuicLbError};
pub use playrate_quinn::{
    AckRequest, Baseline, ConnectionController, ControllerChoice, QuinnController, telemetry,
};
pub use server::{
    Activity, Arrival, BodyWriter, ClientTotals, CountedExchange, Datagram, DatagramRouter, EndpointKey,
    Exchange, ForwardedTotals, Incoming, PlaceLimits, Places, Priority, QuicLb, Server, ServerOptions,
    Session, Succession, Turn, Turns, Worker,
};
pub use socket_layer::{LayeredSocket, SocketLayer};
pub use tls::{ACME_TLS, Certificates, Identity, Pin, TlsError};
pub use trust::Trust;
