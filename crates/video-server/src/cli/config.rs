//! Config file: TOML whose keys are the names of `serve`'s options. Its values are inserted into the command
//! line in front of the typed options, so both have the same meaning and the same checks. An option on the
//! command line replaces its value in the file.

use std::ffi::OsString;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Args as _, Command};
use toml::de::{DeTable, DeValue};

use super::{Failure, line_at, options};

/// One value of a file, in the form that an option takes.
#[derive(Debug)]
struct Setting {
    key: String,
    /// `None` for a switch.
    value: Option<String>,
    line: usize,
}

/// Contents of a config file.
#[derive(Debug)]
pub(crate) struct Config {
    file: PathBuf,
    settings: Vec<Setting>,
}

impl Config {
    /// Reads `file`. Checks names and types of the options, but not their values.
    pub(super) fn read(file: &Path) -> Result<Self, Failure> {
        let text = fs::read_to_string(file)
            .map_err(|error| Failure::Input(anyhow!("--config {}: {error}", file.display())))?;
        Self::parse(file, &text)
    }

    /// Reads `text` as the contents of `file`. Checks as [`read`](Self::read) does.
    pub(crate) fn parse(file: &Path, text: &str) -> Result<Self, Failure> {
        let mut config = Self {
            file: file.to_owned(),
            settings: Vec::new(),
        };
        let at = |span: Range<usize>| line_at(text, span.start);
        let table = DeTable::parse(text).map_err(|error| {
            let line = error.span().map_or(1, at);
            let mut why = error.message().replace('\n', ", ");
            if text.lines().nth(line - 1).is_some_and(lacks_quotes) {
                why += "; text needs quotes, as in KEY = \"VALUE\"";
            }
            config.failure(line, &why)
        })?;
        let command = options::ServeOptions::augment_args(Command::new("serve"));
        for (key, value) in table.get_ref() {
            let (name, line) = (key.get_ref().as_ref(), at(key.span()));
            let known = command
                .get_arguments()
                .find(|option| option.get_long() == Some(name) && name != "config");
            let Some(option) = known else {
                return Err(config.failure(line, &unknown(&command, name)));
            };
            let mut take = |value: &DeValue<'_>, line| {
                let value = match plain(option, value).map_err(|why| config.failure(line, &why))? {
                    Given::Off => return Ok(()),
                    Given::On => None,
                    Given::Text(text) => Some(text),
                };
                config.settings.push(Setting {
                    key: name.to_owned(),
                    value,
                    line,
                });
                Ok(())
            };
            let several = matches!(option.get_action(), ArgAction::Append);
            match value.get_ref() {
                DeValue::Array(values) if several => {
                    for value in values {
                        take(value.get_ref(), at(value.span()))?;
                    }
                }
                // One NAME=SPEC or PATTERN: FIELD per line.
                DeValue::Table(values) if several => {
                    let between = if name == "header" { ": " } else { "=" };
                    // In the order of the file, as the last rule for a field counts.
                    let mut values: Vec<_> = values.iter().collect();
                    values.sort_by_key(|(inner, _)| inner.span().start);
                    for (inner, value) in values {
                        let joined = match value.get_ref() {
                            DeValue::String(text) => {
                                DeValue::String(format!("{}{between}{text}", inner.get_ref()).into())
                            }
                            other => other.clone(),
                        };
                        take(&joined, at(inner.span()))?;
                    }
                }
                value => take(value, line)?,
            }
        }
        Ok(config)
    }

    /// Settings as arguments, without options that are `given` on the command line.
    pub(super) fn arguments(&self, given: impl Fn(&str) -> bool) -> Vec<OsString> {
        let settings = self.settings.iter().filter(|setting| !given(&setting.key));
        settings
            .map(|Setting { key, value, .. }| match value {
                Some(value) => format!("--{key}={value}").into(),
                None => format!("--{key}").into(),
            })
            .collect()
    }

    /// Adds file and line to an error of the merged command line, if the file caused it.
    pub(super) fn explain(&self, error: &clap::Error) -> Option<Failure> {
        let text = |kind| match error.get(kind) {
            Some(ContextValue::String(text)) => Some(text.as_str()),
            Some(ContextValue::Strings(texts)) => texts.first().map(String::as_str),
            _ => None,
        };
        let option = option(text(ContextKind::InvalidArg)?)?;
        let mut found = self.settings.iter().filter(|setting| setting.key == option);
        let value = text(ContextKind::InvalidValue);
        let exact = found.clone().find(|setting| setting.value.as_deref() == value);
        match exact.or_else(|| found.next()) {
            Some(setting) => {
                Some(self.failure(setting.line, &format!("{}: {}", setting.key, sentence(error))))
            }
            None if error.kind() == ErrorKind::MissingRequiredArgument => Some(Failure::Input(anyhow!(
                "{}: {}",
                self.file.display(),
                sentence(error)
            ))),
            None => None,
        }
    }

    /// Adds file and line to an error about an option that the file has set.
    pub(super) fn place(&self, failure: Failure) -> Failure {
        let Failure::Input(error) = failure else {
            return failure;
        };
        let said = Failure::Input(error);
        let text = said.to_string();
        let setting = option(&text).and_then(|key| self.settings.iter().find(|setting| setting.key == key));
        match setting {
            Some(setting) => self.failure(setting.line, &text),
            None => said,
        }
    }

    fn failure(&self, line: usize, what: &str) -> Failure {
        Failure::Input(anyhow!("{}:{line}: {what}", self.file.display()))
    }
}

