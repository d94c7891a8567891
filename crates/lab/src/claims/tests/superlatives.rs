//! `least` and `most`: syntax, verdicts, and what the report says of them.

use super::*;

const LEAST: &str = "least frames_discarded[cubic] among [all]";
const MOST: &str = "most frames_discarded[cubic] among [all]";

/// A claim of [`FILE`] with another check, and with a group of all controllers but the last.
fn superlative(check: &str) -> Claim {
    let groups = "both = [\"reno\", \"cubic\"]\nall = [\"reno\", \"cubic\", \"ccpd(1,2000)+loss=ignore\"]";
    let text = with_check(check).replace("both = [\"reno\", \"cubic\"]", groups);
    read(&text).unwrap().claims.remove(0)
}

fn three(reno: &[u64], cubic: &[u64], ccpd: &[u64]) -> Vec<Row> {
    let mut all = rows("reno", reno);
    all.extend(rows("cubic", cubic));
    all.extend(rows("ccpd+loss=ignore", ccpd));
    all
}

/// The verdict and its reason, with these discards of reno, cubic and ccpd.
fn judged(check: &str, discards: [&[u64]; 3]) -> (Verdict, Option<String>) {
    let [reno, cubic, ccpd] = discards;
    let mut result = judge_rows(&superlative(check), &three(reno, cubic, ccpd));
    (result.verdict, result.checks.remove(0).reason)
}

#[rstest]
#[case::one(
    "least frames_discarded[cubic] among [ cubic,reno ]",
    "least frames_discarded[cubic] among [cubic, reno]"
)]
#[case::groups(
    "most  excess_frozen_s[both] among [all]",
    "most excess_frozen_s[reno, cubic] among [reno, cubic, ccpd(1,2000)+loss=ignore]"
)]
#[case::roles(
    "most lost_packets[cubic#bulk]in p13-9 among [both#bulk]",
    "most lost_packets[cubic#bulk] in p13-9 among [reno#bulk, cubic#bulk]"
)]
fn a_superlative_has_one_text_form_that_reads_as_itself(#[case] check: &str, #[case] canonical: &str) {
    let read = |check: &str| {
        let checks = superlative(check).checks;
        assert_eq!(checks.len(), 1);
        checks[0].to_string()
    };
    assert_eq!(read(check), canonical);
    assert_eq!(read(canonical), canonical);
}

#[test]
fn a_superlative_is_about_each_case_unless_it_names_one() {
    let all = [
        "least frozen_s[cubic@n0] among [reno@n0, cubic@n0]",
        "least frozen_s[cubic@n5] among [reno@n5, cubic@n5]",
    ];
    assert_eq!(texts("least frozen_s[cubic] among [both]", &["n0", "n5"]), all);
    let named = "least frozen_s[cubic@n5] among [cubic@n5, cubic@n0]";
    assert_eq!(texts(named, &["n0", "n5"]), [named]);
}

#[rstest]
#[case::alone(
    "least rebases[cubic]",
    "`least` needs a list of all that are compared before the end: write least … among [reno, cubic]"
)]
#[case::relation("most rebases[cubic] < 1", "before `< 1`: write most … among [reno, cubic]")]
#[case::open("least rebases[cubic] among [both", "missing `]` after `among [`")]
#[case::metric(
    "least discards[cubic] among [both]",
    "unknown metric `discards`; expected one of: "
)]
#[case::controller("least rebases[cubic] among [both, vegas]", "`vegas` is not a controller")]
#[case::stranger(
    "least rebases[cubic] among [reno]",
    "`cubic` is not among those that are compared: add it to the list after `among`"
)]
#[case::everyone(
    "least rebases[both] among [both]",
    "the members are compared with no other: add"
)]
#[case::end("least rebases[cubic] among [both] < 1", "unexpected `< 1` after the end")]
fn an_error_in_a_superlative_names_the_correction(#[case] check: &str, #[case] correction: &str) {
    let error = read(&with_check(check)).unwrap_err().to_string();
    let place = "test.toml, line 12, `claim.check`: ";
    assert!(error.starts_with(place) && error.contains(correction), "{error}");
}

