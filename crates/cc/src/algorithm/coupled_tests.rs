//! Coupled growth: the formulas of RFC 6356 and of OLIA's draft, and paths that join and leave a set.

use super::*;
use crate::events::{AckFrame, Acked, Sent, Signal};
use crate::testing::Demand;
use crate::tests::trace::trace;
use crate::tests::{MS, MS_IN_NS, MTU, close, loss, spec};
use crate::{Bytes, CongestionController, Path};
use rstest::rstest;

/// A path with a window of this many kB, an RTT in ms and this many kB between losses.
fn member((window_kb, rtt_ms, between_kb): (u64, u64, u64)) -> Member {
    Member {
        window: window_kb * 1_000,
        rtt_ns: rtt_ms * MS_IN_NS,
        between: between_kb * 1_000,
        silent_ns: 0,
    }
}

/// A path of 100 kB and 100 ms.
const EQUAL: (u64, u64, u64) = (100, 100, 900);

// Lia: cwnd_i·max(cwnd/rtt²)/(Σ cwnd/rtt)², at most 1; the RFC's increase divided by Reno's. Olia: (share of the rate)²
// + alpha.
#[rstest]
#[case::alone(Rule::Lia, &[(37, 41, 0)], &[1.0])]
#[case::two_equal(Rule::Lia, &[EQUAL; 2], &[0.25; 2])]
#[case::eight_equal(Rule::Lia, &[EQUAL; 8], &[1.0 / 64.0; 8])]
#[case::windows_differ(Rule::Lia, &[(100, 100, 0), (300, 100, 0)], &[0.1875, 0.5625])]
#[case::rtts_differ(Rule::Lia, &[(100, 50, 0), (100, 200, 0)], &[0.64, 0.64])]
#[case::no_more_than_reno(Rule::Lia, &[(10, 10, 0), (1_000, 500, 0)], &[0.1111, 1.0])]
#[case::alone(Rule::Olia, &[(37, 41, 0)], &[1.0])]
#[case::two_equal(Rule::Olia, &[EQUAL; 2], &[0.25; 2])]
#[case::the_best_is_small(Rule::Olia, &[(100, 100, 2_000), (300, 100, 1_000)], &[0.5625, 0.0625])]
#[case::the_best_has_the_largest(Rule::Olia, &[(300, 100, 2_000), (100, 100, 1_000)], &[0.5625, 0.0625])]
#[case::equally_good(Rule::Olia, &[(100, 50, 1_000), (100, 200, 16_000)], &[0.64, 0.04])]
#[case::two_collected(Rule::Olia, &[(200, 100, 1_000), (100, 100, 3_000), (100, 100, 3_000)],
    &[0.25 - 1.0 / 3.0, 0.0625 + 1.0 / 6.0, 0.0625 + 1.0 / 6.0])]
fn growth_is_this_part_of_renos(
    #[case] rule: Rule,
    #[case] paths: &[(u64, u64, u64)],
    #[case] expected: &[f64],
) {
    let members: Vec<_> = paths.iter().map(|&path| Some(member(path))).collect();
    for (member, &expected) in members.iter().flatten().zip(expected) {
        close(rule.part(*member, &members) as f64 / ONE as f64, expected, 1e-4);
    }
}

// RFC 6356 §3: in balance, the windows of equal paths together are one TCP flow's, √(2/p) packets for a loss rate of p.
// A window w is in balance if part/w = p·w/2, so `part` has to be (w/Σw)².
#[rstest]
fn equal_paths_together_hold_the_window_of_one_flow(
    #[values(Rule::Lia, Rule::Olia)] rule: Rule,
    #[values(1, 2, 3, 8)] paths: usize,
) {
    let members = vec![Some(member(EQUAL)); paths];
    let part = rule.part(member(EQUAL), &members) as f64 / ONE as f64;
    let window_of_each = part.sqrt();
    close(window_of_each * paths as f64, 1.0, 1e-3);
}

fn join(name: &str, set: &CoupledPaths) -> Box<dyn CongestionController> {
    spec(name).build(&Path::default().coupled(set.clone()), Arc::default())
}

/// A path in virtual time; its RTT is 100 ms.
struct Driven {
    controller: Box<dyn CongestionController>,
    now: Timestamp,
}

impl Driven {
    fn new(controller: Box<dyn CongestionController>) -> Self {
        let now = Timestamp::ZERO;
        Self { controller, now }
    }

