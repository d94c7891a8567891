//! Sends datagrams between hosts of a simulation.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::io::IoSliceMut;
use std::net::SocketAddr;

use quinn::AsyncUdpSocket;
use quinn::udp::{EcnCodepoint, RecvMeta, Transmit};

use super::*;
use crate::LinkConfig;

pub(super) fn send(socket: &VirtualSocket, to: SocketAddr, contents: &[u8], segment_size: Option<usize>) {
    let ecn = Some(EcnCodepoint::Ect0);
    let transmit = Transmit {
        destination: to,
        ecn,
        contents,
        segment_size,
        src_ip: None,
    };
    socket.try_send(&transmit).unwrap();
}

pub(super) async fn receive(socket: &VirtualSocket) -> (Vec<u8>, RecvMeta) {
    let mut buffer = [0; 2_048];
    let mut meta = [RecvMeta::default()];
    let count = poll_fn(|cx| socket.poll_recv(cx, &mut [IoSliceMut::new(&mut buffer)], &mut meta))
        .await
        .unwrap();
    assert_eq!(count, 1);
    (buffer[..meta[0].len].to_vec(), meta[0])
}

#[test]
fn a_segmented_send_arrives_as_datagrams_spaced_by_the_rate() {
    let (sim, server, client, _) = pair(Seed::new(1), &twenty_mbps());
    let (from, to) = (sim.bind(server, 0).unwrap(), sim.bind(client, 9).unwrap());
    send(&from, to.address(), &[5; 1_452 * 2 + 100], Some(1_452));
    let arrivals = sim.run(Simulation::DAY, async {
        let mut arrivals = Vec::new();
        for _ in 0..3 {
            let (data, meta) = receive(&to).await;
            assert_eq!((meta.addr, meta.ecn), (from.address(), Some(EcnCodepoint::Ect0)));
            arrivals.push((sim.now().as_nanos(), data.len()));
        }
        arrivals
    });
    let expected = [
        (50_592_000, 1_452),
        (51_184_000, 1_452),
        (51_184_000 + 51_200, 100),
    ];
    assert_eq!(arrivals.unwrap(), expected);
}

#[test]
fn access_delays_add_up_and_hosts_may_share_a_path() {
    let delayed = |millis| HostConfig::default().with_access_delay(Duration::from_millis(millis));
    let (sim, near, client, path) = pair_of(Seed::new(1), &twenty_mbps(), [delayed(0), delayed(3)]);
    let far = sim.add_host(delayed(7));
    sim.connect(far, client, &[path]);
    let to = sim.bind(client, 9).unwrap();
    let (one, two) = (sim.bind(near, 0).unwrap(), sim.bind(far, 0).unwrap());
    send(&two, to.address(), &[2; 972], None);
    send(&one, to.address(), &[1; 972], None);
    sim.run(Simulation::DAY, async {
        // 1000 B at 20 Mbit/s are 400 µs.
        assert_eq!(receive(&to).await.0[0], 1);
        assert_eq!(sim.now(), Time::from_micros(50_400 + 3_000));
        assert_eq!(receive(&to).await.0[0], 2);
        assert_eq!(sim.now(), Time::from_micros(50_400 + 3_000 + 7_000));
    })
    .unwrap();
    assert_eq!(sim.link_stats(path.forward).delivered.packets, 2);
}

#[test]
fn paths_in_a_row_are_passed_in_order_and_back() {
    let sim = Simulation::new(Seed::new(1));
    let link = |millis| LinkConfig::default().with_delay(Duration::from_millis(millis));
    let paths = [(1, 10), (2, 20), (4, 40)].map(|(forward, backward)| {
        let config = PathConfig {
            forward: link(forward),
            backward: link(backward),
        };
        sim.add_path(config.build(Seed::new(2)).unwrap())
    });
    let [server, client] = [(); 2].map(|()| sim.add_host(HostConfig::default()));
    sim.connect(server, client, &paths);
    let (one, two) = (sim.bind(server, 1).unwrap(), sim.bind(client, 2).unwrap());
    sim.run(Simulation::DAY, async {
        send(&one, two.address(), b"ping", None);
        receive(&two).await;
        assert_eq!(sim.now(), Time::from_millis(7));
        send(&two, one.address(), b"pong", None);
        receive(&one).await;
        assert_eq!(sim.now(), Time::from_millis(77));
    })
    .unwrap();
}

#[test]
fn what_nobody_awaits_is_counted() {
    let (sim, server, client, _) = pair(Seed::new(1), &twenty_mbps());
    let from = sim.bind(server, 0).unwrap();
    send(&from, SocketAddr::new(client.ip(), 1_000), b"?", None);
    send(&from, "10.9.9.9:1".parse().unwrap(), b"?", None);
    sim.run(Simulation::DAY, sim.runtime().sleep(Duration::from_secs(1)))
        .unwrap();
    let stats = sim.network_stats();
    assert_eq!((stats.unclaimed, stats.unroutable, stats.delivered), (1, 1, 0));
}

#[test]
fn interrupt_moderation_delivers_in_lumps() {
    let moderated = HostConfig::default().with_interrupt_interval(Duration::from_millis(1));
    let (sim, server, client, _) = pair_of(Seed::new(1), &twenty_mbps(), [HostConfig::default(), moderated]);
    let (from, to) = (sim.bind(server, 0).unwrap(), sim.bind(client, 9).unwrap());
    // 400 µs apart: the second and third arrive within a millisecond after the first.
    send(&from, to.address(), &[0; 972 * 4], Some(972));
    let seen = sim.run(Simulation::DAY, async {
        let mut seen = Vec::new();
        for _ in 0..4 {
            receive(&to).await;
            seen.push(sim.now().as_nanos() / 1_000);
        }
        seen
    });
    assert_eq!(seen.unwrap(), [51_400, 51_400, 51_400, 52_600]);
}

#[test]
fn every_host_has_an_address_of_its_own() {
    let sim = Simulation::new(Seed::new(1));
    let hosts = 0x1_0002;
    let addresses: BTreeSet<_> = (0..hosts)
        .map(|_| sim.add_host(HostConfig::default()).ip())
        .collect();
    assert_eq!(addresses.len(), hosts);
}

#[test]
fn ports_are_had_once() {
    let (sim, server, _, _) = pair(Seed::new(1), &twenty_mbps());
    let first = sim.bind(server, 443).unwrap();
    let again = sim.bind(server, 443).unwrap_err();
    assert_eq!(
        again.to_string(),
        "port 443 of 10.0.0.1 is taken; choose another, or 0 for any"
    );
    drop(first);
    sim.bind(server, 443).unwrap();
}
