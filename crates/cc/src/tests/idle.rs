//! Idle components through whole connections, with several algorithms.

use core::time::Duration;

use super::{MS, WINDOW_BASED, assert_in, busy, connection, round, ssthresh, state, train};
use crate::testing::Connection;
use crate::{Phase, Reason};
use rstest::rstest;

/// The RTT is so constantly 100 ms that the RTO is the smallest one, 200 ms.
const RTO: Duration = Duration::from_millis(200);

/// `text` in avoidance with 120,000 B, all of it used and nothing in flight.
fn steady(text: &str) -> Connection {
    let mut c = connection(text);
    c.set_smoothed_rtt(Some(MS * 100));
    // Slow start to 240,000 B, a loss, and back to avoidance. Reno halves; others keep more.
    for _ in 0..40 {
        round(&mut c, 2);
    }
    busy_until(&mut c, |c| c.window() >= 240_000);
    c.offer(4_000);
    c.pass(MS * 100);
    c.ack(2);
    c.lose(1);
    c.pass(MS);
    c.ack(4_000);
    round(&mut c, 4_000);
    assert_eq!(c.snapshot().phase, Phase::Avoidance, "{text}");
    c
}

/// Round trips limited by the window until `done`, at most ten. Returns their number.
fn busy_until(c: &mut Connection, done: impl Fn(&Connection) -> bool) -> usize {
    (0..=10)
        .find(|_| {
            let is_done = done(c);
            if !is_done {
                round(c, 4_000);
            }
            is_done
        })
        .expect("ten round trips suffice")
}

fn is_avoiding(c: &Connection) -> bool {
    c.snapshot().phase == Phase::Avoidance
}

/// Nothing happens for this many tenths of an RTO, then a packet leaves.
fn pause(c: &mut Connection, tenths: u32) {
    c.set_app_limited(true);
    c.pass(RTO * tenths / 10);
    c.send(1);
}

#[test]
fn keep_and_new_cwv_keep_the_window_of_any_algorithm_over_a_pause() {
    for algorithm in ["reno", "cubic", "vegas", "stream"] {
        for idle in ["keep", "new-cwv"] {
            let mut c = steady(&format!("{algorithm}+idle={idle}"));
            let before = c.window();
            pause(&mut c, 35);
            assert_eq!(c.window(), before, "{algorithm} {idle}");
        }
    }
}

// RFC 2861: three halvings in 3.5 RTO, ssthresh at least ¾ of the old window, and slow start up to it.
#[test]
fn cwv_halves_the_window_of_any_algorithm_three_times_in_three_and_a_half_rtos() {
    for algorithm in WINDOW_BASED {
        let mut c = steady(&format!("{algorithm}+idle=cwv"));
        let before = c.window();
        let reached = ssthresh(&c).max(before * 3 / 4);
        pause(&mut c, 35);
        // Compound and Stream give up their delay window first; Compound's is empty without a queue measured.
        assert_eq!(c.window(), (before / 8).max(12_000), "{algorithm}");
        assert_eq!(ssthresh(&c), reached, "{algorithm}");
        assert_eq!(state(&c), (Phase::AfterIdle, Reason::Idle), "{algorithm}");
    }
}

// Yanev et al. 2022, figure 2a: slow start after a pause continues past the previous window, until packets are lost.
#[test]
fn cwv_that_forgot_ssthresh_starts_slowly_past_the_window_from_before() {
    let mut c = steady("reno+idle=cwv(forget_ssthresh=on)");
    let before = c.window();
    pause(&mut c, 35);
    assert_eq!(c.snapshot().phase, Phase::AfterIdle);
    c.pass(MS * 100);
    c.ack(1);
    busy(&mut c, 6);
    assert_eq!(c.snapshot().phase, Phase::AfterIdle);
    assert_in(c.window(), 2 * before + 1..);
}

#[test]
fn a_pause_within_the_rto_costs_nothing_whatever_the_policy() {
    for idle in ["rfc5681", "cwv", "new-cwv", "new-cwv-restart"] {
        let mut c = steady(&format!("reno+idle={idle}"));
        let (before, reached) = (c.window(), ssthresh(&c));
        pause(&mut c, 10);
        assert_eq!((c.window(), ssthresh(&c)), (before, reached), "{idle}");
        assert_eq!(c.snapshot().phase, Phase::Avoidance, "{idle}");
    }
}

#[test]
fn only_the_first_burst_after_a_pause_costs() {
    for idle in ["rfc5681", "cwv", "new-cwv-restart"] {
        let mut c = steady(&format!("reno+idle={idle}"));
        pause(&mut c, 35);
        let (window, reached) = (c.window(), ssthresh(&c));
        c.send(5);
        c.pass(MS * 50);
        c.send(5);
        assert_eq!((c.window(), ssthresh(&c)), (window, reached), "{idle}");
    }
}

