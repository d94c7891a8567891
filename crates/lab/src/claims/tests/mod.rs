//! Syntax of checks, verdicts, and the rows of the papers.

mod margins;
mod superlatives;

use rstest::rstest;

use super::check::Claim;
use super::judge::CheckResult;
use super::papers::PAPER_ROWS;
use super::read::ScenarioClaims;
use super::verdict::Verdict;
use super::*;
use crate::result::{ResultSet, Row};
use crate::samples::row;
use crate::scenario::{BUILT_IN, Changes, ScenarioError, ScenarioSource, open};

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

[title]
trace = "film-1080p"

[path]
rate = "2λ"
rtt = "10ms"
"#;

/// The check of [`FILE`].
const LESS: &str = "frames_discarded[cubic] < frames_discarded[reno]";

fn read(text: &str) -> Result<ScenarioClaims, ScenarioError> {
    let source = ScenarioSource::new("s", "test.toml", text.to_owned(), std::path::Path::new("."));
    super::read(&source.document()?)
}

/// [`FILE`] with another check.
fn with_check(check: &str) -> String {
    FILE.replace(LESS, check)
}

fn judge_rows(claim: &Claim, rows: &[Row]) -> ClaimResult {
    judge(claim, &[], &ResultSet::of(rows))
}

/// The claim of [`FILE`] with another check and with these cases.
fn claim(check: &str, cases: &[&str]) -> Claim {
    let mut text = with_check(check);
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
            row.playback.frames_discarded = *discards;
            row
        })
        .collect()
}

/// The verdict on a check by results with these discards.
fn verdict(check: &str, reno: &[u64], cubic: &[u64]) -> (Verdict, CheckResult) {
    let mut all = rows("reno", reno);
    all.extend(rows("cubic", cubic));
    let mut result = judge_rows(&claim(check, &[]), &all);
    (result.verdict, result.checks.remove(0))
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
fn a_check_text_stands_for_one_or_many_checks(#[case] check: &str, #[case] expected: &[&str]) {
    assert_eq!(texts(check, &[]), expected);
}

#[test]
fn other_scenarios_can_be_read() {
    let check = "rebases[both] > rebases[both] in p13-9";
    let read = claim(check, &[]);
    assert_eq!(texts(check, &[])[1], "rebases[cubic] > rebases[cubic] in p13-9");
    let mut other = rows("reno", &[0, 0]);
    for row in &mut other {
        row.key.scenario = "p13-9".to_owned();
        row.playback.rebases = 3;
    }
    other.extend(rows("reno", &[0, 0]));
    let result = judge_rows(&read, &other);
    let verdicts: Vec<_> = result.checks.iter().map(|check| check.verdict).collect();
    assert_eq!(verdicts, [Verdict::Fails, Verdict::NotRun]);
}

#[test]
fn windows_and_all_roles_can_be_read() {
    let windows = "[measure]\nwindows = [\"0s..30s\", \"30s..60s\"]\n";
    let check = "loss_ratio[reno#all]@0s..30s < loss_ratio[cubic#bulk]@0s..30s";
    let text = with_check(check) + windows;
    let claim = &read(&text).unwrap().claims[0];
    assert_eq!(claim.checks[0].to_string(), check);
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
    let result = judge_rows(claim, &all);
    let numbers = result.checks[0].numbers.unwrap();
    assert!((numbers.left.mean - 0.005).abs() < 1e-12 && (numbers.right.mean - 0.01).abs() < 1e-12);
    let error = read(&(with_check("rebases[reno]@0s..30s < 1") + windows))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("counted over whole sessions, not in windows"),
        "{error}"
    );
}

#[test]
fn deviations_are_distances_from_the_median() {
    let check = "deviation_frames_discarded[cubic] < deviation_frames_discarded[reno]";
    let text = with_check(check);
    let claim = &read(&text).unwrap().claims[0];
    assert_eq!(claim.checks[0].to_string(), check);
    let mut all = rows("reno", &[50, 90, 10, 85, 15]);
    all.extend(rows("cubic", &[101, 99, 100, 102, 97]));
    let result = judge_rows(claim, &all);
    let numbers = result.checks[0].numbers.unwrap();
    assert!((numbers.left.mean - 1.4).abs() < 1e-12 && (numbers.right.mean - 30.0).abs() < 1e-12);
    assert_eq!(result.verdict, Verdict::Holds);
}

#[test]
fn one_check_is_enough_with_any() {
    let text = with_check(&format!(
        "{LESS}\", \"frames_discarded[cubic] > frames_discarded[reno]"
    ));
    let mut all = rows("reno", &[50, 61, 55, 58, 49]);
    all.extend(rows("cubic", &[10, 19, 12, 15, 11]));
    let verdict = |text: &str| judge_rows(&read(text).unwrap().claims[0], &all).verdict;
    assert_eq!(verdict(&text), Verdict::Fails);
    assert_eq!(
        verdict(&text.replace("check = [", "any = true\ncheck = [")),
        Verdict::Holds
    );
}

