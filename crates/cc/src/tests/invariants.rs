//! Invariants of every controller in the registry. Registering a new one is enough to test it.
//!
//! [`Connection`] itself checks after every event that the window is within its bounds, that two instances that
//! received the same events agree, and that a window-based controller does not grow while the application limits the
//! sender.

use core::time::Duration;
use std::sync::Arc;

use super::{MS, train};
use crate::events::{AckFrame, Acked, Congestion, Sent, Signal};
use crate::registry::{Entry, Key, Registry};
use crate::testing::Connection;
use crate::{Bitrate, Bytes, ControllerSpec, Path, Phase, Snapshot, Timestamp, VideoKnowledge};

/// The entry with its defaults, and with each other word for each of its parameters that take words.
fn variants(entry: &Entry) -> Vec<String> {
    let name = entry.name();
    let mut texts = vec![name.to_owned()];
    for parameter in entry.parameters() {
        let words = parameter.words().iter();
        texts.extend(words.map(|word| format!("{name}({}={word})", parameter.name)));
    }
    texts
}

/// Every algorithm in all its variants, each with every variant of each component, pauses under ceilings, and every
/// alias, as far as they are compatible.
pub(super) fn all() -> Vec<ControllerSpec> {
    let registry = Registry::builtin();
    let mut texts: Vec<String> = registry.aliases().map(|alias| alias.name.to_owned()).collect();
    for entry in registry.controllers() {
        texts.extend(variants(entry));
        let algorithm = entry.name();
        texts.push(format!("{algorithm}(counting=acks,ssthresh=24kB)"));
        let growing = entry.parameters().iter().any(|own| own.name == "growth");
        for key in Key::ALL {
            for component in registry.components(key).flat_map(variants) {
                if growing {
                    texts.push(format!("{algorithm}(growth=ratelimited)+{key}={component}"));
                }
                texts.push(format!("{algorithm}+{key}={component}"));
            }
        }
        for idle in registry.components(Key::Idle) {
            for ceiling in registry.components(Key::Ceiling) {
                let (idle, ceiling) = (idle.name(), ceiling.name());
                texts.push(format!("{algorithm}+idle={idle}+ceiling={ceiling}"));
            }
        }
    }
    let mut specs: Vec<ControllerSpec> = Vec::new();
    for spec in texts.iter().filter_map(|text| registry.parse(text).ok()) {
        if !specs.contains(&spec) {
            specs.push(spec);
        }
    }
    assert!(specs.len() >= registry.controllers().count());
    specs
}

/// Runs `check` on a new connection for every spec, once with every fact of the video unknown and once with all known.
fn for_all(check: impl Fn(&ControllerSpec, Connection)) {
    for spec in all() {
        for informed in [false, true] {
            let mut connection = Connection::new(&spec);
            connection.pass(MS);
            if informed {
                connection.known.set_average_rate(Some(Bitrate::from_kbps(5_240)));
                connection.known.set_playout_buffer(Some(Bytes::new(655_872)));
                connection.known.set_buffered(Some(Duration::from_secs(2)));
            }
            check(&spec, connection);
        }
    }
}

/// Round trips with windows of up to 500 packets that arrive at 20 Mbit/s.
fn stream(c: &mut Connection, rounds: usize) {
    for _ in 0..rounds {
        train(c, 500);
    }
}

/// Runs `check` for every controller that answers a loss. The connection filled its window a round trip ago and is
/// about to lose packets.
fn for_loss_based(check: impl Fn(&ControllerSpec, Connection)) {
    for_all(|spec, mut c| {
        if loss_based(spec) {
            stream(&mut c, 3);
            c.offer(4_000);
            c.pass(MS * 100);
            check(spec, c);
        }
    });
}

fn loss_based(spec: &ControllerSpec) -> bool {
    !spec.algorithm().traits.holds_on_loss && spec.is_window_based()
}

