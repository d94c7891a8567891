//! The adapter driven by quinn itself in virtual time, and by hand.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use playrate_cc::events::{AckFrame, Acked, Congestion, Sent, Signal};
use playrate_cc::registry::Entry;
use playrate_cc::{CongestionController, Registry, Snapshot, Timestamp};
use playrate_units::Bytes;
use proptest::prelude::*;
use quinn_proto::congestion::{Controller, ControllerFactory};

use crate::telemetry::{Monitor, TimeSeries};
use crate::{AckRequest, ConnectionController, ControllerChoice, QuinnController};

mod baselines;
mod closing;
mod switching;
mod wire;

use wire::{Wire, origin};

/// An event that a [`Scripted`] controller received.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Event {
    Built(u64),
    Sent(Sent),
    Acked {
        now: Timestamp,
        runs: Vec<Acked>,
        in_flight: Bytes,
        smoothed_rtt: Option<Duration>,
    },
    Congestion(Congestion),
    Mtu(Bytes),
}

type Log = Arc<Mutex<Vec<Event>>>;

/// Records its events; the test sets its window.
#[derive(Clone, Debug)]
struct Scripted {
    log: Log,
    window: Arc<Mutex<Bytes>>,
    every_burst: bool,
}

impl Scripted {
    fn push(&self, event: Event) {
        self.log.lock().unwrap().push(event);
    }
}

impl CongestionController for Scripted {
    fn on_sent(&mut self, event: &Sent) {
        self.push(Event::Sent(*event));
    }
    fn on_ack_frame(&mut self, event: &AckFrame<'_>) {
        self.push(Event::Acked {
            now: event.now,
            runs: event.acked.to_vec(),
            in_flight: event.in_flight,
            smoothed_rtt: event.smoothed_rtt,
        });
    }
    fn on_congestion(&mut self, event: &Congestion) {
        self.push(Event::Congestion(*event));
    }
    fn on_mtu_change(&mut self, mtu: Bytes) {
        self.push(Event::Mtu(mtu));
    }
    fn window(&self) -> Bytes {
        *self.window.lock().unwrap()
    }
    fn initial_window(&self) -> Bytes {
        self.window()
    }
    fn snapshot(&self) -> Snapshot {
        Snapshot::default()
    }
    fn packets_per_ack(&self) -> Option<u32> {
        Some(1)
    }
    fn requires_every_burst(&self) -> bool {
        self.every_burst
    }
    fn clone_box(&self) -> Box<dyn CongestionController> {
        Box::new(self.clone())
    }
}

/// A connection controller that records its events, with an adjustable window.
fn scripted(window: u64) -> (ConnectionController, Log, Arc<Mutex<Bytes>>) {
    scripted_with(window, true)
}

fn scripted_with(window: u64, every_burst: bool) -> (ConnectionController, Log, Arc<Mutex<Bytes>>) {
    let log = Log::default();
    let window = Arc::new(Mutex::new(Bytes::new(window)));
    let mut registry = Registry::builtin();
    let (kept_log, kept_window) = (Arc::clone(&log), Arc::clone(&window));
    registry
        .register(Entry::custom("scripted", move |path, _, _| {
            let controller = Scripted {
                log: Arc::clone(&kept_log),
                window: Arc::clone(&kept_window),
                every_burst,
            };
            controller.push(Event::Built(path.mtu.as_u64()));
            Box::new(controller)
        }))
        .unwrap();
    let choice = ControllerChoice::from_registry(&registry, "scripted").unwrap();
    (ConnectionController::new(choice), log, window)
}

fn drain(log: &Log) -> Vec<Event> {
    std::mem::take(&mut *log.lock().unwrap())
}

/// The congestion signals among the events so far.
fn signals(log: &Log) -> Vec<Signal> {
    let signal = |event| match event {
        Event::Congestion(event) => Some(event.signal),
        _ => None,
    };
    drain(log).into_iter().filter_map(signal).collect()
}

/// The adapter in quinn's form, for events by hand.
fn by_hand(window: u64) -> (Box<dyn Controller>, Log, Arc<Mutex<Bytes>>, Instant) {
    let (control, log, window) = scripted(window);
    let built = origin();
    let controller = Arc::new(control).build(built, 1_200);
    drain(&log);
    (controller, log, window, built)
}

