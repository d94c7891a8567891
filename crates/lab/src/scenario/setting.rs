//! [`Setting`] and [`Overlay`]: a value that replaces another, as commands request it and as it is applied.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

/// A value for a key of a scenario, given with a command to override the file: `path.queue=0.5bdp`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Key with its tables, such as `path.queue`.
    pub key: String,
    /// The new value in TOML syntax, such as `"0.5bdp"` or `3`.
    pub value: String,
}

impl Setting {
    /// A setting of `key` (with its tables, such as `path.queue`) to `value`.
    pub fn new(key: impl Into<String>, value: impl Into<Value>) -> Self {
        Self {
            key: key.into(),
            value: value.into().to_string(),
        }
    }

    /// Advice for a refused value that may have been meant as several, to end a sentence; empty for other values.
    pub(super) fn advice(&self) -> &'static str {
        if !self.value.contains(',') {
            ""
        } else if self.key == "controllers" {
            "; several controllers: --controllers cubic,video"
        } else {
            "; several values: --over KEY=V1,V2, or a [[case]] for each if they contain commas"
        }
    }
}

impl fmt::Display for Setting {
    /// Writes `KEY=VALUE`, with the value in TOML syntax.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

impl FromStr for Setting {
    type Err = String;

    /// Reads `KEY=VALUE`. If TOML reads the value as a number, a Boolean, a list or a string, it is that; otherwise it
    /// is a string, so that quantities need no quotes.
    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) = text.split_once('=').ok_or_else(|| wrong(text))?;
        let (key, value) = (key.trim(), value.trim());
        if key.is_empty() || value.is_empty() {
            return Err(wrong(text));
        }
        let read: Option<Value> = toml::from_str::<Table>(&format!("value = {value}"))
            .ok()
            .and_then(|mut table| table.remove("value"))
            .filter(|value| !matches!(value, Value::Table(_) | Value::Datetime(_)));
        Ok(Self::new(
            key,
            read.unwrap_or_else(|| Value::String(value.to_owned())),
        ))
    }
}

/// The error for a text that is not of the form KEY=VALUE.
fn wrong(text: &str) -> String {
    format!("expected KEY=VALUE, such as path.queue=0.5bdp (got `{text}`)")
}

/// A setting to apply to a parsed file: the value carries its position, for error messages.
#[derive(Clone, Debug)]
pub(super) struct Overlay<'a> {
    pub(super) key: String,
    pub(super) value: Spanned<DeValue<'a>>,
}

impl<'a> Overlay<'a> {
    /// The overlay of a setting; `span` represents the setting in error messages.
    pub(super) fn of_setting(setting: &'a Setting, span: Range<usize>) -> Result<Self, String> {
        let value = DeValue::parse(&setting.value)
            .map_err(|_| wrong(&format!("{}={}", setting.key, setting.value)))?;
        Ok(Self {
            key: setting.key.clone(),
            value: moved_to(value.into_inner(), &span),
        })
    }

    /// Puts the value into `table`, creating missing tables on the way.
    pub(super) fn apply(&self, table: &mut DeTable<'a>) -> Result<(), String> {
        let parts: Vec<&str> = self.key.split('.').collect();
        let (last, tables) = match parts.split_last() {
            Some(split) if parts.iter().all(|part| !part.is_empty()) => split,
            _ => {
                let key = &self.key;
                return Err(format!(
                    "invalid key `{key}`: write its tables before it, with dots, such as path.rate"
                ));
            }
        };
        let span = self.value.span();
        let name = |part: &str| Spanned::new(span.clone(), part.to_owned().into());
        let mut place = table;
        for (depth, part) in tables.iter().enumerate() {
            let entry = place
                .entry(name(part))
                .or_insert_with(|| Spanned::new(span.clone(), DeValue::Table(DeTable::new())));
            let DeValue::Table(inner) = entry.get_mut() else {
                let value = parts[..=depth].join(".");
                return Err(format!(
                    "cannot set `{}`: `{value}` is a value, not a table",
                    self.key
                ));
            };
            place = inner;
        }
        // Overwriting an entry would keep its key, and with it the key's old position.
        place.remove(*last);
        place.insert(name(last), self.value.clone());
        Ok(())
    }
}

