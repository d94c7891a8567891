//! The grammar, the judgement, and the contract.

use rstest::rstest;

use super::*;
use crate::run::Row;
use crate::samples::row;
use crate::scenario::{BUILT_IN, Changes, ScenarioError, open, parse_claims};

const FILE: &str = r#"
about = "A test."
claims = ["T-1"]
controllers = ["reno", "cubic", "ccpd(1,2000)+loss=ignore", "ccpd(1,2000)"]

[groups]
both = ["reno", "cubic"]

[[claim]]
id = "T-1/a"
says = "a statement"
check = ["frames_discarded[cubic] < frames_discarded[reno]"]

[[beside]]
name = "guard"
replace = "+loss=ignore"
by = ""
"#;

fn read(text: &str) -> Result<crate::scenario::ScenarioClaims, ScenarioError> {
    parse_claims("s", "test.toml", text)
}

/// The claim of [`FILE`] with another check, and with cases before it.
fn claim(check: &str, cases: &[&str]) -> Claim {
    let mut text = FILE.replace("frames_discarded[cubic] < frames_discarded[reno]", check);
    for case in cases {
        text = [text, format!("[[case]]\nname = \"{case}\"\n")].concat();
    }
    read(&text).unwrap().claims.remove(0)
}

fn texts(check: &str, cases: &[&str]) -> Vec<String> {
    claim(check, cases)
        .checks
        .iter()
        .map(ToString::to_string)
        .collect()
}

/// Rows of a controller with these discards, seed by seed.
fn rows(controller: &str, discards: &[u64]) -> Vec<Row> {
    (1..)
        .zip(discards)
        .map(|(trial, discards)| {
            let mut row = row(controller, trial);
            row.seen.frames_discarded = *discards;
            row
        })
        .collect()
}

/// What results with these discards say of a check.
fn outcome(check: &str, reno: &[u64], cubic: &[u64]) -> (Outcome, CheckResult) {
    let all = rows("reno", reno).into_iter().chain(rows("cubic", cubic));
    let mut result = judge(&claim(check, &[]), &[], &Results::of(all));
    (result.outcome, result.checks.remove(0))
}

#[rstest]
#[case::plain("frames_discarded[cubic]<frames_discarded[reno]", &["frames_discarded[cubic] < frames_discarded[reno]"])]
#[case::sums(
    "2*frames_discarded[reno] + 5 - .5 * rebases[cubic] >= -1",
    &["2 * frames_discarded[reno] + 5 - 0.5 * rebases[cubic] >= -1"]
)]
#[case::percent("loss_ratio[reno] <= 0.5%", &["loss_ratio[reno] <= 0.005"])]
#[case::about(
    "lost_packets[reno] ~ lost_packets[cubic] within 10 %",
    &["lost_packets[reno] ~ lost_packets[cubic] within 10%"]
)]
#[case::list(
    "excess_frozen_s[reno, ccpd(1,2000)+loss=ignore] < 1e1",
    &["excess_frozen_s[reno] < 10", "excess_frozen_s[ccpd(1,2000)+loss=ignore] < 10"]
)]
#[case::group("frozen_s[both] < 10", &["frozen_s[reno] < 10", "frozen_s[cubic] < 10"])]
#[case::equal_lists_go_together(
    "frozen_s[both] < download_s[both]",
    &["frozen_s[reno] < download_s[reno]", "frozen_s[cubic] < download_s[cubic]"]
)]
#[case::lists_that_differ_make_all_pairs(
    "frozen_s[ideal] < frozen_s[both]",
    &["frozen_s[ideal] < frozen_s[reno]", "frozen_s[ideal] < frozen_s[cubic]"]
)]
fn a_check_is_read_and_stands_for_one_or_many(#[case] check: &str, #[case] expected: &[&str]) {
    assert_eq!(texts(check, &[]), expected);
}

