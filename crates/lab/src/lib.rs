//! Scenarios, runs, figures, claims; and the demo.
//!
//! What belongs here: everything that drives server, client and network together and draws what came out. What
//! does not: any behaviour of the product itself.
//!
//! - [`record`] is what a run leaves behind: plain data, and all that the following read.
//! - [`facts`] measures it, [`explain`] says why viewers fared differently, [`experience`] makes the table.
//! - [`figure`] draws, [`report`] puts everything on one page.
//! - [`sim`] makes one in virtual time, [`scenario`] says of what, [`run`] makes many, [`merge`] adds those of
//!   other machines.
//! - [`metric`] names every number of a result, [`statistics`] says how sure many of them are.
//! - [`claims`] says what results say of the papers' claims, [`sweep`] where that changes with a scenario's values.
//! - [`matrix`] ranks all controllers over all scenarios.
//! - [`demo`] makes a comparison over real UDP, [`live`] one of real UDP with virtual time.

pub mod claims;
pub mod demo;
pub mod experience;
pub mod explain;
pub mod facts;
pub mod figure;
pub mod live;
pub mod matrix;
pub mod merge;
pub mod metric;
pub mod record;
pub mod report;
pub mod run;
#[cfg(test)]
mod samples;
pub mod scenario;
pub mod sim;
pub mod statistics;
pub mod sweep;
pub mod words;
