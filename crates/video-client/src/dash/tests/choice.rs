//! Compares the throughput history and the rules with the answers of dash.js's own functions to the same input.

use std::time::Duration;

use playrate_test_support::assert_contains;
use playrate_units::{Bitrate, Bytes};
use rstest::rstest;

use super::{ms, presentation, representation, transfer};
use crate::dash::abr::{Abr, Chooser};
use crate::dash::history::ThroughputHistory;
use crate::dash::switch_history::SwitchHistory;
use crate::dash::{Presentation, PresentationError};

/// 64 segments, with the results of dash.js 4.0.0's `ThroughputHistory` and `getQualityForBitrate`. The functions were
/// taken from its published bundle and run with its default settings. Some segments are cached, and some latencies
/// exceed a segment's playing time.
const DASHJS: &str = include_str!("dashjs-4.0.0.csv");

#[test]
fn the_history_and_the_rule_answer_as_those_of_dashjs() {
    let mut history = ThroughputHistory::default();
    let mut chooser = Chooser::new(&Abr::Throughput, &presentation(100)).unwrap();
    let mut rows = 0;
    for line in DASHJS.lines().filter(|line| !line.starts_with('#')) {
        let values: Vec<u64> = line.split(',').map(|value| value.parse().unwrap()).collect();
        let [requested, first, finished, bytes, kbps, smoothed, representation] = values[..] else {
            panic!("{line}");
        };
        let (measured, _) = history.push(&transfer([requested, first, finished], Bytes::new(bytes)));
        assert_eq!(measured, Bitrate::from_kbps(kbps), "{line}");
        // Rounding of the last bit may differ.
        let apart = history
            .smoothed()
            .unwrap()
            .as_bits_per_second()
            .abs_diff(smoothed);
        assert!(apart <= 1, "{line}: {:?}", history.smoothed());
        let now = situation(ms(6_000), 5);
        assert_eq!(chooser.choose(&history, now) as u64, representation, "{line}");
        rows += 1;
    }
    assert_eq!(rows, 64);
}

#[test]
fn a_segment_that_came_from_a_cache_counts_only_until_others_have_come() {
    let mut history = ThroughputHistory::default();
    let second = |history: &mut ThroughputHistory, at: u64, took: u64| {
        let times = [at, at + 10, at + 10 + took];
        history.push(&transfer(times, Bytes::from_kb(100))).1
    };
    assert!(second(&mut history, 0, 49), "better than nothing");
    let smoothed = |history: &ThroughputHistory| history.smoothed().unwrap().as_bits_per_second();
    assert_eq!(smoothed(&history), 16_327 * 900);
    assert!(second(&mut history, 1_000, 100));
    assert_eq!(smoothed(&history), 7_200_000, "the cached one is forgotten");
    assert!(!second(&mut history, 2_000, 49));
    assert_eq!(smoothed(&history), 7_200_000);
    assert!(second(&mut history, 3_000, 50), "not below the threshold");
}

/// A choice with `held` in the buffer, after this many segments.
fn situation(held: Duration, segments: usize) -> (Duration, usize, Duration) {
    (held, segments, ms(3_000))
}

fn history_of(kbps: u64) -> ThroughputHistory {
    let mut history = ThroughputHistory::default();
    let bytes = Bytes::new(kbps * 125);
    history.push(&transfer([0, 1, 1_001], bytes));
    history
}

#[rstest]
#[case::just_enough(2_936, ms(6_000), 1)]
#[case::not_quite(2_932, ms(6_000), 0)]
#[case::no_rate_is_low_enough(100, ms(6_000), 0)]
#[case::plenty(90_000, ms(6_000), 2)]
#[case::empty_buffer(90_000, ms(299), 0)]
#[case::nearly_empty_buffer(90_000, ms(300), 2)]
fn the_highest_rate_within_nine_tenths_of_the_throughput_is_chosen(
    #[case] kbps: u64,
    #[case] held: Duration,
    #[case] chosen: usize,
) {
    let mut chooser = Chooser::new(&Abr::Throughput, &presentation(10)).unwrap();
    assert_eq!(chooser.choose(&history_of(kbps), situation(held, 2)), chosen);
    assert_eq!(chooser.is_at_top(), chosen == 2);
}

