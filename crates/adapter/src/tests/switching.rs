//! Replacing a controller by another.

use super::*;

/// A connection that begins with one of the stack's own controllers and may switch to a scripted one.
fn switchable(script: &Script) -> (Control, Choice) {
    let second = scripted(script).current_choice().clone();
    let control = Control::new("stack-own".parse().unwrap())
        .with_monitor(Arc::new(Monitor::new(Duration::ZERO)))
        .with_alternatives(std::slice::from_ref(&second));
    // A controller was built to determine if it requires every acknowledgement.
    script.drain();
    (control, second)
}

/// Reports a burst as an adapter does.
fn send(path: &mut Path, now: Instant, bytes: u64) {
    if let Some(history) = path.replace_if_switched() {
        if let Some((packet, rtt)) = &history.acked {
            path.on_sent(packet.sent, packet.bytes);
            path.on_ack(packet, rtt);
            path.on_end_acks(packet.acked, Bytes::ZERO, true);
        }
        if let Some(report) = &history.congestion {
            path.on_congestion(report);
        }
        if history.in_flight > Bytes::ZERO {
            path.on_sent(history.last_sent, history.in_flight);
        }
    }
    path.on_sent(now, Bytes::new(bytes));
}

#[test]
fn what_happened_before_the_switch_is_reported_once_and_counted_once() {
    let script = Script::new(40_000);
    let (control, second) = switchable(&script);
    let (mut path, built) = path(control.clone());
    let at = |millis| built + ms(millis);
    let leaves = |millis, bytes| Event::Sent(Sent::new(Timestamp::from_millis(millis), Bytes::new(bytes)));
    for millis in 0..7 {
        send(&mut path, at(millis), 1_200);
    }
    for (sent, acked) in [(0, 50), (1, 40)] {
        path.on_ack(&packet(at(sent), at(acked), 1_200), &ms(acked));
    }
    path.on_end_acks(at(50), Bytes::new(6_000), false);
    path.on_mtu_update(1_400);
    path.on_congestion(&loss(at(60), at(4), 2_400));
    send(&mut path, at(61), 1_400);
    assert_eq!(script.drain(), [], "no switch was requested");
    assert!(control.switch(second.clone()) && !control.switch("reno".parse().unwrap()));
    assert_eq!(control.current_choice(), &second);
    assert_eq!(script.drain(), [], "nothing has left since");
    send(&mut path, at(62), 1_000);
    let fastest = Acked::new(Timestamp::from_millis(1), Bytes::new(1_200), 1);
    let expected = [
        Event::Built(1_400),
        leaves(1, 1_200),
        Event::Acked {
            now: Timestamp::from_millis(40),
            runs: vec![fastest.with_app_limited(true)],
            in_flight: Bytes::ZERO,
            smoothed_rtt: None,
        },
        Event::Congestion(Congestion::new(
            Timestamp::from_millis(60),
            Timestamp::from_millis(4),
            Signal::loss(Bytes::new(2_400)),
        )),
        leaves(61, 3 * 1_200 + 1_400),
        leaves(62, 1_000),
    ];
    assert_eq!(script.drain(), expected);
    path.on_end_acks(at(90), Bytes::new(6_000), false);
    let sample = control.monitor().latest().unwrap();
    assert_eq!(sample.sent, Bytes::new(7 * 1_200 + 1_400 + 1_000));
    assert_eq!(
        (sample.delivered, sample.delivered_packets),
        (Bytes::new(2_400), 2)
    );
    assert_eq!((sample.lost, sample.congestion_events), (Bytes::new(2_400), 1));
    send(&mut path, at(91), 1_000);
    assert_eq!(script.drain()[1..], [leaves(91, 1_000)], "once");
}

#[test]
fn a_controller_that_is_not_switchable_stays() {
    let control = Control::new("cubic".parse().unwrap());
    assert!(!control.switch("reno".parse().unwrap()));
    assert_eq!(control.to_string(), "cubic");
}

#[test]
fn a_new_path_begins_with_the_controller_after_the_switch() {
    let script = Script::new(40_000);
    let (control, second) = switchable(&script);
    assert!(control.switch(second));
    let path = Path::new(Arc::new(control), origin(), 1_300);
    assert_eq!(script.drain(), [Event::Built(1_300)]);
    assert_eq!(path.window(), Bytes::new(40_000));
}
