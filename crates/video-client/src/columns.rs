//! Series as columns of JSON; otherwise field names would make up most of a report.

use serde::Serializer;
use serde_json::Value;

/// A column of a series of `T`: its name, and a point's value.
pub(crate) type Column<T> = (&'static str, fn(&T) -> Value);

/// Writes `points` as an object with an array for each column.
pub(crate) fn write<T, S: Serializer>(points: &[T], columns: &[Column<T>], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(columns.iter().map(|(name, value)| {
        let values: Vec<Value> = points.iter().map(value).collect();
        (name, values)
    }))
}
