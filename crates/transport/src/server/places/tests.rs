use futures_util::FutureExt;
use rstest::rstest;

use super::*;
use crate::server::activity::CountedExchange;
use crate::server::activity::tests::TestClock;

const EVICT_AFTER: Duration = Duration::from_secs(2);
const MOMENT: Duration = Duration::from_nanos(1);

/// Places in virtual time, and the activities of all connections that ever had one.
struct TestPlaces {
    clock: TestClock,
    places: Places<()>,
    activities: Vec<Activity>,
}

impl TestPlaces {
    fn new(connections: usize, unused_per_address: usize) -> Self {
        let limits = PlaceLimits {
            connections,
            unused_per_address,
            evict_after: EVICT_AFTER,
        };
        Self {
            clock: TestClock::new(),
            places: Places::new(limits),
            activities: Vec::new(),
        }
    }

    /// Connects from `address`, or for a proxy if that is no address. Returns the activity's position.
    fn connect(&mut self, address: &str) -> Result<usize, Refusal> {
        let activity = self.clock.activity();
        self.places
            .take(address.parse::<IpAddr>().ok(), activity.clone())?;
        self.activities.push(activity);
        Ok(self.activities.len() - 1)
    }

    /// Connects from `address` and begins a request.
    fn request_from(&mut self, address: &str) -> (usize, CountedExchange) {
        let position = self.connect(address).unwrap();
        (position, self.activities[position].begin().unwrap())
    }

    /// Connects from `address` and makes a request.
    fn use_from(&mut self, address: &str) -> usize {
        self.request_from(address).0
    }

    /// Positions of the connections that made room.
    fn evicted(&self) -> Vec<usize> {
        let is_evicted = |activity: &Activity| activity.expired(None).now_or_never().is_some();
        let positions = 0..self.activities.len();
        positions
            .filter(|&position| is_evicted(&self.activities[position]))
            .collect()
    }
}

/// The `number`-th of many addresses, each in a /16 and a /24 network of its own.
fn silent(number: usize) -> String {
    let [.., high, low] = number.to_be_bytes();
    format!("10.{low}.{high}.1")
}

#[rstest]
#[case::as_many_as_places(1_024)]
#[case::five_times_as_many(5_000)]
fn silent_addresses_neither_displace_players_behind_one_address_nor_lock_them_out(#[case] attackers: usize) {
    let mut places = TestPlaces::new(1_024, 256);
    let first = places.use_from("192.0.2.1");
    for number in 0..attackers {
        places.connect(&silent(number)).unwrap();
        places.clock.advance(Duration::from_millis(1));
    }
    let players = [(); 12].map(|()| places.use_from("192.0.2.1"));
    for number in 0..attackers {
        places.connect(&silent(number)).unwrap();
        places.clock.advance(Duration::from_millis(1));
    }
    let evicted = places.evicted();
    assert_eq!(evicted.len(), 2 * attackers + 13 - 1_024);
    assert!(!evicted.contains(&first) && players.iter().all(|player| !evicted.contains(player)));
}

#[test]
fn the_oldest_connection_without_a_request_makes_room_before_players() {
    let mut places = TestPlaces::new(3, 3);
    let player = places.use_from("192.0.2.1");
    places.clock.advance(FIRST_REQUEST * 18);
    let [older, newer] = ["198.51.100.1", "192.0.2.1"].map(|address| places.connect(address).unwrap());
    places.clock.advance(FIRST_REQUEST);
    places.use_from("203.0.113.1");
    assert_eq!(places.evicted(), [older]);
    places.use_from("203.0.113.1");
    assert_eq!(places.evicted(), [older, newer]);
    places.clock.advance(EVICT_AFTER);
    places.use_from("203.0.113.1");
    assert_eq!(
        places.evicted(),
        [player, older, newer],
        "it was idle for the longest"
    );
}

#[test]
fn a_new_connection_stays_where_players_have_paused_for_long() {
    let mut places = TestPlaces::new(2, 2);
    let paused = places.use_from("192.0.2.1");
    places.clock.advance(Duration::from_secs(5));
    let slow = places.connect("198.51.100.1").unwrap();
    places.clock.advance(FIRST_REQUEST * 2);
    places.connect("203.0.113.1").unwrap();
    assert_eq!(places.evicted(), [paused]);
    assert!(places.activities[slow].begin().is_some());
}

