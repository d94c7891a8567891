//! [`Over`]: a key of a scenario and the values that it is to have.

use std::str::FromStr;

use thiserror::Error;

use crate::scenario::Setting;

/// Short names of keys.
const SHORT: &[(&str, &str)] = &[
    ("queue", "path.queue"),
    ("rtt", "path.rtt"),
    ("rate", "path.rate"),
    ("loss", "path.loss"),
    ("late", "viewer.late"),
    ("buffer", "viewer.playout_buffer"),
];

/// A key and its values: `queue=0.5bdp,1bdp,2bdp`.
#[derive(Clone, Debug, PartialEq)]
pub struct Over {
    /// The key as it was written.
    pub name: String,
    /// Each of the values as it was written, and as a setting.
    pub values: Vec<(String, Setting)>,
}

/// A text that is no [`Over`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OverError {
    /// It has no key, no value, or an empty one.
    #[error("`{0}` is no key with values: write it such as queue=0.5bdp,1bdp,2bdp")]
    Syntax(String),
    /// The key is none.
    #[error("`{0}` is no key: write it with its table, such as path.queue, or one of {short}", short = SHORT.iter().map(|(short, _)| *short).collect::<Vec<_>>().join(", "))]
    Key(String),
    /// A value stands there twice.
    #[error("`{0}` stands there twice: each value is run once")]
    Twice(String),
}

impl FromStr for Over {
    type Err = OverError;

    fn from_str(text: &str) -> Result<Self, OverError> {
        let wrong = || OverError::Syntax(text.to_owned());
        let (name, values) = text.split_once('=').ok_or_else(wrong)?;
        let name = name.trim();
        let key = match SHORT.iter().find(|(short, _)| *short == name) {
            Some((_, key)) => key,
            None if name.contains('.') => name,
            None => return Err(OverError::Key(name.to_owned())),
        };
        let mut all: Vec<(String, Setting)> = Vec::new();
        for value in crate::claims::split(values) {
            let value = value.trim();
            if all.iter().any(|(known, _)| known == value) {
                return Err(OverError::Twice(value.to_owned()));
            }
            let setting = format!("{key}={value}").parse().map_err(|_| wrong())?;
            all.push((value.to_owned(), setting));
        }
        Ok(Self {
            name: name.to_owned(),
            values: all,
        })
    }
}

/// A value for each key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// Key and value as they were written.
    pub names: Vec<(String, String)>,
    /// The same as settings.
    pub settings: Vec<Setting>,
}

impl Point {
    /// All combinations, the last key running fastest.
    pub fn all(over: &[Over]) -> Vec<Self> {
        let mut points = vec![Self::default()];
        for over in over {
            points = points
                .iter()
                .flat_map(|point| {
                    over.values.iter().map(|(value, setting)| {
                        let mut more = point.clone();
                        more.names.push((over.name.clone(), value.clone()));
                        more.settings.push(setting.clone());
                        more
                    })
                })
                .collect();
        }
        points
    }

    /// What it is called as a case: `queue=0.5bdp,late=50ms`.
    pub fn name(&self) -> String {
        let parts: Vec<String> = self
            .names
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        parts.join(",")
    }

    /// The same in few letters, for the head of a column: `0.5bdp 50ms`.
    pub fn values(&self) -> String {
        let values: Vec<&str> = self.names.iter().map(|(_, value)| value.as_str()).collect();
        values.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_short_names_and_values_may_have_commas_in_parentheses() {
        let over: Over = "queue=0.5bdp, 250kB".parse().unwrap();
        let keys: Vec<_> = over
            .values
            .iter()
            .map(|(_, setting)| setting.key.as_str())
            .collect();
        assert_eq!(keys, ["path.queue", "path.queue"]);
        let loss: Over = "loss=none,gilbert(0.1%,20%)".parse().unwrap();
        assert_eq!(loss.values[1].0, "gilbert(0.1%,20%)");
        let own: Over = "viewer.catch_up_percent=120,200".parse().unwrap();
        assert_eq!(own.values[0].1, Setting::new("viewer.catch_up_percent", 120));
    }

    #[test]
    fn what_is_wrong_is_said_with_the_mend() {
        for (text, mend) in [
            ("queue", "0.5bdp,1bdp"),
            ("queue=1bdp,", "0.5bdp,1bdp"),
            ("speed=1", "path.queue"),
            ("rtt=1ms,1ms", "twice"),
        ] {
            let error = text.parse::<Over>().unwrap_err().to_string();
            assert!(error.contains(mend), "{error}");
        }
    }

    #[test]
    fn several_keys_make_all_combinations() {
        let over = ["queue=1bdp,2bdp", "late=50ms,200ms"].map(|text| text.parse::<Over>().unwrap());
        let names: Vec<String> = Point::all(&over).iter().map(Point::name).collect();
        assert_eq!(
            names,
            [
                "queue=1bdp,late=50ms",
                "queue=1bdp,late=200ms",
                "queue=2bdp,late=50ms",
                "queue=2bdp,late=200ms"
            ]
        );
    }
}
