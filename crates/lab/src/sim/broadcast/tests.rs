//! Broadcasts over simulated paths.

use playrate_media::{FrameTrace, TraceSource};
use playrate_netsim::{Loss, PathConfig, QueueLimit, Seed};
use rstest::rstest;

use super::*;
use crate::sim::run;

/// Frames of this many seconds at `mbps`, 25 a second. A key frame every second is six times as large as the others.
fn frames(mbps: u64, seconds: u32) -> ServedTitle {
    let lines = (0..25 * seconds).map(|number| {
        let (size, flag) = if number.is_multiple_of(25) {
            (6_000, 'K')
        } else {
            (1_000, '_')
        };
        format!("{:.2},{size},{flag}\n", f64::from(number) / 25.0)
    });
    let trace: FrameTrace = lines.collect::<String>().parse().unwrap();
    let trace = trace.scale_to_rate(Bitrate::from_mbps(mbps)).unwrap();
    ServedTitle::trace("encoder", TraceSource::new(&trace))
}

/// A broadcast over quinn of an encoder with this rule and up to `mbps`, over 5 Mbit/s and 100 ms with half a second of
/// queue. No error ends it.
fn broadcast(mbps: u64, rate: &str) -> SimulatedBroadcast {
    reproduced(&setup(mbps, rate))
}

/// The setup of [`broadcast`] under `controller`, over noq.
fn over_noq(controller: &str, mbps: u64, rate: &str) -> Setup {
    let mut setup = setup(mbps, rate);
    let broadcast = &mut setup.broadcasts[0];
    (broadcast.controller, broadcast.stack) = (controller.parse().unwrap(), Stack::Noq);
    setup
}

/// The broadcast of `setup`, which no error ends. Two runs have the same packets.
fn reproduced(setup: &Setup) -> SimulatedBroadcast {
    let first = run(setup).unwrap();
    assert_eq!(first.wire_hash, run(setup).unwrap().wire_hash);
    let broadcast = first.broadcasts.into_iter().next().unwrap();
    assert_eq!(
        (broadcast.error.as_deref(), broadcast.joined),
        (None, Duration::from_secs(1))
    );
    broadcast
}

/// The setup of [`broadcast`].
fn setup(mbps: u64, rate: &str) -> Setup {
    let path = PathConfig::bottleneck(
        Bitrate::from_mbps(5),
        Duration::from_millis(100),
        QueueLimit::Bytes(Bytes::new(312_500)),
        Loss::None,
    );
    let mut setup = Setup::new(path, Seed::new(1)).without_taps();
    setup.broadcasts.push(Broadcast {
        controller: "video".parse().unwrap(),
        stack: Stack::Quinn,
        title: frames(mbps, 30),
        encoder: Encoder {
            rate: rate.parse().unwrap(),
            least: Bitrate::from_kbps(300),
            update_every: Duration::from_millis(500),
            latency_bound: Duration::from_millis(500),
        },
        joins: Duration::from_secs(1),
        leaves_after: None,
        access: Access::default(),
    });
    setup
}

#[test]
fn a_receiver_that_leaves_early_stops_the_broadcast_without_an_error() {
    let mut setup = setup(2, "constant");
    assert!(!broadcast(2, "constant").stopped);
    setup.broadcasts[0].leaves_after = Some(Duration::from_secs(10));
    let left = run(&setup).unwrap().broadcasts.remove(0);
    assert_eq!((left.stopped, left.error), (true, None));
    assert_eq!(left.lasted, Duration::from_secs(10));
}

#[rstest]
#[case(Stack::Quinn)]
#[case(Stack::Noq)]
fn a_broadcast_that_loses_its_connection_ends_with_the_reason(#[case] stack: Stack) {
    let mut setup = setup(2, "constant");
    setup.broadcasts[0].stack = stack;
    for link in [&mut setup.path.forward, &mut setup.path.backward] {
        link.delay = "50ms,down@10s".parse().unwrap();
    }
    // Longer than the idle timeout of 30 s after that.
    setup.broadcasts[0].title = frames(2, 60);
    let lost = run(&setup).unwrap().broadcasts.remove(0);
    let reason = lost.error.unwrap_or_default();
    assert!(reason.contains("timed out"), "{reason:?}");
}

#[test]
fn every_frame_of_a_slow_encoder_is_on_time() {
    let broadcast = broadcast(2, "constant");
    let frames = broadcast.frames.unwrap();
    assert_eq!((frames.frames_made, frames.frames_arrived), (750, 750));
    assert!((frames.frames_on_time_share - 1.0).abs() < f64::EPSILON);
    // Half of the round trip and the transmission of 8 kB.
    assert!((0.05..0.1).contains(&frames.frame_latency_p50_s), "{frames:?}");
    assert!(
        (1_990_000..2_010_000).contains(&frames.encoded_rate_bps),
        "{frames:?}"
    );
    assert_eq!(broadcast.received.as_u64(), 7_500_000);
}

