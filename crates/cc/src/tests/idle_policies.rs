//! Vectors of the idle policies (mtu 1200, IW 12,000 B).

use playrate_units::Bytes;
use rstest::rstest;

use crate::ControllerSpec;
use crate::component::Reduction;
use crate::compose::Components;
use crate::entry::{Key, Make};
use crate::events::{Congestion, Sent, Signal};
use crate::idle::AnyIdlePolicy;
use crate::state::{Batch, Core};
use crate::tests::{MS_IN_NS as MS, MTU, at};

/// The idle policy of `reno+idle=TEXT`.
fn policy(text: &str) -> AnyIdlePolicy {
    let spec: ControllerSpec = format!("reno+idle={text}").parse().expect("a valid spec");
    let (entry, arguments) = spec.component(Key::Idle).expect("a composed controller");
    let mut components = Components::default();
    if let Make::Component(_, add) = entry.make {
        add(&mut components, arguments);
    }
    components.idle
}

/// Nothing in flight; last sent and acknowledged at 2 s; RTT 100 ms, RTO 250 ms.
fn core(window: u64, ssthresh: Option<u64>) -> Core {
    let mut core = Core::sample(window, 100, 100);
    core.ssthresh = ssthresh;
    core.last_sent = Some(at(2_000));
    core.last_acked = Some(at(2_000));
    assert_eq!(core.rtt.rto_ns(), Some(250 * MS));
    core
}

fn send(policy: &mut AnyIdlePolicy, core: &mut Core, ms: u64) -> bool {
    let now = at(ms);
    let restarts = policy.on_sent(core, &Sent::new(now, Bytes::new(MTU)));
    core.last_sent = Some(now);
    restarts
}

/// An ACK batch of a limited sender that acknowledges all of `flight` bytes in flight.
fn batch(ms: u64, flight: u64, new_round: bool) -> Batch {
    Batch {
        now: at(ms),
        newest_sent: at(ms.saturating_sub(100)),
        acked: flight,
        packets: 2,
        allowance: flight,
        in_flight: 0,
        limited: true,
        rtt_ns: Some(100 * MS),
        new_round,
        after_recovery: true,
    }
}

fn lose(ms: u64, bytes: u64) -> Congestion {
    let signal = Signal::loss(Bytes::new(bytes));
    Congestion::new(at(ms), at(ms.saturating_sub(100)), signal)
}

/// An algorithm's reduction to this many bytes.
fn reduction(bytes: u64) -> Reduction {
    Reduction {
        window: bytes,
        ssthresh: bytes,
    }
}

/// Window and threshold, bytes.
type Windows = (u64, Option<u64>);

/// The threshold that no window reaches (Linux `TCP_INFINITE_SSTHRESH`).
const NO_THRESHOLD: Windows = (12_000, Some(i32::MAX as u64));
const USUAL: Windows = (120_000, Some(60_000));

