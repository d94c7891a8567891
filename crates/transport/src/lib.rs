//! Drives quinn with playrate's controllers, per connection, informed by what the server knows of the video.
//!
//! What belongs here: the quinn adapter, endpoints and TLS, the HTTP/3 sender and receiver, telemetry. What does
//! not: titles, playout, files, clocks of its own (time and spawning come through [`quinn::Runtime`]).
//!
//! - [`ConnectionController`] puts a controller into any quinn program; [`ControllerChoice`] names one.
//! - [`Server`] and [`Client`] speak HTTP/3 over it, on UDP or on a simulated network.
//! - [`telemetry`] shows what a connection's congestion control does.

mod adapter;
mod backlog;
mod baseline;
mod client;
pub mod controllers;
mod endpoint;
mod error;
mod options;
mod overhead;
mod quic;
mod receiving;
mod server;
pub mod telemetry;
pub mod time;
mod tls;

pub use adapter::{ConnectionController, QuinnController};
pub use baseline::Baseline;
pub use client::{Body, Client, ClientOptions, Connection, Target};
pub use controllers::ControllerChoice;
pub use endpoint::{BindError, SOCKET_BUFFER, udp_socket};
pub use error::{ConnectError, ConnectionLost, EndpointError, ExchangeError};
pub use options::{OptionsError, TransportOptions};
pub use server::{Arrival, BodyWriter, Exchange, Incoming, Server, ServerOptions, Session};
pub use tls::{Identity, Pin, TlsError, Trust};
