//! The relay between plain UDP sockets on loopback.
#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its sockets has nothing better to do than panic"
)]

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use playrate_netsim::{
    DelaySchedule, LinkConfig, Loss, PathConfig, QueueLimit, Rate, Relay, RelayConfig, RelayReport, Seed,
};
use playrate_units::{Bitrate, Bytes};

/// Time after which a waiting test has failed, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bursts of a flood, and datagrams in each.
const BURSTS: u64 = 8;
const BURST: u64 = 80;

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

fn relay(server: SocketAddr, path: PathConfig) -> Relay {
    Relay::start(&RelayConfig::new(server, path).with_seed(Seed::new(3))).unwrap()
}

fn free(delay: Duration) -> LinkConfig {
    LinkConfig::new(Rate::Unlimited, delay)
}

/// Sends `data` from one socket to an address, and receives it at another. Returns the sender that the receiver sees.
fn pass(data: &[u8], from: &UdpSocket, to: SocketAddr, receiver: &UdpSocket) -> SocketAddr {
    from.send_to(data, to).unwrap();
    let mut buffer = [0; 2_048];
    let (length, sender) = receiver.recv_from(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], data);
    sender
}

fn stop(relay: Relay) -> RelayReport {
    let report = relay.stop().unwrap();
    for way in [&report.totals.forward, &report.totals.backward] {
        // Every datagram read was forwarded, dropped by the link, refused by the kernel or is still inside.
        let known = way.link.dropped.total().packets + way.forwarded + way.failed + way.inside;
        assert!(way.link.is_conserved(), "{report:?}");
        assert!(way.link.offered.packets == known, "{report:?}");
    }
    report
}

#[test]
fn an_echo_takes_at_least_the_round_trip() {
    let (server, client) = (socket(), socket());
    let path = PathConfig::new(free(Duration::from_millis(20)), free(Duration::from_millis(10)));
    let relay = relay(server.local_addr().unwrap(), path);
    for n in 0..5_u8 {
        let asked = Instant::now();
        let from = pass(&[n; 100], &client, relay.local_addr(), &server);
        assert!(asked.elapsed() >= Duration::from_millis(10));
        let answered_by = pass(&[n + 100; 200], &server, from, &client);
        assert_eq!(answered_by, relay.local_addr());
        assert!(asked.elapsed() >= Duration::from_millis(30));
    }
    let report = stop(relay);
    assert_eq!(report.totals.forward.forwarded, 5);
    assert_eq!(report.totals.backward.forwarded, 5);
    assert!(report.totals.lateness.mean <= report.totals.lateness.max);
}

#[test]
fn an_echo_takes_the_new_route_once_it_applies_and_waits_for_its_batch() {
    let (server, client) = (socket(), socket());
    let forward = free(Duration::ZERO).with_delay("5ms,60ms@300ms".parse::<DelaySchedule>().unwrap());
    let path = PathConfig::new(
        forward,
        free(Duration::ZERO).with_batches(Duration::from_millis(100)),
    );
    let started = Instant::now();
    let relay = relay(server.local_addr().unwrap(), path);
    for least in [Duration::from_millis(105), Duration::from_millis(460)] {
        let from = pass(&[1; 100], &client, relay.local_addr(), &server);
        pass(&[2; 200], &server, from, &client);
        assert!(started.elapsed() >= least, "{:?}", started.elapsed());
        let next = started + Duration::from_millis(310);
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    stop(relay);
}

#[test]
fn servers_behind_one_relay_share_its_path_and_hear_only_their_own_clients() {
    let (first, second, client) = (socket(), socket(), socket());
    let mut config = RelayConfig::new(
        first.local_addr().unwrap(),
        PathConfig::new(free(Duration::from_millis(1)), free(Duration::from_millis(1))),
    );
    config.servers.push(second.local_addr().unwrap());
    let relay = Relay::start(&config).unwrap();
    assert_eq!(relay.addresses().len(), 2);
    assert_eq!(relay.addresses()[0], relay.local_addr());
    // The same client talks to both from one socket, and each answers it.
    for (n, (server, &address)) in (0..).zip([&first, &second].into_iter().zip(relay.addresses())) {
        let from = pass(&[n; 10], &client, address, server);
        assert_eq!(pass(&[n; 10], server, from, &client), address);
    }
    let report = stop(relay);
    assert_eq!(report.totals.clients, 2);
    assert_eq!(report.totals.forward.forwarded, 2);
    assert_eq!(report.totals.backward.forwarded, 2);
}

#[test]
fn a_flood_passes_at_the_rate_and_every_datagram_is_accounted_for() {
    let (server, client) = (socket(), socket());
    let rate = Bitrate::from_mbps(20);
    let path = PathConfig::new(
        LinkConfig::new(rate, Duration::from_millis(5)).with_queue(QueueLimit::Bytes(Bytes::from_kb(100))),
        free(Duration::from_millis(5)),
    );
    let relay = relay(server.local_addr().unwrap(), path);
    let mut buffer = [0; 2_048];
    let from = pass(b"hello", &client, relay.local_addr(), &server);

    // Each burst is longer than the queue, regardless of the time between two bursts. The next one begins when the
    // relay has read the last one, so the kernel drops nothing.
    let began = Instant::now();
    let forward = || relay.snapshot().forward;
    client.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let (mut got, mut last) = (0_u64, began);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for burst in 1..=BURSTS {
                for _ in 0..BURST {
                    server.send_to(&[7; 1_452], from).unwrap();
                }
                while forward().link.offered.packets < burst * BURST {
                    assert!(began.elapsed() < PATIENCE, "{:?}", forward());
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        });
        let is_through = |got| {
            let forward = forward();
            let is_read = forward.link.offered.packets == BURSTS * BURST;
            is_read && forward.inside == 0 && forward.forwarded == got
        };
        while !is_through(got) {
            assert!(began.elapsed() < PATIENCE, "{got} of {:?}", forward());
            if client.recv_from(&mut buffer).is_ok() {
                (got, last) = (got + 1, Instant::now());
            } else {
                // Without traffic, a relay shows an old state.
                client.send_to(b"still here", relay.local_addr()).unwrap();
            }
        }
    });
    let report = stop(relay);
    let forward = report.totals.forward;
    assert_eq!(got, forward.forwarded);
    assert!(forward.link.dropped.queue_full.packets > 0, "{forward:?}");
    assert!(forward.link.max_queue <= Bytes::from_kb(100));
    let bins = report.forward_series.bins();
    let most = bins.iter().map(|bin| bin.delivered).max().unwrap();
    let fastest = most.per(report.forward_series.width()).unwrap().as_mbps();
    assert!(
        (10.0..22.0).contains(&fastest),
        "{fastest} Mbit/s through a link of 20"
    );
    let mbps = (got - 1) as f64 * 1_480.0 * 8.0 / (last - began).as_secs_f64() / 1e6;
    assert!(mbps < 22.0, "{mbps} Mbit/s through a link of 20");
    let dropped: u64 = bins.iter().map(|bin| bin.dropped).sum();
    assert_eq!(
        dropped,
        forward.link.dropped.total().packets,
        "the series keeps every drop"
    );
}

