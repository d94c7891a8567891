//! Experiments from end to end: the program, and runs in virtual time and over real sockets.
#![expect(clippy::unwrap_used, reason = "what a test needs and cannot have fails it")]

mod command_line;
mod demo;
mod live;
mod simulation;
