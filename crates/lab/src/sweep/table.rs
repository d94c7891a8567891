//! A sweep as text and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Point, Sweep};
use crate::claims::{ClaimResult, claim_json, numbers};

const FORMAT: &str = "lab-sweep";
/// Version of the format: within one, fields are added, never renamed or removed.
const VERSION: u32 = 1;
/// Most columns side by side.
const COLUMNS: usize = 5;

/// The verdicts by value, and the numbers of claims whose verdict changes.
pub(super) fn to_text(sweep: &Sweep) -> String {
    let keys: Vec<&str> = sweep.over.iter().map(|over| over.name.as_str()).collect();
    let quick = if sweep.quick { " (--quick)" } else { "" };
    let mut text = format!(
        "{}{quick}: verdicts on claims over {}\n",
        sweep.scenario,
        keys.join(" and ")
    );
    for points in sweep.points.chunks(COLUMNS) {
        matrix(&mut text, sweep, points);
    }
    let mut flips = 0;
    for place in 0..claims(sweep) {
        if flips_at(sweep, place) {
            flips += 1;
            numbers_of(&mut text, sweep, place);
        }
    }
    let _ = writeln!(text, "\n{flips} of {} claims flip.", claims(sweep));
    text
}

fn claims(sweep: &Sweep) -> usize {
    sweep.points.first().map_or(0, |(_, claims)| claims.len())
}

fn results(sweep: &Sweep, place: usize) -> impl Iterator<Item = (&Point, &ClaimResult)> {
    sweep
        .points
        .iter()
        .filter_map(move |(point, claims)| Some((point, claims.get(place)?)))
}

fn flips_at(sweep: &Sweep, place: usize) -> bool {
    let mut verdicts = results(sweep, place).map(|(_, claim)| claim.verdict);
    let first = verdicts.next();
    verdicts.any(|verdict| Some(verdict) != first)
}

fn matrix(text: &mut String, sweep: &Sweep, points: &[(Point, Vec<ClaimResult>)]) {
    let widths: Vec<usize> = points
        .iter()
        .map(|(point, _)| point.values().chars().count().max("undecided".len()))
        .collect();
    let ids = points.first().into_iter().flat_map(|(_, claims)| claims);
    let first = ids.map(|claim| claim.claim.id.chars().count()).max().unwrap_or(0);
    let _ = write!(text, "\n{:first$}", "");
    for ((point, _), width) in points.iter().zip(&widths) {
        let _ = write!(text, "  {:<width$}", point.values());
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    for place in 0..claims(sweep) {
        let Some(claim) = points.first().and_then(|(_, claims)| claims.get(place)) else {
            continue;
        };
        let _ = write!(text, "{:<first$}", claim.claim.id);
        for ((_, claims), width) in points.iter().zip(&widths) {
            let verdict = claims.get(place).map_or("", |claim| claim.verdict.name());
            let _ = write!(text, "  {verdict:<width$}");
        }
        if flips_at(sweep, place) {
            text.push_str("  flips");
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
}

/// The numbers of the checks that make a verdict flip.
fn numbers_of(text: &mut String, sweep: &Sweep, place: usize) {
    let Some((_, claim)) = results(sweep, place).next() else {
        return;
    };
    let _ = writeln!(text, "\n{}: {}", claim.claim.id, claim.claim.says);
    for (number, check) in claim.checks.iter().enumerate() {
        let all =
            || results(sweep, place).filter_map(|(point, claim)| Some((point, claim.checks.get(number)?)));
        if all().all(|(_, other)| other.verdict == check.verdict) {
            continue;
        }
        let _ = writeln!(text, "  {}", check.check);
        for (point, check) in all() {
            let _ = writeln!(
                text,
                "    {:<12} {:<9}  {}",
                point.values(),
                check.verdict.name(),
                numbers(check)
            );
        }
    }
}

/// The whole sweep, with a line break at the end.
pub(super) fn to_json(sweep: &Sweep) -> String {
    let over: Vec<Value> = sweep
        .over
        .iter()
        .map(|over| {
            let values: Vec<&str> = over.values.iter().map(|(value, _)| value.as_str()).collect();
            json!({ "key": over.name, "values": values })
        })
        .collect();
    let points: Vec<Value> = sweep
        .points
        .iter()
        .map(|(point, claims)| {
            let settings: serde_json::Map<String, Value> = point
                .names
                .iter()
                .map(|(key, value)| (key.clone(), json!(value)))
                .collect();
            let claims: Vec<Value> = claims.iter().map(|claim| claim_json(claim, None)).collect();
            json!({ "settings": settings, "claims": claims })
        })
        .collect();
    let whole = json!({
        "format": FORMAT,
        "version": VERSION,
        "program": env!("CARGO_PKG_VERSION"),
        "scenario": sweep.scenario,
        "quick": sweep.quick,
        "over": over,
        "points": points,
    });
    format!("{whole:#}\n")
}
