//! Connections that occupy a place but make little use of it.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncWriteExt, WriteHalf};

use super::Force;
use crate::wire::{Head, h2, h2_frame};

/// Time between PINGs, or requests, on a connection.
const EVERY: Duration = Duration::from_secs(5);

pub(super) async fn quic(force: &Force, number: usize) -> io::Result<()> {
    force.act().await;
    let connection = force.quic(number, |_| {}).await?;
    let _open = force.tally.open();
    Err(connection.closed().await.into())
}

pub(super) async fn tcp(force: &Force, number: usize) -> io::Result<()> {
    force.act().await;
    let stream = force.tcp(number).await?;
    let _open = force.tally.open();
    force.drain(stream).await
}

pub(super) async fn tls(force: &Force, number: usize) -> io::Result<()> {
    force.act().await;
    let protocol: &[u8] = if number.is_multiple_of(2) {
        b"http/1.1"
    } else {
        b"h2"
    };
    let stream = force.tls(number, protocol).await?;
    let _open = force.tally.open();
    force.drain(stream).await
}

pub(super) async fn pings(force: &Force, number: usize) -> io::Result<()> {
    force.act().await;
    let pings = async |writing: &mut WriteHalf<_>| loop {
        writing.write_all(&h2_frame(h2::PING, 0, 0, &[7; 8])).await?;
        tokio::time::sleep(EVERY).await;
    };
    force.http2(number, pings).await
}

pub(super) async fn few_requests(force: &Force, number: usize) -> io::Result<()> {
    let head = Head::new("HEAD", force.victim.title.as_str());
    force.act().await;
    // Each address has both.
    if (number / force.scale.addresses).is_multiple_of(2) {
        let stream = force.tls(number, b"http/1.1").await?;
        let _open = force.tally.open();
        let (reading, mut writing) = tokio::io::split(stream);
        let sending = async {
            loop {
                writing.write_all(&head.http1()).await?;
                tokio::time::sleep(EVERY).await;
            }
        };
        tokio::select! {
            biased;
            ended = force.drain(reading) => ended,
            failed = sending => failed,
        }
    } else {
        let connection = force.quic(number, |_| {}).await?;
        let _open = force.tally.open();
        loop {
            let (mut sending, response) = connection.open_bi().await?;
            sending.write_all(&head.http3()).await?;
            sending.finish().map_err(io::Error::other)?;
            force.drain(response).await?;
            tokio::time::sleep(EVERY).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;
    use std::time::Duration;

    use playrate_test_support::PATIENCE;
    use tokio::time::Instant;

    use crate::attacks::{Attack, Scale};
    use crate::beside::{assert_ends_in_order, deadline, start};
    use crate::good::{Over, fetch};
    use crate::rig::Attacking;

    /// Makes twice as many connections as there are places compete for them, from four addresses and with 16
    /// connections over each of `transports` transports. A good client must soon get a place.
    async fn assert_a_place(attack: Attack, over: Over, transports: u32) {
        let rig = start(&["--max-connections", "16"]);
        let scale = Scale {
            connections: 32 * transports as usize,
            addresses: 4,
            rate: 50.0,
        };
        let attacking = Attacking::begin(&rig.victim, attack, scale);
        let latest = deadline();
        while attacking.tally.most_open.load(Relaxed) < u64::from(16 * transports) {
            assert!(Instant::now() < latest, "the attack did not fill all places");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let evicted = match over {
            Over::Quic => "playrate_evicted_connections_total",
            Over::Tcp => "playrate_evicted_tcp_connections_total",
        };
        // Each of the networks has more connections than the good client's. While an attacker reconnects, there is room
        // without an eviction, so the client retries then.
        let latest = Instant::now() + PATIENCE;
        loop {
            let served = fetch(&rig.victim, over, PATIENCE / 4).await;
            if served.is_ok() && rig.server.metric(evicted) > 0 {
                break;
            }
            assert!(Instant::now() < latest, "no place by an eviction: {served:?}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        attacking.stop().await.unwrap();
        assert_ends_in_order(rig).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn idle_quic_connections_from_many_addresses_lock_no_client_out() {
        assert_a_place(Attack::IdleQuic, Over::Quic, 1).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn idle_tls_connections_from_many_addresses_lock_no_client_out() {
        assert_a_place(Attack::IdleTls, Over::Tcp, 1).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn connections_with_few_requests_from_few_addresses_lock_no_client_out() {
        assert_a_place(Attack::FewRequests, Over::Quic, 2).await;
        assert_a_place(Attack::FewRequests, Over::Tcp, 2).await;
    }
}
