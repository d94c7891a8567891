//! Values in place of others: what a case, `--quick` or a sweep makes of a scenario.

use std::str::FromStr;

use thiserror::Error;
use toml::{Table, Value};

/// A value for a key of a scenario, in place of what the file says: `path.queue=0.5bdp`.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The key with its tables, such as `path.queue`.
    pub key: String,
    /// What it is set to.
    pub value: Value,
}

/// A value that cannot be put in place of another.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SettingError {
    /// It is not a key with a value.
    #[error("`{0}` sets nothing: write KEY=VALUE, such as path.queue=0.5bdp")]
    Syntax(String),
    /// The key is none.
    #[error("`{0}` is no key: write its tables before it, with dots, such as path.rate")]
    Key(String),
    /// A part of the key is not a table.
    #[error("`{key}` cannot be set: `{part}` is a value, not a table")]
    NotATable {
        /// The key.
        key: String,
        /// What is not a table.
        part: String,
    },
}

impl Setting {
    /// Sets `key` to `value`.
    pub fn new(key: impl Into<String>, value: impl Into<Value>) -> Self {
        Self {
            key: key.into(),
            value: value.into(),
        }
    }

    /// The settings that a table writes down: keys with dots, or tables in the table.
    pub(super) fn of_table(table: &Table) -> Vec<Self> {
        let mut all = Vec::new();
        collect("", table, &mut all);
        all
    }

    /// Whether `key` is what this sets, or in it.
    pub(super) fn covers(&self, key: &str) -> bool {
        key.strip_prefix(self.key.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }

    /// Puts the value into `table`; tables that are missing on the way are made.
    ///
    /// # Errors
    /// If the key is none, or leads through a value.
    pub fn apply(&self, table: &mut Table) -> Result<(), SettingError> {
        let parts: Vec<&str> = self.key.split('.').collect();
        if parts.iter().any(|part| part.is_empty()) {
            return Err(SettingError::Key(self.key.clone()));
        }
        let Some((last, tables)) = parts.split_last() else {
            return Err(SettingError::Key(self.key.clone()));
        };
        let mut place = table;
        for (depth, part) in tables.iter().enumerate() {
            let entry = place
                .entry((*part).to_owned())
                .or_insert_with(|| Value::Table(Table::new()));
            place = entry.as_table_mut().ok_or_else(|| SettingError::NotATable {
                key: self.key.clone(),
                part: parts[..=depth].join("."),
            })?;
        }
        place.insert((*last).to_owned(), self.value.clone());
        Ok(())
    }
}

fn collect(prefix: &str, table: &Table, all: &mut Vec<Setting>) {
    for (key, value) in table {
        let key = if prefix.is_empty() {
            key.clone()
        } else {
            format!("{prefix}.{key}")
        };
        match value {
            Value::Table(inner) => collect(&key, inner, all),
            value => all.push(Setting::new(key, value.clone())),
        }
    }
}

impl FromStr for Setting {
    type Err = SettingError;

    /// `KEY=VALUE`. A value that TOML reads as a number, a truth value, a list or a text in quotes is that; any other is a
    /// text, so that quantities need no quotes.
    fn from_str(text: &str) -> Result<Self, SettingError> {
        let wrong = || SettingError::Syntax(text.to_owned());
        let (key, value) = text.split_once('=').ok_or_else(wrong)?;
        let (key, value) = (key.trim(), value.trim());
        if key.is_empty() || value.is_empty() {
            return Err(wrong());
        }
        let read: Option<Value> = toml::from_str::<Table>(&format!("value = {value}"))
            .ok()
            .and_then(|mut table| table.remove("value"))
            .filter(|value| !matches!(value, Value::Table(_) | Value::Datetime(_)));
        Ok(Self {
            key: key.to_owned(),
            value: read.unwrap_or_else(|| Value::String(value.to_owned())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_value_takes_the_place_of_another_and_missing_tables_are_made() {
        let mut path = table("[path]\nrate = \"20Mbit/s\"\nrtt = \"100ms\"\n");
        Setting::new("path.rate", "10Mbit/s").apply(&mut path).unwrap();
        Setting::new("bulk.count", 10).apply(&mut path).unwrap();
        let expected = table("[path]\nrate = \"10Mbit/s\"\nrtt = \"100ms\"\n[bulk]\ncount = 10\n");
        assert_eq!(path, expected);
    }

    #[test]
    fn a_key_that_leads_through_a_value_is_refused() {
        let mut path = table("[path]\nrate = \"20Mbit/s\"\n");
        let wrong = Setting::new("path.rate.mean", "1Mbit/s").apply(&mut path);
        assert_eq!(
            wrong.unwrap_err().to_string(),
            "`path.rate.mean` cannot be set: `path.rate` is a value, not a table"
        );
        assert!(Setting::new("path..rate", 1).apply(&mut path).is_err());
    }

    #[test]
    fn settings_are_read_from_texts_with_and_without_quotes() {
        let value = |text: &str| text.parse::<Setting>().unwrap().value;
        assert_eq!(value("path.queue=0.5bdp"), Value::from("0.5bdp"));
        assert_eq!(value("path.queue = \"0.5bdp\""), Value::from("0.5bdp"));
        assert_eq!(value("viewer.count=3"), Value::from(3));
        assert_eq!(value("ideal=false"), Value::from(false));
        assert_eq!(
            value("controllers=[\"reno\"]"),
            Value::from(vec![Value::from("reno")])
        );
        for wrong in ["path.queue", "=1bdp", "path.queue="] {
            assert!(
                wrong
                    .parse::<Setting>()
                    .unwrap_err()
                    .to_string()
                    .contains("KEY=VALUE")
            );
        }
    }

    #[test]
    fn keys_with_dots_and_tables_in_tables_are_the_same_settings() {
        let dotted = table("set = { \"bulk.count\" = 10, \"path.rate\" = \"1Mbit/s\" }");
        let nested = table("[set]\nbulk.count = 10\npath.rate = \"1Mbit/s\"\n");
        let settings = |table: &Table| Setting::of_table(table["set"].as_table().unwrap());
        assert_eq!(settings(&dotted), settings(&nested));
        assert!(settings(&dotted)[0].covers("bulk.count"));
        assert!(!settings(&dotted)[0].covers("bulk.counts"));
    }
}
