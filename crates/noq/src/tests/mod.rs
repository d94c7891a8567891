//! The adapter driven by noq itself, in virtual time and over loopback, and by hand. `playrate-adapter` tests the
//! effects of calls, without a stack; here, a scripted controller records noq's calls.

use std::sync::Arc;
use std::time::Duration;

use noq_proto::congestion::{Controller, ControllerFactory};
use playrate_cc::Phase;
use playrate_cc::events::{Acked, Signal};
use playrate_netsim::{LinkFault, LinkFaultKind, QueueLimit};
use playrate_scripted::{Event, Script};
use playrate_units::{Bitrate, Bytes};

use crate::telemetry::{Monitor, TimeSeries};
use crate::{AckRequest, Baseline, ConnectionController, ControllerChoice, EndpointFactory, NoqController};

/// Shared with the example `multipath`.
#[path = "../../examples/multipath/configs.rs"]
mod configs;
#[path = "../../../quinn/src/tests/estimate.rs"]
mod estimate;
mod live;
mod wire;

use wire::{Wire, origin, path};

/// Controllers of noq under which [`estimate`] is tested.
const OWN_CONTROLLERS: [&str; 2] = ["noq-cubic", "noq-bbr3"];

/// A connection under a scripted controller.
fn scripted(window: u64) -> (ConnectionController, Script) {
    let script = Script::new(window);
    let choice = ControllerChoice::from_registry(&script.registry(), "scripted").unwrap();
    (ConnectionController::new(choice), script)
}

/// A connection under the controller `name`, and all its samples.
fn monitored(name: &str) -> (ConnectionController, Arc<TimeSeries>) {
    let series = Arc::new(TimeSeries::new(4_096));
    let monitor = Monitor::new(Duration::ZERO).with_sink(Arc::clone(&series));
    let control = ConnectionController::new(name.parse().unwrap());
    (control.with_monitor(Arc::new(monitor)), series)
}

fn controller(control: ConnectionController) -> NoqController {
    NoqController::new(Arc::new(control), origin(), 1_200)
}

/// The congestion signals among the events so far.
fn signals(script: &Script) -> Vec<Signal> {
    let signal = |event| match event {
        Event::Congestion(event) => Some(event.signal),
        _ => None,
    };
    script.drain().into_iter().filter_map(signal).collect()
}

/// A path of 20 Mbit/s whose round trip takes 40 ms and whose queue holds 80 ms.
fn link() -> playrate_netsim::PathConfig {
    let mut path = path("20ms");
    path.forward.rate = Bitrate::from_mbps(20).into();
    path.forward = path.forward.with_queue(QueueLimit::Bytes(Bytes::new(200_000)));
    path
}

#[test]
fn congestion_is_ecn_ce_if_noq_says_so_and_losses_may_prove_spurious() {
    let (control, script) = scripted(12_000);
    let mut controller = controller(control);
    let built = origin();
    controller.on_congestion_event(built, built, false, true, 0, 7);
    controller.on_congestion_event(built, built, false, false, 0, 8);
    controller.on_congestion_event(built, built, true, false, 7 * 1_200, 9);
    let persistent = Signal::Loss {
        bytes: Bytes::new(7 * 1_200),
        persistent: true,
    };
    assert_eq!(
        signals(&script),
        [Signal::EcnCe, Signal::loss(Bytes::ZERO), persistent]
    );
    controller.on_spurious_congestion_event();
    assert_eq!(script.drain(), [Event::Spurious]);
    // Only acknowledgements are lost, so no congestion event follows: the last one may have been genuine.
    controller.on_packet_lost(40, 10, built);
    controller.on_spurious_congestion_event();
    assert_eq!(script.drain(), []);
    controller.on_congestion_event(built, built, false, false, 1_200, 11);
    controller.on_spurious_congestion_event();
    assert_eq!(script.drain().last(), Some(&Event::Spurious));
}

#[test]
fn noq_gets_windows_metrics_and_a_copy_of_the_adapters_type() {
    let (control, _) = scripted(20_000);
    let controller = controller(control);
    let metrics = controller.metrics();
    let windows = [
        controller.window(),
        controller.initial_window(),
        metrics.congestion_window,
    ];
    assert_eq!(windows, [20_000; 3]);
    assert_eq!((metrics.pacing_rate, metrics.send_quantum), (None, None));
    assert!(NoqController::of(controller.clone_box()).is_some());
}

