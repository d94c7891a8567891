//! [`RandomWorlds`]: the worlds of a search's random sample, which no fitting has touched.

use std::collections::BTreeMap;

use super::verdicts::{RandomCounts, ShortCounts, ShortTrial};
use crate::claims::Verdict;
use crate::worlds::{Finished, FinishedPart, ShortWorld};

/// The random sample of a search.
#[derive(Clone, Debug)]
pub(super) struct RandomWorlds<'a> {
    parts: &'a [FinishedPart],
    worlds: Vec<&'a ShortWorld>,
}

impl<'a> RandomWorlds<'a> {
    /// The sample of `search`, in the order in which it was drawn.
    pub(super) fn of(search: &'a Finished) -> Self {
        Self {
            parts: &search.parts,
            worlds: search.short.iter().filter(|world| world.is_random()).collect(),
        }
    }

    /// The one world `world` of the sample's trial, whatever its origin.
    pub(super) fn only(world: &'a ShortWorld) -> Self {
        Self {
            parts: &[],
            worlds: vec![world],
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.worlds.is_empty()
    }

    pub(super) fn worlds(&self) -> &[&'a ShortWorld] {
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
        let of_world = |world: &&ShortWorld| -> Vec<Verdict> {
            let verdict = |id: &&str| world.parts.get(*id).copied().unwrap_or(Verdict::NotRun);
            parts.iter().map(verdict).collect()
        };
        let was_run = |verdicts: &Vec<Verdict>| verdicts.iter().any(|verdict| *verdict != Verdict::NotRun);
        self.worlds.iter().map(of_world).filter(was_run)
    }

    /// The worlds in which the judged rows were run too.
    pub(super) fn with_all_rows(&self) -> Self {
        let judged: Vec<&str> = self
            .parts
            .iter()
            .filter(|part| part.judged)
            .map(|part| part.claim.id.as_str())
            .collect();
        let has_judged =
            |world: &&ShortWorld| judged.is_empty() || judged.iter().any(|id| world.parts.contains_key(*id));
        Self {
            parts: self.parts,
            worlds: self.worlds.iter().copied().filter(has_judged).collect(),
        }
    }

    /// Size of the sample, and what holds in its median world.
    pub(super) fn counts(&self) -> RandomCounts {
        let complete = self.with_all_rows();
        let median_of = |random: &Self, of: fn(&ShortCounts) -> usize| {
            let counts = random
                .worlds
                .iter()
                .map(|world| ShortCounts::held(self.parts, world));
            median(counts.map(|counts| of(&counts)).collect())
        };
        RandomCounts {
            worlds: self.worlds.len(),
            with_judged: complete.worlds.len(),
            median_rows: median_of(&complete, |counts| counts.rows),
            median_parts: median_of(&complete, |counts| counts.parts),
            median_searched_parts: median_of(self, |counts| counts.searched_parts),
            median_judged_parts: median_of(&complete, |counts| counts.judged_parts),
        }
    }
}

impl ShortTrial {
    /// The nominal and the fitted world of `search` in the sample's trial; `None` if it drew no sample.
    pub(super) fn of(search: &Finished) -> Option<Self> {
        let (nominal, fitted) = (search.nominal_short_trial()?, search.fitted_short_trial()?);
        let parts = &search.parts;
        Some(Self {
            run: ShortCounts::of(parts, nominal, |verdict| verdict != Verdict::NotRun),
            nominal: ShortCounts::held(parts, nominal),
            fitted: ShortCounts::held(parts, fitted),
        })
    }
}

impl ShortCounts {
    /// The rows and parts that hold in `world`.
    fn held(parts: &[FinishedPart], world: &ShortWorld) -> Self {
        Self::of(parts, world, |verdict| verdict == Verdict::Holds)
    }

    /// The parts whose verdict in `world` is `counted`, and the rows of which all parts are.
    fn of(parts: &[FinishedPart], world: &ShortWorld, counted: impl Fn(Verdict) -> bool) -> Self {
        let mut counts = Self::default();
        let mut rows: BTreeMap<&str, bool> = BTreeMap::new();
        for part in parts {
            let verdict = world.parts.get(&part.claim.id).copied();
            let is_counted = counted(verdict.unwrap_or(Verdict::NotRun));
            *rows.entry(part.claim.row()).or_insert(true) &= is_counted;
            let of_kind = if part.judged {
                &mut counts.judged_parts
            } else {
                &mut counts.searched_parts
            };
            *of_kind += usize::from(is_counted);
            counts.parts += usize::from(is_counted);
        }
        counts.rows = rows.into_values().filter(|all| *all).count();
        counts
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
    fn world(number: usize, holds: usize, verdicts: &[&str]) -> ShortWorld {
        let parts = ["a", "b", "c"].into_iter().zip(verdicts);
        let parts: BTreeMap<&str, &str> = parts.map(|(id, verdict)| (id, *verdict)).collect();
        serde_json::from_value(json!({
            "world": number, "origin": "sample", "stage": "sample", "choices": {},
            "fit": { "holds": holds, "of": 20 }, "parts": parts,
        }))
        .unwrap()
    }

    fn random(worlds: &[ShortWorld]) -> RandomWorlds<'_> {
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
        let worlds: Vec<ShortWorld> = (1..=23).map(|number| world(number, 23 - number, &[])).collect();
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
