//! The client with servers of the test and of the product, over loopback UDP, and its command line.
#![expect(
    clippy::disallowed_methods,
    reason = "these tests run on tokio and in real time"
)]
#![expect(clippy::unwrap_used, reason = "what a test needs and cannot have fails it")]

mod cli;
mod common;
mod frames;
mod interrupted;
mod manifest;
mod package;
mod restart;
mod session;