#[test]
fn reading_a_controller_takes_no_sample() {
    let (control, _) = scripted(20_000);
    let control = control.with_monitor(Arc::new(Monitor::new(Duration::from_secs(1))));
    let mut controller = controller(control.clone());
    for millis in [10, 20] {
        controller.on_end_acks(origin() + Duration::from_millis(millis), 0, true, None);
    }
    let sampled = control.monitor().latest().unwrap().at;
    drop(NoqController::of(controller.clone_box()));
    assert_eq!(control.monitor().latest().unwrap().at, sampled);
}

#[test]
fn noqs_controllers_are_chosen_by_their_names() {
    for (baseline, name) in Baseline::ALL
        .into_iter()
        .zip(["noq-newreno", "noq-cubic", "noq-bbr3"])
    {
        let choice = ControllerChoice::from(baseline);
        assert_eq!(choice.to_string(), name);
        assert_eq!(name.parse(), Ok(choice));
        assert!(baseline.about().starts_with("noq's own "));
        // A packet always fits the first window.
        for mtu in [1_200, 9_000, 65_527] {
            let window = baseline.factory(mtu).build(origin(), mtu).window();
            assert!(window >= u64::from(mtu), "{name}: {window}");
        }
    }
}

#[test]
fn installing_sets_the_controller_and_requesting_acknowledgements_noqs_threshold() {
    let (control, _) = scripted(12_000);
    let rarely = AckRequest::new(10).within(Duration::from_millis(20));
    for (control, threshold) in [
        (control.clone(), "ack_eliciting_threshold: 0,"),
        (
            control.with_ack_request(Some(rarely)),
            "ack_eliciting_threshold: 9,",
        ),
    ] {
        let mut transport = noq::TransportConfig::default();
        control.install(&mut transport);
        assert!(!format!("{transport:?}").contains("ack_eliciting_threshold"));
        control.request_acks(&mut transport);
        let transport = format!("{transport:?}");
        assert!(transport.contains(threshold), "{threshold} is not in {transport}");
    }
}

#[test]
fn a_factory_builds_separate_controllers_and_an_installed_one_copies_that_share() {
    let factory = Arc::new(EndpointFactory::new("video".parse().unwrap()));
    let control = ConnectionController::new("video".parse().unwrap());
    let installed = Arc::new(EndpointFactory::with(move || control.clone()));
    for (factory, shares) in [(factory, false), (installed, true)] {
        let [one, other] =
            [(); 2].map(|()| NoqController::of(Arc::clone(&factory).build(origin(), 1_200)).unwrap());
        let same = Arc::ptr_eq(one.control().knowledge(), other.control().knowledge());
        assert_eq!(same, shares);
    }
}

#[test]
fn a_frame_is_runs_of_packets_with_an_rtt_once_noq_has_measured_it() {
    let (control, script) = scripted(1_000_000);
    let mut wire = Wire::new(&control, &path("50ms"));
    wire.server_sends(200_000);
    wire.run_for(Duration::from_secs(3));
    let events = script.drain();
    assert_eq!(events[0], Event::Built(1_200));
    let (mut acked, mut sent, mut rtts) = (Vec::new(), 0, Vec::new());
    for event in events {
        match event {
            Event::Sent(burst) => sent += burst.bytes.as_u64(),
            Event::Acked {
                now,
                runs,
                smoothed_rtt,
                ..
            } => {
                let differ = |a: &Acked, b: &Acked| (a.sent, a.app_limited) != (b.sent, b.app_limited);
                assert!(runs.windows(2).all(|pair| differ(&pair[0], &pair[1])), "{runs:?}");
                assert!(runs.iter().all(|run| run.packets >= 1 && run.sent < now));
                acked.extend(runs);
                rtts.push(smoothed_rtt);
            }
            _ => {}
        }
    }
    let bytes: u64 = acked.iter().map(|run| run.bytes.as_u64()).sum();
    assert!(bytes >= 200_000, "{bytes}");
    assert!(acked.iter().any(|run| run.packets > 1), "nothing was merged");
    // Acknowledged MTU probes are not reported as sent.
    assert!(bytes <= sent + 8 * 1_500, "{bytes} acknowledged of {sent}");
    // Not noq's initial guess of 333 ms, at any time.
    assert_eq!(rtts[0], None);
    let range = Duration::from_millis(99)..Duration::from_millis(130);
    assert!(rtts.iter().flatten().all(|rtt| range.contains(rtt)), "{rtts:?}");
    assert!(rtts.iter().flatten().count() > 3);
}

