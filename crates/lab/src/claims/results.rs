//! [`Results`]: rows of `lab run`, found by whose they are.

use std::collections::BTreeMap;

use super::check::{EVERYBODY, Reading};
use crate::run::{IDEAL, Row};
use crate::statistics::Sample;

/// Rows by scenario, case and controller.
#[derive(Clone, Debug, Default)]
pub struct Results {
    rows: BTreeMap<(String, String, String), Vec<Row>>,
}

/// What a reading comes to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Values {
    /// The same for every seed: a number, or what the ideal row has.
    Fixed(f64),
    /// One value for each seed.
    BySeed(Sample),
}

/// Why a reading comes to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// It was not run.
    Run(String),
    /// It was run, but the results do not have the number.
    Value(String),
}

impl Results {
    /// Of these rows.
    pub fn of(rows: impl IntoIterator<Item = Row>) -> Self {
        let mut results = Self::default();
        for row in rows {
            let key = &row.key;
            let place = (key.scenario.clone(), key.case.clone(), key.controller.clone());
            results.rows.entry(place).or_default().push(row);
        }
        results
    }

    fn find(&self, scenario: &str, case: &str, controller: &str) -> &[Row] {
        let place = (scenario.to_owned(), case.to_owned(), controller.to_owned());
        self.rows.get(&place).map_or(&[], Vec::as_slice)
    }

    /// What `reading` comes to in `scenario`, seed by seed; flows of one run are pooled. Runs that failed or do not have the number
    /// are left out.
    ///
    /// # Errors
    /// Says what is missing, if nothing is left.
    pub(super) fn values(&self, scenario: &str, reading: &Reading) -> Result<Values, Missing> {
        let flow = &reading.flow;
        let scenario = reading.scenario.as_deref().unwrap_or(scenario);
        let rows = self.find(scenario, &flow.case, &flow.controller);
        let ideal = self.find(scenario, &flow.case, IDEAL).first();
        if rows.is_empty() || (ideal.is_none() && reading.measure.over_ideal) {
            let who = if rows.is_empty() {
                flow.to_string()
            } else {
                IDEAL.to_owned()
            };
            return Err(Missing::Run(match &reading.scenario {
                Some(other) => format!("{who} was not run in {other}"),
                None => format!("{who} was not run"),
            }));
        }
        let mut by_seed: BTreeMap<u64, Vec<&Row>> = BTreeMap::new();
        let wanted = |row: &&Row| flow.role == EVERYBODY || row.role == flow.role;
        for row in rows.iter().filter(wanted) {
            by_seed.entry(row.key.seed).or_default().push(row);
        }
        let sample: Sample = by_seed
            .into_iter()
            .filter(|(_, rows)| rows.iter().all(|row| row.outcome != "failed"))
            .filter_map(|(seed, rows)| Some((seed, reading.value(&rows, ideal)?)))
            .collect();
        let sample = if reading.deviation {
            from_median(&sample)
        } else {
            sample
        };
        match sample.first_key_value() {
            None => Err(Missing::Value(format!("{reading} has no value in the results"))),
            Some((_, value)) if flow.controller == IDEAL => Ok(Values::Fixed(*value)),
            Some(_) => Ok(Values::BySeed(sample)),
        }
    }
}

impl Reading {
    fn value(&self, rows: &[&Row], ideal: Option<&Row>) -> Option<f64> {
        let rows = rows.iter().copied();
        match self.window {
            Some((window, _)) => self.measure.metric.pooled_in(window, rows),
            None => self.measure.pooled(rows, ideal),
        }
    }
}

/// How far each value is from the median of all.
fn from_median(sample: &Sample) -> Sample {
    let mut sorted: Vec<f64> = sample.values().copied().collect();
    sorted.sort_by(f64::total_cmp);
    let (Some(low), Some(high)) = (
        sorted.get(sorted.len().saturating_sub(1) / 2),
        sorted.get(sorted.len() / 2),
    ) else {
        return Sample::default();
    };
    let median = f64::midpoint(*low, *high);
    sample
        .iter()
        .map(|(seed, value)| (*seed, (value - median).abs()))
        .collect()
}
