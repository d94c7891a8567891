//! The claims as JSON; `docs/claims.md` describes it.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use super::command::{ClaimsReport, RunsOf};
use super::judge::{CheckResult, ClaimResult};
use super::verdict::Verdict;
use crate::statistics::Interval;

const FORMAT: &str = "lab-claims";
/// Version of the format: within one, fields are added, never renamed or removed.
const VERSION: u32 = 1;

/// The whole report, with a line break at the end.
pub(crate) fn to_json(report: &ClaimsReport) -> String {
    let of = |claim: &ClaimResult| claim_json(claim, report.runs.get(&claim.claim.scenario));
    let rows: Vec<Value> = report
        .rows
        .iter()
        .map(|row| {
            json!({
                "id": row.row.id,
                "paper": row.row.paper(),
                "says": row.row.says,
                "outcome": row.verdict,
                "claims": row.claims.iter().map(of).collect::<Vec<_>>(),
                "beside": row.beside.iter().map(of).collect::<Vec<_>>(),
            })
        })
        .collect();
    let others: Vec<Value> = report.others.iter().map(of).collect();
    let whole = json!({
        "format": FORMAT,
        "version": VERSION,
        "program": env!("CARGO_PKG_VERSION"),
        "rows": rows,
        "others": others,
        "notes": report.notes,
    });
    format!("{whole:#}\n")
}

impl Serialize for Verdict {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Verdict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let found = Self::ALL.into_iter().find(|verdict| verdict.name() == name);
        found.ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            serde::de::Error::custom(format!("unknown verdict `{name}`; expected one of: {known}"))
        })
    }
}

/// One claim; `runs` are the runs of its scenario.
pub(crate) fn claim_json(result: &ClaimResult, runs: Option<&RunsOf>) -> Value {
    let claim = &result.claim;
    let beside: Vec<Value> = result
        .beside
        .iter()
        .map(|other| {
            json!({
                "name": other.name,
                "outcome": other.verdict,
                "checks": other.checks.iter().map(check_json).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({
        "id": claim.id,
        "scenario": claim.scenario,
        "says": claim.says,
        "paper": claim.paper,
        "why": claim.why,
        "note": claim.note,
        "any": claim.any,
        "decides": claim.decides,
        "outcome": result.verdict,
        "by_means": result.by_means,
        "trials": runs.map(|runs| runs.trials),
        "quick": runs.map(|runs| runs.quick),
        "checks": result.checks.iter().map(check_json).collect::<Vec<_>>(),
        "beside": beside,
    })
}

fn check_json(result: &CheckResult) -> Value {
    let numbers = result.numbers.as_ref();
    let paired = numbers.map(|numbers| &numbers.paired);
    let ratio = paired.and_then(|paired| paired.ratio).map(|ratio| {
        json!({
            "value": short(ratio.value),
            "low": ratio.ends.map(|ends| short(ends.0)),
            "high": ratio.ends.map(|ends| short(ends.1)),
        })
    });
    let ranking = result.ranking.as_ref();
    let means: Option<Vec<Value>> = ranking.map(|ranking| {
        let means = ranking.means.iter();
        means
            .map(|one| json!({ "flow": one.flow, "member": one.is_member, "mean": short(one.mean) }))
            .collect()
    });
    json!({
        "check": result.check.to_string(),
        "outcome": result.verdict,
        "reason": result.reason,
        "trials": numbers.map(|numbers| numbers.trials),
        "left": numbers.map(|numbers| interval_json(&numbers.left)),
        "right": numbers.map(|numbers| interval_json(&numbers.right)),
        "difference": paired.map(|paired| interval_json(&paired.difference)),
        "ratio": ratio,
        "means": means,
        "pair": ranking.map(|ranking| &ranking.pair),
        "cliffs_delta": numbers.filter(|numbers| numbers.compares).map(|numbers| short(numbers.paired.delta)),
    })
}

/// Infinite ends are null.
fn interval_json(interval: &Interval) -> Value {
    json!({
        "mean": short(interval.mean),
        "low": short(interval.low),
        "high": short(interval.high),
        "method": interval.method.name(),
    })
}

/// Six significant digits; null for infinity.
fn short(value: f64) -> Value {
    let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    json!(rounded)
}