#[test]
fn noq_sends_a_whole_window_and_no_more() {
    const WINDOW: u64 = 60_000;
    let (control, script) = scripted(WINDOW);
    let mut wire = Wire::new(&control, &path("50ms"));
    wire.run_for(Duration::from_secs(1));
    script.drain();
    wire.server_sends(400_000);
    wire.run_for(Duration::from_millis(99));
    let sent = script.drain().into_iter().map(|event| match event {
        Event::Sent(burst) => burst.bytes.as_u64(),
        _ => 0,
    });
    let sent: u64 = sent.sum();
    assert!((WINDOW - 1_500..=WINDOW).contains(&sent), "{sent}");
}

#[test]
fn an_ecn_ce_mark_reaches_the_controller_as_one() {
    let (control, script) = scripted(1_000_000);
    // A burst of 20 kB waits for up to 40 ms, and its queue has room for it.
    let mut path = path("50ms");
    path.forward.rate = Bitrate::from_mbps(4).into();
    path.forward.aqm = "codel(1ms,10ms,ecn)".parse().unwrap();
    let mut wire = Wire::new(&control, &path);
    wire.server_sends(20_000);
    wire.run_for(Duration::from_secs(1));
    let signals = signals(&script);
    assert!(!signals.is_empty());
    assert!(
        signals.iter().all(|signal| *signal == Signal::EcnCe),
        "{signals:?}"
    );
}

/// For 5 ms, packets take the longer way, and those that follow them overtake.
#[test]
fn packets_that_were_overtaken_are_a_spurious_loss_that_costs_cubic_nothing() {
    let mut overtaking = link();
    overtaking.forward = overtaking
        .forward
        .with_queue(QueueLimit::Bytes(Bytes::new(4_000_000)));
    overtaking.forward.delay = "20ms,35ms@2s,20ms@2.005s".parse().unwrap();
    let (control, script) = scripted(100_000);
    let (cubic, series) = monitored("cubic");
    for control in [control, cubic] {
        let mut wire = Wire::new(&control, &overtaking);
        wire.run_for(Duration::from_millis(1_700));
        wire.server_sends(3_000_000);
        wire.run_for(Duration::from_millis(1_300));
        assert!(wire.server_stats().lost_packets > 0, "nothing was overtaken");
        assert!(wire.server_stats().spurious_congestion_events > 0);
    }
    let events = script.drain();
    assert!(events.contains(&Event::Spurious));
    let snapshots = series.samples().into_iter().map(|sample| sample.snapshot);
    let windows: Vec<_> = snapshots.map(|snapshot| snapshot.window.as_u64()).collect();
    let cut = windows.windows(2).position(|pair| pair[1] < pair[0]).unwrap();
    let restored = windows[cut + 1..].iter().any(|&window| window >= windows[cut]);
    assert!(restored, "{windows:?}");
}

