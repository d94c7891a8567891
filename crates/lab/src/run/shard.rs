//! [`Shard`]: one of several shares of a plan's runs, each for its own machine.

use std::str::FromStr;

use super::Job;

/// One of several shares of all runs, counted from 1 and written `2/3`. It takes every N-th run in the order of the
/// plan, so that all shares take about equally long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    number: usize,
    of: usize,
}

impl Shard {
    /// Returns true if the run at this position in the plan belongs to the shard.
    const fn has(self, index: usize) -> bool {
        index % self.of == self.number - 1
    }

    /// The jobs of this shard.
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

#[cfg(test)]
mod tests {
    use super::*;
    use playrate_test_support::assert_contains;
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
        assert_contains(&said, &[&format!("`{text}`"), "such as 2/3"]);
    }

    #[test]
    fn each_run_belongs_to_one_shard_and_shards_are_of_equal_size() {
        let shards: Vec<Shard> = (1..=3).map(|number| Shard { number, of: 3 }).collect();
        for index in 0..20 {
            let owners: Vec<_> = shards.iter().filter(|shard| shard.has(index)).collect();
            assert_eq!(owners.len(), 1);
        }
        let sizes = shards
            .iter()
            .map(|shard| (0..20).filter(|index| shard.has(*index)).count());
        assert_eq!(sizes.collect::<Vec<_>>(), [7, 7, 6]);
        assert_eq!("2/3".parse::<Shard>().unwrap(), shards[1]);
    }
}
