//! A controller takes another one's place.

use super::*;
use crate::telemetry::Monitor;

/// A connection that begins with `first` and may become `second`, which is scripted.
fn switchable(first: &str) -> (ConnectionController, ControllerChoice, Log) {
    let (second, log, _) = scripted(40_000);
    let choice = second.choice().clone();
    let control = ConnectionController::new(first.parse().unwrap())
        .with_monitor(Arc::new(Monitor::new(Duration::ZERO)))
        .switchable(std::slice::from_ref(&choice));
    // One was made to ask whether it wants every acknowledgement.
    drain(&log);
    (control, choice, log)
}

#[test]
fn it_takes_over_with_the_next_packet_and_knows_mtu_rtt_and_what_is_in_flight() {
    let (control, second, log) = switchable("cubic");
    let mut wire = Wire::new(&control, Duration::from_millis(25));
    wire.server_sends(3_000);
    wire.run_for(Duration::from_secs(2));
    assert_eq!(drain(&log), [], "nobody asked for it");
    let mtu = wire.server_mtu();
    assert!(mtu > 1_200);
    assert!(control.switch(second.clone()) && !control.switch("reno".parse().unwrap()));
    assert_eq!(control.choice(), &second);
    assert_eq!(drain(&log), [], "nothing has left since");
    let before = control.monitor().latest().unwrap();
    wire.server_sends(100_000);
    wire.run_for(Duration::from_millis(45));
    let told = drain(&log);
    assert_eq!(told[0], Told::Built(mtu.into()));
    let (Told::Sent(sent), Told::Acked(acked), Told::Batch(batch)) = (told[1], told[2], told[3]) else {
        panic!("{told:?}");
    };
    let rtt = acked.now.as_nanos() - acked.sent.as_nanos();
    assert_eq!((sent.now, sent.bytes), (acked.sent, acked.bytes));
    // There and back again; a probe that asked for it at once has no acknowledgement delay.
    assert!((50_000_000..=76_000_000).contains(&rtt), "{rtt} ns");
    assert!(acked.app_limited && batch.in_flight == Bytes::ZERO);
    assert_eq!(wire.server_window(), 40_000);
    let new: u64 = told[4..]
        .iter()
        .map(|told| match told {
            Told::Sent(sent) => sent.bytes.as_u64(),
            other => panic!("{other:?}"),
        })
        .sum();
    assert!((35_000..=40_000).contains(&new), "{new} bytes: its own window");
    wire.run_for(Duration::from_secs(2));
    assert_eq!(wire.received, 103_000);
    let after = control.monitor().latest().unwrap();
    assert!(after.sent > before.sent + Bytes::new(100_000));
    assert!(after.delivered > before.delivered + Bytes::new(100_000));
    // Of MTU probes only the acknowledgement is seen here, so the wire's own count bounds both.
    let wire_sent = Bytes::new(wire.server_stats().udp_tx.bytes);
    assert!(after.sent < wire_sent && after.delivered < wire_sent, "{after:?}");
    let (sent, delivered) = (after.sent - before.sent, after.delivered - before.delivered);
    assert!(
        sent < Bytes::new(110_000) && delivered < Bytes::new(110_000),
        "{after:?}"
    );
}

#[test]
fn what_is_in_flight_and_was_lost_before_is_told_once_and_counted_once() {
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
    let told = drain(&log);
    let [
        Told::Built(1_400),
        Told::Congestion(congestion),
        Told::Sent(old),
        Told::Sent(new),
    ] = told[..]
    else {
        panic!("{told:?}");
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
fn without_leave_nothing_takes_over() {
    let control = ConnectionController::new("cubic".parse().unwrap());
    assert!(!control.switch("reno".parse().unwrap()));
    assert_eq!(control.to_string(), "cubic");
}

#[test]
fn a_new_path_begins_with_what_was_chosen() {
    let (control, second, log) = switchable("cubic");
    assert!(control.switch(second));
    let controller = Arc::new(control).build(origin(), 1_300);
    assert_eq!(drain(&log), [Told::Built(1_300)]);
    assert_eq!(controller.window(), 40_000);
}