#[rstest]
// RFC 5681 §4.1: after more than an RTO cwnd = min(IW, cwnd).
#[case::rfc5681_waits_an_rto("rfc5681", 250, USUAL, USUAL)]
#[case::rfc5681_restarts_after_it("rfc5681", 251, USUAL, (12_000, Some(60_000)))]
#[case::rfc5681_restarts_after_a_minute("rfc5681", 60_000, USUAL, (12_000, Some(60_000)))]
#[case::rfc5681_raises_no_window("rfc5681", 60_000, (7_000, Some(60_000)), (7_000, Some(60_000)))]
// RFC 6298 §2.4 requires 1 s; Linux uses 200 ms.
#[case::the_smallest_rto_is_a_parameter("rfc5681(min_rto=1s)", 1_000, (120_000, None), (120_000, None))]
#[case::and_is_waited_for("rfc5681(min_rto=1s)", 1_001, (120_000, None), (12_000, None))]
// RFC 2861 as in Linux `tcp_cwnd_restart`: half for each RTO, and ssthresh at least ¾ of the window before.
#[case::cwv_waits_an_rto("cwv", 250, USUAL, USUAL)]
#[case::cwv_halves_for_an_rto("cwv", 251, USUAL, (60_000, Some(90_000)))]
#[case::cwv_halves_once_in_two("cwv", 500, USUAL, (60_000, Some(90_000)))]
#[case::cwv_halves_three_times_in_three_and_a_half("cwv", 875, USUAL, (15_000, Some(90_000)))]
#[case::cwv_stops_at_the_initial_window("cwv", 1_250, USUAL, (12_000, Some(90_000)))]
#[case::cwv_survives_an_hour("cwv", 3_600_000, USUAL, (12_000, Some(90_000)))]
// Linux `tcp_current_ssthresh`: max(ssthresh, ¾ cwnd) of an infinite ssthresh is infinite.
#[case::cwv_leaves_an_infinite_ssthresh_alone("cwv", 58_000, (120_000, None), (12_000, None))]
// The retraction of Yanev et al. 2022: their control lost its ssthresh over a pause.
#[case::cwv_can_forget_it("cwv(forget_ssthresh=on)", 58_000, USUAL, NO_THRESHOLD)]
// Yanev et al. 2022 §2: cwnd 120,000 → 12,000, ssthresh 120,000.
#[case::new_cwv_restart_waits_an_rto("new-cwv-restart", 250, USUAL, USUAL)]
#[case::new_cwv_restart_remembers_the_window("new-cwv-restart", 251, USUAL, (12_000, Some(120_000)))]
#[case::new_cwv_restart_does_not_end_the_first_slow_start("new-cwv-restart", 58_000, (12_000, None), (12_000, None))]
#[case::a_short_burst_lowers_ssthresh("new-cwv-restart", 58_000, (24_000, Some(120_000)), (12_000, Some(24_000)))]
#[case::unless_the_higher_one_is_kept(
    "new-cwv-restart(keep_higher=on)", 58_000, (24_000, Some(120_000)), (12_000, Some(120_000))
)]
fn a_silence_costs_what_the_policy_says(
    #[case] text: &str,
    #[case] quiet_ms: u64,
    #[case] before: Windows,
    #[case] after: Windows,
) {
    let (mut policy, mut core) = (policy(text), core(before.0, before.1));
    assert_eq!(send(&mut policy, &mut core, 2_000 + quiet_ms), after != before);
    assert_eq!((core.window(), core.ssthresh), after);
}

// RFC 2861 §3.1, Linux `tcp_cwnd_application_limited`: (cwnd + W_used)/2 after a whole RTO, W_used at least
// IW.
#[rstest]
#[case(40_000, 80_000)]
#[case(100_000, 110_000)]
#[case(2_400, 66_000)]
#[case(120_000, 120_000)]
fn cwv_moves_an_unused_window_halfway_to_what_was_used(#[case] used: u64, #[case] window: u64) {
    let (mut policy, mut core) = (policy("cwv"), core(120_000, Some(60_000)));
    // No RTO yet.
    for ms in [2_000, 2_100, 2_200] {
        assert!(!policy.on_batch(&mut core, &mut batch(ms, used, true)));
    }
    assert_eq!(core.window(), 120_000);
    let mut last = batch(2_250, 2_400, true);
    assert_eq!(policy.on_batch(&mut core, &mut last), window != 120_000);
    assert_eq!(core.window(), window);
    let ssthresh = if window == 120_000 { 60_000 } else { 90_000 };
    assert_eq!(core.ssthresh, Some(ssthresh));
}

#[test]
fn cwv_waits_a_whole_rto_from_when_the_window_was_last_filled() {
    let (mut policy, mut core) = (policy("cwv"), core(120_000, Some(60_000)));
    policy.on_batch(&mut core, &mut batch(2_000, 40_000, true));
    let mut filled = batch(2_200, 120_000, true);
    filled.limited = false;
    assert!(!policy.on_batch(&mut core, &mut filled));
    assert!(!policy.on_batch(&mut core, &mut batch(2_449, 40_000, true)));
    assert_eq!(core.window(), 120_000);
    assert!(policy.on_batch(&mut core, &mut batch(2_450, 40_000, true)));
    assert_eq!(core.window(), 80_000);
}

// Linux `tcp_is_cwnd_limited`.
#[rstest]
#[case(70_000, 120_000)]
#[case(50_000, 85_000)]
fn in_slow_start_cwv_takes_half_a_window_for_all_of_it(#[case] used: u64, #[case] window: u64) {
    let (mut policy, mut core) = (policy("cwv"), core(120_000, None));
    policy.on_batch(&mut core, &mut batch(2_000, used, true));
    policy.on_batch(&mut core, &mut batch(2_300, used, true));
    assert_eq!(core.window(), window);
}