#[test]
fn each_row_of_the_papers_is_decided_by_claims_of_a_scenario() {
    let scenarios: Vec<_> = BUILT_IN
        .iter()
        .map(|(name, _)| super::read(&ScenarioSource::find(name).unwrap().document().unwrap()).unwrap())
        .collect();
    for row in PAPER_ROWS {
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
            assert!(PAPER_ROWS.iter().any(|row| row.id == id), "{name}: {id}");
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
#[case::metric("discards[cubic] < 1", "unknown metric `discards`; expected one of: ")]
#[case::controller(
    "rebases[vegas] < 1",
    "`vegas` is not a controller of this scenario; expected one of: reno, cubic"
)]
#[case::misspelt("rebases[cubik] < 1", "cubic")]
#[case::case("rebases[cubic@n9] < 1", "unknown case `n9`; the scenario has none")]
#[case::role("rebases[cubic#boss] < 1", "unknown role `boss`; expected one of: bulk, all")]
#[case::window(
    "lost_packets[cubic]@1s..2s < 1",
    "unknown measurement window `1s..2s`; the scenario has none"
)]
#[case::relation("rebases[cubic] = 1", "expected one of <, <=, >, >=, ~ before `= 1`")]
#[case::open("rebases[cubic < 1", "missing `]` after `rebases[`")]
#[case::whose(
    "rtt_mean_s < 1",
    "metric `rtt_mean_s` needs a controller: write `rtt_mean_s[cubic]`"
)]
#[case::missing("rebases[cubic] <", "before the end")]
#[case::band("rebases[cubic] ~ 1", "within 10%")]
#[case::end("rebases[cubic] < 1 2", "unexpected `2` after the end of the expression")]
#[case::nothing("1 < 2", "the check compares constants")]
#[case::scenario(
    "rebases[cubic] < rebases[cubic] in p13-99",
    "unknown scenario `p13-99`; expected one of"
)]
#[case::number("rebases[cubic] < 1s", "invalid number `1s`")]
#[case::itself("rebases[cubic] < rebases[both]", "compares something with itself")]
fn an_error_in_a_check_names_line_and_correction(#[case] check: &str, #[case] correction: &str) {
    let error = read(&with_check(check)).unwrap_err().to_string();
    let place = "test.toml, line 12, `claim.check`: ";
    assert!(error.starts_with(place) && error.contains(correction), "{error}");
}

#[rstest]
#[case::row("\"T-1/a\"", "\"T-2/a\"", 10, "in the list `claims`")]
#[case::group("both =", "reno =", 7, "name of a controller")]
#[case::beside("\"+loss=ignore\"", "\"+loss=none\"", 16, "occurs in no controller")]
#[case::empty(
    "[\"frames_discarded[cubic] < frames_discarded[reno]\"]",
    "[]",
    12,
    "at least one check"
)]
#[case::unknown_key("says =", "sais =", 11, "sais")]
fn an_error_around_checks_names_line_and_correction(
    #[case] good: &str,
    #[case] bad: &str,
    #[case] line: usize,
    #[case] correction: &str,
) {
    let error = read(&FILE.replacen(good, bad, 1)).unwrap_err().to_string();
    assert!(
        error.contains(&format!("line {line}")) && error.contains(correction),
        "{error}"
    );
}

#[test]
fn a_check_holds_or_fails_only_when_the_interval_says_so() {
    let reno = [50, 61, 55, 58, 49];
    assert_eq!(verdict(LESS, &reno, &[10, 19, 12, 15, 11]).0, Verdict::Holds);
    assert_eq!(verdict(LESS, &reno, &[90, 99, 92, 95, 91]).0, Verdict::Fails);
    let (undecided, check) = verdict(LESS, &reno, &[40, 60, 30, 70, 25]);
    let reason = Some("the confidence interval allows both");
    assert_eq!((undecided, check.reason.as_deref()), (Verdict::Undecided, reason));
}

#[test]
fn about_equal_is_an_interval_inside_the_band() {
    let about = "frames_discarded[cubic] ~ frames_discarded[reno] within 10%";
    for (cubic, expected) in [
        ([103, 105, 101, 104, 102], Verdict::Holds),
        ([120, 122, 118, 121, 119], Verdict::Fails),
        ([60, 140, 100, 120, 90], Verdict::Undecided),
    ] {
        assert_eq!(verdict(about, &[100, 102, 98, 101, 99], &cubic).0, expected);
    }
}

