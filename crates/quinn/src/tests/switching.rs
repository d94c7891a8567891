//! Switching to another controller.

use super::*;
use crate::telemetry::Monitor;

/// A connection that begins with `first` and may switch to a scripted controller.
fn switchable(first: &str) -> (ConnectionController, ControllerChoice, Log) {
    let (second, log, _) = scripted(40_000);
    let choice = second.choice().clone();
    let control = ConnectionController::new(first.parse().unwrap())
        .with_monitor(Arc::new(Monitor::new(Duration::ZERO)))
        .switchable(std::slice::from_ref(&choice));
    // A controller was made to determine if it requires every acknowledgement.
    drain(&log);
    (control, choice, log)
}

#[test]
fn the_new_controller_starts_with_the_next_packet_and_knows_mtu_rtt_and_bytes_in_flight() {
    let (control, second, log) = switchable("cubic");
    let mut wire = Wire::new(&control, Duration::from_millis(25));
    wire.server_sends(3_000);
    wire.run_for(Duration::from_secs(2));
    assert_eq!(drain(&log), [], "no switch was requested");
    let mtu = wire.server_mtu();
    assert!(mtu > 1_200);
    assert!(control.switch(second.clone()) && !control.switch("reno".parse().unwrap()));
    assert_eq!(control.choice(), &second);
    assert_eq!(drain(&log), [], "nothing has left since");
    let before = control.monitor().latest().unwrap();
    wire.server_sends(100_000);
    wire.run_for(Duration::from_millis(45));
    let events = drain(&log);
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
    let acked = runs[0];
    let rtt = now.as_nanos() - acked.sent.as_nanos();
    assert_eq!((sent.now, sent.bytes), (acked.sent, acked.bytes));
    // There and back again; a probe that requested it immediately has no acknowledgement delay.
    assert!((50_000_000..=76_000_000).contains(&rtt), "{rtt} ns");
    assert!(acked.app_limited && *in_flight == Bytes::ZERO);
    assert_eq!(wire.server_window(), 40_000);
    let new: u64 = events[3..]
        .iter()
        .map(|events| match events {
            Event::Sent(sent) => sent.bytes.as_u64(),
            other => panic!("{other:?}"),
        })
        .sum();
    assert!((35_000..=40_000).contains(&new), "{new} bytes: its own window");
    wire.run_for(Duration::from_secs(2));
    assert_eq!(wire.received(), 103_000);
    let after = control.monitor().latest().unwrap();
    assert!(after.sent > before.sent + Bytes::new(100_000));
    assert!(after.delivered > before.delivered + Bytes::new(100_000));
    // Only the acknowledgement of MTU probes is visible here, so the wire's own count bounds both.
    let wire_sent = Bytes::new(wire.server.stats().udp_tx.bytes);
    assert!(after.sent < wire_sent && after.delivered < wire_sent, "{after:?}");
    let (sent, delivered) = (after.sent - before.sent, after.delivered - before.delivered);
    assert!(
        sent < Bytes::new(110_000) && delivered < Bytes::new(110_000),
        "{after:?}"
    );
}

#[test]
fn bytes_in_flight_and_losses_before_the_switch_are_reported_once_and_counted_once() {
    let (control, second, log) = switchable("quinn-cubic");
    let built = origin();
    let mut controller = Arc::new(control.clone()).build(built, 1_200);
    let at = |ms| built + Duration::from_millis(ms);
    for ms in 0..5 {
        controller.on_sent(at(ms), 1_200, ms);
    }
    controller.on_mtu_update(1_400);
    controller.on_congestion_event(at(60), at(2), false, 2_400);
    controller.on_sent(at(61), 1_400, 5);
    assert!(control.switch(second));
    controller.on_sent(at(62), 1_000, 6);
    let events = drain(&log);
    let [
        Event::Built(1_400),
        Event::Congestion(congestion),
        Event::Sent(old),
        Event::Sent(new),
    ] = events[..]
    else {
        panic!("{events:?}");
    };
    assert_eq!(congestion.now, Timestamp::from_millis(60));
    assert_eq!(
        (old.now, old.bytes),
        (Timestamp::from_millis(61), Bytes::new(3 * 1_200 + 1_400))
    );
    assert_eq!(
        (new.now, new.bytes),
        (Timestamp::from_millis(62), Bytes::new(1_000))
    );
    controller.on_end_acks(at(90), 6_000, false, None);
    let sample = control.monitor().latest().unwrap();
    assert_eq!(sample.sent, Bytes::new(5 * 1_200 + 1_400 + 1_000));
    assert_eq!((sample.lost, sample.congestion_events), (Bytes::new(2_400), 1));
}

#[test]
fn a_controller_that_is_not_switchable_stays() {
    let control = ConnectionController::new("cubic".parse().unwrap());
    assert!(!control.switch("reno".parse().unwrap()));
    assert_eq!(control.to_string(), "cubic");
}

#[test]
fn a_new_path_begins_with_the_controller_after_the_switch() {
    let (control, second, log) = switchable("cubic");
    assert!(control.switch(second));
    let controller = Arc::new(control).build(origin(), 1_300);
    assert_eq!(drain(&log), [Event::Built(1_300)]);
    assert_eq!(controller.window(), 40_000);
}
