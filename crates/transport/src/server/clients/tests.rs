use futures_util::FutureExt;
use quinn::{Runtime, TokioRuntime};

use super::*;

/// The `number`-th of many addresses, all in different networks.
fn peer(number: u16) -> SocketAddr {
    let [high, low] = number.to_be_bytes();
    (Ipv4Addr::new(192, 0, high, low), 5_000).into()
}

fn control() -> Arc<ConnectionController> {
    Arc::new(ConnectionController::new("cubic".parse().unwrap()))
}

fn place(decision: Decision) -> ClientPlace {
    match decision {
        Decision::Accepted(place) => place,
        other => panic!("{other:?}"),
    }
}

#[test]
fn forged_addresses_get_a_retry_once_enough_handshakes_are_in_progress() {
    let (clients, now) = (Clients::new(1_000, 1_000), TokioRuntime.now());
    let mut handshakes: Vec<_> = (0..64)
        .map(|number| place(clients.decide(peer(number), false, now)))
        .collect();
    assert!(matches!(clients.decide(peer(64), false, now), Decision::Retry));
    assert_eq!(clients.totals().retried, 1);
    handshakes.pop();
    assert!(matches!(
        clients.decide(peer(64), false, now),
        Decision::Accepted(_)
    ));
}

#[test]
fn handshakes_of_forged_addresses_take_no_place_from_clients_that_proved_theirs() {
    let (clients, now) = (Clients::new(2, 2), TokioRuntime.now());
    let forged: Vec<_> = (0..64)
        .map(|number| place(clients.decide(peer(number), false, now)))
        .collect();
    let proved = [0, 1].map(|number| place(clients.decide(peer(number), true, now)));
    assert!(matches!(clients.decide(peer(2), true, now), Decision::Refused));
    assert_eq!(clients.totals().refused, 1);
    drop((forged, proved));
    let state = clients.state();
    assert_eq!(
        (state.unproved, state.proved.len(), state.by_network.len()),
        (0, 0, 0)
    );
}

#[test]
fn handshakes_that_end_together_do_not_exceed_the_limit() {
    let (clients, now) = (Clients::new(1, 1), TokioRuntime.now());
    let [mut first, mut second] = [0, 1].map(|number| place(clients.decide(peer(number), false, now)));
    let activity = Activity::new(Arc::new(TokioRuntime));
    assert_eq!(first.establish(peer(0), &activity, &control(), now), Ok(()));
    assert_eq!(
        second.establish(peer(1), &activity, &control(), now),
        Err(Refusal::Connections)
    );
    drop(first);
    assert_eq!(second.establish(peer(1), &activity, &control(), now), Ok(()));
    drop(second);
    assert_eq!(clients.state().unproved, 0);
}

#[rstest::rstest]
#[case::the_same_ipv4_address("198.51.100.7", "198.51.100.7", false)]
#[case::another_ipv4_address("198.51.100.7", "198.51.100.8", true)]
#[case::an_ipv4_address_on_an_ipv6_socket("198.51.100.7", "::ffff:198.51.100.7", false)]
#[case::the_same_ipv6_network("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", false)]
#[case::another_ipv6_network("2001:db8:1:2::1", "2001:db8:1:3::1", true)]
fn an_address_has_a_limit_of_its_own(#[case] first: IpAddr, #[case] second: IpAddr, #[case] admitted: bool) {
    let (clients, now) = (Clients::new(100, 1), TokioRuntime.now());
    let decide = |ip, is_proved| clients.decide((ip, 1).into(), is_proved, now);
    let _first = place(decide(first, true));
    assert_eq!(matches!(decide(second, true), Decision::Accepted(_)), admitted);
    assert_eq!(matches!(decide(second, false), Decision::Accepted(_)), admitted);
    assert_eq!(clients.totals().retried, u64::from(!admitted));
}

#[test]
fn the_connection_that_was_idle_for_the_longest_makes_room() {
    let clients = Clients::new(3, 100);
    let sessions: Vec<_> = (0..3)
        .map(|number| {
            let mut place = place(clients.decide(peer(number), true, TokioRuntime.now()));
            let activity = Activity::new(Arc::new(TokioRuntime));
            place
                .establish(peer(number), &activity, &control(), TokioRuntime.now())
                .unwrap();
            (place, activity)
        })
        .collect();
    let is_evicted = |number: usize| sessions[number].1.expired(None).now_or_never().is_some();
    // The oldest is busy, and the second ended an exchange just now.
    let busy = sessions[0].1.begin();
    drop(sessions[1].1.begin());
    let ended = sessions[1].1.idle_since().unwrap();
    let third = sessions[2].1.idle_since().unwrap();
    assert!(ended > third && sessions[0].1.idle_since().is_none());

    let too_soon = third + MIN_IDLE - Duration::from_nanos(1);
    assert!(matches!(
        clients.decide(peer(9), true, too_soon),
        Decision::Refused
    ));
    let forged = clients.decide(peer(9), false, ended + MIN_IDLE);
    assert!(
        matches!(forged, Decision::Retry),
        "a forged address evicts no session"
    );
    assert!([0, 1, 2].map(is_evicted).iter().all(|evicted| !evicted));

    let first_new = place(clients.decide(peer(9), true, ended + MIN_IDLE));
    assert_eq!([0, 1, 2].map(is_evicted), [false, false, true]);
    let second_new = place(clients.decide(peer(10), true, ended + MIN_IDLE));
    assert_eq!([0, 1, 2].map(is_evicted), [false, true, true]);
    let last = clients.decide(peer(11), true, ended + MIN_IDLE * 100);
    assert!(
        matches!(last, Decision::Refused),
        "all others are busy or in their handshakes"
    );
    assert_eq!(clients.totals().evicted, 2);
    // An evicted connection that ends later gives no place back a second time.
    drop((busy, sessions));
    assert_eq!(clients.state().proved.len(), 2);
    drop((first_new, second_new));
    assert!(clients.state().by_network.is_empty());
}