#[test]
fn time_counts_from_the_moment_the_controller_was_built() {
    let (mut controller, log, _, built) = by_hand(12_000);
    controller.on_sent(built + Duration::from_nanos(1_234_567_891), 1_200, 0);
    controller.on_congestion_event(
        built + Duration::from_secs(3),
        built + Duration::from_secs(2),
        false,
        2_400,
    );
    assert_eq!(
        drain(&log),
        [
            Event::Sent(Sent::new(Timestamp::from_nanos(1_234_567_891), Bytes::new(1_200))),
            Event::Congestion(Congestion::new(
                Timestamp::from_millis(3_000),
                Timestamp::from_millis(2_000),
                Signal::Loss {
                    bytes: Bytes::new(2_400),
                    persistent: false
                },
            )),
        ]
    );
}

#[test]
fn bursts_that_a_controller_does_not_need_are_withheld_until_congestion() {
    let (control, log, _) = scripted_with(50_000, false);
    let built = origin();
    let mut controller = Arc::new(control).build(built, 1_200);
    drain(&log);
    let at = |ms| built + Duration::from_millis(ms);
    let mut sent = |events: &dyn Fn(&mut dyn Controller)| -> Vec<_> {
        events(controller.as_mut());
        let events = drain(&log).into_iter();
        events
            .filter_map(|event| match event {
                Event::Sent(sent) => Some(sent.now.as_nanos() / 1_000_000),
                _ => None,
            })
            .collect()
    };
    assert_eq!(sent(&|c| c.on_sent(at(1), 2_400, 0)), [1], "nothing is in flight");
    assert_eq!(sent(&|c| c.on_sent(at(2), 2_400, 0)), [2], "as far as is known");
    assert_eq!(sent(&|c| c.on_end_acks(at(5), 4_000, false, None)), [0; 0]);
    assert_eq!(sent(&|c| c.on_sent(at(6), 1_200, 0)), [0; 0]);
    assert_eq!(sent(&|c| c.on_sent(at(7), 1_200, 0)), [0; 0]);
    let lose = |ms, bytes| move |c: &mut dyn Controller| c.on_congestion_event(at(ms), at(1), false, bytes);
    assert_eq!(sent(&lose(8, 1_000)), [7], "the last one, before the event");
    assert_eq!(sent(&lose(9, 1_000)), [0; 0], "it was reported before");
    assert_eq!(sent(&|c| c.on_sent(at(10), 1_200, 0)), [0; 0]);
    assert_eq!(sent(&lose(11, 2_000)), [10]);
    assert_eq!(sent(&|c| c.on_sent(at(12), 1_200, 0)), [12], "all of it is lost");
    assert_eq!(sent(&|c| c.on_end_acks(at(13), 1_200, false, None)), [0; 0]);
    assert_eq!(sent(&|c| c.on_sent(at(14), 1_200, 0)), [0; 0]);
    assert_eq!(sent(&|c| c.on_end_acks(at(15), 1_200, false, None)), [0; 0]);
    assert_eq!(sent(&lose(16, 0)), [0; 0], "the frame has outdated it");
}

#[test]
fn a_congestion_event_without_lost_bytes_is_ecn_ce() {
    let (mut controller, log, _, built) = by_hand(12_000);
    controller.on_congestion_event(built, built, false, 0);
    controller.on_congestion_event(built, built, true, 7 * 1_200);
    let signals = signals(&log);
    let persistent = Signal::Loss {
        bytes: Bytes::new(7 * 1_200),
        persistent: true,
    };
    assert_eq!(signals, [Signal::EcnCe, persistent]);
}

proptest! {
    #[test]
    fn the_window_lets_a_packet_out_and_keeps_quinn_pacing(wanted: u64, mtu in 1_200_u16..) {
        let (mut controller, _, window, _) = by_hand(12_000);
        *window.lock().unwrap() = Bytes::new(wanted);
        controller.on_mtu_update(mtu);
        for window in [controller.window(), controller.initial_window()] {
            prop_assert!(window > u64::from(mtu) && u32::try_from(window).is_ok());
            if wanted > u64::from(mtu) && u32::try_from(wanted).is_ok() {
                prop_assert_eq!(window, wanted);
            }
        }
        prop_assert_eq!(controller.metrics().congestion_window, controller.window());
    }
}

