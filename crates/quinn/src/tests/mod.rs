//! The adapter driven by quinn itself in virtual time, and by hand. `playrate-adapter` tests the effects of calls,
//! without a stack; here, a scripted controller records quinn's calls.

use std::sync::Arc;
use std::time::Duration;

use playrate_cc::events::{Acked, Signal};
use playrate_cc::registry::Entry;
use playrate_cc::{Phase, Registry};
use playrate_netsim::{LinkFault, LinkFaultKind};
use playrate_scripted::{Event, Script};
use playrate_units::{Bitrate, Bytes};
use quinn_proto::congestion::Controller;

use crate::telemetry::{Monitor, TimeSeries};
use crate::{AckRequest, Baseline, ConnectionController, ControllerChoice, QuinnController};

mod closing;
mod estimate;
mod loopback;
mod probe;
mod switching;
mod wire;

use wire::{Wire, origin, path};

/// Controllers of quinn under which [`estimate`] is tested.
const OWN_CONTROLLERS: [&str; 1] = ["quinn-cubic"];

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

/// The congestion signals among the events so far.
fn signals(script: &Script) -> Vec<Signal> {
    let signal = |event| match event {
        Event::Congestion(event) => Some(event.signal),
        _ => None,
    };
    script.drain().into_iter().filter_map(signal).collect()
}

#[test]
fn a_congestion_event_without_lost_bytes_is_ecn_ce() {
    let (control, script) = scripted(12_000);
    let built = origin();
    let mut controller = QuinnController::new(Arc::new(control), built, 1_200);
    controller.on_congestion_event(built, built, false, 0);
    controller.on_congestion_event(built, built, true, 7 * 1_200);
    let persistent = Signal::Loss {
        bytes: Bytes::new(7 * 1_200),
        persistent: true,
    };
    assert_eq!(signals(&script), [Signal::EcnCe, persistent]);
}

#[test]
fn quinn_gets_windows_metrics_and_a_copy_of_the_adapters_type() {
    let (control, _) = scripted(20_000);
    let controller = QuinnController::new(Arc::new(control), origin(), 1_200);
    let windows = [
        controller.window(),
        controller.initial_window(),
        controller.metrics().congestion_window,
    ];
    assert_eq!(windows, [20_000; 3]);
    assert!(
        controller
            .clone_box()
            .into_any()
            .downcast::<QuinnController>()
            .is_ok()
    );
}

#[test]
fn quinns_controllers_are_chosen_by_their_names() {
    for (baseline, name) in Baseline::ALL
        .into_iter()
        .zip(["quinn-newreno", "quinn-cubic", "quinn-bbr"])
    {
        let choice = ControllerChoice::from(baseline);
        assert_eq!(choice.to_string(), name);
        assert_eq!(name.parse(), Ok(choice));
    }
}

/// Names in the first column of the table of controllers in the crate's documentation.
fn documented(root: &str) -> Vec<&str> {
    let rows = root.lines().filter_map(|line| line.strip_prefix("//! | [`"));
    rows.filter_map(|row| row.split('`').next()).collect()
}

#[test]
fn the_crates_documentation_lists_each_controller_with_a_link_to_its_section() {
    let root = include_str!("../lib.rs");
    let pages = [
        ("controllers.md", include_str!("../../../../docs/controllers.md")),
        (
            "controllers/all.md",
            include_str!("../../../../docs/controllers/all.md"),
        ),
    ];
    let registry = Registry::builtin();
    let ours: Vec<_> = registry.controllers().map(Entry::name).collect();
    let mut expected = [ours.clone(), Baseline::ALL.map(Baseline::name).to_vec()].concat();
    let mut found = documented(root);
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected);
    for name in ours {
        let heading = format!("\n### `{name}`\n");
        let section = pages.iter().find(|(_, text)| text.contains(&heading));
        let (page, _) = section.unwrap_or_else(|| panic!("no section for {name}"));
        let link = format!("//! [`{name}`]: ../../../docs/{page}#{name}\n");
        assert!(root.contains(&link), "no link for {name}");
    }
}

#[test]
fn only_a_request_for_acknowledgements_replaces_the_programs_own() {
    let (control, _) = scripted(12_000);
    let rarely = AckRequest::new(10).within(Duration::from_millis(20));
    let of_quinn = ConnectionController::new("quinn-cubic".parse().unwrap());
    for (control, threshold) in [
        (control.clone(), 0),
        (control.with_ack_request(Some(rarely)), 9),
        (of_quinn, 77),
    ] {
        let mut users = quinn::AckFrequencyConfig::default();
        users.ack_eliciting_threshold(77_u32.into());
        let mut transport = quinn::TransportConfig::default();
        transport.ack_frequency_config(Some(users));
        let shows = |transport: &quinn::TransportConfig, threshold: u32| {
            let expected = format!("ack_eliciting_threshold: {threshold},");
            let transport = format!("{transport:?}");
            assert!(transport.contains(&expected), "{expected} is not in {transport}");
        };
        control.install(&mut transport);
        shows(&transport, 77);
        control.request_acks(&mut transport);
        shows(&transport, threshold);
    }
}

