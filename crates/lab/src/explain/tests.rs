//! Sentences follow the records.

use super::*;
use crate::samples::{comparison, run};

#[test]
fn the_headline_says_who_froze_and_who_did_not() {
    assert_eq!(
        Explanation::of(&comparison()).headline,
        "cubic played without a freeze; reno froze 3 times, for 5.50 s altogether and lost 12 pictures."
    );
}

#[test]
fn the_headline_follows_the_data_not_the_names() {
    let mut swapped = comparison();
    swapped.runs[0].spec = "cubic".into();
    swapped.runs[1].spec = "reno".into();
    let headline = Explanation::of(&swapped).headline;
    assert!(
        headline.starts_with("reno played without a freeze; cubic froze"),
        "{headline}"
    );
}

#[test]
fn the_measured_depth_of_a_cut_is_what_the_reason_quotes() {
    let explanation = Explanation::of(&comparison());
    let text = explanation.reasons.join("\n");
    assert!(
        text.contains("reno: 14 lost packets (4 overflows of the queue, 10 random losses)"),
        "{text}"
    );
    assert!(text.contains("to 50 % of its size"), "{text}");
    assert!(
        text.contains("share of the window given up at a cut (20 % for cubic, 50 % for reno)"),
        "{text}"
    );
}

#[test]
fn a_queue_that_overflows_is_held_against_what_the_controllers_keep() {
    let mut full = comparison();
    full.path.queue = full.path.bdp() / 2;
    full.runs[0].link.overflowed = 50;
    let reasons = Explanation::of(&full).reasons.join("\n");
    // Half of 188 kB in 200 ms is 3.75 Mbit/s; 80 % of it is more than the link carries.
    assert!(reasons.contains("when 188 kB are in flight"), "{reasons}");
    assert!(
        reasons.contains("reno keeps 50 % and sends at 3.75 Mbit/s"),
        "{reasons}"
    );
    assert!(
        reasons.contains("cubic keeps 80 % and sends at 5.00 Mbit/s"),
        "{reasons}"
    );
    full.runs[0].link.overflowed = 2;
    assert!(!Explanation::of(&full).reasons.join("\n").contains("full queue"));
}

#[test]
fn equal_experiences_are_not_explained_away() {
    let mut same = comparison();
    same.runs[1] = RunRecord {
        spec: "cubic".into(),
        ..run("reno", 0.5)
    };
    let explanation = Explanation::of(&same);
    assert!(
        explanation.headline.contains("saw the same"),
        "{}",
        explanation.headline
    );
    assert!(
        explanation
            .reasons
            .iter()
            .any(|reason| reason.contains("too little"))
    );
}

#[test]
fn equal_causes_with_different_outcomes_are_called_timing() {
    let mut lucky = comparison();
    let viewer = lucky.runs[1].viewer.clone();
    lucky.runs[1] = RunRecord {
        spec: "cubic".into(),
        viewer,
        ..run("reno", 0.5)
    };
    let reasons = Explanation::of(&lucky).reasons;
    assert!(
        reasons.iter().any(|reason| reason.contains("one of timing")),
        "{reasons:?}"
    );
}

#[test]
fn a_path_slower_than_the_title_is_blamed_itself() {
    let mut narrow = comparison();
    narrow.path.rate = playrate_units::Bitrate::from_mbps(2);
    let reasons = Explanation::of(&narrow).reasons;
    assert!(
        reasons[0].contains("is not enough for that, whoever sends"),
        "{}",
        reasons[0]
    );
    assert!(!Explanation::of(&comparison()).reasons[0].contains("whoever"));
}

#[test]
fn a_late_relay_is_warned_of_and_chance_is_owned_up_to() {
    let mut late = comparison();
    assert!(Explanation::of(&late).warning.is_none());
    late.runs[0].link.flaws = vec!["9ms late".into()];
    let explanation = Explanation::of(&late);
    assert!(
        explanation
            .warning
            .as_ref()
            .is_some_and(|warning| warning.contains("reno: 9ms late")),
        "{explanation:?}"
    );
    let anecdote = |explanation: &Explanation| {
        explanation
            .reasons
            .iter()
            .any(|reason| reason.contains("anecdote"))
    };
    assert!(anecdote(&explanation));
    for run in &mut late.runs {
        run.link.lost = 0;
    }
    assert!(!anecdote(&Explanation::of(&late)));
}

#[test]
fn one_run_and_a_failed_run_have_a_headline() {
    let mut one = comparison();
    one.runs.truncate(1);
    assert!(Explanation::of(&one).headline.starts_with("reno froze 3 times"));
    one.runs[0].viewer.outcome = Outcome::Failed("connection lost".into());
    assert_eq!(Explanation::of(&one).headline, "reno failed (connection lost).");
    one.runs[0].viewer.outcome = Outcome::Stopped;
    let headline = Explanation::of(&one).headline;
    assert!(
        headline.ends_with("until it was stopped after 43.0 s."),
        "{headline}"
    );
    one.runs.clear();
    assert_eq!(Explanation::of(&one).headline, "Nothing was run.");
}
