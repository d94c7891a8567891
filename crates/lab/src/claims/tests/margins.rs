//! Differences that matter: ties, thresholds, and verdicts by the means alone.

use super::*;

const MORE: &str = "frames_discarded[cubic] > frames_discarded[reno]";

fn reason(check: &CheckResult) -> &str {
    check.reason.as_deref().unwrap_or_default()
}

#[test]
fn a_difference_within_five_per_cent_is_a_tie_even_if_every_seed_has_it() {
    // The seeds differ by a hundred, the controllers by two or three.
    let reno = [100, 200, 300, 150, 250];
    let (tie, check) = verdict(LESS, &reno, &[98, 197, 298, 147, 248]);
    assert_eq!(tie, Verdict::Undecided);
    let words = "tie: the means differ by at most 5 % or by less than one event";
    assert_eq!(reason(&check), words);
    // Six per cent.
    assert_eq!(verdict(LESS, &reno, &[90, 188, 288, 136, 238]).0, Verdict::Holds);
}

#[test]
fn a_small_difference_in_every_seed_does_not_refute_the_opposite_and_a_larger_one_does() {
    let reno = [100, 200, 300, 150, 250];
    assert_eq!(
        verdict(MORE, &reno, &[98, 197, 298, 147, 248]).0,
        Verdict::Undecided
    );
    assert_eq!(verdict(MORE, &reno, &[90, 188, 288, 136, 238]).0, Verdict::Fails);
}

#[test]
fn less_than_one_event_is_a_tie_and_one_event_is_not() {
    for (reno, expected) in [
        ([0, 1, 1, 1, 1], Verdict::Undecided),
        ([1, 1, 1, 1, 1], Verdict::Holds),
    ] {
        assert_eq!(verdict(LESS, &reno, &[0; 5]).0, expected, "{reno:?}");
    }
}

#[rstest]
#[case::constant([5, 5, 5, 5, 5])]
#[case::none([0; 5])]
#[case::varying([5, 7, 6, 5, 9])]
fn equal_results_are_a_tie_for_both_strict_relations(#[case] discards: [u64; 5]) {
    for check in [LESS, MORE] {
        let (tie, check) = verdict(check, &discards, &discards);
        assert_eq!(tie, Verdict::Undecided);
        assert!(reason(&check).starts_with("tie: "), "{check:?}");
    }
}

#[test]
fn a_check_with_a_number_of_its_own_has_no_margin() {
    for check in [
        "frames_discarded[cubic] > 100",
        "frames_discarded[cubic] > 0.5 * frames_discarded[reno]",
    ] {
        let (holds, _) = verdict(check, &[200; 5], &[101, 102, 101, 102, 101]);
        assert_eq!(holds, Verdict::Holds, "{check}");
        let (tie, result) = verdict(check, &[200; 5], &[100; 5]);
        assert_eq!(tie, Verdict::Undecided, "{check}");
        assert_eq!(reason(&result), "tie: both sides are the same");
    }
}

#[test]
fn metrics_that_count_no_events_have_a_share_as_margin_only() {
    let check = "discard_share[cubic] < discard_share[reno]";
    // Far below one, and twice as much.
    let (holds, _) = verdict(check, &[8, 9, 8, 9, 8], &[4, 4, 5, 4, 4]);
    assert_eq!(holds, Verdict::Holds);
}

/// The verdict by the means of one trial.
fn by_means(check: &str, reno: u64, cubic: u64) -> Verdict {
    let mut all = rows("reno", &[reno]);
    all.extend(rows("cubic", &[cubic]));
    judge_by_means(&claim(check, &[]), &ResultSet::of(&all))
}

#[rstest]
#[case::more("frames_discarded[cubic] < frames_discarded[reno]", [(100, 90), (100, 98), (98, 100), (90, 100)])]
#[case::threshold("frames_discarded[cubic] < 100", [(0, 99), (0, 100), (0, 100), (0, 101)])]
#[case::superlative("least frames_discarded[cubic] among [both]", [(100, 90), (100, 98), (98, 100), (90, 100)])]
fn one_trial_decides_by_its_means_unless_they_tie(#[case] check: &str, #[case] results: [(u64, u64); 4]) {
    use Verdict::{Fails, Holds, Undecided};
    let verdicts = results.map(|(reno, cubic)| by_means(check, reno, cubic));
    assert_eq!(verdicts, [Holds, Undecided, Undecided, Fails]);
}

#[rstest]
#[case::at_most("frames_discarded[cubic] <= 100", [(0, 100), (0, 101)])]
#[case::at_least("frames_discarded[cubic] >= frames_discarded[reno]", [(100, 100), (100, 99)])]
#[case::about("frames_discarded[cubic] ~ frames_discarded[reno] within 10%", [(100, 110), (100, 111)])]
fn means_meet_a_stated_threshold_or_not(#[case] check: &str, #[case] results: [(u64, u64); 2]) {
    let verdicts = results.map(|(reno, cubic)| by_means(check, reno, cubic));
    assert_eq!(verdicts, [Verdict::Holds, Verdict::Fails]);
}

#[test]
fn means_of_several_trials_are_judged_without_their_spread() {
    let mut all = rows("reno", &[50, 70, 40, 80, 35]);
    all.extend(rows("cubic", &[50, 61, 45, 58, 35]));
    let result = judge_rows(&claim(LESS, &[]), &all);
    assert_eq!(
        (result.verdict, result.by_means),
        (Verdict::Undecided, Verdict::Holds)
    );
}

#[test]
fn means_of_a_controller_that_was_not_run_are_not_judged() {
    let all = rows("reno", &[5]);
    let least = "least frames_discarded[cubic] among [both]";
    for check in [LESS, least] {
        let verdict = judge_by_means(&claim(check, &[]), &ResultSet::of(&all));
        assert_eq!(verdict, Verdict::NotRun, "{check}");
    }
}
