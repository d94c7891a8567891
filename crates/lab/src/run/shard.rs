//! [`Shard`]: a part of the runs of a plan, for a machine of its own, and what says so in its directory.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::plan::Job;
use super::row::Key;

/// Name of the file that says which part of which runs a directory is for.
const FILE: &str = "shard.json";
const FORMAT: &str = "lab-shard";
const VERSION: u32 = 1;

/// Which of so many parts, from 1, written `2/3`. Of the runs in the order of the plan it has each N-th, so that all parts
/// take about as long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Shard {
    number: usize,
    of: usize,
}

/// A text that is no [`Shard`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is no shard: write I/N with I from 1 to N, such as 2/3")]
pub struct ShardError(String);

impl Shard {
    /// Whether the run at this place of the plan is its.
    pub const fn has(self, index: usize) -> bool {
        index % self.of == self.number - 1
    }

    /// Of as many parts, the one that has the run at this place of the plan.
    #[must_use]
    pub const fn sibling_with(self, index: usize) -> Self {
        Self {
            number: index % self.of + 1,
            of: self.of,
        }
    }

    /// Its own of these jobs.
    pub fn select(self, jobs: Vec<Job>) -> Vec<Job> {
        let numbered = jobs.into_iter().enumerate();
        numbered
            .filter(|(index, _)| self.has(*index))
            .map(|(_, job)| job)
            .collect()
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let read = |(number, of): (&str, &str)| Some((number.parse().ok()?, of.parse().ok()?));
        match text.split_once('/').and_then(read) {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Self { number, of }),
            _ => Err(ShardError(text.to_owned())),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> Self {
        shard.to_string()
    }
}

impl TryFrom<String> for Shard {
    type Error = ShardError;

    fn try_from(text: String) -> Result<Self, ShardError> {
        text.parse()
    }
}

/// A run of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// What it is.
    #[serde(flatten)]
    pub key: Key,
    /// How many rows it makes.
    pub rows: u32,
}

/// What a directory is for: a part of these runs. Kept as `shard.json`, so that parts can be put together again in the
/// order of the plan and nothing missing goes unnoticed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    format: String,
    version: u32,
    /// Which part.
    pub shard: Shard,
    /// All runs of all parts, in the order in which results are written.
    pub plan: Vec<Planned>,
}

impl Part {
    /// The part `shard` of all these jobs.
    pub fn new(shard: Shard, all: &[Job]) -> Self {
        let planned = |job: &Job| Planned {
            key: job.key.clone(),
            rows: job.rows(),
        };
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            shard,
            plan: all.iter().map(planned).collect(),
        }
    }

    /// What `directory` is for; `None` if for no part.
    ///
    /// # Errors
    /// If it cannot be read, or is not of this version ([`io::ErrorKind::InvalidData`]).
    pub fn read(directory: &Path) -> io::Result<Option<Self>> {
        let text = match fs::read(directory.join(FILE)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let bad = |what: String| io::Error::new(io::ErrorKind::InvalidData, format!("{FILE}: {what}"));
        let part: Self = serde_json::from_slice(&text).map_err(|error| bad(error.to_string()))?;
        if (part.format.as_str(), part.version) != (FORMAT, VERSION) {
            return Err(bad(format!(
                "it is `{}` version {}, and this program reads `{FORMAT}` version {VERSION}",
                part.format, part.version
            )));
        }
        Ok(Some(part))
    }

    /// Says in `directory` what it is for.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        let mut text = serde_json::to_string(self)?;
        text.push('\n');
        fs::create_dir_all(directory)?;
        fs::write(directory.join(FILE), text)
    }

    /// What keeps it from being of the same runs as `other`; `None` if they are the same.
    pub fn differs_from(&self, other: &Self) -> Option<String> {
        if self.plan == other.plan {
            return None;
        }
        let hashes: BTreeMap<_, _> = other
            .plan
            .iter()
            .map(|run| (run.key.full_name(), &run.key.scenario_hash))
            .collect();
        let changed = self.plan.iter().find(|run| {
            let theirs = hashes.get(&run.key.full_name());
            theirs.is_some_and(|hash| **hash != run.key.scenario_hash)
        });
        if let Some(run) = changed {
            return Some(format!(
                "the scenario `{}` is another (hash {} and not {})",
                run.key.full_name(),
                run.key.scenario_hash,
                hashes.get(&run.key.full_name()).map_or("", |hash| hash.as_str())
            ));
        }
        let only = |one: &Self, two: &Self| one.plan.iter().find(|run| !two.plan.contains(run)).cloned();
        Some(match (only(self, other), only(other, self)) {
            (Some(run), _) => format!("only it has {}", run.key.run_name()),
            (None, Some(run)) => format!("it lacks {}", run.key.run_name()),
            (None, None) => "their order is another".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("0/3")]
    #[case("4/3")]
    #[case("1/0")]
    #[case("2")]
    #[case("a/3")]
    #[case("-1/3")]
    #[case("1/3/3")]
    fn what_is_no_shard_is_refused_with_the_mend(#[case] text: &str) {
        let said = text.parse::<Shard>().unwrap_err().to_string();
        assert!(
            said.contains(&format!("`{text}`")) && said.contains("such as 2/3"),
            "{said}"
        );
    }

    #[test]
    fn each_run_has_one_shard_and_shards_are_alike_in_number() {
        let shards: Vec<Shard> = (1..=3).map(|number| Shard { number, of: 3 }).collect();
        for index in 0..20 {
            let owners: Vec<_> = shards.iter().filter(|shard| shard.has(index)).collect();
            assert_eq!(owners, [&shards[0].sibling_with(index)]);
        }
        let sizes = shards
            .iter()
            .map(|shard| (0..20).filter(|index| shard.has(*index)).count());
        assert_eq!(sizes.collect::<Vec<_>>(), [7, 7, 6]);
        assert_eq!("2/3".parse::<Shard>().unwrap(), shards[1]);
        assert_eq!(shards[1].to_string(), "2/3");
    }
}