#[test]
fn a_programs_own_configuration_is_the_last_word_except_for_the_controller() {
    let (control, _) = scripted(12_345);
    let shown = format!("{:?}", control.transport(|_| {}));
    assert!(shown.contains("ack_eliciting_threshold: 0,"), "{shown}");
    let transport = control.transport(|transport| {
        transport
            .ack_frequency_config(None)
            .max_idle_timeout(None)
            .congestion_controller_factory(Baseline::Cubic.factory(1_200));
    });
    let shown = format!("{transport:?}");
    for expected in ["ack_frequency_config: None", "max_idle_timeout: None"] {
        assert!(shown.contains(expected), "{expected} is not in {shown}");
    }
    let wire = Wire::over(transport, &path("5ms"));
    assert_eq!(wire.server_window(), 12_345);
}

#[test]
fn a_frame_is_runs_of_packets_with_an_rtt_once_quinn_has_measured_it() {
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
                // Two consecutive runs differ in a property of runs.
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
    // Acknowledged MTU probes are not reported as sent; pure ACKs are, and are not acknowledged.
    assert!(bytes <= sent + 8 * 1_500, "{bytes} acknowledged of {sent}");
    // Not quinn's initial guess of 333 ms, at any time.
    assert_eq!(rtts[0], None);
    assert!(
        rtts.len() > 3 && rtts[2..].iter().all(Option::is_some),
        "{rtts:?}"
    );
    let range = Duration::from_millis(99)..Duration::from_millis(130);
    assert!(rtts.iter().flatten().all(|rtt| range.contains(rtt)), "{rtts:?}");
}

/// RFC 9002 §7.6.3: an outage longer than several probe timeouts is persistent congestion once something sent after it
/// is acknowledged, which brings `reno` to its minimum window. §7.6.1: one shorter than three probe timeouts is an
/// ordinary loss.
#[test]
fn losses_across_the_persistent_congestion_period_are_reported_as_such() {
    for (outage, delay, expected) in [
        (Duration::from_millis(250), "50ms,down@2.1s,50ms@2.35s", false),
        (Duration::from_secs(6), "50ms,down@2.1s,50ms@8.1s", true),
    ] {
        let (control, series) = monitored("reno");
        let mut wire = Wire::new(&control, &path(delay));
        wire.server_sends(300_000);
        wire.run_for(Duration::from_secs(2));
        let before = wire.server_window();
        assert!(before > 12_000, "{before}");
        wire.server_sends(20_000);
        wire.run_for(outage);
        wire.server_sends(20_000);
        wire.run_for(Duration::from_secs(20));
        let lost = control.monitor().latest().unwrap().lost;
        assert!(lost > Bytes::ZERO, "nothing was lost in {outage:?}");
        let minimum = 2 * u64::from(wire.server_mtu());
        let mut snapshots = series.samples().into_iter().map(|sample| sample.snapshot);
        let collapsed = snapshots.any(|snapshot| {
            let (phase, window) = (snapshot.phase, snapshot.window.as_u64());
            phase == Phase::AfterPersistentCongestion && window <= minimum
        });
        assert_eq!(collapsed, expected, "{outage:?}");
        assert_eq!(wire.received(), 340_000, "all of it arrives in the end");
    }
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

#[test]
fn telemetry_counts_what_quinn_counts() {
    for name in ["cubic", "bbr", "quinn-cubic", "quinn-newreno", "quinn-bbr"] {
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

// quinn's Bbr has no threshold that separates slow start from the rest.
#[test]
fn the_end_of_slow_start_of_quinns_bbr_shows_in_its_pacing_rate() {
    let (control, series) = monitored("quinn-bbr");
    let mut wire = Wire::new(&control, &path("20ms"));
    wire.server_sends(4_000_000);
    wire.run_for(Duration::from_secs(20));
    assert_eq!(wire.received(), 4_000_000);
    let samples = series.samples().into_iter();
    let mut phases: Vec<_> = samples.map(|sample| sample.snapshot.phase).collect();
    phases.dedup();
    assert_eq!(
        phases,
        [Phase::Startup, Phase::Avoidance],
        "slow start is over once"
    );
}

/// [`crate::UnsentBytes`] relies on quinn's reports to a controller; this fails if quinn changes them.
#[test]
fn the_estimate_of_unsent_bytes_follows_quinn() {
    const WINDOW: u64 = 60_000;
    const WRITTEN: u64 = 400_000;
    let (control, _) = scripted(WINDOW);
    let mut wire = Wire::new(&control, &path("50ms"));
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
