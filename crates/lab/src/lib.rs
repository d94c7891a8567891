//! Experiments: scenarios, their runs, and everything that reads results.
//!
//! This crate drives server, client and network together and evaluates the outcome. It implements none of the product's
//! own behaviour. Its interface is the `lab` command line ([`main`]); the public modules are those used by tests and
//! benchmarks of the workspace.
//!
//! - [`scenario`] reads scenario files, [`sim`] plays one run in virtual time, `run` plays many and stores
//!   their rows.
//! - `metric` names every number of a row, `result` stores and finds rows, `rows` prints them, `summary` compares
//!   controllers by them, and `report` makes a page of them.
//! - [`demo`] compares controllers over real UDP, [`live`] does so for any scenario and compares real UDP with
//!   virtual time; `relay` puts a path in front of any UDP server.

mod cli;
mod controllers;
pub mod demo;
mod error;
pub mod live;
mod metric;
mod relay;
mod report;
mod result;
mod rounding;
mod rows;
mod run;
pub mod scenario;
pub mod sim;
mod statistics;
mod summary;
mod words;

pub use cli::main;
pub use controllers::{Controller, Controllers, Stack};
pub use error::CommandError;

#[cfg(test)]
mod tests;
