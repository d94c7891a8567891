use std::sync::Arc;

use futures_util::FutureExt;
use quinn::{Runtime, TokioRuntime};

use super::*;

const EVICT_AFTER: Duration = Duration::from_secs(20);
const MOMENT: Duration = Duration::from_nanos(1);

/// Places, and the activities of all connections that ever had one.
struct TestPlaces {
    places: Places<()>,
    activities: Vec<Activity>,
}

impl TestPlaces {
    fn new(connections: usize) -> Self {
        let limits = PlaceLimits {
            connections,
            connections_per_address: connections,
            few: connections / 32,
            evict_after: EVICT_AFTER,
        };
        Self {
            places: Places::new(limits),
            activities: Vec::new(),
        }
    }

    /// Connects from `address`, with the clock advanced by `after`. Returns the activity's position.
    fn connect(&mut self, address: &str, after: Duration) -> Result<usize, Refusal> {
        let activity = Activity::new(Arc::new(TokioRuntime));
        let now = TokioRuntime.now() + after;
        self.places
            .take(address.parse().unwrap(), activity.clone(), (), now)?;
        self.activities.push(activity);
        Ok(self.activities.len() - 1)
    }

    /// Connects from `address` immediately, and makes a request.
    fn use_from(&mut self, address: &str) -> usize {
        let position = self.connect(address, Duration::ZERO).unwrap();
        drop(self.activities[position].begin());
        position
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

#[test]
fn a_network_that_uses_all_its_places_makes_room_for_a_smaller_one_at_once() {
    let mut places = TestPlaces::new(4);
    for _ in 0..4 {
        places.use_from("192.0.2.1");
    }
    places.use_from("198.51.100.1");
    assert_eq!(places.evicted(), [0], "the one that was idle for the longest");
    places.use_from("198.51.100.1");
    assert_eq!(places.evicted(), [0, 1]);
    let refused = places.connect("198.51.100.1", EVICT_AFTER.saturating_sub(Duration::from_secs(1)));
    assert_eq!(refused, Err(Refusal::Connections), "two each");
    let refused = places.connect("192.0.2.1", Duration::ZERO);
    assert_eq!(refused, Err(Refusal::Connections), "as soon in its own network");
    places.connect("203.0.113.1", Duration::ZERO).unwrap();
    assert_eq!(places.evicted(), [0, 1, 2], "two are two more than none");
}

#[test]
fn room_is_made_first_in_the_network_with_most_connections() {
    let mut places = TestPlaces::new(6);
    places.use_from("192.0.2.1");
    places.use_from("198.51.100.1");
    places.use_from("198.51.100.1");
    let many = [(); 3].map(|()| places.connect("203.0.113.1", Duration::ZERO).unwrap());
    // Much later, so that each of them may be displaced.
    places.connect("192.88.99.1", EVICT_AFTER * 2).unwrap();
    assert_eq!(places.evicted(), [many[0]]);
    let refused = places.connect("192.88.99.2", Duration::ZERO);
    let full = Err(Refusal::Connections);
    assert_eq!(refused, full, "no /24 has two more than its own");
}

#[test]
fn addresses_of_a_network_make_room_for_another_network() {
    for (own, other) in [
        (["192.0.2.1", "192.0.2.2", "192.0.2.3"], "198.51.100.1"),
        (
            ["2001:db8::", "2001:db8:0:1::", "2001:db8:0:ff::"],
            "2001:db8:1::",
        ),
        (
            ["2001:db8:0:1::", "2001:db8:0:2::", "2001:db8:0:3::"],
            "2001:db8:0:ff00::",
        ),
    ] {
        let mut places = TestPlaces::new(3);
        for address in own {
            places.use_from(address);
        }
        places.use_from(other);
        assert_eq!(places.evicted(), [0], "{own:?} for {other}");
    }
}

#[test]
fn a_connection_with_a_request_in_progress_makes_no_room() {
    let mut places = TestPlaces::new(3);
    for _ in 0..3 {
        places.use_from("192.0.2.1");
    }
    let busy = [0, 2].map(|position| places.activities[position].begin().unwrap());
    places.use_from("198.51.100.1");
    assert_eq!(places.evicted(), [1]);
    let refused = places.connect("203.0.113.1", Duration::ZERO);
    let full = Err(Refusal::Connections);
    assert_eq!(refused, full, "the other network is not larger by two");
    drop(busy);
    places.use_from("203.0.113.1");
    assert_eq!(places.evicted(), [0, 1]);
}

#[test]
fn unused_connections_make_room_before_used_ones_of_networks_as_large() {
    let mut places = TestPlaces::new(3);
    let viewer = places.use_from("192.0.2.1");
    let unused = places.connect("198.51.100.1", Duration::ZERO).unwrap();
    let newer = places.connect("203.0.113.1", Duration::ZERO).unwrap();
    let too_soon = places.connect("192.88.99.1", Duration::from_secs(1));
    assert_eq!(too_soon, Err(Refusal::Connections));
    places.connect("192.88.99.1", EVICT_AFTER * 2).unwrap();
    assert_eq!(places.evicted(), [unused]);
    places.connect("192.88.100.1", UNUSED + MOMENT).unwrap();
    assert_eq!(places.evicted(), [unused, newer]);
    assert!(places.activities[viewer].idleness().is_some());
}

#[test]
fn an_idle_connection_makes_room_in_its_own_network_after_the_limit() {
    let mut places = TestPlaces::new(2);
    let oldest = places.use_from("192.0.2.1");
    places.use_from("192.0.2.1");
    let too_soon = places.connect("192.0.2.1", EVICT_AFTER.saturating_sub(Duration::from_secs(1)));
    assert_eq!(too_soon, Err(Refusal::Address));
    assert_eq!(
        places.evicted(),
        [0; 0],
        "one address keeps all places while no other needs them"
    );
    places.connect("192.0.2.1", EVICT_AFTER).unwrap();
    assert_eq!(places.evicted(), [oldest]);
}

#[test]
fn one_address_keeps_all_places_that_nobody_else_wants() {
    let mut places = TestPlaces::new(8);
    for _ in 0..8 {
        places.use_from("192.0.2.1");
    }
    assert!(places.connect("192.0.2.1", Duration::ZERO).is_err());
    assert_eq!((places.evicted().len(), places.places.taken()), (0, 8));
}

#[test]
fn players_of_a_network_with_few_connections_stay_until_they_are_idle_for_long() {
    let full = |own: u8| {
        let mut places = TestPlaces::new(64);
        for _ in 0..own {
            places.use_from("192.0.2.1");
        }
        for other in own..64 {
            places.use_from(&format!("203.0.{other}.1"));
        }
        places
    };
    let mut places = full(2);
    let soon = EVICT_AFTER.saturating_sub(Duration::from_secs(1));
    assert_eq!(places.connect("198.51.100.1", soon), Err(Refusal::Connections));
    places.connect("198.51.100.1", EVICT_AFTER * 2).unwrap();
    assert_eq!(places.evicted(), [0]);
    // Three are more than a 32nd of all places.
    let mut places = full(3);
    places.connect("198.51.100.1", Duration::ZERO).unwrap();
    assert_eq!(places.evicted(), [0]);
}

#[test]
fn connections_without_a_request_make_room_before_players_of_a_larger_network() {
    let mut places = TestPlaces::new(64);
    let players = 40;
    for _ in 0..players {
        places.use_from("192.0.2.1");
    }
    for _ in players..64 {
        places.connect("203.0.113.1", Duration::ZERO).unwrap();
    }
    places
        .connect("198.51.100.1", UNUSED + Duration::from_secs(1))
        .unwrap();
    assert_eq!(places.evicted(), [players]);
}

#[test]
fn a_household_keeps_its_connections_on_a_small_server() {
    assert_eq!(PlaceLimits::few_of(16), 8);
    assert_eq!(PlaceLimits::few_of(1_024), 32);
}