#[test]
fn every_algorithm_and_every_component_is_among_what_is_tested() {
    let (registry, all) = (Registry::builtin(), all());
    for entry in registry.entries() {
        let entry_of = |spec: &ControllerSpec| match entry.key() {
            None => Some(spec.algorithm().name()),
            Some(key) => spec.component(key).map(|(component, _)| component.name()),
        };
        let tested = all.iter().any(|spec| entry_of(spec) == Some(entry.name()));
        assert!(tested, "{} fits nothing", entry.name());
    }
}

#[test]
fn every_controller_starts_with_its_initial_window() {
    for_all(|spec, c| {
        assert_eq!(c.controller().window(), c.controller().initial_window(), "{spec}");
        assert_eq!(c.window(), 12_000, "{spec}");
        assert_eq!(c.snapshot().phase, Phase::Startup, "{spec}");
    });
}

#[test]
fn every_controller_grows_when_the_window_is_used_and_nothing_is_lost() {
    for_all(|spec, mut c| {
        stream(&mut c, 4);
        assert!(c.window() > 12_000, "{spec}: {}", c.window());
    });
}

#[test]
fn no_window_based_controller_grows_while_app_limited() {
    for_all(|_, mut c| {
        stream(&mut c, 3);
        for _ in 0..200 {
            c.send(2);
            c.set_app_limited(true);
            c.pass(MS * 100);
            c.ack(2);
        }
    });
}

#[test]
fn a_loss_based_controller_gives_way_once_for_each_recovery() {
    for_loss_based(|spec, mut c| {
        let before = c.window();
        c.lose(1);
        let after = c.window();
        assert!(after < before, "{spec}");
        for _ in 0..5 {
            c.pass(MS);
            c.lose(1);
            assert_eq!(c.window(), after, "{spec}");
        }
    });
}

// RFC 9438 §4.9.2. The loss has no bytes, so that the flight is the same with and without it.
#[test]
fn after_a_spurious_loss_a_loss_based_controller_continues_as_without_it() {
    for_loss_based(|spec, c| {
        let (mut now, mut without) = (c.now(), c.controller().clone_box());
        let mut with = without.clone();
        with.on_congestion(&Congestion::new(now, now, Signal::loss(Bytes::ZERO)));
        assert!(with.window() < without.window(), "{spec}");
        with.on_spurious_congestion();
        with.on_spurious_congestion();
        for _ in 0..40 {
            let flight = without.window();
            for controller in [&mut with, &mut without] {
                controller.on_sent(&Sent::new(now, flight));
            }
            let sent = now;
            now = now + MS * 100;
            let acked = [Acked::new(sent, flight, 40)];
            let frame = AckFrame::new(now, &acked, Bytes::ZERO);
            assert_eq!(with.on_ack_frame(&frame), without.on_ack_frame(&frame), "{spec}");
        }
        let [with, without] = [with, without].map(|controller| controller.snapshot());
        let state = |snapshot: Snapshot| (snapshot.phase, snapshot.ssthresh, snapshot.window);
        assert_eq!(state(with), state(without), "{spec}");
    });
}

#[test]
fn marks_and_persistent_congestion_are_never_undone() {
    for_loss_based(|spec, mut c| {
        c.lose(1);
        c.ack(1);
        c.pass(MS);
        c.ecn_ce();
        let before = c.snapshot();
        c.find_losses_spurious();
        assert_eq!(c.snapshot(), before, "{spec}");
        c.lose_persistently(1);
        let before = c.snapshot();
        c.find_losses_spurious();
        assert_eq!(c.snapshot(), before, "{spec}");
    });
}

/// A hint is about the last congestion event. If the controller held then, an older reduction may have been right.
#[test]
fn a_reduction_before_an_event_without_an_answer_is_never_undone() {
    let mut c = Connection::new(&"ccp+start=video-rate".parse().expect("a spec"));
    c.known.set_average_rate(Some(Bitrate::from_mbps(80)));
    stream(&mut c, 1);
    c.offer(4_000);
    c.pass(MS * 100);
    let before = c.snapshot().algorithm_window;
    c.lose(1);
    assert_eq!(c.snapshot().phase, Phase::Recovery);
    stream(&mut c, 3);
    c.offer(4_000);
    c.pass(MS * 100);
    c.lose(1);
    // CCP knows the capacity now, and holds.
    let held = c.snapshot();
    assert_ne!(held.phase, Phase::Recovery);
    assert!(held.algorithm_window < before, "{held:?}");
    c.find_losses_spurious();
    assert_eq!(c.snapshot(), held);
}

