//! Drives controllers by hand, by property tests and by fuzzers. Behind the cargo feature `testing`.
//!
//! [`Connection`] is a model of the transport around a controller: it knows what is in flight, and tells the controller what
//! an adapter would. [`Operation`] is one thing that may happen to it; a test or fuzzer makes a list of them, out of
//! bytes if it likes, and [`Connection::run`] checks after each that the controller keeps its promises.

mod connection;
mod operation;

pub use connection::Connection;
pub use operation::Operation;
