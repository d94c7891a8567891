//! Results of runs: [`Row`]s, time series and the directory that holds them.

mod flatten;
mod row;
mod series;
mod store;

pub(crate) use row::{BROADCAST, BULK, IDEAL, ResultKey, Row, SessionOutcome, VIEWER};
pub(crate) use series::{files as series_files, series_file, slug};
pub(crate) use store::{Store, read_directories};
