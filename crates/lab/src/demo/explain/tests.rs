//! The sentences match the rows.

use std::time::Duration;

use super::super::{DemoArgs, DemoReport, DemoRun, scenario};
use super::Explanation;

use crate::live::{Attempt, ControllerComparison};
use crate::result::SessionOutcome;
use crate::sim::Simulated;
use crate::tests;
use playrate_test_support::assert_contains;

/// A session with two stalls, half a second in all, and ten discarded frames; a cut leaves `kept` of its window.
pub(in crate::demo) fn impaired(controller: &str, kept: f64) -> DemoRun {
    let mut row = tests::row(controller, 1);
    row.control.as_mut().unwrap().window_kept_share = Some(kept);
    DemoRun {
        row,
        run: Simulated::default(),
        attempt: Attempt::default(),
    }
}

/// The same session without stalls or discarded frames.
pub(in crate::demo) fn smooth(controller: &str, kept: f64) -> DemoRun {
    let mut run = impaired(controller, kept);
    let playback = &mut run.row.playback;
    playback.stalled_time = Duration::ZERO;
    playback.underflow_events = 0;
    playback.frames_shown += playback.frames_discarded;
    playback.frames_discarded = 0;
    run
}

fn report(path: &str, runs: Vec<DemoRun>) -> DemoReport {
    let args: DemoArgs = tests::arguments(path).unwrap();
    let scenario = scenario::scenario(&args).unwrap();
    DemoReport {
        queue: scenario::queue(&scenario),
        scenario: scenario.into(),
        args,
        runs,
        comparisons: Vec::new(),
        downloads: Vec::new(),
    }
}

/// The report with virtual runs stalled for these times, the reference run first.
fn compared(mut report: DemoReport, stalled: &[u64]) -> DemoReport {
    let compare = |run: &DemoRun| {
        let virtual_row = |&seconds: &u64| {
            let mut row = run.row.clone();
            row.playback.stalled_time += Duration::from_secs(seconds);
            vec![row]
        };
        let virtual_runs = stalled.iter().map(virtual_row).collect();
        let attempts = vec![run.attempt.clone()];
        ControllerComparison::new(run.spec(), attempts, vec![run.row.clone()], virtual_runs)
    };
    report.comparisons = report.runs.iter().map(compare).collect();
    report
}

const PATH: &str = "--rate 5Mbit/s --rtt 200ms --queue 0.5bdp";

fn comparison() -> DemoReport {
    report(PATH, vec![impaired("reno", 0.5), smooth("cubic", 0.8)])
}

fn reasons(report: &DemoReport) -> String {
    Explanation::of(report).reasons.join("\n")
}

#[test]
fn the_headline_says_what_each_viewer_saw() {
    let headline = Explanation::of(&comparison()).headline;
    assert_contains(
        &headline,
        &[
            "reno stalled 2 times",
            "lost 10 frames; cubic played without a stall.",
        ],
    );
}

#[test]
fn a_path_slower_than_the_title_is_named_as_the_cause() {
    let narrow = report("--rate 2Mbit/s", comparison().runs);
    assert!(reasons(&narrow).contains("does not suffice for that under any controller"));
    assert!(!reasons(&comparison()).contains("under any controller"));
}

#[test]
fn a_late_relay_is_warned_of() {
    let mut late = comparison();
    assert!(Explanation::of(&late).warning.is_none());
    late.runs[0].attempt.flaws = vec!["9 ms late".into()];
    assert_contains(&Explanation::of(&late).warning.unwrap(), &["reno: 9 ms late"]);
}

#[test]
fn a_single_session_is_not_called_a_comparison() {
    let alone = comparison();
    assert_contains(&reasons(&alone), &["not a comparison"]);
    let mut seeds = compared(alone, &[0, 20]);
    seeds.downloads = seeds
        .comparisons
        .iter()
        .map(|one| one.measured("throughput_bps").cloned())
        .collect();
    let reno = seeds.downloads[0].take();
    assert_contains(&reasons(&seeds), &["fast uplink: cubic"]);
    seeds.downloads[0] = reno;
    let said = reasons(&seeds);
    assert!(!said.contains("not a comparison"), "{said}");
    let got = format!(
        "fast uplink: reno {}, cubic",
        seeds.downloads[0].as_ref().unwrap().spread()
    );
    assert_contains(
        &said,
        &["cubic 10.0 s (0 s to 20.0 s)", "a link of 10.0 Mbit/s", &got],
    );
}

#[test]
fn a_late_relay_is_no_warning_where_virtual_time_gives_the_same() {
    let mut late = comparison();
    late.runs[0].attempt.flaws = vec!["9 ms late".into()];
    // The reference run differs, but another seed gives the same.
    let same = Explanation::of(&compared(late, &[20, 0]));
    assert_eq!(same.warning, None);
    let verdict = same.verdict.as_deref().unwrap();
    assert!(verdict.starts_with("Agrees with virtual time: "), "{verdict}");
    assert!(same.text(usize::MAX).ends_with(&format!("\n\n{verdict}\n")));

    let mut late = comparison();
    late.runs[0].attempt.flaws = vec!["9 ms late".into()];
    let other = Explanation::of(&compared(late, &[20, 30]));
    let verdict = "Differs from virtual time: reno had impaired";
    assert!(other.verdict.unwrap().starts_with(verdict));
    assert!(other.warning.unwrap().contains("reno: 9 ms late"));
}

#[test]
fn one_run_a_failed_and_a_stopped_one_have_a_headline() {
    let mut one = report(PATH, vec![impaired("reno", 0.5)]);
    assert!(Explanation::of(&one).headline.starts_with("reno stalled 2 times"));
    one.runs[0].row.outcome = SessionOutcome::Stopped;
    let headline = Explanation::of(&one).headline;
    assert_contains(&headline, &["until it was stopped after"]);
    one.runs[0].row.outcome = SessionOutcome::Failed;
    one.runs[0].row.error = Some("connection lost".into());
    assert_eq!(Explanation::of(&one).headline, "reno failed (connection lost).");
    one.runs.clear();
    assert_eq!(Explanation::of(&one).headline, "Nothing was run.");
}