    /// A full window, acknowledged at once.
    fn round(&mut self) {
        let (sent, window) = (self.now, self.controller.window());
        self.controller.on_sent(&Sent::new(sent, window));
        self.now = self.now + MS * 100;
        let packets = u32::try_from(window.as_u64() / MTU).unwrap();
        let acked = [Acked::new(sent, window, packets)];
        let frame = AckFrame::new(self.now, &acked, Bytes::ZERO);
        self.controller
            .on_ack_frame(&frame.with_smoothed_rtt(Some(MS * 100)));
    }

    fn lose(&mut self) {
        let signal = Signal::loss(Bytes::new(MTU));
        self.controller
            .on_congestion(&Congestion::new(self.now, self.now, signal));
    }

    fn window(&self) -> u64 {
        self.controller.window().as_u64()
    }

    /// Growth in `rounds` round trips, bytes.
    fn growth(&mut self, rounds: usize) -> u64 {
        let before = self.window();
        for _ in 0..rounds {
            self.round();
        }
        self.window() - before
    }

    /// A path in congestion avoidance.
    fn in_avoidance(controller: Box<dyn CongestionController>) -> Self {
        let mut path = Self::new(controller);
        path.growth(5);
        path.lose();
        path.growth(2);
        path
    }
}

#[rstest]
fn a_path_alone_is_reno(#[values("lia", "olia")] name: &str) {
    let reno = trace(&spec("reno"), Demand::Endless);
    assert_eq!(trace(&spec(name), Demand::Endless), reno, "without a set");
    let set = CoupledPaths::default();
    let [mut coupled, mut reno] = [join(name, &set), join("reno", &set)].map(Driven::new);
    for round in 0..200 {
        coupled.round();
        reno.round();
        if round % 37 == 5 {
            coupled.lose();
            reno.lose();
        }
        assert_eq!(coupled.window(), reno.window(), "round {round}");
    }
}

#[rstest]
fn a_path_is_coupled_while_the_other_lives_and_a_copy_that_idles_is_no_path(
    #[values("lia", "olia")] name: &str,
) {
    let set = CoupledPaths::default();
    let mut first = Driven::in_avoidance(join(name, &set));
    let copy = first.controller.clone();
    let alone = first.growth(40);
    assert_eq!(alone, 40 * MTU, "Reno's growth");
    let mut second = Driven::in_avoidance(join(name, &set));
    while second.window() < first.window() {
        second.round();
    }
    drop(copy);
    let (mut of_first, mut of_second) = (0, 0);
    for _ in 0..40 {
        of_first += first.growth(1);
        of_second += second.growth(1);
    }
    // A quarter each.
    for growth in [of_first, of_second] {
        assert!((8..=12).contains(&(growth / MTU)), "{growth}");
    }
    drop(second);
    assert_eq!(first.growth(1_000) / MTU, 1_000, "the set has one path again");
}

// quinn and noq keep the controller of the path that a connection migrated from.
#[rstest]
fn a_path_that_has_been_silent_for_ten_seconds_does_not_count(#[values("lia", "olia")] name: &str) {
    let set = CoupledPaths::default();
    let mut silent = Driven::in_avoidance(join(name, &set));
    let mut path = Driven::in_avoidance(join(name, &set));
    assert!(path.growth(90) < 60 * MTU, "nine seconds");
    path.growth(30);
    assert_eq!(path.growth(40), 40 * MTU, "alone");
    silent.round();
    assert!(path.growth(40) < 30 * MTU, "it sends again");
}

/// Number of paths that count, if all are equal: each has the factor 1/n² of RFC 6356.
fn count(path: &mut Membership, at_ms: u64) -> i64 {
    let factor = path.update(member(EQUAL), Timestamp::from_nanos(at_ms * 1_000_000), Rule::Lia);
    ((ONE + factor / 2) / factor).isqrt()
}

#[test]
fn neither_a_late_copy_nor_a_path_after_a_pause_takes_the_others_for_silent() {
    let mut first = Membership::new(CoupledPaths::default());
    assert_eq!(count(&mut first, 60_000), 1);
    let mut copy = first.clone();
    assert_eq!(count(&mut copy, 60_000), 2, "a copy made after a minute");
    assert_eq!(count(&mut first, 60_050), 2);
    assert_eq!(count(&mut copy, 100_000), 2, "the copy itself paused");
}

