//! Tests that call paths as a stack would, without a QUIC stack.

use std::sync::Arc;
use std::time::{Duration, Instant};

use playrate_cc::events::{Acked, Congestion, Sent, Signal};
use playrate_cc::{Phase, Reason, Timestamp};
use playrate_scripted::{Event, Script, watched};
use playrate_units::{Bitrate, Bytes};
use proptest::prelude::*;

use crate::telemetry::Monitor;
use crate::{AckRequest, AckedPacket, BaselineMetrics, CongestionReport, QuicStack};

mod choice;
mod switching;

type Control = crate::ConnectionController<TestStack>;
type Choice = crate::ControllerChoice<TestStack>;
type Path = crate::PathController<TestStack>;

/// An arbitrary origin for instants.
#[expect(
    clippy::disallowed_methods,
    reason = "only differences between instants matter here"
)]
pub(crate) fn origin() -> Instant {
    Instant::now()
}

/// A stack without connections.
#[derive(Clone, Copy, Debug, PartialEq)]
struct TestStack;

/// The stack's own controller; the test sets the values that it reports.
#[derive(Clone)]
struct Own {
    window: Bytes,
    metrics: BaselineMetrics,
}

impl QuicStack for TestStack {
    type TransportConfig = Option<AckRequest>;
    type Connection = ();
    /// Smoothed RTT; the smallest is half as long.
    type Rtt = Duration;
    type Baseline = &'static str;
    type BaselineController = Own;

    const BASELINES: &'static [&'static str] = &["stack-own", "stack-other"];
    const IS_STRICT: bool = true;

    fn name(baseline: &'static str) -> &'static str {
        baseline
    }
    fn build(_: &'static str, _: Instant, mtu: u16) -> Own {
        Own {
            window: Bytes::new(10 * u64::from(mtu)),
            metrics: BaselineMetrics::default(),
        }
    }
    fn window(controller: &Own) -> Bytes {
        controller.window
    }
    fn initial_window(controller: &Own) -> Bytes {
        controller.window
    }
    fn metrics(controller: &Own) -> BaselineMetrics {
        controller.metrics
    }
    fn smoothed_and_min(rtt: &Duration) -> (Duration, Duration) {
        (*rtt, *rtt / 2)
    }
    fn install(_: Control, _: &mut Option<AckRequest>) {}
    fn request_acks(request: AckRequest, transport: &mut Option<AckRequest>) {
        *transport = Some(request);
    }
    fn synchronize((): &()) {}
}

/// A connection under a scripted controller.
fn scripted(script: &Script) -> Control {
    Control::new(Choice::from_registry(&script.registry(), "scripted").unwrap())
}

/// A path of `control` that begins at the returned time.
fn path(control: Control) -> (Path, Instant) {
    let built = origin();
    (Path::new(Arc::new(control), built, 1_200), built)
}

