//! [`RandomWorlds`]: the worlds of a search's random sample, which no fitting has touched.

use std::collections::BTreeMap;

use super::verdicts::RandomCounts;
use crate::claims::Verdict;
use crate::worlds::{Finished, FinishedPart, SampledWorld};

/// The random sample of a search.
#[derive(Clone, Debug)]
pub(super) struct RandomWorlds<'a> {
    parts: &'a [FinishedPart],
    worlds: Vec<&'a SampledWorld>,
}

impl<'a> RandomWorlds<'a> {
    /// The sample of `search`, in the order in which it was drawn.
    pub(super) fn of(search: &'a Finished) -> Self {
        Self {
            parts: &search.parts,
            worlds: search.sampled.iter().filter(|world| world.is_random()).collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.worlds.is_empty()
    }

    pub(super) fn worlds(&self) -> &[&'a SampledWorld] {
        &self.worlds
    }

    /// The worlds in at most ten groups of about the same size, those in which fewest fitted parts hold first; no group
    /// if there are fewer than ten worlds.
    pub(super) fn tenths(&self) -> Vec<Self> {
        const GROUPS: usize = 10;
        let mut sorted = self.worlds.clone();
        sorted.sort_by_key(|world| (world.fit.holds, world.world));
        if sorted.len() < GROUPS {
            return Vec::new();
        }
        let edge = |group: usize| group * sorted.len() / GROUPS;
        let group = |group: usize| Self {
            parts: self.parts,
            worlds: sorted[edge(group)..edge(group + 1)].to_vec(),
        };
        (0..GROUPS).map(group).collect()
    }

    /// Share of the worlds in which all of these parts hold; `None` if one of them was run in none.
    pub(super) fn robustness_of_row(&self, parts: &[&str]) -> Option<f64> {
        let worlds: Vec<Vec<Verdict>> = self.verdicts(parts).collect();
        let was_run = |part: usize| {
            worlds
                .iter()
                .any(|world| world.get(part) != Some(&Verdict::NotRun))
        };
        let complete = (0..parts.len()).all(was_run);
        let all_hold = worlds.iter().map(|world| {
            let holds = world.iter().all(|verdict| *verdict == Verdict::Holds);
            if holds { 1.0 } else { 0.0 }
        });
        mean(all_hold).filter(|_| complete)
    }

    /// Mean share of these parts that hold in a world; `None` if they were run in none.
    pub(super) fn share_of_parts(&self, parts: &[&str]) -> Option<f64> {
        mean(
            self.verdicts(parts)
                .filter_map(|verdicts| share_that_holds(&verdicts)),
        )
    }

    /// The verdicts of each world in which one of these parts was run.
    fn verdicts<'p>(&'p self, parts: &'p [&str]) -> impl Iterator<Item = Vec<Verdict>> + 'p {
        let of_world = |world: &&SampledWorld| -> Vec<Verdict> {
            let verdict = |id: &&str| world.parts.get(*id).copied().unwrap_or(Verdict::NotRun);
            parts.iter().map(verdict).collect()
        };
        let was_run = |verdicts: &Vec<Verdict>| verdicts.iter().any(|verdict| *verdict != Verdict::NotRun);
        self.worlds.iter().map(of_world).filter(was_run)
    }

    /// Size of the sample, and what holds in its median world.
    pub(super) fn counts(&self) -> RandomCounts {
        let ids = |judged: Option<bool>| -> Vec<&str> {
            let wanted = self
                .parts
                .iter()
                .filter(|part| judged.is_none_or(|judged| part.judged == judged));
            wanted.map(|part| part.claim.id.as_str()).collect()
        };
        let hold = |verdicts: &[Verdict]| verdicts.iter().filter(|one| **one == Verdict::Holds).count();
        let in_each = |ids: &[&str]| -> Vec<usize> { self.verdicts(ids).map(|all| hold(&all)).collect() };
        let (all, judged) = (ids(None), ids(Some(true)));
        let has_judged = |world: &&SampledWorld| {
            judged.is_empty() || judged.iter().any(|id| world.parts.contains_key(*id))
        };
        let complete = Self {
            parts: self.parts,
            worlds: self.worlds.iter().copied().filter(has_judged).collect(),
        };
        let held_rows = complete.worlds.iter().map(|world| self.rows_that_hold(world));
        RandomCounts {
            worlds: self.worlds.len(),
            with_judged: complete.worlds.len(),
            median_rows: median(held_rows.collect()),
            median_parts: median(complete.verdicts(&all).map(|all| hold(&all)).collect()),
            median_searched_parts: median(in_each(&ids(Some(false)))),
            median_judged_parts: median(in_each(&judged)),
        }
    }

    /// Number of rows all of whose parts hold in `world`.
    fn rows_that_hold(&self, world: &SampledWorld) -> usize {
        let mut rows: BTreeMap<&str, bool> = BTreeMap::new();
        for part in self.parts {
            let holds = world.parts.get(&part.claim.id) == Some(&Verdict::Holds);
            *rows.entry(part.claim.row()).or_insert(true) &= holds;
        }
        rows.into_values().filter(|holds| *holds).count()
    }
}

/// Share of the verdicts that hold, of those that were reached; `None` without any.
pub(super) fn share_that_holds(verdicts: &[Verdict]) -> Option<f64> {
    let run = verdicts.iter().filter(|verdict| **verdict != Verdict::NotRun);
    mean(run.map(|verdict| if *verdict == Verdict::Holds { 1.0 } else { 0.0 }))
}

/// The mean, or `None` of no values.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, number) = values.fold((0.0, 0_u32), |(sum, number), value| (sum + value, number + 1));
    (number > 0).then(|| sum / f64::from(number))
}

