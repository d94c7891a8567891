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
    DemoReport {
        scenario: scenario::scenario(&args).unwrap().into(),
        queue: scenario::queue(&args).unwrap(),
        args,
        runs,
        comparisons: Vec::new(),
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
fn the_headline_says_who_stalled_and_who_did_not() {
    let headline = Explanation::of(&comparison()).headline;
    let beginning = "cubic played without a stall; reno stalled 2 times";
    assert!(headline.starts_with(beginning), "{headline}");
    assert_contains(&headline, &["lost 10 frames"]);
    let swapped = report(PATH, vec![impaired("cubic", 0.8), smooth("reno", 0.5)]);
    let headline = Explanation::of(&swapped).headline;
    let beginning = "reno played without a stall; cubic stalled";
    assert!(headline.starts_with(beginning), "{headline}");
}

#[test]
fn losses_and_the_measured_depth_of_a_cut_are_quoted() {
    assert_contains(
        &reasons(&comparison()),
        &[
            "reno: 43 lost packets (40 overflows of the queue, 3 random losses)",
            "a cut left 50 % of the window",
        ],
    );
}

#[test]
fn a_session_whose_window_was_never_cut_is_not_said_to_be_cut() {
    let mut runs = comparison().runs;
    runs[0].row.control.as_mut().unwrap().window_kept_share = None;
    let said = reasons(&report(PATH, runs));
    assert_contains(&said, &["reno: nothing made it cut its window"]);
}

#[test]
fn the_rate_after_a_full_queue_follows_what_a_cut_keeps() {
    // 125 kB in flight and 62.5 kB in the queue: half of them in 200 ms are 3.75 Mbit/s, 80 % more than the link.
    let mut full = comparison();
    assert_contains(
        &reasons(&full),
        &[
            "reno keeps 50 % and sends at 3.75 Mbit/s",
            "cubic keeps 80 % and sends at 5.00 Mbit/s",
        ],
    );
    for run in &mut full.runs {
        run.row.link.as_mut().unwrap().queue_drops = 2;
    }
    assert!(!reasons(&full).contains("full queue"));
}

#[test]
fn equal_experiences_are_not_explained_away() {
    let same = report(PATH, vec![impaired("reno", 0.5), impaired("cubic", 0.8)]);
    assert_contains(&Explanation::of(&same).headline, &["saw the same"]);
    assert_contains(&reasons(&same), &["too little"]);
}

#[test]
fn impaired_time_counts_in_seconds_whatever_else_was_shown() {
    // 0.5 s compared with nothing is a difference; compared with 0.3 s, a viewer does not notice it.
    let mut close = comparison();
    close.runs[1].row.playback.stalled_time = Duration::from_millis(300);
    assert!(Explanation::of(&close).headline.contains("saw the same"));
}

#[test]
fn equal_causes_with_different_outcomes_are_called_timing() {
    let lucky = report(PATH, vec![impaired("reno", 0.5), smooth("cubic", 0.5)]);
    assert!(reasons(&lucky).contains("one of timing"), "{}", reasons(&lucky));
}

#[test]
fn a_path_slower_than_the_title_is_named_as_the_cause() {
    let narrow = report("--rate 2Mbit/s", comparison().runs);
    assert!(reasons(&narrow).contains("does not suffice for that under any controller"));
    assert!(!reasons(&comparison()).contains("under any controller"));
}

#[test]
fn a_late_relay_and_random_losses_are_warned_of() {
    let mut late = comparison();
    assert!(Explanation::of(&late).warning.is_none());
    assert!(reasons(&late).contains("not a comparison"));
    late.runs[0].attempt.flaws = vec!["9 ms late".into()];
    assert_contains(&Explanation::of(&late).warning.unwrap(), &["reno: 9 ms late"]);
    for run in &mut late.runs {
        run.row.link.as_mut().unwrap().random_losses = 0;
    }
    assert!(!reasons(&late).contains("not a comparison"));
}

#[test]
fn a_late_relay_is_no_warning_where_the_virtual_reference_run_gives_the_same() {
    let mut late = comparison();
    late.runs[0].attempt.flaws = vec!["9 ms late".into()];
    let same = Explanation::of(&compared(late, &[0, 20]));
    assert_eq!(same.warning, None);
    let verdict = "Agrees with the virtual reference run within 1 %.";
    assert_eq!(same.verdict.as_deref(), Some(verdict));
    assert!(same.text(usize::MAX).ends_with(&format!("\n\n{verdict}\n")));
    let seeds = same.reasons.join("\n");
    assert_contains(&seeds, &["cubic 10.0 s (0 s to 20.0 s)"]);
    assert!(!seeds.contains("not a comparison"));

    let mut late = comparison();
    late.runs[0].attempt.flaws = vec!["9 ms late".into()];
    let other = Explanation::of(&compared(late, &[20, 0]));
    let verdict = "Differs from the virtual reference run: reno had impaired";
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