/// `new-cwv` with a complete sample of `pipe_ack` bytes at 2.1 s.
fn sampled(text: &str, core: &mut Core, pipe_ack: u64) -> AnyIdlePolicy {
    let mut policy = policy(text);
    policy.on_batch(core, &mut batch(2_000, pipe_ack, true));
    policy.on_batch(core, &mut batch(2_100, 2_400, true));
    policy
}

fn is_validated(policy: &AnyIdlePolicy, core: &Core, ms: u64) -> bool {
    policy.window_in_use(core, at(ms)).is_none()
}

// RFC 7661 §4.3: pipeACK ≥ ½ cwnd; cwnd 120,000.
#[rstest]
#[case("new-cwv", Some(60_000), 60_000, true)]
#[case("new-cwv", Some(60_000), 59_999, false)]
// Apple's stack: a quarter in slow start only.
#[case("new-cwv(quarter=on)", None, 30_000, true)]
#[case("new-cwv(quarter=on)", None, 29_999, false)]
#[case("new-cwv(quarter=on)", Some(60_000), 59_999, false)]
fn half_a_window_in_use_validates_it(
    #[case] text: &str,
    #[case] ssthresh: Option<u64>,
    #[case] pipe_ack: u64,
    #[case] validated: bool,
) {
    let mut core = core(120_000, ssthresh);
    let policy = sampled(text, &mut core, pipe_ack);
    assert_eq!(is_validated(&policy, &core, 2_100), validated);
}

// RFC 7661 §4.2: undefined pipeACK means validated; then samples expire after max(3·RTT, 1 s).
#[test]
fn the_window_is_validated_until_a_sample_says_otherwise_or_all_have_expired() {
    let mut core = core(120_000, Some(60_000));
    assert!(is_validated(&policy("new-cwv"), &core, 2_000));
    let policy = sampled("new-cwv", &mut core, 60_000);
    assert!(is_validated(&policy, &core, 2_999));
    assert!(!is_validated(&policy, &core, 3_100));
}

// RFC 7661 §4.4: the window is kept, and grows only if it limits the sender.
#[test]
fn in_the_non_validated_phase_only_a_full_window_grows() {
    let mut core = core(120_000, Some(60_000));
    let mut policy = sampled("new-cwv", &mut core, 30_000);
    let mut limited = batch(2_200, 30_000, true);
    policy.on_batch(&mut core, &mut limited);
    assert_eq!(limited.allowance, 0);
    let mut full = batch(2_200, 30_000, true);
    full.limited = false;
    policy.on_batch(&mut core, &mut full);
    assert_eq!(full.allowance, 30_000);
    assert_eq!(core.window(), 120_000);
}

// RFC 7661 §4.4.1: pipeACK 30,000, R 2,400; LossFlightSize 24,000 → 15,000 and 13,800; 48,000 → 24,000 and
// 22,800.
#[rstest]
#[case("new-cwv", 24_000, (15_000, 15_000), 13_800)]
#[case("new-cwv", 48_000, (24_000, 24_000), 22_800)]
#[case("new-cwv(ssthresh=law)", 24_000, (15_000, 60_000), 13_800)]
fn a_loss_in_the_non_validated_phase_counts_against_what_was_in_use(
    #[case] text: &str,
    #[case] flight: u64,
    #[case] (window, ssthresh): (u64, u64),
    #[case] window_after: u64,
) {
    let mut core = core(120_000, Some(60_000));
    let mut policy = sampled(text, &mut core, 30_000);
    core.in_flight = flight;
    let in_use = policy.window_in_use(&core, at(2_100));
    assert_eq!(in_use, Some(flight.max(30_000)));
    let algorithm = reduction(60_000);
    let reduction = policy.on_congestion(&lose(2_100, 1_200), in_use, algorithm);
    assert_eq!(reduction, Reduction { window, ssthresh });
    core.set_window(reduction.window);
    core.ssthresh = Some(reduction.ssthresh);
    policy.on_further_congestion(&mut core, &lose(2_150, 1_200));
    policy.on_recovery_end(&mut core);
    assert_eq!(core.window(), window_after);
    let ssthresh = if text == "new-cwv" { window_after } else { ssthresh };
    assert_eq!(core.ssthresh, Some(ssthresh));
    assert!(is_validated(&policy, &core, 2_300), "pipeACK is undefined");
}

#[test]
fn a_loss_never_leaves_more_than_the_algorithm_would() {
    let mut core = core(120_000, Some(60_000));
    let mut policy = sampled("new-cwv", &mut core, 30_000);
    let algorithm = reduction(10_000);
    let reduction = policy.on_congestion(&lose(2_100, 1_200), Some(30_000), algorithm);
    assert_eq!(reduction, algorithm);
}

