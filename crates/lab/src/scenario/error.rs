//! [`ScenarioError`]: a mistake in a scenario file, with line, key and correction; [`SourceMap`] makes them.

use std::ops::Range;

use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::setting::{Setting, dotted};

/// A scenario that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// A wrong key or value.
    #[error("{file}{}{}{}: {problem}",
        .line.map(|line| format!(", line {line}")).unwrap_or_default(),
        .origin.as_ref().map(|origin| format!(", {origin}")).unwrap_or_default(),
        .key.as_deref().map(|key| format!(", `{key}`")).unwrap_or_default())]
    At {
        /// Path of the file as the user named it.
        file: String,
        /// Line, counted from 1; `None` for a value that is not in the file.
        line: Option<usize>,
        /// Origin of the value: a case, `quick` or the command line; `None` for the scenario itself.
        origin: Option<String>,
        /// Key with its table, such as `path.rate`.
        key: Option<String>,
        /// The problem and how to correct it.
        problem: String,
    },
    /// A scenario file that cannot be read.
    #[error("cannot read {file}: {reason}")]
    Read {
        /// Path of the file as the user named it.
        file: String,
        /// The operating system's message.
        reason: String,
    },
    /// A name that is neither built in nor a path.
    #[error(
        "unknown scenario `{name}`; expected one of: {known}; a file of your own is named by its path, such as \
         ./{name}.toml"
    )]
    Unknown {
        /// The name that the user gave.
        name: String,
        /// Names of scenarios and groups, separated by commas.
        known: String,
    },
    /// A case that none of the chosen scenarios has.
    #[error("unknown case `{name}`; expected one of: {known}")]
    UnknownCase {
        /// The name that the user gave.
        name: String,
        /// Scenarios with their cases, separated by commas.
        known: String,
    },
}

/// Maps byte ranges of a scenario file to lines and keys, for error messages.
///
/// Values of a case or `quick` that replace others keep the range where they are written. Settings of the command line
/// have ranges beyond the end of the text ([`Self::of_setting`]).
#[derive(Clone, Copy, Debug)]
pub(crate) struct SourceMap<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
    /// The whole file after parsing.
    pub(super) table: &'a DeTable<'a>,
    /// The values of the case being read; the whole file outside cases.
    pub(super) values: &'a DeTable<'a>,
    /// Settings of the command line.
    pub(super) settings: &'a [Setting],
    /// Name of the case being read; empty outside cases.
    pub(super) case: &'a str,
}

impl<'a> SourceMap<'a> {
    /// A map for the text of `file` and its parsed form, without settings and outside cases.
    pub(super) fn new(file: &'a str, text: &'a str, table: &'a DeTable<'a>) -> Self {
        Self {
            file,
            text,
            table,
            values: table,
            settings: &[],
            case: "",
        }
    }

    /// The range that represents setting `index` of the command line, for a file of `length` bytes.
    pub(super) fn of_setting(length: usize, index: usize) -> Range<usize> {
        let start = length.saturating_add(1).saturating_add(index);
        start..start.saturating_add(1)
    }

    /// The error `problem` at a range of the file.
    pub(crate) fn at(self, span: Range<usize>, problem: impl Into<String>) -> ScenarioError {
        let behind = span.start.checked_sub(self.text.len().saturating_add(1));
        let setting = behind.and_then(|index| self.settings.get(index));
        let (line, origin, key) = if let Some(setting) = setting {
            (None, Some("command line".to_owned()), Some(setting.key.clone()))
        } else {
            let whole_file = span.start == 0 && span.end >= self.text.trim_end().len();
            let key = if whole_file {
                None
            } else {
                key_at(self.table, "", span.start).or_else(|| self.key_on_line(span.start))
            };
            let (origin, key) = self.origin(key);
            (Some(self.line(span.start)), origin, key)
        };
        let problem = problem.into() + setting.map_or("", Setting::advice);
        ScenarioError::At {
            file: self.file.to_owned(),
            line,
            origin,
            key,
            problem,
        }
    }

    /// The value of `key`, such as `path.rate`, in the case being read.
    pub(super) fn value(self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        let Some((tables, last)) = key.rsplit_once('.') else {
            return self.values.get(key);
        };
        match self.value(tables)?.get_ref() {
            DeValue::Table(table) => table.get(last),
            _ => None,
        }
    }

    /// The error `problem` at the value of `key`, or at its table if the key is missing.
    pub(super) fn at_key(self, key: &str, problem: impl Into<String>) -> ScenarioError {
        let table = || self.value(key.rsplit_once('.')?.0);
        let place = self.value(key).or_else(table);
        self.at(place.map_or(0..self.text.len(), Spanned::span), problem)
    }

    /// Splits the position of an overlay (`case.set.path.rtt`) into its origin and the key that it sets.
    fn origin(self, key: Option<String>) -> (Option<String>, Option<String>) {
        let case = || (!self.case.is_empty()).then(|| format!("case `{}`", self.case));
        let Some(key) = key else {
            return (case(), None);
        };
        if let Some(set) = key.strip_prefix("case.set.") {
            (case(), Some(set.to_owned()))
        } else if let Some(set) = key.strip_prefix("quick.set.") {
            (Some("quick".to_owned()), Some(set.to_owned()))
        } else {
            (case(), Some(key))
        }
    }

    /// The key at the beginning of a byte's line, if the text could not be parsed.
    fn key_on_line(self, offset: usize) -> Option<String> {
        let line = self.text.lines().nth(self.line(offset).checked_sub(1)?)?;
        let (key, _) = line.split_once('=')?;
        Some(key.trim().to_owned())
    }

    /// The line of a byte, counted from 1.
    fn line(self, offset: usize) -> usize {
        let before = self.text.as_bytes().iter().take(offset);
        before.filter(|byte| **byte == b'\n').count() + 1
    }

    /// The error reported by TOML or serde.
    pub(crate) fn toml(self, error: &toml::de::Error) -> ScenarioError {
        self.at(
            error.span().unwrap_or(0..self.text.len()),
            error.message().trim_end(),
        )
    }
}

/// The innermost key at a byte of the file, with its tables: `path.rate`.
fn key_at(table: &DeTable<'_>, prefix: &str, offset: usize) -> Option<String> {
    let mut found = None;
    for (key, value) in table {
        let name = dotted(prefix, key.get_ref());
        let inside = match value.get_ref() {
            DeValue::Table(table) => key_at(table, &name, offset),
            DeValue::Array(list) => list.iter().find_map(|value| match value.get_ref() {
                DeValue::Table(table) => key_at(table, &name, offset)
                    .or_else(|| value.span().contains(&offset).then(|| name.clone())),
                _ => None,
            }),
            _ => None,
        };
        if inside.is_some() {
            return inside;
        }
        if key.span().contains(&offset) || value.span().contains(&offset) {
            found = Some(name);
        }
    }
    found
}