#[test]
fn results_of_other_scenarios_can_be_read() {
    let check = "rebases[both] > rebases[both] in p13-9";
    let read = claim(check, &[]);
    assert_eq!(texts(check, &[])[1], "rebases[cubic] > rebases[cubic] in p13-9");
    let mut other = rows("reno", &[0, 0]);
    for row in &mut other {
        row.key.scenario = "p13-9".to_owned();
        row.seen.rebases = 3;
    }
    let all = rows("reno", &[0, 0]).into_iter().chain(other);
    let result = judge(&read, &[], &Results::of(all));
    let outcomes: Vec<_> = result.checks.iter().map(|check| check.outcome).collect();
    assert_eq!(outcomes, [Outcome::Fails, Outcome::NotRun]);
}

#[test]
fn windows_and_all_roles_can_be_read() {
    let windows = "[measure]\nwindows = [\"0s..30s\", \"30s..60s\"]\n";
    let check = "loss_ratio[reno#all]@0s..30s < loss_ratio[cubic#bulk]@0s..30s";
    let text = FILE.replace("frames_discarded[cubic] < frames_discarded[reno]", check) + windows;
    let read = &read(&text).unwrap().claims[0];
    assert_eq!(read.checks[0].to_string(), check);
    let mut all = rows("reno", &[0, 0]);
    all.extend(rows("cubic", &[0, 0]));
    for row in &mut all {
        row.windows[0].lost_bytes = 0;
    }
    let bulk: Vec<Row> = all
        .iter()
        .map(|row| {
            let mut bulk = row.clone();
            bulk.role = "bulk".to_owned();
            bulk.windows[0].lost_bytes = 80_000;
            bulk
        })
        .collect();
    all.extend(bulk);
    // Half of reno's flows lose one byte in a hundred, and so does cubic's bulk flow.
    let result = judge(read, &[], &Results::of(all));
    let numbers = result.checks[0].numbers.unwrap();
    assert!((numbers.left.mean - 0.005).abs() < 1e-12 && (numbers.right.mean - 0.01).abs() < 1e-12);
    let error = FILE.replace(
        "frames_discarded[cubic] < frames_discarded[reno]",
        "rebases[reno]@0s..30s < 1",
    ) + windows;
    assert!(
        parse_claims("s", "f", &error)
            .unwrap_err()
            .to_string()
            .contains("not counted in windows")
    );
}

#[test]
fn which_varies_more_is_told_by_the_distances_from_the_median() {
    let check = "deviation_frames_discarded[cubic] < deviation_frames_discarded[reno]";
    let text = FILE.replace("frames_discarded[cubic] < frames_discarded[reno]", check);
    let read = &parse_claims("s", "f", &text).unwrap().claims[0];
    assert_eq!(read.checks[0].to_string(), check);
    let mut all = rows("reno", &[50, 90, 10, 85, 15]);
    all.extend(rows("cubic", &[101, 99, 100, 102, 97]));
    let result = judge(read, &[], &Results::of(all));
    let numbers = result.checks[0].numbers.unwrap();
    assert!((numbers.left.mean - 1.4).abs() < 1e-12 && (numbers.right.mean - 30.0).abs() < 1e-12);
    assert_eq!(result.outcome, Outcome::Holds);
}

#[test]
fn one_check_is_enough_where_any_will_do() {
    let both = "check = [\"frames_discarded[cubic] < frames_discarded[reno]\", \"frames_discarded[cubic] > frames_discarded[reno]\"]";
    let text = FILE.replace(
        "check = [\"frames_discarded[cubic] < frames_discarded[reno]\"]",
        both,
    );
    assert_ne!(text, FILE);
    let mut all = rows("reno", &[50, 61, 55, 58, 49]);
    all.extend(rows("cubic", &[10, 19, 12, 15, 11]));
    let results = Results::of(all);
    let outcome = |text: &str| judge(&parse_claims("s", "f", text).unwrap().claims[0], &[], &results).outcome;
    assert_eq!(outcome(&text), Outcome::Fails);
    assert_eq!(
        outcome(&text.replace("check = [", "any = true\ncheck = [")),
        Outcome::Holds
    );
}

