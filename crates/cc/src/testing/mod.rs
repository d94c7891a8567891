//! Drives controllers by hand, by property tests and by fuzzers. Behind the cargo feature `testing`.
//!
//! [`Connection`] is a model of the transport around a controller: it knows what is in flight, and tells the controller what
//! an adapter would. [`Operation`] is one thing that may happen to it; a test or fuzzer makes a list of them, out of
//! bytes if it likes ([`composition`] makes the spec), and [`Connection::run`] checks after each that the controller keeps its promises.
//!
//! [`trace`] runs a controller over one fixed path, [`LINK`], and records its window once per round trip. The golden traces
//! in `tests/snapshots` and the figures of `docs/controllers.md` are both made by it.

mod composition;
mod connection;
mod network;
mod operation;
mod sender;
mod trace;

pub use composition::composition;
pub use connection::Connection;
pub use network::Link;
pub use operation::Operation;
pub use trace::{Demand, Example, LINK, Round, Trace, examples, trace, trace_over};
