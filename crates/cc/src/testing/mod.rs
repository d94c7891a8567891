//! Drives controllers by hand, by property tests and by fuzzers. Behind the cargo feature `testing`.
//!
//! It is what keeps this crate testable on its own: no QUIC library, no clock, and a second opinion on
//! what `playrate-netsim` shows with the product's transport in virtual time.
//!
//! [`Connection`] is a model of the transport around a controller: it keeps what is in flight and reports to
//! the controller what an adapter would. [`Operation`] is one thing that may happen to it; a test or fuzzer
//! makes a list of them, out of bytes if it likes ([`composition`] makes the spec), and [`Connection::run`]
//! checks after each that the controller keeps its promises.
//!
//! [`examples`] lists the compositions that the golden traces of this crate and the figures of
//! `docs/controllers.md` show.

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        reason = "a model that tests drive: an overflow is a mistake that has to stop them"
    )
)]

mod composition;
mod connection;
mod examples;
mod operation;

pub use composition::composition;
pub use connection::Connection;
pub use examples::{Demand, Example, examples};
pub use operation::Operation;