#[test]
fn the_window_follows_the_controller_after_every_kind_of_event() {
    let (mut controller, _, window, built) = by_hand(12_000);
    let mut wanted = 12_000;
    let mut check = |controller: &mut Box<dyn Controller>, event: &dyn Fn(&mut dyn Controller)| {
        wanted += 1_000;
        *window.lock().unwrap() = Bytes::new(wanted);
        event(controller.as_mut());
        assert_eq!(controller.window(), wanted);
    };
    check(&mut controller, &|c| c.on_sent(built, 1_200, 0));
    check(&mut controller, &|c| c.on_end_acks(built, 0, false, Some(0)));
    check(&mut controller, &|c| {
        c.on_congestion_event(built, built, false, 1_200);
    });
    check(&mut controller, &|c| c.on_mtu_update(1_400));
}

#[test]
fn a_copy_goes_on_from_the_same_state_on_the_same_clock() {
    let (mut controller, log, _, built) = by_hand(20_000);
    controller.on_mtu_update(1_400);
    let mut copy = controller.clone_box();
    drain(&log);
    assert_eq!(copy.window(), 20_000);
    copy.on_sent(built + Duration::from_millis(5), 1, 0);
    assert_eq!(
        drain(&log),
        [Event::Sent(Sent::new(Timestamp::from_millis(5), Bytes::new(1)))]
    );
    assert!(copy.into_any().downcast::<QuinnController>().is_ok());
}

#[test]
fn packets_of_one_burst_that_one_frame_acknowledges_are_one_run() {
    let (control, log, _) = scripted(1_000_000);
    let mut wire = Wire::new(&control, Duration::from_millis(50));
    wire.server_sends(200_000);
    wire.run_for(Duration::from_secs(3));
    let events = drain(&log);
    assert_eq!(events[0], Event::Built(1_200));
    let (mut count, mut packets, mut bytes) = (0_u64, 0_u64, 0_u64);
    for event in &events {
        let Event::Acked { now, runs, .. } = event else {
            continue;
        };
        // Two consecutive runs differ in a property of runs.
        for pair in runs.windows(2) {
            let differ = pair[0].sent != pair[1].sent || pair[0].app_limited != pair[1].app_limited;
            assert!(differ, "{pair:?}");
        }
        for run in runs {
            assert!(run.packets >= 1 && run.sent < *now);
            count += 1;
            packets += u64::from(run.packets);
            bytes += run.bytes.as_u64();
        }
    }
    assert!(bytes >= 200_000, "{bytes}");
    assert!(
        packets > count,
        "{packets} packets in {count} runs: nothing was merged"
    );
    let sent: u64 = events
        .iter()
        .filter_map(|event| match event {
            Event::Sent(sent) => Some(sent.bytes.as_u64()),
            _ => None,
        })
        .sum();
    // Acknowledged MTU probes are not reported as sent; pure ACKs are, and are not acknowledged.
    assert!(bytes <= sent + 8 * 1_500, "{bytes} acknowledged of {sent}");
}

#[test]
fn the_smoothed_rtt_is_unknown_until_it_was_measured() {
    let (control, log, _) = scripted(1_000_000);
    let mut wire = Wire::new(&control, Duration::from_millis(50));
    wire.server_sends(50_000);
    wire.run_for(Duration::from_secs(3));
    let rtts: Vec<_> = drain(&log)
        .into_iter()
        .filter_map(|event| match event {
            Event::Acked { smoothed_rtt, .. } => Some(smoothed_rtt),
            _ => None,
        })
        .collect();
    // Not quinn's initial guess of 333 ms, at any time.
    assert_eq!(rtts[0], None);
    assert!(
        rtts.len() > 3 && rtts[2..].iter().all(Option::is_some),
        "{rtts:?}"
    );
    for rtt in rtts.into_iter().flatten() {
        assert!(
            (Duration::from_millis(99)..Duration::from_millis(130)).contains(&rtt),
            "{rtt:?}"
        );
    }
}