/// A value in the terms of an option.
enum Given {
    /// The same as leaving out the switch.
    Off,
    On,
    Text(String),
}

/// Converts a value to its form on the command line.
fn plain(option: &Arg, value: &DeValue<'_>) -> Result<Given, String> {
    let name = option.get_long().unwrap_or_default();
    match (option.get_action().takes_values(), value) {
        (false, DeValue::Boolean(on)) => Ok(if *on { Given::On } else { Given::Off }),
        (false, _) => Err(format!("`{name}` must be true or false, without quotes")),
        (true, DeValue::String(text)) => Ok(Given::Text(text.to_string())),
        (true, DeValue::Integer(number)) => Ok(Given::Text(number.to_string())),
        (true, _) => {
            let names = option.get_value_names().unwrap_or_default();
            let what = names.first().map_or("", |name| name.as_str());
            Err(format!("`{name}` must be a string; write {name} = \"{what}\""))
        }
    }
}

/// Returns true for a line such as `media = films`.
fn lacks_quotes(line: &str) -> bool {
    let value = line.split_once('=').map_or("", |(_, value)| value.trim());
    let is_text = value.starts_with(|first: char| first.is_alphabetic() || matches!(first, '/' | '.'));
    is_text && !matches!(value, "true" | "false") || value.starts_with('[') && value.contains("]:")
}

/// Message for an unknown key, with a similar option or all options.
fn unknown(command: &Command, name: &str) -> String {
    let tried = command
        .clone()
        .try_get_matches_from(["serve", &format!("--{name}")]);
    let suggested = tried
        .err()
        .and_then(|error| match error.get(ContextKind::SuggestedArg) {
            Some(ContextValue::String(text)) => option(text).map(str::to_owned),
            _ => None,
        });
    if let Some(meant) = suggested.filter(|suggested| suggested != "config") {
        return format!("unknown key `{name}`; did you mean `{meant}`?");
    }
    let options = command.get_arguments().filter_map(Arg::get_long);
    let names: Vec<_> = options
        .filter(|name| !matches!(*name, "config" | "help"))
        .collect();
    format!("unknown key `{name}`; expected one of: {}", names.join(", "))
}

/// Name of the option at the start of `text`, such as `--media <DIR>`.
fn option(text: &str) -> Option<&str> {
    let name = text.strip_prefix("--")?;
    name.split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
        .next()
}

/// Clap's message without its usage advice.
fn sentence(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let said: Vec<_> = text
        .lines()
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    said.join(" ").trim_start_matches("error: ").to_owned()
}
