//! The server over real sockets: its library over HTTP/3, and the program as a user runs it.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod cli;
mod http3;
mod viewer;