/// A path under a scripted controller, which has been built.
fn by_hand(script: &Script) -> (Path, Instant) {
    let built = path(scripted(script));
    script.drain();
    built
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn loss(now: Instant, newest_sent: Instant, bytes: u64) -> CongestionReport {
    let signal = Signal::loss(Bytes::new(bytes));
    CongestionReport {
        now,
        newest_sent,
        signal,
    }
}

fn packet(sent: Instant, acked: Instant, bytes: u64) -> AckedPacket {
    AckedPacket {
        sent,
        acked,
        bytes: Bytes::new(bytes),
        app_limited: false,
    }
}

#[test]
fn time_counts_from_the_moment_the_controller_was_built() {
    let script = Script::new(12_000);
    let (mut path, built) = by_hand(&script);
    path.on_sent(built + Duration::from_nanos(1_234_567_891), Bytes::new(1_200));
    path.on_congestion(&loss(built + ms(3_000), built + ms(2_000), 2_400));
    let expected = [
        Event::Sent(Sent::new(Timestamp::from_nanos(1_234_567_891), Bytes::new(1_200))),
        Event::Congestion(Congestion::new(
            Timestamp::from_millis(3_000),
            Timestamp::from_millis(2_000),
            Signal::loss(Bytes::new(2_400)),
        )),
    ];
    assert_eq!(script.drain(), expected);
}

#[test]
fn bursts_that_a_controller_does_not_need_are_withheld_until_congestion() {
    let mut script = Script::new(50_000);
    script.every_burst = false;
    let (mut path, built) = by_hand(&script);
    let at = |millis| built + ms(millis);
    let mut sent = |call: &dyn Fn(&mut Path)| -> Vec<_> {
        call(&mut path);
        let events = script.drain().into_iter();
        events
            .filter_map(|event| match event {
                Event::Sent(sent) => Some(sent.now.as_nanos() / 1_000_000),
                _ => None,
            })
            .collect()
    };
    let leave = |millis, bytes| move |p: &mut Path| p.on_sent(at(millis), Bytes::new(bytes));
    let end_acks = |millis, left| move |p: &mut Path| p.on_end_acks(at(millis), Bytes::new(left), false);
    let lose = |millis, bytes| move |p: &mut Path| p.on_congestion(&loss(at(millis), at(1), bytes));
    assert_eq!(sent(&leave(1, 2_400)), [1], "nothing is in flight");
    assert_eq!(sent(&leave(2, 2_400)), [2], "as far as is known");
    assert_eq!(sent(&end_acks(5, 4_000)), [0; 0]);
    assert_eq!(sent(&leave(6, 1_200)), [0; 0]);
    assert_eq!(sent(&leave(7, 1_200)), [0; 0]);
    assert_eq!(sent(&lose(8, 1_000)), [7], "the last one, before the event");
    assert_eq!(sent(&lose(9, 1_000)), [0; 0], "it was reported before");
    assert_eq!(sent(&leave(10, 1_200)), [0; 0]);
    assert_eq!(sent(&lose(11, 2_000)), [10]);
    assert_eq!(sent(&leave(12, 1_200)), [12], "all of it is lost");
    assert_eq!(sent(&end_acks(13, 1_200)), [0; 0]);
    assert_eq!(sent(&leave(14, 1_200)), [0; 0]);
    assert_eq!(sent(&end_acks(15, 1_200)), [0; 0]);
    assert_eq!(sent(&lose(16, 0)), [0; 0], "the frame has outdated it");
}

proptest! {
    #[test]
    fn the_window_lets_a_packet_out_and_stays_below_4_gib(wanted: u64, mtu in 1_200_u16..) {
        let script = Script::new(12_000);
        let (mut path, _) = by_hand(&script);
        script.set_window(wanted);
        path.on_mtu_update(mtu);
        for window in [path.window(), path.initial_window()] {
            let window = window.as_u64();
            prop_assert!(window > u64::from(mtu) && u32::try_from(window).is_ok());
            if wanted > u64::from(mtu) && u32::try_from(wanted).is_ok() {
                prop_assert_eq!(window, wanted);
            }
        }
    }
}

#[test]
fn the_window_follows_the_controller_after_every_kind_of_call_until_it_is_lifted() {
    let script = Script::new(12_000);
    let control = scripted(&script);
    let (mut path, built) = path(control.clone());
    let calls: [&dyn Fn(&mut Path); 4] = [
        &|p| p.on_sent(built, Bytes::new(1_200)),
        &|p| p.on_end_acks(built, Bytes::ZERO, false),
        &|p| p.on_congestion(&loss(built, built, 1_200)),
        &|p| p.on_mtu_update(1_400),
    ];
    for (call, window) in calls.into_iter().zip(20_000..) {
        script.set_window(window);
        call(&mut path);
        assert_eq!(path.window(), Bytes::new(window));
    }
    control.lift_window();
    assert_eq!(path.window(), Bytes::new(1 << 32));
}

#[test]
fn a_copy_goes_on_from_the_same_state_on_the_same_clock() {
    let script = Script::new(20_000);
    let (mut path, built) = by_hand(&script);
    path.on_mtu_update(1_400);
    let mut copy = path.clone();
    script.drain();
    assert_eq!(copy.window(), Bytes::new(20_000));
    copy.on_sent(built + ms(5), Bytes::new(1));
    let sent = Sent::new(Timestamp::from_millis(5), Bytes::new(1));
    assert_eq!(script.drain(), [Event::Sent(sent)]);
}

#[test]
fn a_copy_that_leaves_its_samples_to_the_original_records_none() {
    let monitor = Arc::new(Monitor::new(Duration::from_secs(1)));
    let control = scripted(&Script::new(20_000)).with_monitor(Arc::clone(&monitor));
    let (mut path, built) = path(control);
    let frame = |path: &mut Path, millis| {
        let now = built + ms(millis);
        path.on_ack(&packet(built, now, 1_200), &ms(50));
        path.on_end_acks(now, Bytes::ZERO, false);
    };
    frame(&mut path, 50);
    frame(&mut path, 60);
    let mut read = path.clone();
    read.leave_samples_to_original();
    drop(read);
    assert_eq!(monitor.latest().unwrap().at, ms(50));
    drop(path.clone());
    assert_eq!(monitor.latest().unwrap().at, ms(60), "any other copy does");
}

#[test]
fn a_frames_packets_are_one_run_if_they_left_together_under_the_same_limit() {
    let script = Script::new(12_000);
    let (mut path, built) = by_hand(&script);
    let (now, rtt) = (built + ms(50), ms(50));
    let mut limited = packet(built + ms(1), now, 700);
    limited.app_limited = true;
    for packet in [packet(built, now, 1_200), packet(built, now, 1_100)] {
        path.on_ack(&packet, &rtt);
    }
    path.on_ack(&packet(built + ms(1), now, 900), &rtt);
    path.on_ack(&limited, &rtt);
    path.on_end_acks(now, Bytes::new(300), true);
    let run = |sent, bytes, packets| Acked::new(Timestamp::from_millis(sent), Bytes::new(bytes), packets);
    let expected = Event::Acked {
        now: Timestamp::from_millis(50),
        runs: vec![
            run(0, 2_300, 2),
            run(1, 900, 1),
            run(1, 700, 1).with_app_limited(true),
        ],
        in_flight: Bytes::new(300),
        smoothed_rtt: None,
    };
    assert_eq!(script.drain(), [expected]);
    // Another frame that arrives at the same time is an event of its own.
    path.on_ack(&packet(built + ms(1), now, 500), &rtt);
    path.on_end_acks(now, Bytes::ZERO, false);
    let expected = Event::Acked {
        now: Timestamp::from_millis(50),
        runs: vec![run(1, 500, 1)],
        in_flight: Bytes::ZERO,
        smoothed_rtt: Some(rtt),
    };
    assert_eq!(script.drain(), [expected]);
}

/// quinn reports the packets that a Retry packet answers as acknowledged, without an ACK frame.
#[test]
fn an_acknowledgement_without_an_ack_frame_is_no_sample_of_the_rtt() {
    let script = Script::new(12_000);
    let (mut path, built) = by_hand(&script);
    let mut rtts = Vec::new();
    path.on_ack(&packet(built, built + ms(10), 1_200), &ms(333));
    for start in [20, 40, 60] {
        path.on_sent(built + ms(start), Bytes::new(1_200));
        let acked = built + ms(start + 10);
        path.on_ack(&packet(built + ms(start), acked, 1_200), &ms(start));
        path.on_end_acks(acked, Bytes::ZERO, true);
        rtts.extend(script.drain().into_iter().filter_map(|event| match event {
            Event::Acked {
                now, smoothed_rtt, ..
            } => Some((now, smoothed_rtt)),
            _ => None,
        }));
    }
    let expected = [(10, None), (30, None), (50, Some(ms(40))), (70, Some(ms(60)))];
    assert_eq!(rtts, expected.map(|(at, rtt)| (Timestamp::from_millis(at), rtt)));
}

#[test]
fn telemetry_shows_what_one_of_the_stacks_own_controllers_does() {
    let monitor = Arc::new(Monitor::new(Duration::ZERO));
    let control = Control::new("stack-own".parse().unwrap()).with_monitor(Arc::clone(&monitor));
    let (mut path, built) = path(control);
    let acked = |path: &mut Path, millis: u64| {
        let now = built + ms(millis);
        path.on_sent(built + ms(millis - 10), Bytes::new(2_400));
        path.on_ack(&packet(built + ms(millis - 10), now, 1_200), &ms(millis));
        path.on_end_acks(now, Bytes::new(1_200), false);
        monitor.latest().unwrap()
    };
    let first = acked(&mut path, 10);
    assert_eq!(
        (first.snapshot.phase, first.snapshot.min_rtt),
        (Phase::Startup, None)
    );
    let second = acked(&mut path, 20);
    assert_eq!(
        (second.sent, second.delivered),
        (Bytes::new(4_800), Bytes::new(2_400))
    );
    let rtts = (second.snapshot.smoothed_rtt, second.snapshot.min_rtt);
    assert_eq!(rtts, (Some(ms(20)), Some(ms(10))));

    let rate = |path: &mut Path, mbps, millis| {
        path.call_baseline(|own| own.metrics.pacing_rate = Some(Bitrate::from_mbps(mbps)));
        let snapshot = acked(path, millis).snapshot;
        (snapshot.phase, snapshot.reason)
    };
    assert_eq!(rate(&mut path, 5, 30), (Phase::Startup, Reason::Began));
    assert_eq!(rate(&mut path, 9, 40), (Phase::Startup, Reason::Began));
    assert_eq!(rate(&mut path, 8, 50), (Phase::Avoidance, Reason::CapacityKnown));

    let mut congested = |ssthresh, signal| {
        path.call_baseline(|own| own.metrics.ssthresh = Some(Bytes::new(ssthresh)));
        let mut report = loss(built + ms(60), built, 0);
        report.signal = signal;
        path.on_congestion(&report);
        let snapshot = monitor.latest().unwrap().snapshot;
        (snapshot.phase, snapshot.reason)
    };
    let lost = Signal::loss(Bytes::new(1_200));
    let persistent = Signal::Loss {
        bytes: Bytes::new(1_200),
        persistent: true,
    };
    assert_eq!(congested(12_000, lost), (Phase::Avoidance, Reason::Loss));
    assert_eq!(congested(12_001, Signal::EcnCe), (Phase::Startup, Reason::EcnCe));
    let collapsed = (Phase::AfterPersistentCongestion, Reason::PersistentCongestion);
    assert_eq!(congested(12_001, persistent), collapsed);
    let latest = monitor.latest().unwrap();
    assert_eq!((latest.lost, latest.congestion_events), (Bytes::new(2_400), 3));
}

#[test]
fn knowledge_of_the_video_reaches_the_controller() {
    let (registry, known) = watched();
    let control = Control::new(Choice::from_registry(&registry, "watched").unwrap());
    let _path = path(control.clone());
    let rate = Some(Bitrate::from_kbps(5_240));
    control.knowledge().set_average_rate(rate);
    assert_eq!(known.lock().last().unwrap().average_rate(), rate);
}

#[test]
fn the_peer_is_asked_for_as_many_acknowledgements_as_the_most_demanding_controller_wants() {
    let requested = |control: Control| {
        let mut request = None;
        control.install(&mut request);
        assert_eq!(request, None, "only `request_acks` requests them");
        control.request_acks(&mut request);
        assert_eq!(request, control.ack_request());
        request
    };
    let control = scripted(&Script::new(12_000));
    assert_eq!(requested(control.clone()), Some(AckRequest::new(1)));
    for (others, packets) in [("cubic", 6), ("cubic,ccp(every_ack=on)", 1)] {
        let video = Control::new("video".parse().unwrap()).with_alternatives(&Choice::list(others).unwrap());
        assert_eq!(requested(video), Some(AckRequest::new(packets)), "{others}");
    }
    assert_eq!(requested(Control::new("stack-own".parse().unwrap())), None);
    let rarely = AckRequest::new(10).within(ms(20));
    assert_eq!(requested(control.with_ack_request(Some(rarely))), Some(rarely));
}

#[test]
fn each_of_two_paths_receives_its_share_of_what_the_connection_delivers() {
    let script = Script::new(100_000);
    // Shares do not depend on samples.
    let rarely = Monitor::new(Duration::from_secs(3_600));
    let control = Arc::new(scripted(&script).with_monitor(Arc::new(rarely)));
    let built = origin();
    let mut paths = [(); 2].map(|()| Path::new(Arc::clone(&control), built, 1_200));
    script.drain();
    for millis in (0..=1_000).step_by(100) {
        let now = built + ms(millis);
        for (path, bytes) in paths.iter_mut().zip([900, 300]) {
            path.on_ack(&packet(now, now, bytes), &ms(50));
            path.on_end_acks(now, Bytes::ZERO, false);
        }
    }
    let shares = script.drain().into_iter().filter_map(|event| match event {
        Event::Share(share) => Some(share.as_f64()),
        _ => None,
    });
    // The second path had not counted its last packet when the first one looked.
    let shares: Vec<_> = shares.collect();
    assert_eq!(shares, [0.767_441_86, 0.25]);
}

#[test]
fn a_stack_gets_the_rate_of_the_controllers_that_set_one() {
    for (name, sets) in [("copa", true), ("cubic", false), ("stack-own", false)] {
        let (mut path, built) = path(Control::new(name.parse().unwrap()));
        assert_eq!(path.pacing_rate(), None, "{name}");
        path.on_sent(built, Bytes::new(1_200));
        path.on_ack(&packet(built, built + ms(50), 1_200), &ms(50));
        path.on_end_acks(built + ms(50), Bytes::ZERO, false);
        assert_eq!(path.pacing_rate().is_some(), sets, "{name}");
    }
}