#[test]
fn each_row_of_the_contract_is_decided_by_claims_of_a_scenario() {
    let scenarios: Vec<_> = BUILT_IN
        .iter()
        .map(|(name, text)| parse_claims(name, name, text).unwrap())
        .collect();
    for row in CONTRACT {
        let claims = scenarios.iter().flat_map(|scenario| &scenario.claims);
        assert!(
            claims.filter(|claim| claim.row() == row.id).count() > 0,
            "{} is decided by no scenario",
            row.id
        );
    }
    for (name, text) in BUILT_IN {
        let named: Vec<String> = text
            .lines()
            .find_map(|line| line.strip_prefix("claims = ["))
            .map(|list| {
                list.trim_end_matches(']')
                    .split(", ")
                    .map(|id| id.trim_matches('"').to_owned())
                    .collect()
            })
            .unwrap_or_default();
        for id in named {
            assert!(CONTRACT.iter().any(|row| row.id == id), "{name}: {id}");
            let read = scenarios
                .iter()
                .find(|scenario| scenario.scenario == *name)
                .unwrap();
            assert!(
                read.claims.iter().any(|claim| claim.row() == id),
                "{name} says nothing of {id}"
            );
        }
    }
}

#[test]
fn a_check_is_about_each_case_unless_it_names_one() {
    let check = "frozen_s[cubic] < frozen_s[reno]";
    let all = [
        "frozen_s[cubic@n0] < frozen_s[reno@n0]",
        "frozen_s[cubic@n5] < frozen_s[reno@n5]",
    ];
    assert_eq!(texts(check, &["n0", "n5"]), all);
    let named = "frozen_s[cubic@n5] < frozen_s[cubic@n0#bulk]";
    assert_eq!(texts(named, &["n0", "n5"]), [named]);
}

#[rstest]
#[case::metric("discards[cubic] < 1", "`discards` is no metric; there are")]
#[case::controller(
    "rebases[vegas] < 1",
    "`vegas` is no controller of this scenario; there are reno, cubic"
)]
#[case::misspelt("rebases[cubik] < 1", "cubic")]
#[case::case("rebases[cubic@n9] < 1", "`n9` is no case of this scenario; there are none")]
#[case::role("rebases[cubic#boss] < 1", "`boss` is no role")]
#[case::window("rebases[cubic]@1s..2s < 1", "`1s..2s` is no measurement window")]
#[case::relation("rebases[cubic] = 1", "one of <, <=, >, >=, ~ is missing before `= 1`")]
#[case::open("rebases[cubic < 1", "not closed")]
#[case::band("rebases[cubic] ~ 1", "within 10%")]
#[case::end("rebases[cubic] < 1 2", "`2` is too much")]
#[case::nothing("1 < 2", "nothing of it is read")]
#[case::scenario(
    "rebases[cubic] < rebases[cubic] in p13-99",
    "`p13-99` is no scenario; there are"
)]
#[case::number("rebases[cubic] < 1s", "`1s` is no number")]
#[case::itself("rebases[cubic] < rebases[both]", "compares something with itself")]
fn a_wrong_check_is_answered_with_line_and_mend(#[case] check: &str, #[case] mend: &str) {
    let text = FILE.replace("frames_discarded[cubic] < frames_discarded[reno]", check);
    let error = read(&text).unwrap_err().to_string();
    assert!(
        error.starts_with("test.toml, line 12, `claim.check`: "),
        "{error}"
    );
    assert!(error.contains(mend), "{error}");
}

