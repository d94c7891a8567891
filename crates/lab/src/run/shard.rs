//! [`Shard`]: one of several shares of a plan's runs, for a machine of its own; [`ShardPlan`]: the file in its
//! directory.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Job;
use crate::result::ResultKey;

/// Name of the file with the [`ShardPlan`] of a directory.
const FILE: &str = "shard.json";
const FORMAT: &str = "lab-shard";
const VERSION: u32 = 1;

/// One of several shares of all runs, from 1, written `2/3`. It has each N-th run in the order of the plan, so that all
/// shares take about equally long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) struct Shard {
    number: usize,
    of: usize,
}

impl Shard {
    /// Returns true if the shard has the run at this place of the plan.
    pub(crate) const fn has(self, index: usize) -> bool {
        index % self.of == self.number - 1
    }

    /// The shard, of as many, that has the run at this place of the plan.
    pub(crate) const fn sibling_with(self, index: usize) -> Self {
        Self {
            number: index % self.of + 1,
            of: self.of,
        }
    }

    /// The shard's own of all jobs.
    pub(super) fn select(self, jobs: Vec<Job>) -> Vec<Job> {
        let numbered = jobs.into_iter().enumerate();
        numbered
            .filter(|(index, _)| self.has(*index))
            .map(|(_, job)| job)
            .collect()
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = |(number, of): (&str, &str)| Some((number.parse().ok()?, of.parse().ok()?));
        match text.split_once('/').and_then(read) {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Self { number, of }),
            _ => Err(format!(
                "`{text}` is not a shard; write I/N with I from 1 to N, such as 2/3"
            )),
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
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// A run of the plan, with the number of its rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlannedRun {
    #[serde(flatten)]
    pub(crate) key: ResultKey,
    pub(crate) rows: u32,
}

/// The shard of a directory and the plan of all shards. Stored as `shard.json`, so that shards are merged in the
/// order of the plan and a missing run is noticed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ShardPlan {
    format: String,
    version: u32,
    pub(crate) shard: Shard,
    /// All runs of all shards, in the order in which results are written.
    pub(crate) plan: Vec<PlannedRun>,
}

impl ShardPlan {
    /// The plan of the shard `shard` of all these jobs.
    pub(super) fn new(shard: Shard, all: &[Job]) -> Self {
        let planned = |job: &Job| PlannedRun {
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

    /// Reads the plan of `directory`; `None` if it holds no shard.
    ///
    /// # Errors
    /// If the file cannot be read, or is of another version ([`io::ErrorKind::InvalidData`]).
    pub(crate) fn read(directory: &Path) -> io::Result<Option<Self>> {
        let text = match fs::read(directory.join(FILE)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let bad = |what: String| io::Error::new(io::ErrorKind::InvalidData, format!("{FILE}: {what}"));
        let plan: Self = serde_json::from_slice(&text).map_err(|error| bad(error.to_string()))?;
        if (plan.format.as_str(), plan.version) != (FORMAT, VERSION) {
            return Err(bad(format!(
                "found format `{}` version {}; expected `{FORMAT}` version {VERSION}",
                plan.format, plan.version
            )));
        }
        Ok(Some(plan))
    }

    /// Writes the plan into `directory`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn write(&self, directory: &Path) -> io::Result<()> {
        let mut text = serde_json::to_string(self)?;
        text.push('\n');
        fs::create_dir_all(directory)?;
        // In one step: a torn file would keep an interrupted shard from being resumed.
        let new = directory.join("shard.new.json");
        fs::write(&new, text)?;
        fs::rename(new, directory.join(FILE))
    }

    /// The difference between the runs of this plan and of `other`; `None` if they are the same.
    pub(crate) fn difference_from(&self, other: &Self) -> Option<String> {
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
                "the scenario `{}` differs (hash {} instead of {})",
                run.key.full_name(),
                run.key.scenario_hash,
                hashes.get(&run.key.full_name()).map_or("", |hash| hash.as_str())
            ));
        }
        let only = |one: &Self, two: &Self| one.plan.iter().find(|run| !two.plan.contains(run)).cloned();
        Some(match (only(self, other), only(other, self)) {
            (Some(run), _) => format!("the run {} is only in it", run.key.run_name()),
            (None, Some(run)) => format!("the run {} is not in it", run.key.run_name()),
            (None, None) => "the order of the runs differs".to_owned(),
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
    fn an_invalid_shard_is_refused_with_an_example(#[case] text: &str) {
        let said = text.parse::<Shard>().unwrap_err();
        assert!(
            said.contains(&format!("`{text}`")) && said.contains("such as 2/3"),
            "{said}"
        );
    }

    #[test]
    fn each_run_belongs_to_one_shard_and_shards_are_of_equal_size() {
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