// RFC 9438 §4.9.2: a window that has grown beyond its former size stays.
#[test]
fn a_spurious_loss_found_late_leaves_a_larger_window() {
    for spec in ["cubic", "reno"] {
        let mut c = Connection::new(&spec.parse().expect("a spec"));
        stream(&mut c, 3);
        c.offer(4_000);
        c.pass(MS * 100);
        let before = c.window();
        c.lose(1);
        while c.window() <= before {
            stream(&mut c, 1);
        }
        let grown = c.snapshot();
        c.find_losses_spurious();
        assert_eq!(c.snapshot(), grown, "{spec}");
    }
}

#[test]
fn acknowledgements_of_packets_sent_before_recovery_leave_a_loss_based_window_alone() {
    for_loss_based(|spec, mut c| {
        c.lose(1);
        let window = c.window();
        while c.packets_in_flight() > 0 {
            c.pass(MS);
            c.ack(2);
            assert_eq!(c.window(), window, "{spec}");
        }
        assert_eq!(c.snapshot().phase, Phase::Recovery, "{spec}");
    });
}

#[test]
fn persistent_congestion_leaves_the_smallest_window_and_slow_start() {
    for_all(|spec, mut c| {
        stream(&mut c, 3);
        c.offer(4_000);
        c.pass(MS * 500);
        c.lose_persistently(8);
        assert_eq!(c.snapshot().phase, Phase::AfterPersistentCongestion, "{spec}");
        if loss_based(spec) {
            assert_eq!(c.window(), 2_400, "{spec}");
        }
        stream(&mut c, 12);
        assert!(c.window() > 4_800, "{spec} does not recover");
    });
}

#[test]
fn every_controller_survives_changes_of_the_mtu() {
    for_all(|_, mut c| {
        for mtu in [1_452, 9_000, 1_200, 65_400, 1_200] {
            c.change_mtu(Bytes::new(mtu));
            stream(&mut c, 2);
            c.offer(10);
            c.pass(MS * 100);
            c.lose_persistently(1);
            c.change_mtu(Bytes::new(mtu + 100));
        }
    });
}

#[test]
fn a_clone_goes_on_like_the_original() {
    for_all(|_, mut c| {
        stream(&mut c, 2);
        c.replace_by_clone();
        stream(&mut c, 2);
        c.offer(20);
        c.pass(MS * 100);
        c.lose(2);
        c.replace_by_clone();
        stream(&mut c, 3);
    });
}

#[test]
fn no_window_exceeds_u32_max_however_long_nothing_is_lost() {
    let mtu = Bytes::new(65_527);
    for spec in all() {
        let mut controller = spec.build(&Path::new(mtu), Arc::new(VideoKnowledge::new()));
        let mut now = Timestamp::ZERO;
        // Beyond `max_ssthresh` slow start grows by ever smaller shares of the flight.
        for _ in 0..1_000 {
            let (sent, flight) = (now, controller.window());
            controller.on_sent(&Sent::new(now, flight));
            now = now + MS * 100;
            let acked = [Acked::new(sent, flight, 4_000)];
            controller.on_ack_frame(&AckFrame::new(now, &acked, Bytes::ZERO));
            let window = controller.window().as_u64();
            assert!(u32::try_from(window).is_ok(), "{spec}: {window}");
        }
        // SEARCH ends slow start where the window no longer doubles.
        let start = spec.component(Key::Start).map(|(start, _)| start.name());
        let doubles = spec.algorithm().name() == "reno"
            && spec.algorithm_arguments().word("counting") == "bytes"
            && start != Some("search");
        let grown = !doubles || controller.window() == Bytes::new(u32::MAX.into());
        assert!(grown, "{spec} does not reach the bound");
    }
}

#[test]
fn the_state_of_a_composed_controller_is_at_most_2_kib() {
    assert!(size_of::<crate::compose::Composed>() <= 2_048);
}