/// The upper median; 0 of no values.
fn median(mut values: Vec<usize>) -> usize {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A world of the sample in which so many fitted parts hold, with these verdicts on `a`, `b` and so on.
    fn world(number: usize, holds: usize, verdicts: &[&str]) -> SampledWorld {
        let parts = ["a", "b", "c"].into_iter().zip(verdicts);
        let parts: BTreeMap<&str, &str> = parts.map(|(id, verdict)| (id, *verdict)).collect();
        serde_json::from_value(json!({
            "world": number, "origin": "sample", "stage": "sample", "choices": {},
            "fit": { "holds": holds, "of": 20 }, "parts": parts,
        }))
        .unwrap()
    }

    fn random(worlds: &[SampledWorld]) -> RandomWorlds<'_> {
        RandomWorlds {
            parts: &[],
            worlds: worlds.iter().collect(),
        }
    }

    #[test]
    fn a_row_holds_where_all_its_parts_do_and_has_no_share_if_one_was_never_run() {
        let worlds = [
            world(1, 2, &["holds", "holds", "not run"]),
            world(2, 1, &["holds", "not run", "not run"]),
            world(3, 1, &["holds", "fails", "not run"]),
            world(4, 0, &[]),
        ];
        let random = random(&worlds);
        assert_eq!(random.robustness_of_row(&["a"]), Some(1.0));
        assert_eq!(random.robustness_of_row(&["a", "b"]), Some(1.0 / 3.0));
        assert_eq!(random.robustness_of_row(&["a", "b", "c"]), None);
        assert_eq!(random.share_of_parts(&["a", "b", "c"]), Some(2.5 / 3.0));
        assert_eq!(random.share_of_parts(&["c"]), None);
    }

    #[test]
    fn tenths_have_every_world_once_the_worst_first() {
        let worlds: Vec<SampledWorld> = (1..=23).map(|number| world(number, 23 - number, &[])).collect();
        let tenths = random(&worlds).tenths();
        let numbers: Vec<Vec<usize>> = tenths
            .iter()
            .map(|group| group.worlds().iter().map(|one| one.world).collect())
            .collect();
        assert_eq!(
            (numbers[0].as_slice(), numbers[9].last()),
            (&[23, 22][..], Some(&1))
        );
        assert_eq!(numbers.iter().flatten().count(), 23);
        assert_eq!(random(&worlds[..9]).tenths().len(), 0);
    }
}
