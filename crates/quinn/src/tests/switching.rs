//! Switching to another controller.

use super::*;

#[test]
fn the_new_controller_starts_with_the_next_packet_and_knows_mtu_rtt_and_bytes_in_flight() {
    let (second, script) = scripted(40_000);
    let second = second.current_choice().clone();
    let control = ConnectionController::new("cubic".parse().unwrap())
        .with_monitor(Arc::new(Monitor::new(Duration::ZERO)))
        .with_alternatives(std::slice::from_ref(&second));
    // A controller was built to determine if it requires every acknowledgement.
    script.drain();
    let mut wire = Wire::new(&control, &path("25ms"));
    wire.server_sends(3_000);
    wire.run_for(Duration::from_secs(2));
    assert_eq!(script.drain(), [], "no switch was requested");
    let mtu = wire.server_mtu();
    assert!(mtu > 1_200);
    assert!(control.switch(second.clone()) && !control.switch("reno".parse().unwrap()));
    assert_eq!(control.current_choice(), &second);
    assert_eq!(script.drain(), [], "nothing has left since");
    let before = control.monitor().latest().unwrap();
    wire.server_sends(100_000);
    wire.run_for(Duration::from_millis(45));
    let events = script.drain();
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
    // There and back again; a probe that requested it immediately has no acknowledgement delay.
    assert!((50_000_000..=76_000_000).contains(&rtt), "{rtt} ns");
    let acked = Acked::new(sent.now, sent.bytes, 1).with_app_limited(true);
    assert_eq!((runs.as_slice(), *in_flight), ([acked].as_slice(), Bytes::ZERO));
    assert_eq!(wire.server_window(), 40_000);
    let new = events[3..].iter().map(|event| match event {
        Event::Sent(sent) => sent.bytes.as_u64(),
        other => panic!("{other:?}"),
    });
    let new: u64 = new.sum();
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
fn a_switch_to_a_controller_of_quinn_reports_the_history_to_it() {
    let control = ConnectionController::new("cubic".parse().unwrap())
        .with_monitor(Arc::new(Monitor::new(Duration::ZERO)))
        .with_alternatives(&[]);
    let built = origin();
    let mut controller = QuinnController::new(Arc::new(control.clone()), built, 1_200);
    let at = |ms| built + Duration::from_millis(ms);
    controller.on_sent(at(0), 12_000, 9);
    controller.on_congestion_event(at(60), at(2), false, 2_400);
    assert!(control.switch(Baseline::NewReno.into()));
    controller.on_sent(at(62), 1_000, 10);
    assert_eq!(controller.window(), 6_000, "half of quinn's initial window");
    let sample = control.monitor().latest().unwrap();
    assert_eq!((sample.lost, sample.congestion_events), (Bytes::new(2_400), 1));
    let own = Box::new(controller).into_any();
    assert!(own.is::<quinn_proto::congestion::NewReno>());
}