#[test]
fn the_least_needs_one_that_has_more_and_none_that_has_fewer() {
    let (reno, cubic) = ([50, 61, 55, 58, 49], [10, 19, 12, 15, 11]);
    for (ccpd, expected) in [
        ([50, 61, 55, 58, 49], Verdict::Holds),
        // As few as cubic: they share the place.
        ([11, 18, 12, 15, 11], Verdict::Holds),
        ([1, 2, 1, 0, 1], Verdict::Fails),
    ] {
        assert_eq!(
            judged(LEAST, [&reno, &cubic, &ccpd]),
            (expected, None),
            "{ccpd:?}"
        );
    }
}

#[test]
fn the_most_needs_one_that_has_fewer_and_none_that_has_more() {
    let (reno, cubic) = ([10, 19, 12, 15, 11], [50, 61, 55, 58, 49]);
    for (ccpd, expected) in [
        ([10, 19, 12, 15, 11], Verdict::Holds),
        ([51, 60, 55, 58, 49], Verdict::Holds),
        ([90, 99, 91, 95, 93], Verdict::Fails),
    ] {
        assert_eq!(judged(MOST, [&reno, &cubic, &ccpd]), (expected, None), "{ccpd:?}");
    }
}

#[test]
fn another_that_has_fewer_within_the_margin_refutes_nothing() {
    let (reno, cubic, ccpd) = ([200, 210, 205], [100, 110, 105], [98, 107, 103]);
    assert_eq!(judged(LEAST, [&reno, &cubic, &ccpd]).0, Verdict::Holds);
    let less = "frames_discarded[cubic] < frames_discarded[ccpd(1,2000)+loss=ignore]";
    assert_eq!(judged(less, [&reno, &cubic, &ccpd]).0, Verdict::Undecided);
}

#[test]
fn members_need_not_be_equal_but_one_other_has_to_be_beyond_all_of_them() {
    let members = "least frames_discarded[both] among [all]";
    let (reno, cubic) = ([50, 61, 55, 58, 49], [10, 19, 12, 15, 11]);
    let (holds, _) = judged(members, [&reno, &cubic, &[90, 99, 91, 95, 93]]);
    assert_eq!(holds, Verdict::Holds);
    // More than cubic, and as many as reno.
    let (undecided, reason) = judged(members, [&reno, &cubic, &reno]);
    assert_eq!(undecided, Verdict::Undecided);
    assert_eq!(
        reason.unwrap(),
        "no other has more than all of them by the margin"
    );
    // More than cubic, and fewer than reno.
    let (fails, _) = judged(members, [&reno, &cubic, &[30, 39, 33, 36, 31]]);
    assert_eq!(fails, Verdict::Fails);
}

#[test]
fn a_tie_of_all_is_undecided_and_says_so() {
    let tie = Some("tie: the means differ by at most 5 % or by less than one event".to_owned());
    for discards in [[0; 5], [100, 101, 99, 100, 102]] {
        for check in [LEAST, MOST] {
            let judged = judged(check, [&discards; 3]);
            assert_eq!(judged, (Verdict::Undecided, tie.clone()), "{check}");
        }
    }
}

#[test]
fn a_superlative_without_certainty_is_undecided() {
    let (noisy, cubic) = ([50, 70, 40, 80, 35], [40, 61, 45, 58, 35]);
    let (undecided, reason) = judged(LEAST, [&noisy, &cubic, &noisy]);
    assert_eq!(undecided, Verdict::Undecided);
    assert_eq!(reason.unwrap(), "the confidence interval allows both");
    let (single, reason) = judged(LEAST, [&[50], &[10], &[60]]);
    assert_eq!(single, Verdict::Undecided);
    assert_eq!(reason.unwrap(), "a single trial has no confidence interval");
}

#[test]
fn another_whose_mean_is_better_by_the_margin_leaves_a_superlative_open() {
    // Reno has fewer on average, if not certainly, and ccpd certainly more.
    let (reno, cubic, ccpd) = (
        [10, 90, 20, 80, 15],
        [60, 61, 62, 60, 61],
        [200, 210, 205, 200, 210],
    );
    let (open, reason) = judged(LEAST, [&reno, &cubic, &ccpd]);
    assert_eq!(open, Verdict::Undecided);
    assert_eq!(reason.unwrap(), "the confidence interval allows both");
    let check = judge_rows(&superlative(LEAST), &three(&reno, &cubic, &ccpd))
        .checks
        .remove(0);
    assert_eq!(check.ranking.unwrap().pair, ["cubic", "reno"]);
}

