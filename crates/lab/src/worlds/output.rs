//! The files of a search: `worlds.jsonl`, a line for each evaluation of a world, and `worlds.json`, the outcome.

use std::fs;

use serde_json::{Map, Value, json};

use super::figures::{Count, Figures, PartFigures, WorldFigures};
use super::outcome::{Evaluation, NOMINAL, Outcome};
use super::unknown::World;
use super::{TestBed, WorldsArgs};
use crate::claims::{Claim, Verdict};
use crate::error::CommandError;
use crate::rounding::ratio;

pub(super) const FORMAT: &str = "lab-worlds";
/// Version of the format: within one, fields are added, never renamed or removed.
pub(super) const VERSION: u32 = 1;
/// File with a line for each evaluation.
pub(super) const LINES: &str = "worlds.jsonl";
/// File with the outcome.
pub(super) const SUMMARY: &str = "worlds.json";

/// Writes both files to the directory of `args`.
pub(super) fn write(
    args: &WorldsArgs,
    bed: &TestBed,
    outcome: &Outcome,
    figures: &Figures,
) -> Result<(), CommandError> {
    let lines: String = outcome
        .evaluations
        .iter()
        .map(|one| line(bed, outcome, one))
        .collect();
    let summary = summary(args, bed, outcome, figures);
    for (name, text) in [(LINES, lines), (SUMMARY, format!("{summary:#}\n"))] {
        let file = args.out.join(name);
        fs::write(&file, text).map_err(|error| CommandError::Write { file, error })?;
    }
    Ok(())
}

fn line(bed: &TestBed, outcome: &Outcome, one: &Evaluation) -> String {
    let verdicts = |claims: &[Claim], verdicts: &[Verdict]| -> Vec<(String, Value)> {
        let pairs = claims.iter().zip(verdicts);
        pairs
            .map(|(claim, verdict)| (claim.id.clone(), json!(verdict.name())))
            .collect()
    };
    let mut parts: Map<String, Value> = Map::new();
    parts.extend(verdicts(&bed.fit, &one.means.fit));
    parts.extend(verdicts(&bed.judged, &one.means.judged));
    let judged = (!one.means.judged.is_empty()).then(|| count(Count::of(&one.means.judged)));
    let line = json!({
        "format": FORMAT,
        "version": VERSION,
        "test_bed": bed.name,
        "world": one.world,
        "origin": outcome.origin(one.world),
        "stage": one.stage.name(),
        "trials": one.trials,
        "choices": outcome.worlds.get(one.world).map(|world| choices(bed, world)),
        "fit": count(Count::of(&one.means.fit)),
        "judged": judged,
        "parts": parts,
    });
    format!("{line}\n")
}

fn choices(bed: &TestBed, world: &World) -> Map<String, Value> {
    let texts = world.texts(&bed.unknowns).into_iter();
    texts.map(|(name, text)| (name, Value::String(text))).collect()
}

fn count(count: Count) -> Value {
    json!({ "holds": count.holds, "of": count.of })
}

fn summary(args: &WorldsArgs, bed: &TestBed, outcome: &Outcome, figures: &Figures) -> Value {
    let unknowns = bed
        .unknowns
        .iter()
        .zip(&figures.unknowns)
        .map(|(unknown, choices)| {
            let choices = choices.iter().map(|choice| {
            json!({ "value": choice.text, "worlds": choice.worlds, "mean_fit": choice.mean.map(ratio) })
        });
            json!({
                "name": unknown.name,
                "why": unknown.why,
                "nominal": unknown.text(None),
                "acts_on_fitted_rows": unknown.fitted,
                "choices": choices.collect::<Vec<_>>(),
            })
        });
    let world = |number: usize, figures: WorldFigures| {
        json!({
            "world": number,
            "trials": figures.trials,
            "choices": outcome.worlds.get(number).map(|world| choices(bed, world)),
            "fit": count(figures.fit),
            "judged": count(figures.judged),
        })
    };
    let percentiles = [10, 25, 50, 75, 90, 100].map(|percent: u32| {
        let value = figures.percentile(f64::from(percent) / 100.0);
        (format!("p{percent:02}"), json!(value))
    });
    let found = bed.found.as_ref().filter(|_| args.found);
    let sample = (!figures.sample.is_empty()).then(|| {
        json!({
            "worlds": figures.sample.len(),
            "fit": Map::from_iter(percentiles),
        })
    });
    let as_good = sample.as_ref().map(|_| {
        let good = figures.as_good;
        json!({
            "sample": { "worlds": good.sample.holds, "of": good.sample.of },
            "refined": { "worlds": good.refined.holds, "of": good.refined.of },
        })
    });
    json!({
        "format": FORMAT,
        "version": VERSION,
        "program": env!("CARGO_PKG_VERSION"),
        "test_bed": bed.name,
        "quick": args.quick,
        "seed": found.map_or(args.seed, |found| found.seed),
        "found": found.map(|found| json!({ "worlds": found.worlds })),
        "sample": sample,
        "unknowns": unknowns.collect::<Vec<_>>(),
        "nominal": world(NOMINAL, figures.nominal),
        "fitted": world(outcome.fitted, figures.fitted),
        "as_good": as_good,
        "parts": bed.claims().zip(&figures.parts).map(part).collect::<Vec<_>>(),
    })
}

fn part((claim, part): (&Claim, &PartFigures)) -> Value {
    json!({
        "id": part.id,
        "checks": claim.checks_text(),
        "judged": part.judged,
        "nominal": part.nominal.interval.name(),
        "nominal_means": part.nominal.means.name(),
        "fitted": part.fitted.interval.name(),
        "fitted_means": part.fitted.means.name(),
        "robustness": part.robustness().map(ratio),
        "worlds": part.worlds,
        "not_run": part.not_run,
    })
}
