//! The campaign itself, over few seeds.

use super::campaign::{campaign, judge};
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
        assert_eq!((one.seed, one.ending, one.wire_hash), (other.seed, other.ending, other.wire_hash));
    }
    let (plan, shown) = (FaultPlan::of(301), |_: u32| one(301, false).1);
    assert_eq!(shown(1), shown(2));
    assert_eq!(judge(&plan).1.wire_hash, alone[0].wire_hash);
}
