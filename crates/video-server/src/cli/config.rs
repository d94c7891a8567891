//! Settings from a file: TOML whose keys are the names of `serve`'s options. What stands there is put in front of the command line as
//! if it had been typed, so that both mean the same and are checked by the same code; an option that is on the command line leaves
//! out what the file says of it.

use std::ffi::OsString;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Args as _, Command};
use toml::de::{DeTable, DeValue};

use super::{Failure, serve};

/// One value of a file, as an option would have it.
#[derive(Debug)]
struct Setting {
    key: String,
    /// `None` for a switch.
    value: Option<String>,
    line: usize,
}

/// What a file says.
#[derive(Debug)]
pub(super) struct Config {
    file: PathBuf,
    settings: Vec<Setting>,
}

impl Config {
    /// Reads `file`. Values are not looked at yet, only whether there are such options, and of which kind.
    pub(super) fn read(file: &Path) -> Result<Self, Failure> {
        let text = fs::read_to_string(file)
            .map_err(|error| Failure::Input(anyhow!("--config {}: {error}", file.display())))?;
        let mut config = Self {
            file: file.to_owned(),
            settings: Vec::new(),
        };
        let at = |span: Range<usize>| line(&text, span.start);
        let table = DeTable::parse(&text).map_err(|error| {
            let line = error.span().map_or(1, at);
            config.failure(line, &error.message().replace('\n', ", "))
        })?;
        let command = serve::Arguments::augment_args(Command::new("serve"));
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
                // NAME=SPEC, one to a line.
                DeValue::Table(values) if several => {
                    for (inner, value) in values {
                        let joined = match value.get_ref() {
                            DeValue::String(text) => {
                                DeValue::String(format!("{}={text}", inner.get_ref()).into())
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

    /// The settings as arguments, without those whose option is `given` otherwise.
    pub(super) fn arguments(&self, given: impl Fn(&str) -> bool) -> Vec<OsString> {
        let settings = self.settings.iter().filter(|setting| !given(&setting.key));
        settings
            .map(|Setting { key, value, .. }| match value {
                Some(value) => format!("--{key}={value}").into(),
                None => format!("--{key}").into(),
            })
            .collect()
    }

    /// An error in what came of the file and the command line together, with the line that caused it, if one did.
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

    /// Puts file and line in front of a complaint about an option that the file has set.
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

/// What a value means to an option.
enum Given {
    /// As if the switch were not there.
    Off,
    On,
    Text(String),
}

/// A value as it would stand on the command line.
fn plain(option: &Arg, value: &DeValue<'_>) -> Result<Given, String> {
    let name = option.get_long().unwrap_or_default();
    match (option.get_action().takes_values(), value) {
        (false, DeValue::Boolean(on)) => Ok(if *on { Given::On } else { Given::Off }),
        (false, _) => Err(format!("{name} is either true or false, without quotes")),
        (true, DeValue::String(text)) => Ok(Given::Text(text.to_string())),
        (true, DeValue::Integer(number)) => Ok(Given::Text(number.to_string())),
        (true, _) => {
            let what = option
                .get_value_names()
                .and_then(|names| names.first())
                .map_or("", |name| name.as_str());
            Err(format!("{name} needs text: write {name} = \"{what}\""))
        }
    }
}

/// What to say of a key that is no option, with the one that may have been meant.
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
        return format!("unknown key {name}: did you mean {meant}?");
    }
    let options = command.get_arguments().filter_map(Arg::get_long);
    let names: Vec<_> = options
        .filter(|name| !matches!(*name, "config" | "help"))
        .collect();
    format!("unknown key {name}: there are {}", names.join(", "))
}

/// The name of the option that `text` begins with, such as `--media <DIR>`.
fn option(text: &str) -> Option<&str> {
    let name = text.strip_prefix("--")?;
    name.split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
        .next()
}

/// What clap has to say, without its advice on how to call the program.
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

/// Counts from 1.
fn line(text: &str, at: usize) -> usize {
    text.as_bytes()
        .iter()
        .take(at)
        .filter(|&&byte| byte == b'\n')
        .count()
        + 1
}
