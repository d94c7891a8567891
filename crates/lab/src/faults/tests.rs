//! The campaign itself, over few seeds.

use std::time::Duration;

use playrate_units::Probability;

use super::campaign::{campaign, judge};
use super::ending::Ending;
use super::invariants::{Invariant, violations};
use super::media::compare;
use super::run::SessionRecord;
use super::*;

/// Number of sessions in the test; `lab faults` plays any number.
const SEEDS: u64 = 200;

fn texts(verdicts: &[Verdict]) -> String {
    let lines = violating(verdicts).flat_map(|verdict| {
        let of_seed = verdict.violations.iter();
        of_seed.map(|violation| format!("seed {}: {violation}\n", verdict.seed))
    });
    lines.collect()
}

#[test]
fn every_invariant_holds_in_the_first_sessions() {
    let verdicts = campaign(1, SEEDS, None, &AtomicBool::new(false));
    assert_eq!(verdicts.len() as u64, SEEDS);
    let found = texts(&verdicts);
    assert!(found.is_empty(), "{found}");
    let table = counts(&verdicts).table();
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
}

#[test]
fn a_seed_replays_byte_for_byte_on_any_thread() {
    let stop = AtomicBool::new(false);
    let alone = campaign(301, 12, NonZeroUsize::new(1), &stop);
    let together = campaign(301, 12, NonZeroUsize::new(4), &stop);
    for (one, other) in alone.iter().zip(&together) {
        assert_eq!(
            (one.seed, one.ending, one.wire_hash),
            (other.seed, other.ending, other.wire_hash)
        );
    }
    let shown = one(301, false).1;
    assert_eq!(shown, one(301, false).1);
    assert!(shown.contains(&format!("{:016x}", alone[0].wire_hash)), "{shown}");
}

/// A change of a record, after which an invariant does not hold.
type Change = fn(&mut SessionRecord);

/// A plan without faults, and its record.
fn undisturbed() -> (FaultPlan, SessionRecord) {
    let mut plan = FaultPlan::of(1);
    plan.faults.clear();
    plan.path.loss = Probability::ZERO;
    let (record, verdict) = judge(&plan);
    assert!(verdict.violations.is_empty(), "{:?}", verdict.violations);
    (plan, record.unwrap())
}

#[test]
fn a_record_is_held_to_every_invariant() {
    let (plan, record) = undisturbed();
    assert_eq!(record.ending, Ending::Completed);
    let found = |change: Change| {
        let mut changed = record.clone();
        change(&mut changed);
        let found = violations(&plan, &changed);
        found
            .into_iter()
            .map(|violation| violation.invariant)
            .collect::<Vec<_>>()
    };
    let cases: [(Invariant, Change); 11] = [
        (Invariant::Bytes, |record| record.comparison.right -= 1),
        (Invariant::Bytes, |record| record.comparison.is_whole = false),
        (Invariant::Ending, |record| record.ending = Ending::TimedOut),
        (Invariant::Limits, |record| {
            record.server.as_mut().unwrap().freed = None;
        }),
        (Invariant::Limits, |record| record.tasks_left = [0, 1]),
        (Invariant::Limits, |record| {
            record.ending = Ending::Left;
            record.open_responses.last = 1;
        }),
        (Invariant::Memory, |record| record.open_responses.most = 3),
        (Invariant::Memory, |record| record.most_ahead += 10_000_000),
        (Invariant::Progress, |record| {
            record.taken.clear();
            record.ended = Duration::from_secs(100);
        }),
        (Invariant::Agreement, |record| {
            *record.reported.as_mut().unwrap() += 1;
        }),
        (Invariant::Agreement, |record| {
            record.server.as_mut().unwrap().read += 1;
        }),
    ];
    for (invariant, change) in cases {
        assert!(found(change).contains(&invariant), "{}", invariant.name());
    }
    assert_eq!(found(|_| {}), []);
}

#[test]
fn a_wrong_byte_and_a_segment_of_another_place_are_found_where_they_are() {
    let seeds = |in_segments| {
        (1..100)
            .map(FaultPlan::of)
            .find(|plan| plan.title.in_segments == in_segments)
    };
    for plan in [seeds(false), seeds(true)] {
        let mut plan = plan.unwrap();
        plan.faults.clear();
        plan.path.loss = Probability::ZERO;
        let title = plan.title.served().unwrap();
        let (record, _) = judge(&plan);
        let mut pieces = record.unwrap().taken;
        let all = compare(&title, &pieces).unwrap();
        assert!(all.is_whole && all.right == all.taken);
        let at = pieces.len() / 2;
        let before: u64 = pieces[..at].iter().map(|(_, piece)| piece.len() as u64).sum();
        let mut wrong = pieces[at].1.to_vec();
        wrong[5] ^= 1;
        pieces[at].1 = wrong.into();
        let found = compare(&title, &pieces).unwrap();
        assert_eq!(
            (found.right, found.taken, found.is_whole),
            (before + 5, all.taken, false)
        );
        pieces.remove(at);
        assert!(compare(&title, &pieces).unwrap().right <= before);
    }
}
