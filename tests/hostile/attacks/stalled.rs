//! Responses that are requested but not read.

use std::io;
use std::time::Duration;

use tokio::io::AsyncWriteExt;

use super::Force;
use crate::wire::{Head, h2, h2_frame};

/// Responses on each connection.
const RESPONSES: u32 = 100;
/// Bytes of all responses that the client of an HTTP/3 connection takes before it stalls.
const WINDOW: u32 = 100_000;
/// Interval for checking whether an unread connection has ended.
const LOOK_EVERY: Duration = Duration::from_secs(5);

pub(super) async fn http3(force: &Force, number: usize) -> io::Result<()> {
    // Without this window, the server would first fill 1.25 MB per response: a download and not a stall.
    let stalling = |transport: &mut quinn::TransportConfig| {
        transport.receive_window(quinn::VarInt::from_u32(WINDOW));
    };
    let connection = force.quic(number, stalling).await?;
    let _open = force.tally.open();
    let head = Head::get(force.victim.title.as_str()).http3();
    let mut responses = Vec::new();
    for _ in 0..RESPONSES {
        force.act().await;
        let (mut sending, response) = connection.open_bi().await?;
        sending.write_all(&head).await?;
        sending.finish().map_err(io::Error::other)?;
        responses.push(response);
    }
    Err(connection.closed().await.into())
}

pub(super) async fn http2(force: &Force, number: usize) -> io::Result<()> {
    let mut stream = force.tls(number, b"h2").await?;
    let _open = force.tally.open();
    stream.write_all(h2::PREFACE).await?;
    stream.write_all(&h2_frame(h2::SETTINGS, 0, 0, &[])).await?;
    for number in 0..RESPONSES {
        force.act().await;
        let head = Head::get(force.victim.title.as_str());
        stream.write_all(&head.http2(2 * number + 1, true)).await?;
    }
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        stream.write_all(&h2_frame(h2::PING, 0, 0, &[7; 8])).await?;
    }
}
