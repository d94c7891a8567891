//! [`Metric`]: every number of a result that tables, figures, claims and rankings use, under one name.
//!
//! A metric's name is that of the field in `runs.jsonl`, or one of its own if it is computed from several. `excess_` before a name
//! means: over what the best that any sender could do has ([`Measure`]).

mod table;
mod unit;

pub use table::METRICS;
pub use unit::Unit;

use crate::run::Row;

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Less.
    Lower,
    /// More.
    Higher,
    /// It says nothing about quality.
    Neither,
}

/// How a metric is read from a row, or from what a row says of a window.
#[derive(Debug)]
enum Value<R: 'static> {
    /// As one number; several rows have their mean.
    Number(fn(&R) -> Option<f64>),
    /// As one over another; several rows have the sum of the ones over the sum of the others.
    Ratio(fn(&R) -> Option<(f64, f64)>),
}

// Derived, they would ask the same of rows.
impl<R> Clone for Value<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Value<R> {}

impl<R> Value<R> {
    /// Of several rows together; `None` if there is none, or one does not have it.
    fn pooled<'a>(&self, rows: impl IntoIterator<Item = &'a R>) -> Option<f64> {
        let (mut one, mut all) = (0.0, 0.0);
        for row in rows {
            let (more, of) = match self {
                Self::Number(read) => (read(row)?, 1.0),
                Self::Ratio(read) => read(row)?,
            };
            one += more;
            all += of;
        }
        (all > 0.0).then(|| one / all)
    }
}

/// A number of a result.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name in claims, figures and files.
    pub name: &'static str,
    /// What people call it, as a heading without unit.
    pub label: &'static str,
    /// What it means, where the label does not say it.
    pub about: &'static str,
    /// What it is counted in.
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
    value: Value<Row>,
}

impl Metric {
    /// The metric of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        METRICS.iter().find(|metric| metric.name == name)
    }

    /// What it is in `row`, in [`Self::unit`]; `None` if the row does not have it.
    pub fn value(&self, row: &Row) -> Option<f64> {
        self.pooled([row])
    }

    /// What it is in several flows of one run together: the mean of numbers; of ratios that of the sums. `None` if there is
    /// no row, or one does not have it.
    pub fn pooled<'a>(&self, rows: impl IntoIterator<Item = &'a Row>) -> Option<f64> {
        self.value.pooled(rows)
    }

    /// Whether it is counted in measurement windows too.
    pub fn has_windows(&self) -> bool {
        table::in_window(self.name).is_some()
    }

    /// What it is in the `window`th of the scenario's measurement windows, from 0 ([`Self::pooled`]). Flows that were not there are left
    /// out.
    pub fn pooled_in<'a>(&self, window: usize, rows: impl IntoIterator<Item = &'a Row>) -> Option<f64> {
        let counts = rows.into_iter().filter_map(|row| row.windows.get(window));
        table::in_window(self.name)?.pooled(counts)
    }
}

/// A metric as it stands in a row, or over what the best that any sender could do has.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Of what.
    pub metric: &'static Metric,
    /// Whether that of the ideal row is taken off.
    pub over_ideal: bool,
}

/// What is written before the name of a metric to take that of the ideal row off.
pub const EXCESS: &str = "excess_";

impl Measure {
    /// The measure of this name: a metric's, or one with [`EXCESS`] before it.
    pub fn find(name: &str) -> Option<Self> {
        if let Some(metric) = Metric::find(name) {
            return Some(metric.into());
        }
        let metric = Metric::find(name.strip_prefix(EXCESS)?)?;
        Some(Self {
            metric,
            over_ideal: true,
        })
    }

    /// Its name.
    pub fn name(&self) -> String {
        format!(
            "{}{}",
            if self.over_ideal { EXCESS } else { "" },
            self.metric.name
        )
    }

    /// What people call it.
    pub fn label(&self) -> String {
        let beyond = if self.over_ideal { " beyond the ideal" } else { "" };
        format!("{}{beyond}", self.metric.label)
    }

    /// What it is in several flows of one run together ([`Metric::pooled`]). `ideal` is the row of the best that any sender could do in
    /// the same scenario, if there is one.
    pub fn pooled<'a>(&self, rows: impl IntoIterator<Item = &'a Row>, ideal: Option<&Row>) -> Option<f64> {
        let value = self.metric.pooled(rows)?;
        if self.over_ideal {
            Some(value - self.metric.value(ideal?)?)
        } else {
            Some(value)
        }
    }

    /// What it is in `row` ([`Self::pooled`]).
    pub fn value(&self, row: &Row, ideal: Option<&Row>) -> Option<f64> {
        self.pooled([row], ideal)
    }
}

impl From<&'static Metric> for Measure {
    fn from(metric: &'static Metric) -> Self {
        Self {
            metric,
            over_ideal: false,
        }
    }
}

#[cfg(test)]
mod tests;
