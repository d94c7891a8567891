//! A test bed and the outcome of a search in words, in 80 columns.

use std::fmt::Write as _;

use super::figures::{ChoiceFigures, Count, Figures, WorldFigures};
use super::outcome::{NOMINAL, Outcome};
use super::unknown::{Effect, Unknown};
use super::{Effort, TestBed};
use crate::claims::Claim;
use crate::words::{count, percent};

const COLUMNS: usize = 80;
/// A blank at which no line is broken.
const TOGETHER: char = '\u{a0}';

/// The unknowns of a test bed (`--show`).
pub(super) fn describe(bed: &TestBed) -> String {
    let mut text = String::new();
    paragraph(&mut text, "", &format!("{}: {}", bed.name, bed.about));
    let scenarios: Vec<&str> = bed
        .scenarios
        .iter()
        .map(|scenario| scenario.name.as_str())
        .collect();
    text.push('\n');
    paragraph(&mut text, "", &format!("Scenarios: {}.", scenarios.join(", ")));
    for (rows, claims) in [("Fitted rows", &bed.fit), ("Judged rows", &bed.judged)] {
        let parts = count(claims.len() as u64, "part", "parts");
        paragraph(
            &mut text,
            "",
            &format!("{rows}: {} ({parts}).", names_of_rows(claims)),
        );
    }
    for (when, Effort { worlds, judged }) in [("", bed.search), (" with --quick", bed.quick)] {
        let sample = format!("Random sample{when}: {worlds} worlds, judged rows in {judged} of them.");
        paragraph(&mut text, "", &sample);
    }
    if let Some(found) = &bed.found {
        let found = format!(
            "Found world ([found]): by a search with seed {} in {} worlds.",
            found.seed, found.worlds
        );
        paragraph(&mut text, "", &found);
    }
    for unknown in &bed.unknowns {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(text, "\n{}", unknown.name);
        paragraph(&mut text, "  ", &unknown.why);
        paragraph(&mut text, "  ", &format!("Sets {}.", effect(unknown)));
        paragraph(
            &mut text,
            "  ",
            &format!(
                "Nominal: {}. Candidates: {}.",
                unknown.text(None),
                unknown.choices_text()
            ),
        );
    }
    text
}

fn names_of_rows(claims: &[Claim]) -> String {
    let mut rows: Vec<&str> = claims.iter().map(Claim::row).collect();
    rows.dedup();
    if rows.is_empty() {
        "none".to_owned()
    } else {
        rows.join(", ")
    }
}

fn effect(unknown: &Unknown) -> String {
    let what = match &unknown.effect {
        Effect::Key(key) => key.clone(),
        Effect::Argument { name, of } => format!("the argument `{name}` of {}", of.join(", ")),
        Effect::Component { key, of } => format!("the component `{key}=` of {}", of.join(", ")),
    };
    let only = unknown
        .only
        .iter()
        .flatten()
        .map(String::as_str)
        .collect::<Vec<_>>();
    if only.is_empty() {
        what
    } else {
        format!("{what}, in {}", only.join(", "))
    }
}

/// Adds `words`, broken at the last column, each line after `indent`.
fn paragraph(text: &mut String, indent: &str, words: &str) {
    let mut line = String::new();
    for word in words.split([' ', '\n']).filter(|word| !word.is_empty()) {
        let width = indent.chars().count() + line.chars().count() + 1 + word.chars().count();
        if !line.is_empty() && width > COLUMNS {
            let _ = writeln!(text, "{indent}{line}");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&word.replace(TOGETHER, " "));
    }
    let _ = writeln!(text, "{indent}{line}");
}

/// The outcome of a search.
pub(super) fn summary(bed: &TestBed, outcome: &Outcome, figures: &Figures) -> String {
    let mut text = format!("{}: parts that hold\n", bed.name);
    let fit = |count: Count| format!("{} of {} fitted", count.holds, count.of);
    let world = |figures: WorldFigures| {
        let judged = figures.judged;
        format!(
            "{}, {} of {} judged; {}",
            fit(figures.fit),
            judged.holds,
            judged.of,
            count(figures.trials.into(), "trial", "trials")
        )
    };
    let _ = writeln!(text, "  nominal world   {}", world(figures.nominal));
    let _ = writeln!(text, "  fitted world    {}", world(figures.fitted));
    if !figures.sample.is_empty() {
        sample(&mut text, figures);
    }
    choices(&mut text, bed, outcome, figures);
    parts(&mut text, figures);
    text
}

