//! Arbitrary events to arbitrary compositions: no panic, no window out of bounds, the same events give the
//! same windows.

use std::sync::Arc;

use core::time::Duration;

use proptest::prelude::*;

use super::OwnedFrame;
use super::spec::any_spec;
use crate::events::{Acked, Congestion, Sent, Signal};
use crate::testing::Connection;
use crate::{Bytes, ControllerSpec, Path, Timestamp, VideoKnowledge};

// The first window counts as a flight until a loss. It counts again if the loss was spurious.
#[test]
fn a_restored_window_is_bounded_by_the_flight_before_its_reduction() {
    let spec: ControllerSpec = "compound(growth=ratelimited,initial_window=665)".parse().unwrap();
    let mut connection = Connection::new(&spec);
    connection.offer(1);
    connection.lose(1);
    connection.find_losses_spurious();
    connection.offer(1);
    connection.ack(1);
}

/// An event with arbitrary numbers, in any order: more than a correct transport would report.
#[derive(Clone, Debug)]
enum Event {
    Sent(Sent),
    Frame(OwnedFrame),
    Congestion(Congestion),
    Spurious,
    Mtu(Bytes),
}

fn time() -> impl Strategy<Value = Timestamp> {
    prop_oneof![0..10_000_000_000_u64, any::<u64>()].prop_map(Timestamp::from_nanos)
}

fn bytes() -> impl Strategy<Value = Bytes> {
    prop_oneof![0..100_000_u64, any::<u64>()].prop_map(Bytes::new)
}

fn event() -> impl Strategy<Value = Event> {
    let signal = prop_oneof![
        Just(Signal::EcnCe),
        (bytes(), any::<bool>()).prop_map(|(bytes, persistent)| Signal::Loss { bytes, persistent }),
    ];
    let run = (time(), bytes(), 1..20_u32, any::<bool>()).prop_map(|(sent, bytes, packets, app_limited)| {
        Acked::new(sent, bytes, packets).with_app_limited(app_limited)
    });
    let smoothed = prop::option::of(any::<u64>().prop_map(Duration::from_nanos));
    let runs = prop::collection::vec(run, 0..4);
    let frame = (time(), runs, bytes(), any::<bool>(), smoothed);
    let frame = frame.prop_map(|(now, acked, in_flight, app_limited, smoothed_rtt)| OwnedFrame {
        now,
        acked,
        in_flight,
        app_limited,
        smoothed_rtt,
    });
    let congestion = (time(), time(), signal);
    let congestion = congestion.prop_map(|(now, sent, signal)| Congestion::new(now, sent, signal));
    prop_oneof![
        (time(), bytes()).prop_map(|(now, bytes)| Event::Sent(Sent::new(now, bytes))),
        frame.prop_map(Event::Frame),
        congestion.prop_map(Event::Congestion),
        Just(Event::Spurious),
        (0..70_000_u64).prop_map(|mtu| Event::Mtu(Bytes::new(mtu))),
    ]
}

proptest! {
    #[test]
    fn every_composition_keeps_its_promises_whatever_happens(
        text in any_spec(),
        bytes in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        let Ok(spec) = text.parse::<ControllerSpec>() else { return Ok(()) };
        Connection::new(&spec).run(&bytes);
    }

    #[test]
    fn no_numbers_take_a_window_out_of_its_bounds(
        text in any_spec(),
        events in prop::collection::vec(event(), 0..60),
    ) {
        let Ok(spec) = text.parse::<ControllerSpec>() else { return Ok(()) };
        let mut controller = spec.build(&Path::default(), Arc::new(VideoKnowledge::new()));
        for event in &events {
            match event {
                Event::Sent(event) => controller.on_sent(event),
                Event::Frame(frame) => {
                    let window = controller.on_ack_frame(&frame.event());
                    prop_assert_eq!(window, controller.window());
                }
                Event::Congestion(event) => controller.on_congestion(event),
                Event::Spurious => controller.on_spurious_congestion(),
                Event::Mtu(mtu) => controller.on_mtu_change(*mtu),
            }
            let window = controller.window().as_u64();
            prop_assert!(window >= 2 && u32::try_from(window).is_ok(), "{} after {:?}", window, event);
            prop_assert!(controller.initial_window() > Bytes::ZERO);
        }
    }
}