// Yanev et al. 2022, figure 1b: slow start from the initial window ends at the previous window ("third flight" at
// 10·IW).
#[test]
fn new_cwv_restart_is_back_at_its_window_after_four_flights() {
    let mut c = steady("reno-new-cwv-p21");
    let before = c.window();
    c.pass(Duration::from_secs(3));
    round(&mut c, 4_000);
    // 12,000 → 120,000 doubles 3.3 times.
    assert_eq!(1 + busy_until(&mut c, is_avoiding), 4);
    assert_eq!(ssthresh(&c), before);
    assert_in(c.window(), before..=before + 2_400);
}

#[test]
fn rfc5681_returns_to_the_old_ssthresh_and_not_to_the_old_window() {
    let mut c = steady("reno+idle=rfc5681");
    busy(&mut c, 20);
    let (before, reached) = (c.window(), ssthresh(&c));
    assert!(reached + 12_000 < before);
    c.pass(Duration::from_secs(3));
    round(&mut c, 4_000);
    assert_eq!(c.snapshot().phase, Phase::AfterIdle);
    busy_until(&mut c, is_avoiding);
    assert_in(c.window(), ..before);
    assert_eq!(ssthresh(&c), reached);
}

// RFC 9438 §4.2, §4.10 and RFC 2861: cubic's next epoch begins with the window after the pause, not with the time
// before it.
#[test]
fn cubic_begins_a_new_epoch_on_its_plateau_after_cwv_restarted_it() {
    let mut c = steady("cubic+idle=cwv");
    busy(&mut c, 20);
    c.pass(Duration::from_secs(60));
    busy_until(&mut c, |c| {
        state(c) == (Phase::Avoidance, Reason::ReachedSsthresh)
    });
    let at_ssthresh = c.window();
    assert_in(at_ssthresh.abs_diff(ssthresh(&c)), ..6_000);
    // K = 0: growth over 3 round trips is Reno's, not that of a curve 60 s later.
    busy(&mut c, 3);
    assert_in(c.window() - at_ssthresh, ..4 * 1_200);
}

// RFC 2861: halfway to the used part. 110,000 B of 120,000 stay above ssthresh = 90,000, so avoidance begins again.
#[test]
fn cubic_begins_a_new_epoch_when_cwv_lowers_an_unused_window() {
    let mut c = steady("cubic+idle=cwv");
    // Well above ssthresh, so that the window after cwv is above it as well.
    busy(&mut c, 60);
    let before = c.window();
    let packets = usize::try_from(before / 1_200 * 9 / 10).unwrap();
    for _ in 0..4 {
        round(&mut c, packets);
        c.set_app_limited(true);
    }
    assert!(c.window() < before, "{before}");
    assert_eq!(state(&c), (Phase::Avoidance, Reason::Idle));
    let lowered = c.window();
    busy(&mut c, 3);
    assert_in(c.window(), ..lowered + 4 * 1_200);
}

// The delay window is based on a stale RTT and goes first; the rest is halved. No combination ends below the restart
// window.
#[rstest]
#[case("rfc5681")]
#[case("cwv")]
#[case("new-cwv-restart")]
fn compound_restarts_from_the_initial_window_and_grows_again(#[case] idle: &str) {
    let mut c = steady(&format!("compound+idle={idle}"));
    busy(&mut c, 20);
    c.pass(Duration::from_secs(60));
    c.send(1);
    assert_eq!(c.window(), 12_000);
    busy(&mut c, 3);
    assert_in(c.window(), 48_001..);
}

/// `ccp` in avoidance over a path of 20 Mbit/s and 100 ms, with nothing in flight. Losses do not give it an ssthresh.
fn steady_ccp(idle: &str) -> Connection {
    let mut c = connection(&format!("ccp+loss=ignore+idle={idle}"));
    for _ in 0..12 {
        train(&mut c, 4_000);
    }
    c.offer(4_000);
    c.pass(MS * 100);
    c.ack(2);
    c.lose(1);
    c.ack(4_000);
    train(&mut c, 4_000);
    assert_eq!(c.snapshot().phase, Phase::Avoidance);
    assert_eq!(c.snapshot().ssthresh, None);
    c
}

// An algorithm that held on its losses has no ssthresh. A pause must not cause an endless slow start.
#[test]
fn an_algorithm_without_a_threshold_governs_at_once_after_rfc5681_restarted_it() {
    let mut c = steady_ccp("rfc5681");
    c.pass(Duration::from_secs(60));
    c.send(1);
    assert_eq!(c.window(), 12_000);
    assert_eq!(state(&c), (Phase::Avoidance, Reason::Idle));
    c.pass(MS * 100);
    c.ack(1);
    assert!(c.window() > 24_000, "set outright: {}", c.window());
}

