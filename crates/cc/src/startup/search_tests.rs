use rstest::rstest;

use super::*;
use crate::component::Needs;
use crate::entry::Key;
use crate::tests::trace::{LINK, Link, Trace, lossless};
use crate::tests::{MS_IN_NS as MS, assert_in, at, spec};
use crate::{Bytes, Path};

const RTT: u64 = 100 * MS;
/// Length of a bin for [`RTT`].
const BIN_MS: u64 = 35;

/// Bins of a path with an RTT of 100 ms that carries at most `most` bytes per bin. The bytes sent double every three
/// bins, as in slow start. Ends with the bin `last`.
fn bins(last: u64, most: u32) -> Bins {
    let (mut bins, mut totals) = (Bins::default(), Totals::default());
    bins.begin(at(0), RTT, totals);
    let sent = |bin: u64| 1_000_u32 << (bin / 3);
    let mut queued = 0_u32;
    for bin in 1..=last {
        totals.sent += sent(bin);
        // Bytes that left an RTT ago arrive.
        queued += if bin > 3 { sent(bin - 3) } else { 0 };
        let arrives = queued.min(most);
        queued -= arrives;
        totals.acked += arrives;
        assert_eq!(bins.advance(at(bin * BIN_MS + 1), totals), 1);
    }
    bins
}

fn search(text: &str) -> Search {
    let spec = spec(&format!("cubic+start={text}"));
    let (_, arguments) = spec.component(Key::Start).expect("a startup component");
    Search::from_arguments(arguments)
}

fn over(queue_kb: u64, text: &str) -> Trace {
    let queue = Bytes::from_kb(queue_kb);
    lossless(Link { queue, ..LINK }, text)
}

#[test]
fn a_bin_lasts_a_tenth_of_three_and_a_half_first_rtts() {
    let bins = bins(2, u32::MAX);
    assert_eq!(bins.bin_ns, BIN_MS * MS);
    assert_eq!(bins.end, at(3 * BIN_MS));
}

#[test]
fn nothing_is_missing_while_the_path_has_room() {
    let missing = bins(20, u32::MAX).missing(RTT).expect("enough bins");
    assert_in(missing, -0.05..0.05);
}

// From bin 15 on the path is at its capacity; SEARCH sees it two RTTs, six bins, later.
#[test]
fn a_path_at_its_capacity_delivers_less_than_was_sent() {
    let missing = |last| bins(last, 16_000).missing(RTT).expect("enough bins");
    assert_in(missing(15), ..0.1);
    assert_in(missing(19), 0.1..0.26);
    assert!(missing(22) > 0.26);
}

#[rstest]
#[case::fourteen_bins_reach_back_one_rtt(13, 100, true)]
#[case::thirteen_do_not(12, 100, false)]
#[case::an_rtt_of_fourteen_bins(40, 500, true)]
#[case::an_rtt_of_fifteen(40, 525, false)]
fn it_judges_once_the_bins_reach_back_an_rtt(#[case] last: u64, #[case] rtt_ms: u64, #[case] judges: bool) {
    let mut bins = bins(last.min(20), u32::MAX);
    for bin in 21..=last {
        bins.advance(at(bin * BIN_MS + 1), bins.at(bins.newest));
    }
    assert_eq!(bins.missing(rtt_ms * MS).is_some(), judges);
}

#[test]
fn a_window_between_two_bins_is_interpolated() {
    let bins = bins(20, 16_000);
    let (early, late) = (bins.missing(105 * MS), bins.missing(139 * MS));
    let between = bins.missing(122 * MS).expect("enough bins");
    assert!(late.expect("enough bins") < between && between < early.expect("enough bins"));
}

#[test]
fn bins_without_an_acknowledgement_hold_what_was_known_before() {
    let mut bins = bins(20, u32::MAX);
    let before = bins.at(20);
    let totals = Totals {
        acked: before.acked + 500,
        ..before
    };
    assert_eq!(bins.advance(at(24 * BIN_MS + 1), totals), 4);
    assert_eq!((bins.at(23), bins.at(24)), (before, totals));
}

