//! The server over HTTP/3 on loopback UDP.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod admission;
mod arms;
mod cmcd;
mod common;

mod life;
mod malformed;
mod pages;
mod semantics;
mod titles;
