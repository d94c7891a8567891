//! [`SweptKey`]: a key of a scenario with its values from `--over`; [`Point`]: one combination of them.

use std::str::FromStr;

use playrate_cc::registry::split_list;

use crate::scenario::{ScenarioError, Setting};

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
pub(crate) struct SweptKey {
    pub(crate) name: String,
    /// Each value as written, and as a setting.
    pub(crate) values: Vec<(String, Setting)>,
}

impl FromStr for SweptKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected KEY=V1,V2,..., such as queue=0.5bdp,1bdp,2bdp (got `{text}`)");
        let (name, values) = text.split_once('=').ok_or_else(wrong)?;
        let name = name.trim();
        let key = match SHORT.iter().find(|(short, _)| *short == name) {
            Some((_, key)) => key,
            None if name.contains('.') => name,
            None => {
                let short: Vec<&str> = SHORT.iter().map(|(short, _)| *short).collect();
                return Err(format!(
                    "unknown key `{name}`; expected a key with its table, such as path.queue, or one of: {}",
                    short.join(", ")
                ));
            }
        };
        let mut all: Vec<(String, Setting)> = Vec::new();
        for value in split_list(values) {
            let value = value.trim();
            if all.iter().any(|(known, _)| known == value) {
                return Err(format!("duplicate value `{value}`: each value is run once"));
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

/// One combination of values of all swept keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Point {
    /// Keys and values as written, such as `queue=0.5bdp`.
    names: Vec<String>,
    pub(crate) settings: Vec<Setting>,
}

impl Point {
    /// All combinations; the last key varies fastest.
    pub(crate) fn all(keys: &[SweptKey]) -> Vec<Self> {
        let mut points = vec![Self::default()];
        for key in keys {
            points = points
                .iter()
                .flat_map(|point| {
                    key.values.iter().map(|(value, setting)| {
                        let mut more = point.clone();
                        more.names.push(format!("{}={value}", key.name));
                        more.settings.push(setting.clone());
                        more
                    })
                })
                .collect();
        }
        points
    }

    /// Name of the scenario's own case `own` (empty if it has none) with these values: `n10,queue=0.5bdp,late=50ms`.
    pub(crate) fn case(&self, own: &str) -> String {
        let own = Some(own).filter(|own| !own.is_empty());
        let values = self.names.iter().map(String::as_str);
        own.into_iter().chain(values).collect::<Vec<_>>().join(",")
    }
}

/// `error` with advice if it is about a part of a text with commas.
pub(crate) fn advised(keys: &[SweptKey], mut error: ScenarioError) -> ScenarioError {
    let mut split = keys.iter().filter(|swept| swept.values.len() > 1);
    if let ScenarioError::At {
        key: Some(key),
        line: None,
        problem,
        ..
    } = &mut error
        && split.any(|swept| swept.values.iter().any(|(_, setting)| setting.key == *key))
    {
        problem.push_str("; --over splits at commas: a value that contains them needs a [[case]]");
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_short_names_and_values_may_have_commas_in_parentheses() {
        let over: SweptKey = "queue=0.5bdp, 250kB".parse().unwrap();
        assert!(over.values.iter().all(|(_, setting)| setting.key == "path.queue"));
        assert_eq!(over.values.len(), 2);
        let loss: SweptKey = "loss=none,gilbert(0.1%,20%)".parse().unwrap();
        assert_eq!(loss.values[1].0, "gilbert(0.1%,20%)");
        let own: SweptKey = "viewer.catch_up_percent=120,200".parse().unwrap();
        assert_eq!(own.values[0].1, Setting::new("viewer.catch_up_percent", 120));
    }

    #[test]
    fn a_wrong_text_is_reported_with_its_correction() {
        for (text, correction) in [
            ("queue", "0.5bdp,1bdp"),
            ("queue=1bdp,", "0.5bdp,1bdp"),
            ("speed=1", "path.queue"),
            ("rtt=1ms,1ms", "once"),
        ] {
            let error = text.parse::<SweptKey>().unwrap_err();
            assert!(error.contains(correction), "{error}");
        }
    }

    #[test]
    fn several_keys_make_all_combinations() {
        let over = ["queue=1bdp,2bdp", "late=50ms,200ms"].map(|text| text.parse::<SweptKey>().unwrap());
        let cases = |over: &[SweptKey], own| -> Vec<String> {
            Point::all(over).iter().map(|point| point.case(own)).collect()
        };
        let (first, second) = ("queue=1bdp,late=50ms", "queue=1bdp,late=200ms");
        let (third, fourth) = ("queue=2bdp,late=50ms", "queue=2bdp,late=200ms");
        assert_eq!(cases(&over, ""), [first, second, third, fourth]);
        assert_eq!(cases(&over, "n10")[0], "n10,queue=1bdp,late=50ms");
        assert_eq!(cases(&[], "n10"), ["n10"]);
    }
}
