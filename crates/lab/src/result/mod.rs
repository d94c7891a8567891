//! Results of runs: [`Row`]s, time series and the directory that holds them.

mod flatten;
mod row;
mod series;
mod store;

pub(crate) use row::{ALL_ROLES, BULK, IDEAL, VIEWER};
pub(crate) use row::{ResultKey, Row, SessionOutcome, throughput_bps};
pub(crate) use series::{SERIES, files as series_files, series_file, slug};
pub(crate) use store::{ResultSet, SCENARIOS, Store, read_directory, read_runs};
