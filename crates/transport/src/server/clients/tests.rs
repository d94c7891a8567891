use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use futures_util::FutureExt;
use quinn::{Runtime, TokioRuntime};

use super::*;
use crate::tls::Identity;

const EVICT_AFTER: Duration = Duration::from_secs(20);

fn clients(max: usize, max_per_network: usize) -> Arc<Clients> {
    let mut options = ServerOptions::new(Identity::development(&[]).unwrap());
    options.max_connections = max;
    options.max_connections_per_address = max_per_network;
    assert_eq!(options.evict_after, EVICT_AFTER);
    Clients::new(&options)
}

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

/// A connection of a client at `peer`, admitted at `now`.
fn connect(
    clients: &Arc<Clients>,
    peer: SocketAddr,
    now: Instant,
) -> Result<(ClientPlace, Activity), Refusal> {
    let mut place = place(clients.decide(peer, true, now));
    let activity = Activity::new(Arc::new(TokioRuntime));
    place.establish(&activity, &control(), now)?;
    Ok((place, activity))
}

fn is_evicted((_, activity): &(ClientPlace, Activity)) -> bool {
    activity.expired(None).now_or_never().is_some()
}

#[test]
fn forged_addresses_get_a_retry_once_enough_handshakes_are_in_progress() {
    let (clients, now) = (clients(1_000, 1_000), TokioRuntime.now());
    let mut handshakes: Vec<_> = (0..64)
        .map(|number| place(clients.decide(peer(number), false, now)))
        .collect();
    assert!(matches!(clients.decide(peer(64), false, now), Decision::Retry));
    assert_eq!(clients.totals().retried, 1);
    handshakes.pop();
    place(clients.decide(peer(64), false, now));
}

#[test]
fn handshakes_take_no_place_and_are_forgotten_at_their_end() {
    let (clients, now) = (clients(1, 1), TokioRuntime.now());
    let forged: Vec<_> = (0..64)
        .map(|number| place(clients.decide(peer(number), false, now)))
        .collect();
    let validated: Vec<_> = (0..16)
        .map(|_| place(clients.decide(peer(0), true, now)))
        .collect();
    let connection = connect(&clients, peer(1), now).unwrap();
    assert_eq!(clients.totals().refused, 0);
    drop((forged, validated, connection));
    let state = clients.state.lock();
    assert_eq!((state.unvalidated, state.validated.len()), (0, 0));
    assert_eq!(state.connections.taken(), 0);
}

#[test]
fn one_network_does_not_occupy_the_handshakes_with_validated_addresses() {
    let (clients, now) = (clients(1_000, 1_000), TokioRuntime.now());
    let begin = |network| clients.decide(peer(network), true, now);
    // 16 of its own, and 64 that count as if the address were not validated.
    let mut handshakes: Vec<_> = (0..16 + 64).map(|_| place(begin(0))).collect();
    assert!(matches!(begin(0), Decision::Refused));
    assert!(matches!(clients.decide(peer(1), false, now), Decision::Retry));
    for network in 1..16 {
        handshakes.extend((0..16).map(|_| place(begin(network))));
    }
    let _first = place(begin(16));
    assert!(
        matches!(begin(16), Decision::Refused),
        "256 handshakes are in progress, so that a network may have one"
    );
    assert_eq!(clients.totals().refused, 2);
    handshakes.extend((17..17 + 1_024 - 257).map(|network| place(begin(network))));
    assert!(matches!(begin(2_000), Decision::Refused), "1,024 are in progress");
    handshakes.pop();
    assert!(matches!(begin(2_000), Decision::Accepted(_)));
}

#[test]
fn handshakes_that_end_together_do_not_exceed_the_limit() {
    let (clients, now) = (clients(1, 1), TokioRuntime.now());
    let [mut first, mut second] = [0, 1].map(|number| place(clients.decide(peer(number), false, now)));
    let activity = Activity::new(Arc::new(TokioRuntime));
    assert_eq!(first.establish(&activity, &control(), now), Ok(()));
    let refused = second.establish(&activity, &control(), now);
    assert_eq!(refused, Err(Refusal::Connections));
    drop(first);
    assert_eq!(second.establish(&activity, &control(), now), Ok(()));
    drop(second);
    assert_eq!(clients.state.lock().unvalidated, 0);
}

