//! [`Kept`]: the words of the page that people write: the summary, whose numbers are variables, and the reasons for
//! which parts hold nowhere.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::counts::Counts;
use super::verdicts::{Fidelity, PartVerdicts, RowVerdicts};
use crate::error::CommandError;
use crate::words::percent;

/// File with the summary, below the page's directory.
pub(super) const SUMMARY: &str = "fidelity/summary.md";
/// File with the reasons, by id of a part.
pub(super) const REASONS: &str = "fidelity/reasons.toml";

/// Most sentences of a summary.
const SENTENCES: usize = 10;

/// Words that people wrote for a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Kept {
    /// Sentences with variables in braces; empty if there is no file.
    pub(super) summary: Vec<String>,
    /// Reasons by id of a part.
    pub(super) reasons: BTreeMap<String, String>,
}

impl Kept {
    /// Reads both files below `directory`. A file that is not there is empty.
    ///
    /// # Errors
    /// If a file cannot be read, or the reasons are no TOML of texts.
    pub(super) fn read(directory: &Path) -> Result<Self, CommandError> {
        let text = |name: &str| match fs::read_to_string(directory.join(name)) {
            Ok(text) => Ok(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(wrong(directory, name, &error.to_string())),
        };
        let reasons =
            toml::from_str(&text(REASONS)?).map_err(|error| wrong(directory, REASONS, &error.to_string()))?;
        Ok(Self {
            summary: sentences(&text(SUMMARY)?),
            reasons,
        })
    }

    /// The summary with the numbers of `fidelity` in place of its variables.
    ///
    /// # Errors
    /// If it has too many sentences, an unknown variable, or a count that is no variable.
    pub(super) fn summary(&self, fidelity: &Fidelity, directory: &Path) -> Result<Vec<String>, CommandError> {
        if self.summary.len() > SENTENCES {
            let problem = format!("{} sentences; expected at most {SENTENCES}", self.summary.len());
            return Err(wrong(directory, SUMMARY, &problem));
        }
        let filled = self.summary.iter().map(|sentence| filled(sentence, fidelity));
        filled
            .map(|made| made.map_err(|problem| wrong(directory, SUMMARY, &problem)))
            .collect()
    }

    /// Checks that every reason is for a part that holds nowhere.
    ///
    /// # Errors
    /// If a part is unknown, or holds in some world.
    pub(super) fn check_reasons(&self, fidelity: &Fidelity, directory: &Path) -> Result<(), CommandError> {
        let problem = |id: &String| {
            let Some(part) = fidelity.parts().find(|part| part.id == *id) else {
                let expected = "expected an id of `lab claims`, such as P13-4/cubic-discards";
                return Some(format!("unknown part `{id}`; {expected}"));
            };
            let standing = standing(part);
            part.holds_somewhere()
                .then(|| format!("`{id}` holds somewhere ({standing}): remove its reason"))
        };
        let problems: Vec<String> = self.reasons.keys().filter_map(problem).collect();
        if problems.is_empty() {
            Ok(())
        } else {
            Err(wrong(directory, REASONS, &problems.join("\n")))
        }
    }
}

fn wrong(directory: &Path, name: &str, problem: &str) -> CommandError {
    CommandError::BadInput(format!("{}: {problem}", directory.join(name).display()))
}

/// The verdicts on a part in words.
fn standing(part: &PartVerdicts) -> String {
    let random = part
        .robustness
        .map_or("random worlds: not run".to_owned(), |share| {
            format!("random worlds: {}", percent(share))
        });
    format!(
        "nominal world: {}; fitted world: {}; {random}",
        part.nominal.name(),
        part.fitted.name()
    )
}

/// The sentences of a summary: its list items, each on one line. Other lines are left out.
fn sentences(text: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for line in text.lines() {
        if let Some(item) = line.strip_prefix("- ") {
            items.push(item.trim().to_owned());
        } else if line.starts_with("  ")
            && let Some(item) = items.last_mut()
        {
            item.push(' ');
            item.push_str(line.trim());
        }
    }
    items
}

/// A sentence with its variables replaced.
fn filled(sentence: &str, fidelity: &Fidelity) -> Result<String, String> {
    let mut made = String::new();
    let mut rest = sentence;
    let mut outside = String::new();
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after
            .split_once('}')
            .ok_or_else(|| format!("a variable begins and does not end in: {sentence}"))?;
        made.push_str(before);
        outside.push_str(before);
        outside.push('_');
        made.push_str(&value(name, fidelity)?);
        rest = after;
    }
    made.push_str(rest);
    outside.push_str(rest);
    match bare_count(&outside) {
        Some(count) => Err(format!(
            "`{count}` is a count in words of its own: write a variable such as {{fitted_parts}}, so that it \
             follows the results"
        )),
        None => Ok(made),
    }
}

/// A number with what it counts, such as `20 of` or `3 rows`.
fn bare_count(text: &str) -> Option<String> {
    const COUNTED: [&str; 8] = ["of", "rows", "row", "parts", "part", "worlds", "claims", "%"];
    let words: Vec<&str> = text.split_whitespace().collect();
    let pairs = words.windows(2).map(|pair| (pair[0], pair[1]));
    let is_number = |word: &str| word.chars().all(|letter| letter.is_ascii_digit());
    let mut counts = pairs.filter(|(number, noun)| {
        is_number(number)
            && COUNTED
                .contains(&noun.trim_end_matches(|letter: char| !letter.is_alphanumeric() && letter != '%'))
    });
    counts.next().map(|(number, noun)| format!("{number} {noun}"))
}

/// The value of a variable: a count of all rows or of one paper's or test bed's, or a verdict on a row or part.
fn value(name: &str, fidelity: &Fidelity) -> Result<String, String> {
    let (scope, field) = name
        .rsplit_once('.')
        .map_or((None, name), |(scope, field)| (Some(scope), field));
    if let Some(id) = scope
        && let Some(text) = verdict(id, field, fidelity)
    {
        return Ok(text);
    }
    let is_mine = |row: &&RowVerdicts| {
        scope.is_none_or(|scope| row.paper == scope || row.test_bed.as_deref() == Some(scope))
    };
    let mine: Vec<&RowVerdicts> = fidelity.rows.iter().filter(is_mine).collect();
    let counts = Counts::of(mine.iter().copied());
    let known = counts.named();
    let found = known
        .iter()
        .find(|(known, _)| *known == field && !mine.is_empty());
    found.map(|(_, number)| number.to_string()).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        format!(
            "unknown variable `{{{name}}}`; expected one of: {}; the same after a paper or a test bed \
             (P13.fitted_parts), or nominal, fitted or robustness after a row or a part (P13-4.fitted)",
            names.join(", ")
        )
    })
}

/// The verdict on a row or part, or the share of random worlds in which it holds.
fn verdict(id: &str, field: &str, fidelity: &Fidelity) -> Option<String> {
    let row = fidelity.rows.iter().find(|row| row.id == id);
    let of_row = row.map(|row| (row.nominal, row.fitted, row.robustness));
    let part = || fidelity.parts().find(|part| part.id == id);
    let (nominal, fitted, robustness) =
        of_row.or_else(|| part().map(|part| (part.nominal, part.fitted, part.robustness)))?;
    match field {
        "nominal" => Some(nominal.name().to_owned()),
        "fitted" => Some(fitted.name().to_owned()),
        "robustness" => Some(robustness.map_or_else(|| "an unknown share".to_owned(), percent)),
        _ => None,
    }
}
