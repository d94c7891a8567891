//! Scenarios described in words, with a small diagram.

use std::borrow::Borrow;
use std::fmt::Write as _;

use askama::Template;
use playrate_netsim::{Loss, QueueLimit, Rate};
use playrate_units::rounded;
use video_client::dash::Abr;
use video_client::playout::{Clock, Fill, Start};

use super::file::TimeRange;
use super::variation::MILLION;
use super::{Flows, Scenario, Vary};
use crate::words::{self, rate, size, time};

/// Lines of a label, two spaces and a value each. The diagram of the path follows after an empty line;
/// the lines do not repeat its content.
#[derive(Template)]
#[template(path = "scenario.txt", escape = "none")]
struct Description<'a> {
    it: &'a Scenario,
}

/// Describes a scenario for people: first the lines common to all cases, then those of each case.
pub(crate) fn explain(cases: &[Scenario]) -> String {
    // Writing to a String cannot fail, here and below.
    let texts = cases
        .iter()
        .map(|it| Description { it }.render().unwrap_or_default());
    let texts: Vec<String> = texts.collect();
    let parts: Vec<_> = texts.iter().filter_map(|text| text.rsplit_once("\n\n")).collect();
    let (Some(first), Some((lines, diagram))) = (cases.first(), parts.first()) else {
        return String::new();
    };
    let common = |line: &str| {
        parts
            .iter()
            .all(|(lines, _)| lines.lines().any(|other| other == line))
    };
    let mut text = format!("{}\n\n{}\n\n", first.name, first.about);
    text.extend(lines.lines().filter(|line| common(line)).map(aligned));
    if first.case.is_empty() {
        return format!("{text}\n{diagram}\n");
    }
    for (case, (lines, diagram)) in cases.iter().zip(&parts) {
        let about = case.case_about.as_deref().unwrap_or_default();
        let _ = writeln!(text, "\nCase {}: {about}", case.case);
        let sets = case.case_sets.iter();
        text.extend(sets.map(|set| aligned(&format!("Sets  {} = {}", set.key, set.value))));
        text.extend(lines.lines().filter(|line| !common(line)).map(aligned));
        let _ = write!(text, "\n{diagram}\n");
    }
    text
}

fn aligned(line: &str) -> String {
    let (label, value) = line.split_once("  ").unwrap_or(("", line));
    format!("{label:<12}{value}\n")
}

fn joining(flows: &Flows) -> String {
    let mut text = if flows.joins.from < flows.joins.to {
        format!("joining at a random time in {}", flows.joins)
    } else {
        format!("joining at {}", time(flows.joins.from))
    };
    if flows.count > 1 && !flows.join_every.is_zero() {
        let _ = write!(text, ", one more every {}", time(flows.join_every));
    }
    if let Some(after) = flows.leaves_after {
        let _ = write!(text, ", leaving after {}", time(after));
    }
    text
}

fn count(number: impl Borrow<u32>, one: &str, many: &str) -> String {
    words::count((*number.borrow()).into(), one, many)
}

fn grouped(number: usize) -> String {
    rounded::grouped(number as u64)
}

fn hundredths(percent: impl Borrow<u32>) -> f64 {
    f64::from(*percent.borrow()) / 100.0
}
