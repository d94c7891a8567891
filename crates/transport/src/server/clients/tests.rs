use std::net::Ipv4Addr;
use std::time::Duration;

use futures_util::FutureExt;

use super::*;
use crate::server::activity::tests::TestClock;
use crate::tls::Identity;

/// A server's clients in virtual time.
struct TestClients {
    clock: TestClock,
    clients: Arc<Clients>,
}

impl TestClients {
    fn new(max: usize, max_unused_per_address: usize) -> Self {
        let mut options = ServerOptions::new(Identity::development(&[]).unwrap());
        options.max_connections = max;
        options.max_connections_per_address = max_unused_per_address;
        Self {
            clock: TestClock::new(),
            clients: Clients::new(&options),
        }
    }

    /// Decision on the client of the `number`-th of many addresses.
    fn decide(&self, number: u16, is_validated: bool) -> Decision {
        let [high, low] = number.to_be_bytes();
        let peer = (Ipv4Addr::new(192, 0, high, low), 5_000).into();
        self.clients.decide(peer, is_validated, self.clock.activity())
    }

    /// Handshake of a client that is admitted.
    fn admit(&self, number: u16, is_validated: bool) -> ClientPlace {
        match self.decide(number, is_validated) {
            Decision::Accepted(place) => place,
            other => panic!("{other:?}"),
        }
    }
}

fn establish(place: &mut ClientPlace) -> Result<(), Refusal> {
    let control = ConnectionController::new("cubic".parse().unwrap());
    place.establish(&Arc::new(control))
}

#[test]
fn forged_addresses_get_a_retry_once_enough_handshakes_are_in_progress() {
    let clients = TestClients::new(1_000, 1_000);
    let mut handshakes: Vec<_> = (0..64).map(|number| clients.admit(number, false)).collect();
    assert!(matches!(clients.decide(64, false), Decision::Retry));
    assert_eq!(clients.clients.totals().retried, 1);
    handshakes.pop();
    clients.admit(64, false);
}

#[test]
fn forged_handshakes_take_no_place_and_displace_nobody() {
    let clients = TestClients::new(1, 1);
    let forged: Vec<_> = (0..64).map(|number| clients.admit(number, false)).collect();
    let mut connection = clients.admit(1, true);
    establish(&mut connection).unwrap();
    clients.clock.advance(Duration::from_secs(60));
    drop(forged);
    assert_eq!(clients.clients.totals().failed_handshakes, 64);
    assert!(
        matches!(clients.decide(2, false), Decision::Retry),
        "no place is free"
    );
    assert!(connection.activity().expired(None).now_or_never().is_none());
    drop(connection);
    let state = clients.clients.state.lock();
    assert_eq!((state.unvalidated, state.connections.taken()), (0, 0));
}

#[test]
fn handshakes_that_stand_still_make_room_wherever_they_come_from() {
    let clients = TestClients::new(8, 8);
    let stalled: Vec<_> = (0..8).map(|number| clients.admit(number, true)).collect();
    assert!(
        matches!(clients.decide(8, true), Decision::Refused),
        "all are new"
    );
    clients.clock.advance(Duration::from_millis(100));
    let mut players: Vec<_> = (0..8).map(|_| clients.admit(9, true)).collect();
    for player in &mut players {
        establish(player).unwrap();
    }
    let is_evicted = |place: &ClientPlace| place.activity().expired(None).now_or_never().is_some();
    assert!(stalled.iter().all(is_evicted) && !players.iter().any(is_evicted));
    drop(stalled);
    let totals = clients.clients.totals();
    assert_eq!(
        (totals.evicted, totals.refused, totals.failed_handshakes),
        (8, 1, 8)
    );
    drop(players);
    assert_eq!(clients.clients.state.lock().connections.taken(), 0);
}

#[test]
fn handshakes_that_end_together_do_not_exceed_the_limit() {
    let clients = TestClients::new(1, 1);
    let [mut first, mut second] = [0, 1].map(|number| clients.admit(number, false));
    assert_eq!(establish(&mut first), Ok(()));
    assert_eq!(establish(&mut second), Err(Refusal::Connections));
    drop(first);
    assert_eq!(establish(&mut second), Ok(()));
    drop(second);
    assert_eq!(clients.clients.state.lock().unvalidated, 0);
    assert_eq!(clients.clients.totals().refused, 1);
}

#[test]
fn shutdowns_lift_the_windows_of_connections_and_pass_over_handshakes() {
    let clients = TestClients::new(2, 2);
    let mut connection = clients.admit(0, true);
    let _handshake = clients.admit(1, true);
    establish(&mut connection).unwrap();
    let occupants = |state: &ClientsState| state.connections.occupants().flatten().count();
    assert_eq!(occupants(&clients.clients.state.lock()), 1);
    clients.clients.lift_windows();
}