#[rstest::rstest]
#[case::the_same_ipv4_address("198.51.100.7", "198.51.100.7", false)]
#[case::another_ipv4_address("198.51.100.7", "198.51.100.8", true)]
#[case::an_ipv4_address_on_an_ipv6_socket("198.51.100.7", "::ffff:198.51.100.7", false)]
#[case::the_same_ipv6_network("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", false)]
#[case::another_ipv6_network("2001:db8:1:2::1", "2001:db8:1:3::1", true)]
fn an_address_has_a_limit_of_its_own(#[case] first: IpAddr, #[case] second: IpAddr, #[case] admitted: bool) {
    let (clients, now) = (clients(100, 1), TokioRuntime.now());
    let _first = connect(&clients, (first, 1).into(), now).unwrap();
    let decide = |is_validated| clients.decide((second, 1).into(), is_validated, now);
    assert_eq!(matches!(decide(true), Decision::Accepted(_)), admitted);
    assert_eq!(matches!(decide(false), Decision::Accepted(_)), admitted);
    assert_eq!(clients.totals().retried, u64::from(!admitted));
}

#[test]
fn the_connection_that_was_idle_for_the_longest_makes_room() {
    let clients = clients(3, 100);
    let sessions = [0, 1, 2].map(|number| connect(&clients, peer(number), TokioRuntime.now()).unwrap());
    // The oldest is busy, and the second ended an exchange after the third.
    drop(sessions[2].1.begin());
    let busy = sessions[0].1.begin();
    drop(sessions[1].1.begin());
    let ended = sessions[1].1.idleness().unwrap().since;
    let third = sessions[2].1.idleness().unwrap().since;
    assert!(ended > third && sessions[0].1.idleness().is_none());

    let too_soon = third + EVICT_AFTER.saturating_sub(Duration::from_nanos(1));
    let refused = clients.decide(peer(9), true, too_soon);
    assert!(matches!(refused, Decision::Refused));
    let now = ended + EVICT_AFTER;
    assert!(matches!(clients.decide(peer(9), false, now), Decision::Retry));
    drop(place(clients.decide(peer(9), true, now)));
    let evicted = || sessions.each_ref().map(is_evicted);
    assert_eq!(evicted(), [false; 3], "its handshake is not done");

    let first_new = connect(&clients, peer(9), now).unwrap();
    let first_exchange = first_new.1.begin().unwrap();
    assert_eq!(evicted(), [false, false, true]);
    let second_new = connect(&clients, peer(10), now).unwrap();
    assert_eq!(evicted(), [false, true, true]);
    let exchanges = [first_exchange, second_new.1.begin().unwrap()];
    let refused = clients.decide(peer(11), true, now + EVICT_AFTER * 100);
    assert!(matches!(refused, Decision::Refused), "all others are busy");
    assert_eq!(clients.totals().evicted, 2);
    // An evicted connection that ends later does not free a place a second time.
    drop((busy, sessions, exchanges));
    assert_eq!(clients.state.lock().connections.taken(), 2);
    drop((first_new, second_new));
    assert_eq!(clients.state.lock().connections.taken(), 0);
}

#[test]
fn busy_connections_of_one_network_displace_no_other_client() {
    let clients = clients(4, 100);
    let honest = connect(&clients, peer(0), TokioRuntime.now()).unwrap();
    let many = [1, 1, 1].map(|network| connect(&clients, peer(network), TokioRuntime.now()).unwrap());
    let _busy = many.each_ref().map(|(_, activity)| activity.begin().unwrap());
    let now = TokioRuntime.now() + EVICT_AFTER;
    assert!(matches!(clients.decide(peer(1), true, now), Decision::Refused));
    assert!(!is_evicted(&honest));
}

#[test]
fn a_network_at_its_limit_displaces_its_own_idle_connection() {
    let clients = clients(100, 2);
    let other = connect(&clients, peer(0), TokioRuntime.now()).unwrap();
    let own = [1, 1].map(|network| connect(&clients, peer(network), TokioRuntime.now()).unwrap());
    let now = TokioRuntime.now() + EVICT_AFTER;
    let _new = connect(&clients, peer(1), now).unwrap();
    assert!(is_evicted(&own[0]) && !is_evicted(&own[1]) && !is_evicted(&other));
    assert_eq!((clients.totals().evicted, clients.totals().refused), (1, 0));
    let _busy = own[1].1.begin().unwrap();
    let _new = connect(&clients, peer(2), now).unwrap();
    assert_eq!(clients.totals().evicted, 1, "another network has room");
}