/// RFC 9002 §7.6.3: an outage longer than several probe timeouts is persistent congestion once something sent after it
/// is acknowledged. §7.6.1: one shorter than three probe timeouts is an ordinary loss.
#[test]
fn losses_across_the_persistent_congestion_period_are_reported_as_such() {
    for (outage, expected) in [
        (Duration::from_millis(250), false),
        (Duration::from_secs(6), true),
    ] {
        let (control, log, _) = scripted(1_000_000);
        let mut wire = Wire::new(&control, Duration::from_millis(50));
        wire.server_sends(20_000);
        wire.run_for(Duration::from_secs(2));
        drain(&log);
        wire.faults.cut.store(true, Relaxed);
        wire.server_sends(20_000);
        wire.run_for(outage);
        wire.faults.cut.store(false, Relaxed);
        wire.server_sends(20_000);
        wire.run_for(Duration::from_secs(20));
        let losses = signals(&log);
        assert!(!losses.is_empty(), "nothing was lost in {outage:?}");
        let persistent = losses
            .iter()
            .any(|loss| matches!(loss, Signal::Loss { persistent: true, .. }));
        assert_eq!(persistent, expected, "{outage:?}: {losses:?}");
        assert_eq!(wire.received(), 60_000, "all of it arrives in the end");
    }
}

#[test]
fn persistent_congestion_brings_newreno_to_its_minimum_window() {
    let series = Arc::new(TimeSeries::new(4_096));
    let monitor = Monitor::new(Duration::ZERO).with_sink(Arc::clone(&series));
    let control = ConnectionController::new("reno".parse().unwrap()).with_monitor(Arc::new(monitor));
    let mut wire = Wire::new(&control, Duration::from_millis(50));
    wire.server_sends(300_000);
    wire.run_for(Duration::from_secs(2));
    let before = wire.server_window();
    assert!(before > 12_000, "{before}");
    wire.faults.cut.store(true, Relaxed);
    wire.server_sends(20_000);
    wire.run_for(Duration::from_secs(6));
    wire.faults.cut.store(false, Relaxed);
    wire.run_for(Duration::from_secs(20));
    let minimum = 2 * u64::from(wire.server_mtu());
    let samples = series.samples();
    let collapsed = samples
        .iter()
        .any(|sample| sample.snapshot.window.as_u64() <= minimum);
    assert!(collapsed, "the window was never {minimum} or less");
}

#[test]
fn an_ecn_ce_mark_reaches_the_controller_as_one() {
    let (control, log, _) = scripted(1_000_000);
    let mut wire = Wire::new(&control, Duration::from_millis(50));
    wire.server_sends(20_000);
    wire.run_for(Duration::from_secs(1));
    drain(&log);
    wire.faults.mark_ce.store(true, Relaxed);
    wire.server_sends(20_000);
    wire.run_for(Duration::from_secs(1));
    let signals = signals(&log);
    assert!(!signals.is_empty());
    assert!(
        signals.iter().all(|signal| *signal == Signal::EcnCe),
        "{signals:?}"
    );
}

#[test]
fn telemetry_counts_what_quinn_counts() {
    for name in ["cubic", "bbr", "quinn-cubic", "quinn-newreno", "quinn-bbr"] {
        let series = Arc::new(TimeSeries::new(4_096));
        let monitor = Monitor::new(Duration::ZERO).with_sink(Arc::clone(&series));
        let control = ConnectionController::new(name.parse().unwrap()).with_monitor(Arc::new(monitor));
        let mut wire = Wire::new(&control, Duration::from_millis(20));
        wire.server_sends(400_000);
        wire.run_for(Duration::from_secs(1));
        wire.faults.drop_every.store(50, Relaxed);
        wire.server_sends(400_000);
        wire.run_for(Duration::from_secs(10));
        assert_eq!(wire.received(), 800_000, "{name}");
        let last = control.monitor().latest().unwrap();
        let stats = wire.server.stats();
        assert!(stats.path.lost_packets > 0, "{name}: nothing was lost");
        assert_eq!(last.lost.as_u64(), stats.path.lost_bytes, "{name}");
        assert_eq!(last.congestion_events, stats.path.congestion_events, "{name}");
        assert!(last.delivered.as_u64() >= 800_000, "{name}: {last:?}");
        assert!(
            last.delivered.as_u64() + last.lost.as_u64() <= stats.udp_tx.bytes,
            "{name}"
        );
        assert_eq!(last.snapshot.window.as_u64(), wire.server_window(), "{name}");
        let rtt = last.smoothed_rtt.unwrap();
        assert!(
            (Duration::from_millis(39)..Duration::from_millis(80)).contains(&rtt),
            "{name}: {rtt:?}"
        );
        let samples = series.samples();
        assert!(samples.windows(2).all(|pair| pair[0].at <= pair[1].at), "{name}");
    }
}