#[test]
fn a_loss_in_the_validated_phase_is_the_algorithms() {
    let mut core = core(120_000, Some(60_000));
    let mut policy = sampled("new-cwv", &mut core, 100_000);
    let algorithm = reduction(60_000);
    let in_use = policy.window_in_use(&core, at(2_100));
    let reduction = policy.on_congestion(&lose(2_100, 1_200), in_use, algorithm);
    assert_eq!(reduction, algorithm);
    core.set_window(60_000);
    policy.on_recovery_end(&mut core);
    assert_eq!(core.window(), 60_000);
}

// RFC 7661 §4.4.1: everything in use was lost and resent: the window is the smallest one.
#[test]
fn losing_all_that_was_in_use_leaves_two_packets() {
    let mut core = core(120_000, Some(60_000));
    let mut policy = sampled("new-cwv", &mut core, 12_000);
    let algorithm = reduction(60_000);
    policy.on_congestion(&lose(2_100, 12_000), Some(12_000), algorithm);
    policy.on_recovery_end(&mut core);
    assert_eq!(core.window(), 2_400);
}

// RFC 7661 §4.4.3: cwnd 120,000, ssthresh 60,000: 90,000 and 60,000 after 5 min, 30,000 after 10; never below
// IW.
#[rstest]
#[case("new-cwv", 299, 120_000, 60_000)]
#[case("new-cwv", 300, 60_000, 90_000)]
#[case("new-cwv", 599, 60_000, 90_000)]
#[case("new-cwv", 600, 30_000, 90_000)]
#[case("new-cwv", 36_000, 12_000, 90_000)]
#[case("new-cwv(nvp=1min)", 60, 60_000, 90_000)]
fn every_non_validated_period_gives_up_half_of_the_window(
    #[case] text: &str,
    #[case] idle_s: u64,
    #[case] window: u64,
    #[case] ssthresh: u64,
) {
    let mut core = core(120_000, Some(60_000));
    let mut policy = sampled(text, &mut core, 60_000);
    let restarts = send(&mut policy, &mut core, 2_100 + idle_s * 1_000);
    assert_eq!(restarts, window != 120_000);
    assert_eq!((core.window(), core.ssthresh), (window, Some(ssthresh)));
}

// As above: the next period starts at each halving, not at the time of the burst that shows it.
#[test]
fn the_next_period_begins_where_the_last_one_ended() {
    let mut core = core(120_000, Some(60_000));
    let mut policy = sampled("new-cwv", &mut core, 60_000);
    assert!(send(&mut policy, &mut core, 2_100 + 500_000));
    assert!(!send(&mut policy, &mut core, 2_100 + 599_000));
    assert!(send(&mut policy, &mut core, 2_100 + 600_000));
    assert_eq!(core.window(), 30_000);
}

#[test]
fn a_sender_that_never_pauses_but_uses_little_gives_up_half_as_well() {
    let mut core = core(120_000, Some(60_000));
    let mut policy = sampled("new-cwv", &mut core, 60_000);
    let mut lowered = Vec::new();
    for second in 3..=640 {
        if policy.on_batch(&mut core, &mut batch(second * 1_000, 2_400, true)) {
            lowered.push(core.window());
        }
    }
    // At 30,000 B pipeACK is still below half.
    assert_eq!(lowered, [60_000, 30_000]);
}

#[test]
fn persistent_congestion_makes_pipe_ack_undefined() {
    let mut core = core(120_000, Some(60_000));
    let mut policy = sampled("new-cwv", &mut core, 30_000);
    policy.on_persistent(&mut core);
    assert!(is_validated(&policy, &core, 2_200));
}

// A round trip's sample belongs to the time of its last acknowledgement, so it expires during a pause before the next.
#[test]
fn a_burst_before_a_pause_does_not_validate_the_window_after_it() {
    let mut core = core(120_000, Some(60_000));
    let mut policy = policy("new-cwv");
    policy.on_batch(&mut core, &mut batch(2_000, 2_400, true));
    policy.on_batch(&mut core, &mut batch(2_100, 2_400, true));
    policy.on_batch(&mut core, &mut batch(2_110, 100_000, false));
    policy.on_batch(&mut core, &mut batch(12_000, 2_400, true));
    assert!(!is_validated(&policy, &core, 12_000));
}
