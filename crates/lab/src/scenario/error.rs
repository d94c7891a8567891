//! [`ScenarioError`]: what is wrong with a scenario, and where.

use std::ops::Range;

use thiserror::Error;

/// A scenario that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// Something in the file is wrong.
    #[error("{file}, line {line}{}: {problem}", .key.as_deref().map(|key| format!(", `{key}`")).unwrap_or_default())]
    At {
        /// The file.
        file: String,
        /// The line in it, from 1.
        line: usize,
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
}

/// Makes the errors of one file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blame<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
}

impl Blame<'_> {
    /// What is wrong with the part of the file at `span`.
    pub(super) fn at(self, span: Range<usize>, problem: impl Into<String>) -> ScenarioError {
        let (line, key) = self.place(span.start);
        ScenarioError::At {
            file: self.file.to_owned(),
            line,
            key,
            problem: problem.into(),
        }
    }

    /// What TOML has to say.
    pub(super) fn toml(self, error: &toml::de::Error) -> ScenarioError {
        self.at(error.span().unwrap_or(0..0), error.message().trim_end())
    }

    /// The line of a byte of the file, and the key that is set there.
    fn place(self, offset: usize) -> (usize, Option<String>) {
        let mut table = String::new();
        let mut key = None;
        let mut start = 0;
        let mut number = 0;
        for line in self.text.split_inclusive('\n') {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_named_by_line_table_and_key() {
        let text = "about = \"x\"\ncontrollers = [\n  \"reno\",\n]\n\n[path]\n# rate = 1\nrtt = \"1ms\"\n";
        let blame = Blame { file: "f.toml", text };
        let place = |needle: &str| blame.place(text.find(needle).unwrap());
        assert_eq!(place("\"x\""), (1, Some("about".to_owned())));
        assert_eq!(place("\"reno\""), (3, Some("controllers".to_owned())));
        assert_eq!(place("[path]"), (6, Some("path".to_owned())));
        assert_eq!(place("\"1ms\""), (8, Some("path.rtt".to_owned())));
        assert_eq!(Blame { file: "f", text: "" }.place(0), (1, None));
    }
}
