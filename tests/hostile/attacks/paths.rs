//! Paths that would lead to a file outside the media directory.

use std::io;

use tokio::io::AsyncWriteExt;

use super::Force;
use crate::wire::{Head, h2, h2_frame};

/// Name of the file with [`SECRET`](super::SECRET), in the directory that contains the media directory.
pub(crate) const SECRET_FILE: &str = "secret.txt";

/// Number of different tricks.
const TRICKS: usize = 12;

/// The path of a trick.
fn path(trick: usize) -> Vec<u8> {
    let to_secret = |up: &str| format!("/{up}{SECRET_FILE}").into_bytes();
    match trick {
        0 => to_secret("../"),
        1 => to_secret("%2e%2e/"),
        2 => to_secret("..%2f"),
        3 => to_secret("%2e%2e%2f"),
        4 => to_secret("%252e%252e%252f"),
        5 => to_secret("..%5c"),
        6 => to_secret("..%c0%af"),
        7 => to_secret("./.././"),
        8 => to_secret("/../"),
        9 => format!("/../{SECRET_FILE}%00.mp4").into_bytes(),
        10 => [b"/".as_slice(), &b"../".repeat(3_000), SECRET_FILE.as_bytes()].concat(),
        _ => [b"/\0\xff../", SECRET_FILE.as_bytes()].concat(),
    }
}

pub(super) async fn tricks(force: &Force, number: usize) -> io::Result<()> {
    match number % 3 {
        0 => http1(force, number).await,
        1 => http2(force, number).await,
        _ => http3(force, number).await,
    }
}

/// One request per connection, because the server closes connections without a valid one.
async fn http1(force: &Force, number: usize) -> io::Result<()> {
    for trick in 0..TRICKS {
        force.act().await;
        let mut stream = force.tls(number, b"http/1.1").await?;
        let _open = force.tally.open();
        stream
            .write_all(&Head::get(path(trick)).with("connection", "close").http1())
            .await?;
        // A reset may follow the answer.
        let _ = force.drain(stream).await;
    }
    Ok(())
}

async fn http2(force: &Force, number: usize) -> io::Result<()> {
    for trick in 0..TRICKS {
        force.act().await;
        let stream = force.tls(number, b"h2").await?;
        let _open = force.tally.open();
        let (reading, mut writing) = tokio::io::split(stream);
        writing.write_all(h2::PREFACE).await?;
        writing.write_all(&h2_frame(h2::SETTINGS, 0, 0, &[])).await?;
        writing.write_all(&Head::get(path(trick)).http2(1, true)).await?;
        // `NO_ERROR`, after which the server ends its side too.
        writing.write_all(&h2_frame(GOAWAY, 0, 0, &[0; 8])).await?;
        let _ = force.drain(reading).await;
    }
    Ok(())
}

/// GOAWAY (RFC 9113 §6.8).
const GOAWAY: u8 = 7;

async fn http3(force: &Force, number: usize) -> io::Result<()> {
    let connection = force.quic(number, |_| {}).await?;
    let _open = force.tally.open();
    for trick in (0..TRICKS).cycle() {
        force.act().await;
        let (mut sending, response) = connection.open_bi().await?;
        sending.write_all(&Head::get(path(trick)).http3()).await?;
        sending.finish().map_err(io::Error::other)?;
        let _ = force.drain(response).await;
    }
    Ok(())
}
