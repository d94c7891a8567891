//! The claims as a text of a hundred columns.

use std::fmt::Write as _;

use super::check::{Relation, Term};
use super::command::Report;
use super::contract::PAPERS;
use super::judge::{CheckResult, ClaimResult, Outcome};
use crate::metric::Unit;
use crate::statistics::{Effect, Interval, Method};

/// Columns of the text.
const WIDTH: usize = 100;

/// The whole table.
pub fn to_text(report: &Report) -> String {
    let mut text = String::new();
    for (paper, title) in PAPERS {
        let mut rows = report
            .rows
            .iter()
            .filter(|row| row.row.paper() == *paper)
            .peekable();
        if rows.peek().is_none() {
            continue;
        }
        let _ = writeln!(text, "{paper}  {title}\n{}\n", "═".repeat(WIDTH));
        for row in rows {
            lines(&mut text, &head(row.row.id, row.outcome), row.row.says, 22);
            if row.claims.is_empty() {
                lines(&mut text, "", "no scenario decides it", 22);
            }
            text.push('\n');
            for claim in &row.claims {
                claim_text(&mut text, claim, report);
            }
        }
    }
    if !report.others.is_empty() {
        let _ = writeln!(text, "Other claims\n{}\n", "═".repeat(WIDTH));
        for claim in &report.others {
            claim_text(&mut text, claim, report);
        }
    }
    summary(&mut text, report);
    text
}

fn head(id: &str, outcome: Outcome) -> String {
    format!("{id:<11}{:<11}", outcome.name())
}

fn claim_text(text: &mut String, result: &ClaimResult, report: &Report) {
    let claim = &result.claim;
    let part = claim.id.split_once('/').map_or("", |(_, part)| part);
    let name = if part.is_empty() { claim.id.as_str() } else { part };
    lines(
        text,
        &format!("  {:<11}", result.outcome.name()),
        &format!("{name}: {}", claim.says),
        13,
    );
    let mut more = |label: &str, words: &Option<String>| {
        if let Some(words) = words {
            lines(text, "", &format!("{label}{words}"), 13);
        }
    };
    more("paper: ", &claim.paper);
    more("threshold: ", &claim.why);
    more("note: ", &claim.note);
    let runs = report.runs.get(&claim.scenario);
    let runs = runs.map_or_else(
        || "not run".to_owned(),
        |runs| {
            let quick = if runs.quick { ", --quick" } else { "" };
            let trials = if runs.trials == 1 { "trial" } else { "trials" };
            format!("{} {trials}{quick}", runs.trials)
        },
    );
    lines(text, "", &format!("scenario {} ({runs})", claim.scenario), 13);
    if claim.any {
        lines(text, "", "one of these has to hold:", 13);
    }
    for check in &result.checks {
        check_text(text, check);
    }
    for other in &result.beside {
        let holds = other
            .checks
            .iter()
            .filter(|check| check.outcome == Outcome::Holds)
            .count();
        let words = format!(
            "with {} instead: {} ({holds} of {} checks hold)",
            other.name,
            other.outcome.name(),
            other.checks.len()
        );
        lines(text, "", &words, 13);
    }
    text.push('\n');
}

fn check_text(text: &mut String, result: &CheckResult) {
    let mark = match result.outcome {
        Outcome::Holds => "+",
        Outcome::Fails => "-",
        Outcome::Undecided => "?",
        Outcome::NotRun => " ",
    };
    lines(
        text,
        &format!("           {mark} "),
        &result.check.to_string(),
        15,
    );
    lines(text, "", &numbers(result), 15);
}

/// What the check came to, in words.
pub(crate) fn numbers(result: &CheckResult) -> String {
    let reason = result.reason.as_deref();
    let Some(numbers) = &result.numbers else {
        return reason.unwrap_or_default().to_owned();
    };
    let check = &result.check;
    let (left, right) = (unit(&check.left), unit(&check.right));
    let both = left.or(right).unwrap_or(Unit::Count);
    let relation = match check.relation {
        Relation::About(_) => "and",
        _ => "against",
    };
    let mut words = format!(
        "{} {relation} {}",
        left.unwrap_or(both).text(numbers.left.mean),
        right.unwrap_or(both).text(numbers.right.mean)
    );
    let _ = write!(
        words,
        ", difference {}",
        interval(both, &numbers.paired.difference)
    );
    if let Some(ratio) = numbers.paired.ratio
        && numbers.compares
    {
        let _ = write!(words, ", {:.2} ×", ratio.value);
        if let Some((low, high)) = ratio.ends
            && high > low
        {
            let _ = write!(words, " ({low:.2} to {high:.2})");
        }
    }
    if numbers.compares && !numbers.paired.difference.is_constant() {
        let delta = numbers.paired.delta;
        let _ = write!(words, ", effect {delta:.2} ({})", Effect::of(delta).name());
    }
    if let Some(reason) = reason {
        let _ = write!(words, "; {reason}");
    }
    words
}

/// The unit of the first reading of a sum.
fn unit(terms: &[Term]) -> Option<Unit> {
    let reading = terms.iter().find_map(|term| term.reading.as_ref())?;
    Some(reading.measure.metric.unit)
}

fn interval(unit: Unit, interval: &Interval) -> String {
    let mean = unit.text(interval.mean);
    match interval.method {
        Method::Single => mean,
        Method::Constant => format!("{mean} (no variation between seeds)"),
        _ => format!(
            "{mean} ({} to {})",
            unit.text(interval.low),
            unit.text(interval.high)
        ),
    }
}

fn summary(text: &mut String, report: &Report) {
    let count = |outcomes: &[Outcome]| {
        let counts = Outcome::ALL.map(|wanted| {
            let number = outcomes.iter().filter(|outcome| **outcome == wanted).count();
            format!("{number} {}", wanted.name())
        });
        counts.join(", ")
    };
    let rows: Vec<Outcome> = report.rows.iter().map(|row| row.outcome).collect();
    let claims = report
        .rows
        .iter()
        .flat_map(|row| &row.claims)
        .chain(&report.others);
    let claims: Vec<Outcome> = claims.map(|claim| claim.outcome).collect();
    let _ = writeln!(text, "Of {} rows of the papers: {}", rows.len(), count(&rows));
    let _ = writeln!(text, "Of {} claims in them: {}", claims.len(), count(&claims));
    for note in &report.notes {
        lines(text, "Note: ", note, 6);
    }
}

/// Writes `words` after `first`, broken at [`WIDTH`] and set in by `indent`.
fn lines(text: &mut String, first: &str, words: &str, indent: usize) {
    let mut line = format!("{first:<indent$}");
    let mut length = line.chars().count();
    let mut empty = true;
    for word in words.split_whitespace() {
        let size = word.chars().count();
        if !empty && length + 1 + size > WIDTH {
            text.push_str(line.trim_end());
            text.push('\n');
            line = " ".repeat(indent);
            (length, empty) = (indent, true);
        }
        if !empty {
            line.push(' ');
            length += 1;
        }
        line.push_str(word);
        length += size;
        empty = false;
    }
    text.push_str(line.trim_end());
    text.push('\n');
}
