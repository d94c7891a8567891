//! [`RandomWorlds`]: the worlds of a search's random sample, which no fitting has touched.

use std::collections::BTreeMap;

use super::verdicts::RandomCounts;
use crate::claims::Verdict;
use crate::worlds::{Finished, SampledWorld};

/// The random sample of a search.
#[derive(Clone, Debug)]
pub(super) struct RandomWorlds<'a> {
    search: &'a Finished,
    worlds: Vec<&'a SampledWorld>,
}

impl<'a> RandomWorlds<'a> {
    /// The sample of `search`, in the order in which it was drawn.
    pub(super) fn of(search: &'a Finished) -> Self {
        Self {
            search,
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
            search: self.search,
            worlds: sorted[edge(group)..edge(group + 1)].to_vec(),
        };
        (0..GROUPS).map(group).collect()
    }

    /// Share of the worlds in which all of these parts hold that were run there; `None` if they were run in none.
    pub(super) fn robustness_of_row(&self, parts: &[&str]) -> Option<f64> {
        let all_hold = self.verdicts(parts).map(|verdicts| {
            let holds = verdicts
                .iter()
                .all(|verdict| [Verdict::Holds, Verdict::NotRun].contains(verdict));
            if holds { 1.0 } else { 0.0 }
        });
        mean(all_hold)
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
        let parts = &self.search.parts;
        let ids = |judged: Option<bool>| -> Vec<&str> {
            let wanted = parts
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
            search: self.search,
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

    /// Number of rows all of whose parts hold in `world` that were run there.
    fn rows_that_hold(&self, world: &'a SampledWorld) -> usize {
        let alone = Self {
            search: self.search,
            worlds: vec![world],
        };
        let parts = &self.search.parts;
        let mut rows: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for part in parts {
            rows.entry(part.claim.row()).or_default().push(&part.claim.id);
        }
        let holds = |parts: &&Vec<&str>| alone.robustness_of_row(parts).is_some_and(|share| share > 0.0);
        rows.values().filter(holds).count()
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