#[test]
fn a_path_is_silent_after_ten_seconds_however_many_others_there_are() {
    let set = CoupledPaths::default();
    let mut paths: Vec<_> = (0..5).map(|_| Membership::new(set.clone())).collect();
    for (path, expected) in paths.iter_mut().zip(1..) {
        assert_eq!(count(path, 0), expected);
    }
    let mut counts = Vec::new();
    for at_ms in (100..12_000).step_by(100) {
        for path in &mut paths[1..] {
            counts.push((at_ms, count(path, at_ms)));
        }
    }
    let silent = counts.iter().find(|(_, count)| *count < 5).unwrap();
    assert!((9_900..=10_500).contains(&silent.0), "{silent:?}");
    assert_eq!(counts.last().unwrap().1, 4);
    let last = paths.last_mut().unwrap();
    let alone = (12_100..30_000)
        .step_by(100)
        .find(|&at_ms| count(last, at_ms) == 1);
    assert!(
        alone.is_some_and(|at_ms| (20_000..27_000).contains(&at_ms)),
        "{alone:?}"
    );
}

#[test]
fn the_factor_of_video_is_that_of_lia_and_one_for_a_path_alone() {
    let set = CoupledPaths::default();
    let mut cores = [(); 2].map(|()| {
        let mut core = Core::sample(120_000, 100, 100);
        core.membership = Some(Membership::new(set.clone()));
        core
    });
    let parts: Vec<f64> = [0, 1, 0].map(|path| growth_factor(&mut cores[path])).into();
    assert_eq!(parts, [1.0, 0.25, 0.25]);
    close(growth_factor(&mut Core::sample(120_000, 100, 100)), 1.0, 1e-9);
}

#[rstest]
fn a_path_beyond_the_eighth_grows_as_if_it_were_alone(#[values("lia", "olia")] name: &str) {
    let set = CoupledPaths::default();
    let mut paths: Vec<_> = (0..9).map(|_| Driven::in_avoidance(join(name, &set))).collect();
    let mut ninth = paths.pop().unwrap();
    assert_eq!(ninth.growth(40), 40 * MTU);
    assert!(paths[0].growth(40) < 10 * MTU);
}

#[test]
fn the_largest_window_of_olia_shrinks_if_another_path_is_better() {
    let set = CoupledPaths::default();
    let mut better = Membership::new(set.clone());
    for _ in 0..2 {
        let small = member((95, 100, 8_000_000));
        let _ = better.update(small, Timestamp::ZERO, Rule::Olia);
    }
    let mut core = Core::sample(120_000, 100, 100);
    core.membership = Some(Membership::new(set));
    let mut olia = Coupled::new(Rule::Olia);
    // (120/215)² − 1/2 = −0.188: a packet less for 5.3 windows.
    let batch = Batch::sample(2_000, 100, false).with_allowance(120_000);
    let windows: Vec<u64> = (0..6)
        .map(|_| {
            olia.on_batch(&mut core, &batch);
            core.window()
        })
        .collect();
    assert_eq!(windows, [120_000, 120_000, 120_000, 120_000, 120_000, 118_800]);
    assert_eq!(olia.on_congestion(&mut core, &loss()).unwrap().window, 59_400);
}

#[test]
fn bytes_between_losses_are_the_larger_of_the_last_two_counts() {
    let set = CoupledPaths::default();
    let mut core = Core::sample(120_000, 100, 100);
    core.membership = Some(Membership::new(set.clone()));
    let mut olia = Coupled::new(Rule::Olia);
    let between = || set.0.lock().unwrap()[0].unwrap().between;
    let mut acknowledge = |core: &mut Core, packets: u64, loses: bool| {
        for _ in 0..packets {
            olia.watch_startup(core, &Batch::sample(2_000, 100, false));
        }
        if loses {
            olia.on_congestion(core, &loss());
        }
    };
    for (packets, loses, expected) in [
        (5, false, 5),
        (2, true, 7),
        (3, false, 7),
        (6, false, 9),
        (0, true, 9),
        (1, true, 1),
    ] {
        acknowledge(&mut core, packets, loses);
        assert_eq!(between(), expected * MTU);
    }
}

#[test]
fn a_copy_takes_a_place_of_its_own_when_it_reports() {
    let set = CoupledPaths::default();
    let places = || {
        set.0
            .lock()
            .unwrap()
            .map(|member| member.map(|member| member.window / 1_000))
    };
    let mut path = Membership::new(set.clone());
    let _ = path.update(member((1, 100, 0)), Timestamp::ZERO, Rule::Lia);
    drop(path.clone());
    assert_eq!(places()[..2], [Some(1), None]);
    let mut copy = path.clone();
    let _ = copy.update(member((2, 100, 0)), Timestamp::ZERO, Rule::Lia);
    assert_eq!(places()[..2], [Some(1), Some(2)]);
    drop(path);
    assert_eq!(places()[..2], [None, Some(2)]);
}