#[test]
fn telemetry_counts_what_noq_counts() {
    for name in [
        "cubic",
        "bbr",
        "copa",
        "video",
        "noq-cubic",
        "noq-newreno",
        "noq-bbr3",
    ] {
        let (control, series) = monitored(name);
        let mut path = path("20ms");
        let loss = LinkFaultKind::Loss("4%".parse().unwrap());
        let fault = LinkFault::new(Duration::from_secs(1), Duration::MAX, loss);
        path.forward = path.forward.with_faults(vec![fault]);
        let mut wire = Wire::new(&control, &path);
        wire.server_sends(400_000);
        wire.run_for(Duration::from_secs(1));
        wire.server_sends(400_000);
        wire.run_for(Duration::from_secs(10));
        assert_eq!(wire.received(), 800_000, "{name}");
        let last = control.monitor().latest().unwrap();
        let stats = wire.server_stats();
        assert!(stats.lost_packets > 0, "{name}: nothing was lost");
        assert_eq!(last.lost.as_u64(), stats.lost_bytes, "{name}");
        assert_eq!(last.congestion_events, stats.congestion_events, "{name}");
        assert!(last.delivered.as_u64() >= 800_000, "{name}: {last:?}");
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

// noq's Bbr3 has no threshold that separates slow start from the rest.
#[test]
fn the_end_of_slow_start_of_noqs_bbr_shows_in_its_pacing_rate() {
    let (control, series) = monitored("noq-bbr3");
    let mut wire = Wire::new(&control, &link());
    wire.server_sends(4_000_000);
    wire.run_for(Duration::from_secs(20));
    assert_eq!(wire.received(), 4_000_000);
    let samples = series.samples().into_iter();
    let mut phases: Vec<_> = samples.map(|sample| sample.snapshot.phase).collect();
    phases.dedup();
    assert_eq!(phases, [Phase::Startup, Phase::Avoidance]);
}

/// Each of playrate's controllers that set a rate fills a link through noq's pacer.
#[test]
fn controllers_that_set_a_rate_fill_the_link_with_a_short_queue() {
    for name in ["bbr", "copa", "video"] {
        let control = ConnectionController::new(name.parse().unwrap());
        let mut wire = Wire::new(&control, &link());
        wire.server_sends(30_000_000);
        wire.run_for(Duration::from_secs(3));
        let metrics = wire.server.congestion_state(noq::PathId::ZERO).unwrap().metrics();
        let rate = metrics.pacing_rate.unwrap();
        assert!((1_500_000..=5_500_000).contains(&rate), "{name}: {rate} B/s");
        let burst = metrics.send_quantum.unwrap();
        assert!((2_400..=5_500).contains(&burst), "{name}: {burst} B");
        let before = wire.received();
        wire.run_for(Duration::from_secs(4));
        let mbps = (wire.received() - before) as f64 * 2e-6;
        let srtt = wire.server.rtt(noq::PathId::ZERO).unwrap();
        assert!(mbps > 17.5, "{name}: {mbps} Mbit/s");
        assert!(srtt < Duration::from_millis(75), "{name}: {srtt:?}");
    }
}

#[test]
fn the_new_controller_of_a_switch_starts_with_the_next_packet_and_receives_the_history() {
    let (second, script) = scripted(40_000);
    let second = second.current_choice().clone();
    let control = ConnectionController::new("cubic".parse().unwrap())
        .with_monitor(Arc::new(Monitor::new(Duration::ZERO)))
        .with_alternatives(std::slice::from_ref(&second));
    script.drain();
    let mut wire = Wire::new(&control, &path("25ms"));
    wire.server_sends(3_000);
    wire.run_for(Duration::from_secs(2));
    assert!(control.switch(second.clone()));
    assert_eq!(script.drain(), [], "nothing has left since");
    wire.server_sends(100_000);
    wire.run_for(Duration::from_millis(45));
    let events = script.drain();
    let mtu = wire.server_stats().current_mtu;
    assert_eq!(events[0], Event::Built(mtu.into()));
    let [
        Event::Sent(sent),
        Event::Acked {
            now, runs, in_flight, ..
        },
    ] = &events[1..3]
    else {
        panic!("{events:?}");
    };
    let rtt = now.as_nanos() - sent.now.as_nanos();
    assert!((50_000_000..=76_000_000).contains(&rtt), "{rtt} ns");
    let acked = Acked::new(sent.now, sent.bytes, 1).with_app_limited(true);
    assert_eq!((runs.as_slice(), *in_flight), ([acked].as_slice(), Bytes::ZERO));
    assert_eq!(wire.server_window(), 40_000);
    wire.run_for(Duration::from_secs(2));
    assert_eq!(wire.received(), 103_000);
}

#[test]
fn a_switch_to_a_controller_of_noq_reports_the_history_to_it() {
    // BBRv3 ignores a loss that has not been reported by packet.
    for (baseline, signal, expected) in [
        (Baseline::NewReno, false, 6_000),
        (Baseline::Cubic, true, 8_400),
        (Baseline::Bbr3, false, 12_000),
    ] {
        let control = ConnectionController::new("cubic".parse().unwrap()).with_alternatives(&[]);
        let built = origin();
        let mut controller = NoqController::new(Arc::new(control.clone()), built, 1_200);
        let at = |ms| built + Duration::from_millis(ms);
        controller.on_sent(at(0), 12_000, 9);
        let lost = if signal { 0 } else { 2_400 };
        controller.on_congestion_event(at(60), at(2), false, signal, lost, 7);
        assert!(control.switch(baseline.into()));
        controller.on_packet_sent(at(62), 1_000, 10);
        controller.on_sent(at(62), 1_000, 10);
        assert_eq!(controller.window(), expected, "{baseline:?}");
        assert!(NoqController::of(Box::new(controller)).is_none());
    }
}

#[test]
fn a_close_leaves_past_a_full_window() {
    let control = ConnectionController::new("cubic".parse().unwrap());
    let mut path = path("50ms");
    path.backward.delay = "50ms,down@1.1s".parse().unwrap();
    let mut wire = Wire::new(&control, &path);
    wire.run_for(Duration::from_secs(1));
    // From now on nothing is acknowledged, and more data waits to be sent than fits the window.
    wire.server_sends(400_000);
    wire.run_for(Duration::from_millis(300));
    wire.server.close(7_u32.into(), b"over");
    wire.run_for(Duration::from_millis(51));
    let reason = wire.client.close_reason();
    assert!(
        matches!(&reason, Some(noq::ConnectionError::ApplicationClosed(close)) if close.reason == "over"),
        "{reason:?}"
    );
}
