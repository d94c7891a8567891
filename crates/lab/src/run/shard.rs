//! [`Shard`]: one of several shares of a plan's runs, each for its own machine.

use std::str::FromStr;

/// One of several shares of all runs, counted from 1 and written `2/3`. It takes every N-th run in the order of the
/// plan, so that all shares take about equally long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    number: usize,
    of: usize,
}

impl Shard {
    /// The runs of this shard among all runs in the order of the plan.
    pub(super) fn select<T>(self, all: Vec<T>) -> Vec<T> {
        all.into_iter().skip(self.number - 1).step_by(self.of).collect()
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
        let runs: Vec<Vec<u32>> = shards
            .iter()
            .map(|shard| shard.select((0..20).collect()))
            .collect();
        assert_eq!(runs.iter().map(Vec::len).collect::<Vec<_>>(), [7, 7, 6]);
        let mut all = runs.concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..20));
        assert_eq!("2/3".parse::<Shard>().unwrap(), shards[1]);
    }
}
