//! `ceiling=pace` through whole connections.

use core::time::Duration;

use super::{MS, WINDOW_BASED, assert_in, busy, connection, flight, fly, spec};
use crate::testing::Connection;
use crate::{Bitrate, Bytes, Facts, Path, Phase};

/// A connection for a video of this average rate.
fn knowing(text: &str, mbps: u64) -> Connection {
    let c = connection(text);
    c.known.set_average_rate(Some(Bitrate::from_mbps(mbps)));
    c
}

#[test]
fn without_knowledge_there_is_no_ceiling_and_the_snapshot_says_so() {
    let (mut paced, mut plain) = (connection("cubic+ceiling=pace"), connection("cubic"));
    busy(&mut paced, 5);
    busy(&mut plain, 5);
    assert_eq!(paced.window(), plain.window());
    assert!(paced.snapshot().waiting_for.contains(Facts::AVERAGE_RATE));
    assert!(plain.snapshot().waiting_for.is_empty());
    paced.known.set_average_rate(Some(Bitrate::from_mbps(2)));
    let of_the_buffer = Facts::BUFFER_SIZE.union(Facts::BUFFERED);
    assert_eq!(paced.snapshot().waiting_for, of_the_buffer);
    paced.known.set_playout_buffer(Some(Bytes::new(1_000_000)));
    paced.known.set_buffered(Some(Duration::ZERO));
    assert!(paced.snapshot().waiting_for.is_empty());
}

// 3 · 2 Mbit/s · 100 ms = 75,000 B at an empty buffer, 37,500 B at a full one.
#[test]
fn the_ceiling_follows_the_players_buffer_while_the_connection_runs() {
    for algorithm in WINDOW_BASED {
        let mut c = knowing(&format!("{algorithm}+ceiling=pace"), 2);
        c.known.set_playout_buffer(Some(Bytes::new(1_000_000)));
        c.known.set_buffered(Some(Duration::ZERO));
        busy(&mut c, 200);
        // Stream's own window stops near the video's rate.
        let stops = algorithm == "stream" && c.window() < 75_000;
        let expected = if stops { c.window() } else { 75_000 };
        assert_eq!(c.window(), expected, "{algorithm}");
        c.known.set_buffered(Some(Duration::from_secs(4)));
        busy(&mut c, 1);
        assert_eq!(c.window(), expected.min(37_500), "{algorithm}");
    }
}

// A window derived from a rate includes the overhead of packets and HTTP, and the packet that quinn holds back: 3 ·
// 2.08 Mbit/s · 100 ms + 1,200 B.
#[test]
fn the_ceiling_carries_overhead_and_what_the_transport_holds_back() {
    let mut c = Connection::on(&Path::default().strict(), &spec("reno+ceiling=pace"));
    c.known.set_average_rate(Some(Bitrate::from_mbps(2)));
    c.known.set_wire_overhead("4%".parse().ok());
    busy(&mut c, 20);
    assert_eq!(c.window(), 79_200);
}

#[test]
fn under_the_ceiling_the_algorithms_window_stays_close_by() {
    let mut c = knowing("reno+ceiling=pace", 2);
    busy(&mut c, 50);
    let algorithm = c.snapshot().algorithm_window.unwrap();
    assert_in(algorithm, ..=Bytes::new(75_000 + 2_400));
}

// A loss reduces the window in use, which is the ceiling's.
#[test]
fn a_loss_under_the_ceiling_halves_the_ceiling() {
    let mut c = knowing("reno+ceiling=pace", 8);
    busy(&mut c, 20);
    c.known.set_average_rate(Some(Bitrate::from_mbps(2)));
    busy(&mut c, 1);
    assert_eq!(c.window(), 75_000);
    assert!(c.snapshot().algorithm_window.unwrap() > Bytes::new(150_000));
    c.offer(4_000);
    c.pass(MS * 100);
    c.lose(1);
    assert_eq!(c.window(), 37_500);
}

#[test]
fn a_spurious_loss_under_the_ceiling_costs_nothing_of_the_window_above_it() {
    let mut c = knowing("cubic+ceiling=pace", 8);
    busy(&mut c, 20);
    c.known.set_average_rate(Some(Bitrate::from_mbps(2)));
    busy(&mut c, 1);
    let learnt = c.snapshot().algorithm_window;
    assert!(learnt.unwrap() > Bytes::new(150_000));
    c.offer(4_000);
    c.pass(MS * 100);
    c.lose(1);
    c.find_losses_spurious();
    assert_eq!((c.window(), c.snapshot().algorithm_window), (75_000, learnt));
}

#[test]
fn a_ceiling_that_is_lifted_lets_the_algorithm_grow_again() {
    let mut c = knowing("reno+ceiling=pace", 2);
    busy(&mut c, 20);
    assert_eq!(c.window(), 75_000);
    c.known.set_average_rate(None);
    busy(&mut c, 2);
    // Slow start continues.
    assert_in(c.window(), 200_001..);
}

#[test]
fn tiny_rates_and_round_trips_leave_four_packets() {
    let mut c = connection("reno+ceiling=pace");
    c.known.set_average_rate(Some(Bitrate::from_bits_per_second(1)));
    busy(&mut c, 3);
    assert_eq!(c.window(), 4_800);
}

// Cavendish et al. 2015, CCPLCA: max(VR·rtt, w). 8 Mbit/s over 100 ms are 100,000 B; Reno's half of 120,000 B is less.
#[test]
fn a_rate_floor_holds_in_recovery() {
    let mut c = knowing("reno+shape=rate-floor(min)", 8);
    flight(&mut c, 90);
    assert_eq!(c.window(), 120_000);
    fly(&mut c, 10);
    c.lose(1);
    assert_eq!(c.snapshot().phase, Phase::Recovery);
    assert_eq!(c.window(), 100_000);
}