#[test]
fn the_newest_group_is_sent_first_and_late_groups_are_reset() {
    let frames = broadcast(10, "constant").frames.unwrap();
    assert!((200..400).contains(&frames.frames_arrived), "{frames:?}");
    // A group is reset after a second and a half. Without priority it would arrive until then.
    assert!(frames.frame_latency_max_s < 1.0, "{frames:?}");
}

#[test]
fn an_encoder_that_follows_the_window_stays_below_the_link() {
    let frames = broadcast(10, "0.9window").frames.unwrap();
    assert!(frames.frames_on_time_share > 0.9, "{frames:?}");
    assert!(
        (2_000_000..4_800_000).contains(&frames.encoded_rate_bps),
        "{frames:?}"
    );
}

#[test]
fn an_encoder_that_follows_the_estimate_approaches_the_link_from_below() {
    let frames = broadcast(10, "0.9estimate").frames.unwrap();
    assert!(frames.frames_on_time_share > 0.9, "{frames:?}");
    assert!(
        (2_000_000..4_800_000).contains(&frames.encoded_rate_bps),
        "{frames:?}"
    );
}

#[rstest]
#[case::noqs_own_by_its_capacity("noq-bbr3", "0.9capacity")]
#[case::noqs_own_by_our_estimate("noq-bbr3", "0.9estimate")]
#[case::a_spec("video", "0.9window")]
#[case::a_spec_by_its_capacity("video", "0.9capacity")]
fn an_encoder_over_noq_stays_below_the_link(#[case] controller: &str, #[case] rate: &str) {
    let broadcast = run(&over_noq(controller, 10, rate)).unwrap().broadcasts.remove(0);
    let frames = broadcast.frames.unwrap();
    assert!(frames.frames_on_time_share > 0.8, "{frames:?}");
    assert!(
        (2_000_000..4_800_000).contains(&frames.encoded_rate_bps),
        "{frames:?}"
    );
}

/// Not `noq-bbr3`: noq draws its times of probing from the operating system, without a seed.
#[rstest]
fn a_broadcast_over_noq_has_the_same_packets_each_time(
    #[values("noq-newreno", "noq-cubic", "cubic+start=hystartpp", "bbr", "copa", "video")] controller: &str,
) {
    let broadcast = reproduced(&over_noq(controller, 10, "0.9window"));
    assert!(broadcast.frames.unwrap().frames_arrived > 100);
}

#[test]
fn a_slow_encoder_has_the_same_frames_over_noq_as_over_quinn() {
    let (quinn, noq) = (
        broadcast(2, "constant"),
        reproduced(&over_noq("video", 2, "constant")),
    );
    let (frames, others) = (quinn.frames.unwrap(), noq.frames.unwrap());
    assert_eq!(
        (frames.frames_arrived, frames.encoded_rate_bps),
        (others.frames_arrived, others.encoded_rate_bps)
    );
    assert!((frames.frame_latency_p50_s - others.frame_latency_p50_s).abs() < 0.01);
    let (totals, others) = (quinn.totals.unwrap(), noq.totals.unwrap());
    let ratio = others.udp_tx.bytes as f64 / totals.udp_tx.bytes as f64;
    assert!((0.95..1.05).contains(&ratio), "{totals:?} {others:?}");
    let close = |time: Duration, other: Duration| time.abs_diff(other) < Duration::from_millis(5);
    assert!(close(totals.path.min_rtt, others.path.min_rtt), "{others:?}");
    assert!(close(totals.path.rtt, others.path.rtt), "{others:?}");
}

#[test]
fn losses_over_noq_are_counted_in_packets_and_bytes() {
    let mut setup = over_noq("video", 2, "constant");
    setup.path.forward.loss = Loss::Bernoulli("2%".parse().unwrap());
    let lost = reproduced(&setup).totals.unwrap().path;
    let packets = lost.sent_packets / 50;
    assert!(
        (packets / 2..packets * 2).contains(&lost.lost_packets),
        "{lost:?}"
    );
    let mean = lost.lost_bytes / lost.lost_packets;
    assert!((500..1_452).contains(&mean), "{lost:?}");
}

#[rstest]
#[case("noq-bbr3", Stack::Quinn, "`encoder.stack = \"noq\"`")]
#[case("quinn-cubic", Stack::Noq, "`encoder.stack = \"quinn\"`")]
fn another_stacks_own_controller_is_refused(
    #[case] controller: &str,
    #[case] stack: Stack,
    #[case] expected: &str,
) {
    let mut setup = setup(2, "constant");
    let broadcast = &mut setup.broadcasts[0];
    (broadcast.controller, broadcast.stack) = (controller.parse().unwrap(), stack);
    let error = run(&setup).unwrap_err().to_string();
    assert!(error.contains(controller) && error.contains(expected), "{error}");
}
