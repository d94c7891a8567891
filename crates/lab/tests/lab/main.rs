//! Experiments from end to end: the program, runs in virtual time, and runs over real sockets.
#![expect(clippy::unwrap_used, reason = "what a test needs and cannot have fails it")]

mod command_line;
mod demo;
mod live;
mod simulation;