#[rstest]
#[case::row("\"T-1/a\"", "\"T-2/a\"", 10, "among the `claims`")]
#[case::group("both =", "reno =", 7, "name of a controller")]
#[case::beside("\"+loss=ignore\"", "\"+loss=none\"", 16, "part of no controller")]
#[case::empty(
    "[\"frames_discarded[cubic] < frames_discarded[reno]\"]",
    "[]",
    12,
    "cannot be decided"
)]
#[case::unknown_key("says =", "sais =", 11, "sais")]
fn what_is_wrong_around_checks_is_said_too(
    #[case] good: &str,
    #[case] bad: &str,
    #[case] line: usize,
    #[case] mend: &str,
) {
    let error = read(&FILE.replacen(good, bad, 1)).unwrap_err().to_string();
    assert!(
        error.contains(&format!("line {line}")) && error.contains(mend),
        "{error}"
    );
}

const LESS: &str = "frames_discarded[cubic] < frames_discarded[reno]";

#[test]
fn a_check_holds_or_fails_only_when_the_interval_says_so() {
    let reno = [50, 61, 55, 58, 49];
    assert_eq!(outcome(LESS, &reno, &[10, 19, 12, 15, 11]).0, Outcome::Holds);
    assert_eq!(outcome(LESS, &reno, &[90, 99, 92, 95, 91]).0, Outcome::Fails);
    let (undecided, check) = outcome(LESS, &reno, &[50, 70, 40, 80, 35]);
    assert_eq!(undecided, Outcome::Undecided);
    assert_eq!(check.reason.as_deref(), Some("the interval allows both"));
}

#[test]
fn a_small_difference_holds_when_every_seed_has_it() {
    // The seeds differ by a hundred, the controllers by two or three.
    let reno = [100, 200, 300, 150, 250];
    assert_eq!(outcome(LESS, &reno, &[98, 197, 298, 147, 248]).0, Outcome::Holds);
}

#[test]
fn without_variation_two_trials_decide_and_one_never_does() {
    assert_eq!(outcome(LESS, &[5, 5], &[4, 4]).0, Outcome::Holds);
    assert_eq!(outcome(LESS, &[5, 5], &[5, 5]).0, Outcome::Fails);
    assert_eq!(outcome(LESS, &[5], &[4]).0, Outcome::Undecided);
    let at_most = "frames_discarded[cubic] <= frames_discarded[reno]";
    assert_eq!(outcome(at_most, &[5, 5], &[5, 5]).0, Outcome::Holds);
}

#[test]
fn about_equal_is_an_interval_inside_the_band() {
    let about = "frames_discarded[cubic] ~ frames_discarded[reno] within 10%";
    let reno = [100, 102, 98, 101, 99];
    assert_eq!(
        outcome(about, &reno, &[103, 105, 101, 104, 102]).0,
        Outcome::Holds
    );
    assert_eq!(
        outcome(about, &reno, &[120, 122, 118, 121, 119]).0,
        Outcome::Fails
    );
    assert_eq!(
        outcome(about, &reno, &[60, 140, 100, 120, 90]).0,
        Outcome::Undecided
    );
}

#[test]
fn what_lacks_data_is_not_run_and_says_what_lacks() {
    let (missing, check) = outcome(LESS, &[5, 5], &[]);
    assert_eq!(missing, Outcome::NotRun);
    assert_eq!(check.reason.as_deref(), Some("cubic was not run"));
    let lists = claim("frames_discarded[cubic, ideal] < frames_discarded[reno]", &[]);
    let some = rows("reno", &[5, 5]).into_iter().chain(rows("cubic", &[6, 6]));
    // One check fails, the other was not run: the claim fails all the same.
    assert_eq!(judge(&lists, &[], &Results::of(some)).outcome, Outcome::Fails);
}

#[test]
fn what_was_run_and_has_no_value_is_undecided() {
    let mut all = rows("reno", &[5, 5]);
    for row in &mut all {
        row.seen.startup_delay_s = None;
    }
    let result = judge(&claim("startup_delay_s[reno] < 2", &[]), &[], &Results::of(all));
    assert_eq!(result.outcome, Outcome::Undecided);
}

#[test]
fn a_failed_run_is_no_result() {
    let mut all = rows("reno", &[5, 5, 5]);
    all.extend(rows("cubic", &[4, 4, 900]));
    all[5].outcome = "failed".to_owned();
    assert_eq!(
        judge(&claim(LESS, &[]), &[], &Results::of(all)).outcome,
        Outcome::Holds
    );
}