#[test]
fn an_empty_buffer_changes_nothing_before_the_second_segment() {
    let mut chooser = Chooser::new(&Abr::Throughput, &presentation(10)).unwrap();
    assert_eq!(chooser.choose(&history_of(90_000), situation(ms(3_000), 1)), 2);
    assert_eq!(chooser.choose(&history_of(1_000), situation(ms(0), 1)), 2);
}

/// Decisions (from, to) and the answer of dash.js's `SwitchHistoryRule` before each, -1 for none.
const SWITCHES: &str = "0 0 -1, 0 0 -1, 0 0 -1, 0 0 -1, 0 0 -1, 0 0 -1, 0 0 -1, 0 0 -1, 0 2 -1, 2 2 -1, 2 \
    2 -1, 2 2 -1, \
    2 2 -1, 2 2 -1, 2 2 -1, 2 0 -1, 0 0 1, 0 0 1, 0 0 1, 0 0 1, 0 2 1, 2 2 1, 2 2 1, 2 2 1, 2 2 -1, 2 0 -1, 0 0 1";

#[test]
fn the_switch_history_is_the_eight_last_decisions() {
    let mut history = SwitchHistory::default();
    for decision in SWITCHES.split(", ").map(str::trim) {
        let values: Vec<i64> = decision.split(' ').map(|value| value.parse().unwrap()).collect();
        let limit = usize::try_from(values[2]).ok();
        assert_eq!(history.limit(3), limit, "{decision}");
        let [from, to] = [values[0], values[1]].map(|value| usize::try_from(value).unwrap());
        history.push(from, to);
    }
}

#[rstest]
#[case("throughput", Abr::Throughput)]
#[case("throughput+switch-history", Abr::ThroughputSwitchHistory)]
#[case("fixed:720p", Abr::Fixed("720p".to_owned()))]
fn a_way_to_choose_is_written_as_it_is_read(#[case] text: &str, #[case] abr: Abr) {
    assert_eq!(text.parse(), Ok(abr.clone()));
    assert_eq!(abr.to_string(), text);
}

#[rstest]
#[case("bola")]
#[case("fixed:")]
#[case("")]
fn another_way_to_choose_is_refused_with_those_that_there_are(#[case] text: &str) {
    let error = text.parse::<Abr>().unwrap_err().to_string();
    assert_contains(&error, &[&format!("`{text}`"), "fixed:NAME"]);
}

#[test]
fn a_fixed_representation_stays_and_must_be_there() {
    let fixed = |name: &str| Chooser::new(&Abr::Fixed(name.to_owned()), &presentation(10));
    let mut chooser = fixed("720p").unwrap();
    assert_eq!(chooser.choose(&history_of(90_000), situation(ms(0), 9)), 1);
    let error = fixed("4k").unwrap_err().to_string();
    assert!(error.contains("480p, 720p, 1080p"), "{error}");
}

#[test]
fn representations_that_do_not_fit_together_are_refused() {
    let of = |name, durations: &[Duration]| representation((name, 1_000), durations);
    let refused = |representations| Presentation::new(representations).unwrap_err();
    assert_eq!(refused(vec![]), PresentationError::Empty);
    assert_eq!(refused(vec![of("a", &[])]), PresentationError::Empty);
    let good = of("a", &[ms(3_000)]);
    let same_name = PresentationError::SameName("a".to_owned());
    assert_eq!(refused(vec![good.clone(), good.clone()]), same_name);
    let unaligned = PresentationError::Unaligned("a".to_owned(), "b".to_owned());
    assert_eq!(refused(vec![good, of("b", &[ms(2_000)])]), unaligned);
    let empty = PresentationError::EmptySegment {
        representation: "c".to_owned(),
        segment: 0,
    };
    assert_eq!(refused(vec![of("c", &[ms(0)])]), empty);
}