/// [`crate::UnsentBytes`] relies on quinn's reports to a controller; this fails if quinn changes them.
#[test]
fn the_estimate_of_unsent_bytes_follows_quinn() {
    const WINDOW: u64 = 60_000;
    const WRITTEN: u64 = 400_000;
    let (control, ..) = scripted(WINDOW);
    let mut wire = Wire::new(&control, Duration::from_millis(50));
    wire.run_for(Duration::from_secs(1));
    control.unsent().wrote(WRITTEN);
    wire.server_sends(400_000);
    // quinn paces a window over 80 ms of the round trip of 100 ms.
    wire.run_for(Duration::from_millis(95));
    for flights in 1..=4 {
        let left = WRITTEN - flights * WINDOW;
        let estimate = control.unsent().estimate();
        assert!(
            (left - 4_000..left + 8_000).contains(&estimate),
            "{estimate} bytes estimated after {flights} flights, about {left} left"
        );
        wire.run_for(Duration::from_millis(100));
    }
    wire.run_for(Duration::from_secs(5));
    assert_eq!(wire.received(), 400_000);
    let estimate = control.unsent().estimate();
    assert!(
        estimate < WRITTEN / 50,
        "{estimate} bytes estimated, none are left"
    );
}

#[test]
fn knowledge_of_the_video_reaches_the_controller() {
    let mut registry = Registry::builtin();
    let known = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&known);
    registry
        .register(Entry::custom("curious", move |path, _, knowledge| {
            *kept.lock().unwrap() = Some(Arc::clone(&knowledge));
            "reno"
                .parse::<playrate_cc::ControllerSpec>()
                .unwrap()
                .build(path, knowledge)
        }))
        .unwrap();
    let choice = ControllerChoice::from_registry(&registry, "curious").unwrap();
    let control = ConnectionController::new(choice);
    let _controller = Arc::new(control.clone()).build(origin(), 1_200);
    control
        .knowledge()
        .set_average_rate(Some(playrate_cc::Bitrate::from_kbps(5_240)));
    let known = known.lock().unwrap().take().unwrap();
    assert_eq!(known.average_rate(), Some(playrate_cc::Bitrate::from_kbps(5_240)));
}

#[test]
fn the_peer_is_asked_for_as_many_acknowledgements_as_the_most_demanding_controller_wants() {
    let (control, ..) = scripted(12_000);
    let mut transport = quinn::TransportConfig::default();
    control.install(&mut transport);
    assert!(format!("{transport:?}").contains("ack_eliciting_threshold: 0"));
    let video = || ConnectionController::new("video".parse().unwrap());
    for (others, threshold) in [("cubic", 5), ("cubic,ccp(every_ack=on)", 0)] {
        let others = ControllerChoice::list(others).unwrap();
        video().switchable(&others).install(&mut transport);
        let expected = format!("ack_eliciting_threshold: {threshold}");
        assert!(format!("{transport:?}").contains(&expected), "{others:?}");
    }
    ConnectionController::new("quinn-cubic".parse().unwrap()).install(&mut transport);
    assert!(format!("{transport:?}").contains("ack_frequency_config: None"));
    let rarely = AckRequest::new(10).within(Duration::from_millis(20));
    control.with_ack_request(Some(rarely)).install(&mut transport);
    assert!(format!("{transport:?}").contains("ack_eliciting_threshold: 9"));
}