#[test]
fn a_check_without_results_is_not_run_and_names_the_controller() {
    let (missing, check) = verdict(LESS, &[5, 5], &[]);
    assert_eq!(missing, Verdict::NotRun);
    assert_eq!(check.reason.as_deref(), Some("cubic was not run"));
    let lists = claim("frames_discarded[cubic, ideal] < frames_discarded[reno]", &[]);
    let mut some = rows("reno", &[5, 5]);
    some.extend(rows("cubic", &[6, 6]));
    // One check fails, the other was not run: the claim fails all the same.
    assert_eq!(judge_rows(&lists, &some).verdict, Verdict::Fails);
}

#[test]
fn a_check_of_a_number_that_no_run_has_is_undecided_and_names_it() {
    let mut all = rows("reno", &[5, 5]);
    for row in &mut all {
        row.playback.startup_delay = None;
    }
    let result = judge_rows(&claim("startup_delay_s[reno] < 2", &[]), &all);
    assert_eq!(result.verdict, Verdict::Undecided);
    let reason = result.checks[0].reason.as_deref();
    assert_eq!(reason, Some("no run of reno has the metric `startup_delay_s`"));
}

#[test]
fn a_failed_run_is_no_result() {
    let mut all = rows("reno", &[5, 5, 5]);
    all.extend(rows("cubic", &[4, 4, 900]));
    all[5].outcome = crate::result::SessionOutcome::Failed;
    assert_eq!(judge_rows(&claim(LESS, &[]), &all).verdict, Verdict::Holds);
}

#[test]
fn the_ideal_is_the_same_for_all_seeds() {
    let mut all = rows("cubic", &[240, 250, 245]);
    all.extend(rows("ideal", &[232]));
    let excess = claim("excess_frames_discarded[cubic] < 30", &[]);
    let result = judge_rows(&excess, &all);
    assert_eq!(result.verdict, Verdict::Holds);
    assert!((result.checks[0].numbers.unwrap().left.mean - 13.0).abs() < 1e-9);
}

#[test]
fn other_controllers_are_reported_beside() {
    let read = read(&FILE.replace("[cubic] <", "[ccpd(1,2000)+loss=ignore] <")).unwrap();
    let mut all = rows("reno", &[10, 10]);
    all.extend(rows("ccpd+loss=ignore", &[5, 5]));
    all.extend(rows("ccpd", &[20, 20]));
    let result = judge(&read.claims[0], &read.beside, &ResultSet::of(&all));
    assert_eq!(
        (result.verdict, result.beside[0].verdict),
        (Verdict::Holds, Verdict::Fails)
    );
    assert_eq!(
        result.beside[0].checks[0].check.to_string(),
        "frames_discarded[ccpd] < frames_discarded[reno]"
    );
}

#[test]
fn a_statement_fails_with_one_check_and_holds_with_all() {
    use Verdict::{Fails, Holds, NotRun, Undecided};
    assert_eq!(Verdict::of_all([Holds, Undecided, Fails, NotRun]), Fails);
    assert_eq!(Verdict::of_all([Holds, NotRun, Undecided]), NotRun);
    assert_eq!(Verdict::of_all([Holds, Undecided]), Undecided);
    assert_eq!(Verdict::of_all([Holds, Holds]), Holds);
    assert_eq!(Verdict::of_all([]), NotRun);
    assert_eq!(Verdict::of_any([Fails, Undecided, Holds]), Holds);
    assert_eq!(Verdict::of_any([Fails, Undecided]), Undecided);
    assert_eq!(Verdict::of_any([Fails, Fails]), Fails);
}

#[test]
fn claims_and_groups_do_not_change_what_is_run() {
    let text = BUILT_IN.iter().find(|(name, _)| *name == "p13-4").unwrap().1;
    let hash = |text: &str| {
        let base = std::path::Path::new(".");
        ScenarioSource::new("s", "s.toml", text.to_owned(), base)
            .scenarios(&Changes::default())
            .unwrap()[0]
            .hash
            .clone()
    };
    let other = text.replace("says = \"", "says = \"so: ");
    assert_ne!(text, other);
    assert_eq!(hash(text), hash(&other));
}

#[test]
fn every_row_of_the_papers_is_on_the_page_and_the_same_results_make_the_same_bytes() {
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
        report(&all, &[]).unwrap()
    };
    let report = made();
    let text = to_text(&report);
    for row in PAPER_ROWS {
        assert!(
            text.lines().any(|line| line.starts_with(&format!("{} ", row.id))),
            "{}",
            row.id
        );
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(text.contains("1 of 11 results of p13-4 were ignored"), "{text}");
    let page = to_markdown(&report);
    for row in PAPER_ROWS {
        assert!(page.contains(&format!("\n### {}: ", row.id)), "{}", row.id);
    }
    assert!(page.lines().all(|line| line.chars().count() <= 120), "{page}");
    assert_eq!((text, to_json(&report)), (to_text(&made()), to_json(&made())));
    let json: serde_json::Value = serde_json::from_str(&to_json(&report)).unwrap();
    assert_eq!(json["rows"].as_array().unwrap().len(), PAPER_ROWS.len());
}