#[test]
fn an_algorithm_without_a_threshold_gets_three_quarters_as_one_from_cwv() {
    let mut c = steady_ccp("cwv");
    let before = c.window();
    c.pass(Duration::from_secs(60));
    c.send(1);
    assert_eq!(c.window(), 12_000);
    assert_eq!(ssthresh(&c), before * 3 / 4);
    assert_eq!(c.snapshot().phase, Phase::AfterIdle);
}

/// An unvalidated window: 30,000 B in use of `text`'s steady window, for longer than the sampling period.
fn unvalidated(text: &str) -> Connection {
    let mut c = steady(text);
    assert_in(c.window(), 110_000..);
    for _ in 0..12 {
        round(&mut c, 25);
        c.set_app_limited(true);
    }
    c
}

// RFC 7661 §4.4.1 with pipeACK = LossFlightSize = 30,000 B and R = 2,400 B: 15,000 B, then 13,800 B.
#[rstest]
#[case("reno")]
#[case("cubic")]
#[case("compound")]
fn a_loss_in_an_unvalidated_window_halves_what_was_in_use_and_takes_what_was_lost(#[case] algorithm: &str) {
    let mut c = unvalidated(&format!("{algorithm}+idle=new-cwv"));
    c.offer(25);
    c.set_app_limited(true);
    c.pass(MS * 100);
    // The flight at an ACK frame: 24 packets and this one.
    c.ack(1);
    c.lose(2);
    assert_eq!(c.window(), 15_000, "{algorithm}");
    assert_eq!(ssthresh(&c), 15_000, "{algorithm}");
    assert_eq!(c.snapshot().phase, Phase::Recovery);
    c.pass(MS);
    c.ack(22);
    c.offer(4_000);
    c.set_app_limited(true);
    c.pass(MS * 100);
    c.ack(1);
    assert_eq!(c.snapshot().phase, Phase::Avoidance);
    assert_eq!(c.window(), 13_800, "{algorithm}");
    assert_eq!(ssthresh(&c), 13_800, "{algorithm}");
}

// As above: cubic's plateau is the part in use, so it does not climb back to a window that was never tested.
#[test]
fn cubic_aims_at_what_was_in_use_after_a_loss_in_an_unvalidated_window() {
    let mut c = unvalidated("cubic+idle=new-cwv");
    c.offer(25);
    c.set_app_limited(true);
    c.pass(MS * 100);
    c.lose(2);
    c.pass(MS);
    c.ack(4_000);
    busy(&mut c, 40);
    // After 4 s the Reno-friendly estimate is past the plateau at 30,000 B; with a plateau at 168,000 B the curve would
    // be at 150,000 B.
    assert_in(c.window(), 30_000..60_000);
}

// RFC 7661 §4.3: in a validated window, the algorithm answers a loss.
#[test]
fn a_loss_in_a_validated_window_is_the_algorithms() {
    let mut c = steady("reno-new-cwv");
    busy(&mut c, 12);
    let before = c.window();
    c.offer(4_000);
    c.pass(MS * 100);
    c.lose(1);
    assert_eq!(c.window(), before / 2);
}

// RFC 7661 §4.4.3.
#[test]
fn new_cwv_gives_up_half_of_the_window_after_five_minutes_and_again_after_ten() {
    let mut c = steady("reno-new-cwv");
    let (before, reached) = (c.window(), ssthresh(&c));
    c.pass(Duration::from_secs(299));
    c.send(1);
    c.set_app_limited(true);
    c.pass(MS * 100);
    c.ack(1);
    assert_eq!(c.window(), before);
    c.pass(Duration::from_secs(2));
    c.send(1);
    assert_eq!(c.window(), before / 2);
    assert_eq!(ssthresh(&c), reached.max(before * 3 / 4));
    assert_eq!(c.snapshot().phase, Phase::AfterIdle);
    c.pass(MS * 100);
    c.ack(1);
    c.pass(Duration::from_secs(300));
    c.send(1);
    assert_eq!(c.window(), before / 4);
}

#[test]
fn an_unused_window_grows_in_no_mode_while_new_cwv_does_not_think_it_validated() {
    for growth in ["credit", "ratelimited"] {
        let mut c = unvalidated(&format!("reno(growth={growth})+idle=new-cwv"));
        let before = c.window();
        for _ in 0..50 {
            round(&mut c, 25);
            c.set_app_limited(true);
        }
        assert_eq!(c.window(), before, "{growth}");
    }
}
