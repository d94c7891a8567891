//! Clients that go to the limits of QUIC's rules.

use std::io;

use quinn::VarInt;

use super::{Force, KEEP_ALIVE, attacker};
use crate::victim::{endpoint, socket};
use crate::wire::Head;

/// Receive window of a stream of a client with tiny windows, in bytes.
const TINY: u32 = 64;

/// Connections without a request.
pub(super) async fn idle(force: &Force, number: usize) -> io::Result<()> {
    force.act().await;
    let connection = force.quic(number, |_| {}).await?;
    let _open = force.tally.open();
    Err(connection.closed().await.into())
}

/// Changes the client's address continually during a download.
pub(super) async fn migration(force: &Force, number: usize) -> io::Result<()> {
    // A separate endpoint, because all its connections move.
    let endpoint = endpoint(force.source(number))?;
    let mut transport = quinn::TransportConfig::default();
    transport.keep_alive_interval(Some(KEEP_ALIVE));
    let config = force.victim.quic_config(transport);
    let connection = force.victim.quic(&endpoint, config).await?;
    let _open = force.tally.open();
    let moving = async {
        for turn in 1.. {
            force.act().await;
            let next = (number + turn * 7) % force.scale.addresses.max(1);
            endpoint.rebind(socket(attacker(next))?)?;
        }
        Ok(())
    };
    let title = Head::get(force.victim.title.as_str());
    let downloading = async {
        loop {
            let response = force.request(&connection, &title).await?;
            force.drain(response).await?;
        }
    };
    tokio::select! {
        biased;
        failed = downloading => failed,
        failed = moving => failed,
    }
}

/// Makes the server send the title in the smallest packets, with only a few bytes in each.
pub(super) async fn tiny_windows(force: &Force, number: usize) -> io::Result<()> {
    let tiny = |transport: &mut quinn::TransportConfig| {
        transport.stream_receive_window(VarInt::from_u32(TINY));
        transport.receive_window(VarInt::from_u32(TINY * 4));
        transport.mtu_discovery_config(None);
    };
    let connection = force.quic(number, tiny).await?;
    let _open = force.tally.open();
    let mut responses = Vec::new();
    for _ in 0..4 {
        let title = Head::get(force.victim.title.as_str());
        responses.push(force.request(&connection, &title).await?);
    }
    let mut buffer = [0; 16];
    loop {
        for response in &mut responses {
            force.act().await;
            let read = response.read(&mut buffer).await;
            if read.map_err(io::Error::other)?.is_none() {
                return Ok(());
            }
        }
    }
}
