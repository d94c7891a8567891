//! Broadcasts over simulated paths.

use playrate_media::{FrameTrace, TraceSource};
use playrate_netsim::{Loss, PathConfig, QueueLimit, Seed};

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

/// A broadcast of an encoder with this rule and up to `mbps`, over 5 Mbit/s and 100 ms with half a second of queue. No
/// error ends it.
fn broadcast(mbps: u64, rate: &str) -> SimulatedBroadcast {
    let setup = setup(mbps, rate);
    let first = run(&setup).unwrap();
    assert_eq!(first.wire_hash, run(&setup).unwrap().wire_hash);
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

#[test]
fn a_broadcast_that_loses_its_connection_ends_with_the_reason() {
    let mut setup = setup(2, "constant");
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
