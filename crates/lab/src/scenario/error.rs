//! [`ScenarioError`]: what is wrong with a scenario, and where.

use std::fmt;
use std::ops::Range;

use thiserror::Error;

use super::changes::Setting;

/// A scenario that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// Something in the file is wrong.
    #[error("{file}{}{}{}: {problem}",
        .line.map(|line| format!(", line {line}")).unwrap_or_default(),
        .origin.as_ref().map(|origin| format!(", {origin}")).unwrap_or_default(),
        .key.as_deref().map(|key| format!(", `{key}`")).unwrap_or_default())]
    At {
        /// The file.
        file: String,
        /// The line in it, from 1; `None` if what is wrong does not stand in the file.
        line: Option<usize>,
        /// Where the value comes from, if not from the scenario itself, or the case in which it is wrong.
        origin: Option<Origin>,
        /// The key there, with its table, such as `path.rate`.
        key: Option<String>,
        /// What is wrong with it, and the mend.
        problem: String,
    },
    /// The file cannot be read.
    #[error("cannot read {file}: {reason}")]
    Read {
        /// The file.
        file: String,
        /// What the system says.
        reason: String,
    },
    /// There is no such scenario.
    #[error(
        "there is no scenario `{name}`; there are {known}. A file of your own is named by its path, such as ./{name}.toml"
    )]
    Unknown {
        /// What was asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// No scenario has such a case.
    #[error("there is no case `{name}`; there are {known}")]
    UnknownCase {
        /// What was asked for.
        name: String,
        /// The scenarios with their cases.
        known: String,
    },
}

/// Who set a value in place of the scenario's own.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// A case of the scenario, by its name.
    Case(String),
    /// What the scenario says of `--quick`.
    Quick,
    /// Whoever asked for the runs.
    CommandLine,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Case(name) => write!(f, "case `{name}`"),
            Self::Quick => f.write_str("quick"),
            Self::CommandLine => f.write_str("as asked for"),
        }
    }
}

/// A setting with where it comes from.
#[derive(Clone, Debug)]
pub(super) struct Applied {
    pub(super) setting: Setting,
    pub(super) origin: Origin,
    /// Where in the file it is set.
    pub(super) line: Option<usize>,
}

impl Applied {
    /// All of `settings` with one origin.
    pub(super) fn all(settings: Vec<Setting>, origin: &Origin, line: Option<usize>) -> Vec<Self> {
        let one = |setting| Self {
            setting,
            origin: origin.clone(),
            line,
        };
        settings.into_iter().map(one).collect()
    }
}

/// Makes the errors of one file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blame<'a> {
    pub(super) file: &'a str,
    /// The text that is read.
    pub(super) text: &'a str,
    /// The file as it was written, if `text` has other values in place.
    pub(super) written: Option<&'a str>,
    /// These values.
    pub(super) applied: &'a [Applied],
    /// The case that is read; empty if there are none.
    pub(super) case: &'a str,
}

impl<'a> Blame<'a> {
    /// Of a file that is read as it was written.
    pub(super) fn new(file: &'a str, text: &'a str) -> Self {
        Self {
            file,
            text,
            written: None,
            applied: &[],
            case: "",
        }
    }

    /// What is wrong with the part of the text at `span`.
    pub(super) fn at(self, span: Range<usize>, problem: impl Into<String>) -> ScenarioError {
        let (line, key) = place(self.text, span.start);
        let Some(written) = self.written else {
            return self.error(Some(line), self.origin(), key, problem.into());
        };
        let changed = key
            .as_deref()
            .and_then(|key| self.applied.iter().rfind(|one| one.setting.covers(key)));
        if let Some(changed) = changed {
            return self.error(changed.line, Some(changed.origin.clone()), key, problem.into());
        }
        let line = key.as_deref().and_then(|key| line_of(written, key));
        self.error(line, self.origin(), key, problem.into())
    }

    /// What is wrong with a value that was set.
    pub(super) fn applied(self, applied: &Applied, problem: String) -> ScenarioError {
        let key = Some(applied.setting.key.clone());
        self.error(applied.line, Some(applied.origin.clone()), key, problem)
    }

    fn origin(self) -> Option<Origin> {
        (!self.case.is_empty()).then(|| Origin::Case(self.case.to_owned()))
    }

    fn error(
        self,
        line: Option<usize>,
        origin: Option<Origin>,
        key: Option<String>,
        problem: String,
    ) -> ScenarioError {
        ScenarioError::At {
            file: self.file.to_owned(),
            line,
            origin,
            key,
            problem,
        }
    }

    /// The line of a byte of the text.
    pub(super) fn line(self, offset: usize) -> usize {
        place(self.text, offset).0
    }

    /// What TOML has to say.
    pub(super) fn toml(self, error: &toml::de::Error) -> ScenarioError {
        self.at(error.span().unwrap_or(0..0), error.message().trim_end())
    }
}

/// The line on which `key` is set, or its table begins.
fn line_of(text: &str, key: &str) -> Option<usize> {
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let (number, found) = place(text, offset);
        if found.as_deref() == Some(key) {
            return Some(number);
        }
        offset += line.len();
    }
    None
}

/// The line of a byte of a text, and the key that is set there.
fn place(text: &str, offset: usize) -> (usize, Option<String>) {
    let mut table = String::new();
    let mut key = None;
    let mut start = 0;
    let mut number = 0;
    for line in text.split_inclusive('\n') {
        number += 1;
        let trimmed = line.trim();
        if let Some(header) = trimmed.strip_prefix('[')
            && let Some((name, _)) = header.trim_start_matches('[').split_once(']')
            && !name.is_empty()
            && !name.contains(['"', ','])
        {
            name.trim().clone_into(&mut table);
            key = None;
        } else if let Some((name, _)) = trimmed.split_once('=')
            && !name.is_empty()
            && name
                .trim()
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
        {
            key = Some(name.trim().to_owned());
        }
        start += line.len();
        if offset < start {
            break;
        }
    }
    let full = match (table.is_empty(), key) {
        (true, key) => key,
        (false, Some(key)) => Some(format!("{table}.{key}")),
        (false, None) => Some(table),
    };
    (number.max(1), full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_named_by_line_table_and_key() {
        let text = "about = \"x\"\ncontrollers = [\n  \"reno\",\n]\n\n[path]\n# rate = 1\nrtt = \"1ms\"\n";
        let at = |needle: &str| place(text, text.find(needle).unwrap());
        assert_eq!(at("\"x\""), (1, Some("about".to_owned())));
        assert_eq!(at("\"reno\""), (3, Some("controllers".to_owned())));
        assert_eq!(at("[path]"), (6, Some("path".to_owned())));
        assert_eq!(at("\"1ms\""), (8, Some("path.rtt".to_owned())));
        assert_eq!(place("", 0), (1, None));
        assert_eq!(line_of(text, "path.rtt"), Some(8));
        assert_eq!(line_of(text, "path.queue"), None);
    }
}