#[test]
fn more_missed_bins_than_a_window_has_begin_anew() {
    let mut search = search("search");
    let mut core = Core::new(&Path::default(), 2, Needs::default(), std::sync::Arc::default());
    for now_ms in [100, 140, 180] {
        let _ = search.on_batch(&mut core, &mut Batch::sample(now_ms, 100, true));
    }
    assert_eq!(search.bins.newest, 2);
    let _ = search.on_batch(&mut core, &mut Batch::sample(2_000, 100, true));
    assert_eq!((search.bins.bin_ns, search.totals), (0, Totals::default()));
    let _ = search.on_batch(&mut core, &mut Batch::sample(2_010, 200, true));
    assert_eq!(search.bins.bin_ns, 70 * MS, "the next RTT is the first");
}

/// The component at the end of a flat window of bins, with 200 kB as window, and an ACK frame that closes a bin.
fn at_the_chokepoint(text: &str) -> (Search, Core, Batch) {
    let mut search = search(text);
    *search.bins = bins(24, 16_000);
    search.totals = search.bins.at(24);
    let batch = Batch {
        in_flight: 150_000,
        ..Batch::sample(25 * BIN_MS + 1, 100, true)
    };
    (search, Core::sample(200_000, 100, 100), batch)
}

#[rstest]
#[case("search(exit=reset)", 33_200)]
#[case("search(exit=keep)", 200_000)]
fn the_end_resets_or_keeps_the_window(#[case] text: &str, #[case] window: u64) {
    let (mut search, mut core, mut batch) = at_the_chokepoint(text);
    let end = search.on_batch(&mut core, &mut batch);
    assert_eq!(end, Some(Reason::RateFlattened));
    // Three bins: 16,000 B each, and 1200 B in the last.
    assert_eq!((core.window(), core.ssthresh), (window, Some(window)));
}

#[test]
fn the_window_follows_the_flight_down_to_what_an_empty_rtt_delivers() {
    let (mut search, mut core, mut batch) = at_the_chokepoint("search");
    assert_eq!(search.on_batch(&mut core, &mut batch), None);
    let mut windows = Vec::new();
    while core.ssthresh.is_none() {
        batch.in_flight -= batch.acked;
        let end = search.on_batch(&mut core, &mut batch);
        windows.push(core.window());
        assert_eq!(end.is_some(), core.ssthresh.is_some());
    }
    // One packet may leave for every sixteen acknowledged.
    let expected = (1..).map(|acked| 150_000 - acked * 1_200 + u64::from(acked % 16 == 0) * 1_200);
    let expected: Vec<u64> = expected.take_while(|window| *window > 33_200).collect();
    assert_eq!(windows[..expected.len()], expected);
    assert_eq!(core.window(), 33_200);
}

#[test]
fn a_sender_that_pauses_while_it_drains_does_not_gain_window() {
    let (mut search, mut core, mut batch) = at_the_chokepoint("search");
    let _ = search.on_batch(&mut core, &mut batch);
    core.set_window(20_000);
    batch.in_flight = 0;
    assert!(search.on_batch(&mut core, &mut batch).is_some());
    assert_eq!(core.window(), 20_000);
}

// 1 MB are four bandwidth-delay products.
#[test]
fn on_a_long_queue_it_leaves_before_most_of_the_loss_and_drains_the_queue() {
    let (search, standard) = (over(1_000, "cubic+start=search"), over(1_000, "cubic"));
    assert_in(search.lost(0, 5) * 8, ..standard.lost(0, 5));
    let queued = search.within(2, 3).map(|round| round.queued.as_u64()).max();
    assert_in(queued.expect("there are rounds"), ..50_000);
}

// It needs about two round trips beyond the chokepoint to see it; a queue of one bandwidth-delay product overflows
// earlier.
#[test]
fn on_a_short_queue_the_loss_comes_first() {
    assert_eq!(over(250, "cubic+start=search"), over(250, "cubic"));
}