/// Adds the overlays in a `set` table to `all`: keys with dots, or nested tables.
pub(super) fn flatten<'a>(prefix: &str, table: &DeTable<'a>, all: &mut Vec<Overlay<'a>>) {
    for (key, value) in table {
        let key = dotted(prefix, key.get_ref());
        match value.get_ref() {
            DeValue::Table(inner) => flatten(&key, inner, all),
            _ => all.push(Overlay {
                key,
                value: value.clone(),
            }),
        }
    }
}

/// A key prefixed with its tables: `path.rate`.
pub(super) fn dotted(tables: &str, key: &str) -> String {
    if tables.is_empty() {
        key.to_owned()
    } else {
        format!("{tables}.{key}")
    }
}

/// `value` with `span` as the position of itself and everything in it.
fn moved_to<'a>(value: DeValue<'a>, span: &Range<usize>) -> Spanned<DeValue<'a>> {
    let value = match value {
        DeValue::Array(list) => {
            let list = list.into_iter().map(|value| moved_to(value.into_inner(), span));
            DeValue::Array(list.collect())
        }
        value => value,
    };
    Spanned::new(span.clone(), value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    fn applied(setting: &Setting, text: &str) -> Result<Table, String> {
        let mut parsed = DeTable::parse(text).unwrap();
        Overlay::of_setting(setting, 0..0)?.apply(parsed.get_mut())?;
        Ok(Table::deserialize(toml::Deserializer::from(parsed)).unwrap())
    }

    #[test]
    fn a_value_takes_the_place_of_another_and_missing_tables_are_made() {
        let path = "[path]\nrate = \"20Mbit/s\"\nrtt = \"100ms\"\n";
        for (setting, text, expected) in [
            (
                Setting::new("path.rate", "10Mbit/s"),
                path,
                path.replace('2', "1"),
            ),
            (
                Setting::new("bulk.count", 10),
                "",
                "[bulk]\ncount = 10".to_owned(),
            ),
            (
                "list=[1, 2]".parse().unwrap(),
                "list = 1",
                "list = [1, 2]".to_owned(),
            ),
        ] {
            assert_eq!(
                applied(&setting, text).unwrap(),
                toml::from_str(&expected).unwrap()
            );
        }
    }

    #[test]
    fn a_key_that_leads_through_a_value_is_refused() {
        let path = "[path]\nrate = \"20Mbit/s\"\n";
        let wrong = applied(&Setting::new("path.rate.mean", "1Mbit/s"), path).unwrap_err();
        assert_eq!(
            wrong,
            "cannot set `path.rate.mean`: `path.rate` is a value, not a table"
        );
        assert!(applied(&Setting::new("path..rate", 1), path).is_err());
    }

    #[test]
    fn settings_are_read_from_texts_with_and_without_quotes() {
        let value = |text: &str| text.parse::<Setting>().unwrap().value;
        assert_eq!(value("path.queue=0.5bdp"), "\"0.5bdp\"");
        assert_eq!(value("path.queue = \"0.5bdp\""), "\"0.5bdp\"");
        assert_eq!(value("viewer.count=3"), "3");
        assert_eq!(value("ideal=false"), "false");
        assert_eq!(value("controllers=[\"reno\"]"), "[\"reno\"]");
        for wrong in ["path.queue", "=1bdp", "path.queue="] {
            let error = wrong.parse::<Setting>().unwrap_err();
            assert!(error.contains("expected KEY=VALUE"), "{error}");
        }
    }

    #[test]
    fn keys_with_dots_and_tables_in_tables_are_the_same_overlays() {
        let keys = |text: &str| -> Vec<String> {
            let parsed = DeTable::parse(text).unwrap();
            let mut overlays = Vec::new();
            flatten("", parsed.get_ref(), &mut overlays);
            overlays.into_iter().map(|overlay| overlay.key).collect()
        };
        let expected = ["bulk.count", "path.rate"];
        assert_eq!(keys("\"bulk.count\" = 10\n\"path.rate\" = \"1Mbit/s\""), expected);
        assert_eq!(keys("bulk.count = 10\npath.rate = \"1Mbit/s\""), expected);
    }
}