#[test]
fn two_clients_are_told_apart_and_share_the_link() {
    let server = socket();
    let clients = [socket(), socket()];
    let path = PathConfig::bottleneck(
        Bitrate::from_mbps(50),
        Duration::from_millis(10),
        QueueLimit::Packets(100),
        Loss::None,
    );
    let relay = relay(server.local_addr().unwrap(), path);
    let seen = [0, 1].map(|n: u8| pass(&[n], &clients[usize::from(n)], relay.local_addr(), &server));
    assert_ne!(seen[0], seen[1]);
    for (n, (from, client)) in (10..).zip(seen.into_iter().zip(&clients)) {
        assert_eq!(pass(&[n], &server, from, client), relay.local_addr());
    }
    let report = stop(relay);
    assert_eq!((report.totals.clients, report.totals.forward.forwarded), (2, 2));
}

#[test]
fn a_server_that_is_not_there_does_not_stop_the_relay() {
    let gone = socket();
    let address = gone.local_addr().unwrap();
    drop(gone);
    let client = socket();
    let relay = relay(address, PathConfig::default());
    let deadline = Instant::now() + PATIENCE;
    while relay.snapshot().server_unreachable == 0 && Instant::now() < deadline {
        client.send_to(b"anyone?", relay.local_addr()).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(relay.snapshot().server_unreachable > 0);

    let server = UdpSocket::bind(address).unwrap();
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    client.send_to(b"now!", relay.local_addr()).unwrap();
    let mut buffer = [0; 64];
    while server
        .recv_from(&mut buffer)
        .map(|(length, _)| &buffer[..length])
        .unwrap()
        != b"now!"
    {}
    stop(relay);
}

#[test]
fn a_datagram_beyond_the_mtu_is_dropped_and_counted() {
    let (server, client) = (socket(), socket());
    let relay = relay(server.local_addr().unwrap(), PathConfig::default());
    client.send_to(&vec![0; 60_000], relay.local_addr()).unwrap();
    client.send_to(&[1; 1_472], relay.local_addr()).unwrap();
    let mut buffer = vec![0; 65_536];
    assert_eq!(server.recv_from(&mut buffer).unwrap().0, 1_472);
    assert_eq!(stop(relay).totals.backward.link.dropped.too_big.packets, 1);
}

#[test]
fn a_client_beyond_the_limit_is_turned_away() {
    let server = socket();
    let mut config = RelayConfig::new(server.local_addr().unwrap(), PathConfig::default());
    config.max_clients = 1;
    let relay = Relay::start(&config).unwrap();
    let (first, second) = (socket(), socket());
    pass(b"first", &first, relay.local_addr(), &server);
    second.send_to(b"second", relay.local_addr()).unwrap();
    pass(b"again", &first, relay.local_addr(), &server);
    assert_eq!(stop(relay).totals.turned_away, 1);
}

#[test]
fn an_address_in_use_is_reported_with_the_address() {
    let taken = socket();
    let address = taken.local_addr().unwrap();
    let config = RelayConfig::new(address, PathConfig::default()).with_listen(address);
    let error = Relay::start(&config).unwrap_err().to_string();
    assert!(error.contains(&address.to_string()), "{error}");
}