#[test]
fn the_player_that_was_idle_for_the_longest_makes_room_after_the_limit() {
    let mut places = TestPlaces::new(3, 3);
    let (_, busy) = places.request_from("192.0.2.1");
    let (later, exchange) = places.request_from("192.0.2.1");
    let earlier = places.use_from("198.51.100.1");
    places.clock.advance(MOMENT);
    drop(exchange);
    places.clock.advance(EVICT_AFTER.saturating_sub(MOMENT * 2));
    let refused = places.connect("192.0.2.1");
    assert_eq!(
        refused,
        Err(Refusal::Connections),
        "none was idle for long enough"
    );
    places.clock.advance(MOMENT);
    let (_, first) = places.request_from("192.0.2.1");
    assert_eq!(places.evicted(), [earlier]);
    places.clock.advance(MOMENT);
    let (_, second) = places.request_from("203.0.113.1");
    let mut evicted = [earlier, later];
    evicted.sort_unstable();
    assert_eq!(places.evicted(), evicted);
    places.clock.advance(EVICT_AFTER * 100);
    let refused = places.connect("203.0.113.1");
    assert_eq!(refused, Err(Refusal::Connections), "all others are busy");
    drop((busy, first, second));
}

#[test]
fn no_connection_makes_room_before_its_client_had_time_for_a_request() {
    let mut places = TestPlaces::new(1, 1);
    let newcomer = places.connect("192.0.2.1").unwrap();
    // A handshake that takes long.
    places.clock.advance(EVICT_AFTER);
    places.activities[newcomer].restart();
    places.clock.advance(FIRST_REQUEST.saturating_sub(MOMENT));
    assert_eq!(places.connect("198.51.100.1"), Err(Refusal::Connections));
    assert_eq!(places.connect("192.0.2.1"), Err(Refusal::Address));
    places.clock.advance(MOMENT);
    places.connect("198.51.100.1").unwrap();
    assert_eq!(places.evicted(), [newcomer]);
}

#[rstest]
#[case::the_same_ipv4_address("198.51.100.7", "198.51.100.7", true)]
#[case::another_ipv4_address("198.51.100.7", "198.51.100.8", false)]
#[case::an_ipv4_address_on_an_ipv6_socket("198.51.100.7", "::ffff:198.51.100.7", true)]
#[case::the_same_ipv6_network("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", true)]
#[case::another_ipv6_network("2001:db8:1:2::1", "2001:db8:1:3::1", false)]
fn idle_connections_of_an_address_make_room_for_others_of_it(
    #[case] idle: &str,
    #[case] other: &str,
    #[case] is_same: bool,
) {
    let mut places = TestPlaces::new(100, 2);
    let player = places.use_from(idle);
    let unused = [(); 2].map(|()| places.connect(idle).unwrap());
    assert_eq!(places.connect(other).is_err(), is_same, "the others are new");
    places.clock.advance(FIRST_REQUEST);
    places.use_from(other);
    let evicted: &[usize] = if is_same { &unused[..1] } else { &[] };
    assert_eq!(places.evicted(), evicted);
    assert!(places.activities[player].idleness().is_some());
}

#[test]
fn connections_with_a_request_do_not_count_towards_the_limit_of_an_address() {
    let mut places = TestPlaces::new(100, 1);
    for _ in 0..100 {
        places.use_from("192.0.2.1");
    }
    assert_eq!((places.evicted().len(), places.places.taken()), (0, 100));
}

#[test]
fn an_evicted_connection_that_ends_later_frees_no_place_a_second_time() {
    let mut places = TestPlaces::new(1, 1);
    places.connect("192.0.2.1").unwrap();
    places.clock.advance(FIRST_REQUEST);
    places.connect("198.51.100.1").unwrap();
    places.places.free(0);
    assert_eq!((places.places.taken(), places.places.evicted()), (1, 1));
    places.places.free(1);
    assert_eq!(places.places.taken(), 0);
}

#[test]
fn connections_of_a_proxy_have_no_limit_of_their_own_and_make_room_like_others() {
    let mut places = TestPlaces::new(4, 1);
    let [first, second] = [(); 2].map(|()| {
        places.clock.advance(MOMENT);
        places.connect("a proxy").unwrap()
    });
    places.clock.advance(FIRST_REQUEST);
    places.connect("192.0.2.1").unwrap();
    places.connect("a proxy").unwrap();
    assert!(places.evicted().is_empty());
    places.connect("a proxy").unwrap();
    places.connect("192.0.2.2").unwrap();
    assert_eq!(places.evicted(), [first, second]);
}
