//! Experiments: scenarios, their runs, and everything that reads results.
//!
//! This crate drives server, client and network together and evaluates the outcome. It has no behaviour of the
//! product itself. Its interface is the `lab` command line ([`main`]); the public modules are those that tests
//! and benchmarks of the workspace use.
//!
//! - [`scenario`] reads scenario files, [`sim`] plays one run in virtual time, `run` plays many and stores
//!   their rows; `jobs` divides them among machines, and `merge` joins the rows of these.
//! - `metric` names every number of a row, `result` stores and finds rows, `rows` prints them, `statistics` has
//!   confidence intervals and effect sizes.
//! - `claims` decides the papers' claims by rows, `sweep` shows where verdicts flip, `matrix` ranks controllers,
//!   `worlds` searches the parameters that the papers leave open.
//! - [`svg`] writes SVG, `figure` draws, `report` makes a page of results.
//! - [`demo`] compares controllers over real UDP, [`live`] compares real UDP with virtual time,
//!   `relay` puts a path in front of any UDP server.

mod claims;
mod cli;
pub mod demo;
mod error;
mod fairness;
mod figure;
mod jobs;
pub mod live;
mod matrix;
mod merge;
mod metric;
mod relay;
mod report;
mod result;
mod rounding;
mod rows;
mod run;
#[cfg(test)]
mod samples;
pub mod scenario;
pub mod sim;
mod statistics;
pub mod svg;
mod sweep;
mod words;
mod worlds;

pub use cli::main;
pub use error::CommandError;
