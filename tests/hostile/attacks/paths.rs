//! Paths that would lead to a file outside the media directory.

use std::future::pending;
use std::io;

use tokio::io::{AsyncWriteExt, WriteHalf};

use super::{Force, HTTP_1, HTTP_2};
use crate::wire::{Head, h2, h2_frame};

/// Name of the file with [`SECRET`](super::SECRET), in the directory that contains the media directory.
pub(crate) const SECRET_FILE: &str = "secret.txt";

/// Number of different tricks.
const TRICKS: u64 = 12;

/// The path of a trick.
fn path(trick: u64) -> Vec<u8> {
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
    if number % 3 == 2 {
        let head = |turn| Head::get(path(turn % TRICKS));
        return force.requests(number, true, None, head).await;
    }
    // One request per connection, because the server closes connections without a valid one.
    for trick in 0..TRICKS {
        force.act().await;
        let head = Head::get(path(trick));
        let (protocol, request) = if number.is_multiple_of(3) {
            (HTTP_1, head.with("connection", "close").http1())
        } else {
            // `NO_ERROR`, after which the server ends its side too.
            let going_away = h2_frame(h2::GOAWAY, 0, 0, &[0; 8]);
            (HTTP_2, [head.http2(1, true), going_away].concat())
        };
        let send = async |writing: &mut WriteHalf<_>| {
            writing.write_all(&request).await?;
            pending().await
        };
        // A reset may follow the answer.
        let _ = force.over_tls(number, protocol, send).await;
    }
    Ok(())
}