/// The numbers of parts that hold in the random sample.
fn sample(text: &mut String, figures: &Figures) {
    let sample = figures.sample.len();
    let _ = writeln!(
        text,
        "  random worlds   fitted parts in {sample} worlds, one trial:"
    );
    let percentiles = [10, 25, 50, 75, 90]
        .map(|percent: u32| format!("{percent} % {}", figures.percentile(f64::from(percent) / 100.0)));
    let _ = writeln!(
        text,
        "                  {}, best {}",
        percentiles.join(", "),
        figures.percentile(1.0)
    );
    let good = figures.as_good;
    let as_good = format!(
        "{} of {} random worlds and {} of {} worlds with more trials do as well as the fitted world, within one part.",
        good.sample.holds, good.sample.of, good.refined.holds, good.refined.of
    );
    paragraph(text, "  ", &as_good);
}

/// The fitted world beside the nominal one, and the mean number of parts by choice.
fn choices(text: &mut String, bed: &TestBed, outcome: &Outcome, figures: &Figures) {
    let names = bed.unknowns.iter().map(|unknown| unknown.name.chars().count());
    let width = names.max().unwrap_or(0);
    text.push_str("\nThe fitted world (nominal value)");
    text.push_str(if figures.sample.is_empty() {
        "\n"
    } else {
        ", and mean fitted parts by choice\n"
    });
    let (fitted, nominal) = (outcome.worlds.get(outcome.fitted), outcome.worlds.get(NOMINAL));
    for (place, unknown) in bed.unknowns.iter().enumerate() {
        let value =
            |world: Option<&super::unknown::World>| unknown.text(world.and_then(|world| world.choice(place)));
        let (chosen, usual) = (value(fitted), value(nominal));
        let both = if chosen == usual {
            chosen
        } else {
            format!("{chosen} ({usual})")
        };
        let _ = writeln!(text, "  {:<width$}  {both}", unknown.name);
        let means: Vec<String> = figures
            .unknowns
            .get(place)
            .into_iter()
            .flatten()
            .filter_map(mean)
            .collect();
        if !means.is_empty() {
            paragraph(text, &" ".repeat(width + 6), &means.join(" · "));
        }
    }
}

fn mean(choice: &ChoiceFigures) -> Option<String> {
    Some(format!("{}: {:.1}", choice.text, choice.mean?).replace(' ', &TOGETHER.to_string()))
}

fn parts(text: &mut String, figures: &Figures) {
    let width = figures
        .parts
        .iter()
        .map(|part| part.id.chars().count())
        .max()
        .unwrap_or(0);
    let sampled = !figures.sample.is_empty();
    let robustness = if sampled { "     robustness" } else { "" };
    let _ = writeln!(text, "\n{:width$}  nominal    fitted{robustness}", "");
    for part in &figures.parts {
        let (nominal, fitted) = (part.nominal.interval.name(), part.fitted.interval.name());
        let robustness = part.robustness().map_or_else(|| "–".to_owned(), percent);
        let robustness = if sampled {
            format!("  {robustness:>10}")
        } else {
            String::new()
        };
        let judged = if part.judged { "  judged" } else { "" };
        let line = format!(
            "{:<width$}  {nominal:<9}  {fitted:<9}{robustness}{judged}",
            part.id
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    paragraph(text, "", "Verdicts by confidence intervals.");
    if sampled {
        let legend = "Robustness: share of the random worlds in which a part holds by the means.";
        paragraph(text, "", legend);
    }
    for part in figures.parts.iter().filter(|part| part.not_run > 0) {
        let missed = format!(
            "{}: runs failed in {} of {} random worlds, in which it counts as a part that does not hold.",
            part.id, part.not_run, part.worlds
        );
        paragraph(text, "", &missed);
    }
}