#[test]
fn the_ideal_is_the_same_for_all_seeds() {
    let mut all = rows("cubic", &[240, 250, 245]);
    all.extend(rows("ideal", &[232]));
    let excess = claim("excess_frames_discarded[cubic] < 30", &[]);
    let result = judge(&excess, &[], &Results::of(all));
    assert_eq!(result.outcome, Outcome::Holds);
    assert!((result.checks[0].numbers.unwrap().left.mean - 13.0).abs() < 1e-9);
}

#[test]
fn other_controllers_are_judged_beside() {
    let read = read(&FILE.replace("[cubic] <", "[ccpd(1,2000)+loss=ignore] <")).unwrap();
    let mut all = rows("reno", &[10, 10]);
    all.extend(rows("ccpd+loss=ignore", &[5, 5]));
    all.extend(rows("ccpd", &[20, 20]));
    let result = judge(&read.claims[0], &read.beside, &Results::of(all));
    assert_eq!(
        (result.outcome, result.beside[0].outcome),
        (Outcome::Holds, Outcome::Fails)
    );
    assert_eq!(
        result.beside[0].checks[0].check.to_string(),
        "frames_discarded[ccpd] < frames_discarded[reno]"
    );
}

#[test]
fn a_statement_fails_with_one_part_and_holds_with_all() {
    use Outcome::{Fails, Holds, NotRun, Undecided};
    assert_eq!(Outcome::of_all([Holds, Undecided, Fails, NotRun]), Fails);
    assert_eq!(Outcome::of_all([Holds, NotRun, Undecided]), NotRun);
    assert_eq!(Outcome::of_all([Holds, Undecided]), Undecided);
    assert_eq!(Outcome::of_all([Holds, Holds]), Holds);
    assert_eq!(Outcome::of_all([]), NotRun);
    assert_eq!(Outcome::of_any([Fails, Undecided, Holds]), Holds);
    assert_eq!(Outcome::of_any([Fails, Undecided]), Undecided);
    assert_eq!(Outcome::of_any([Fails, Fails]), Fails);
}

#[test]
fn claims_and_groups_do_not_change_what_is_run() {
    let text = BUILT_IN.iter().find(|(name, _)| *name == "p13-4").unwrap().1;
    let hash = |text: &str| {
        let base = std::path::Path::new(".");
        crate::scenario::Scenario::parse("s", "s.toml", text, base, &Changes::default()).unwrap()[0]
            .hash
            .clone()
    };
    let other = text.replace("says = \"", "says = \"so: ");
    assert_ne!(text, other);
    assert_eq!(hash(text), hash(&other));
}

#[test]
fn every_row_of_the_contract_is_in_the_table_and_the_same_results_make_the_same_bytes() {
    let scenario = &open("p13-4", &Changes::default()).unwrap()[0];
    let made = || {
        let mut all = rows("reno", &[50, 61, 55, 58, 49]);
        all.extend(rows("cubic", &[10, 19, 12, 15, 11]));
        for row in &mut all {
            row.key.scenario.clone_from(&scenario.name);
            row.key.scenario_hash.clone_from(&scenario.hash);
        }
        let mut old = all[0].clone();
        old.key.scenario_hash = "other".to_owned();
        all.push(old);
        report(all, &[]).unwrap()
    };
    let report = made();
    let text = to_text(&report);
    for row in CONTRACT {
        assert!(
            text.lines().any(|line| line.starts_with(&format!("{} ", row.id))),
            "{}",
            row.id
        );
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(
        text.contains("1 of 11 results of p13-4 are of other settings"),
        "{text}"
    );
    assert_eq!((text, to_json(&report)), (to_text(&made()), to_json(&made())));
    let json: serde_json::Value = serde_json::from_str(&to_json(&report)).unwrap();
    assert_eq!(json["rows"].as_array().unwrap().len(), CONTRACT.len());
}
