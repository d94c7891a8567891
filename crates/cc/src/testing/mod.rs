//! Drives controllers by hand, by property tests and by fuzzers. Behind the cargo feature `testing`.
//!
//! It keeps this crate testable on its own, without a QUIC library or a clock, and cross-checks the results of
//! `playrate-netsim` with the product's transport in virtual time.
//!
//! [`Connection`] is a model of the transport around a controller: it tracks packets in flight and reports to the
//! controller like an adapter. [`Connection::run`] reads events from arbitrary bytes of a test or fuzzer, and checks
//! the controller's invariants after each.
//!
//! [`examples`] lists the compositions that the golden traces of this crate and the figures of
//! `docs/controllers.md` and `docs/controllers/all.md` show.

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        reason = "a model that tests drive: an overflow is a mistake that has to stop them"
    )
)]

mod connection;
mod examples;

pub use connection::Connection;
pub use examples::{Demand, Example, examples};
