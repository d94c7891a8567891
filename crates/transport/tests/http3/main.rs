//! HTTP/3 over real UDP on loopback: a server and a client of this crate.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod clients;
mod common;
mod errors;
mod exchanges;
mod foreign;
mod life;
mod raw;
mod restart;
mod trust;
#[cfg(target_os = "linux")]
mod workers;