#[test]
fn a_superlative_is_not_run_before_all_that_it_compares() {
    let (missing, reason) = judged(LEAST, [&[5, 5], &[4, 4], &[]]);
    assert_eq!(missing, Verdict::NotRun);
    assert_eq!(reason.unwrap(), "ccpd(1,2000)+loss=ignore was not run");
}

#[test]
fn the_report_has_all_means_and_the_pair_that_decides() {
    let all = three(&[50, 50, 50], &[10, 10, 10], &[80, 80, 80]);
    let check = judge_rows(&superlative(LEAST), &all).checks.remove(0);
    assert_eq!(
        numbers(&check),
        "cubic 10 against reno 50, ccpd(1,2000)+loss=ignore 80; cubic against ccpd(1,2000)+loss=ignore, \
         difference -70 (the same for all seeds), 0.12 ×"
    );
    let json = claim_json(&judge_rows(&superlative(LEAST), &all), None);
    let check = &json["checks"][0];
    assert_eq!(
        check["pair"],
        serde_json::json!(["cubic", "ccpd(1,2000)+loss=ignore"])
    );
    let first = serde_json::json!({ "flow": "cubic", "member": true, "mean": 10.0 });
    assert_eq!(check["means"][0], first);
    assert_eq!(check["means"].as_array().unwrap().len(), 3);
    assert_eq!(json["by_means"], "holds");
}

#[test]
fn other_controllers_take_the_places_in_a_superlative_beside() {
    let check = "least frames_discarded[ccpd(1,2000)+loss=ignore] among [both, ccpd(1,2000)+loss=ignore]";
    let read = read(&with_check(check)).unwrap();
    let mut all = three(&[50, 50], &[50, 50], &[5, 5]);
    all.extend(rows("ccpd", &[90, 90]));
    let result = judge(&read.claims[0], &read.beside, &ResultSet::of(&all));
    let beside = &result.beside[0];
    assert_eq!((result.verdict, beside.verdict), (Verdict::Holds, Verdict::Fails));
    let canonical = "least frames_discarded[ccpd] among [reno, cubic, ccpd]";
    assert_eq!(beside.checks[0].check.to_string(), canonical);
}

#[test]
fn a_claim_that_does_not_decide_is_reported_beside_its_row() {
    let mut rows = rows("reno(max_ssthresh=0)", &[1, 2]);
    let scenario = &open("p12-3", &Changes::default()).unwrap()[1];
    for row in &mut rows {
        row.key.scenario.clone_from(&scenario.name);
        row.key.case.clone_from(&scenario.case);
        row.key.scenario_hash.clone_from(&scenario.hash);
    }
    let report = report(&rows, &[]).unwrap();
    let row = report.rows.iter().find(|row| row.row.id == "P12-3a").unwrap();
    let ids = |claims: &[ClaimResult]| -> Vec<String> {
        claims.iter().map(|claim| claim.claim.id.clone()).collect()
    };
    assert_eq!(
        ids(&row.beside),
        ["P12-3a/near-playback", "P12-3a/newreno-above-4.5-Mbit"]
    );
    assert!(!ids(&row.claims).contains(&ids(&row.beside)[0]));
    let parts: usize = report.rows.iter().map(|row| row.claims.len()).sum();
    assert_eq!((report.rows.len(), parts), (29, 104));
    // It fails, and the row is still one that was not run.
    assert_eq!(
        (row.verdict, row.beside[1].verdict),
        (Verdict::NotRun, Verdict::Fails)
    );
    let text = to_text(&report);
    let line = "newreno-above-4.5-Mbit fails (does not decide): ";
    assert!(text.contains(line), "{text}");
    let json: serde_json::Value = serde_json::from_str(&to_json(&report)).unwrap();
    let row = &json["rows"][0];
    assert_eq!(row["beside"][0]["decides"], false);
    assert_eq!(row["claims"][0]["decides"], true);
}
