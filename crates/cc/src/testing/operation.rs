//! [`Operation`]: one event of a connection.

use core::time::Duration;

use crate::{Bitrate, Bytes};

/// One event of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// Time passes without an event.
    Pass(Duration),
    /// The application has this many packets to send; the window may permit fewer.
    Send(u16),
    /// An ACK frame for this many of the oldest packets in flight arrives.
    Ack(u16),
    /// An ACK frame for this many of the newest packets in flight arrives; older ones stay in flight.
    AckNewest(u16),
    /// This many of the oldest packets in flight are declared lost.
    Lose(u16),
    /// As [`Lose`](Self::Lose), and they span the persistent congestion period.
    LosePersistently(u16),
    /// The peer reports an ECN-CE mark on the newest packet that was acknowledged.
    EcnCe,
    /// The path's MTU changes.
    Mtu(Bytes),
    /// All packets in flight are acknowledged, and then nothing happens for a while.
    Idle(Duration),
    /// The average rate of the video becomes known or unknown.
    KnowRate(Option<Bitrate>),
    /// The size of the playout buffer becomes known or unknown.
    KnowPlayoutBuffer(Option<Bytes>),
    /// The buffered playing time becomes known or unknown.
    KnowBuffered(Option<Duration>),
    /// The controller is replaced by its clone.
    Clone,
}

impl Operation {
    /// Reads operations from arbitrary bytes, three for each. Every input is valid.
    pub fn from_bytes(bytes: &[u8]) -> Vec<Self> {
        bytes
            .chunks_exact(3)
            .filter_map(|chunk| match chunk {
                &[code, high, low] => Some(Self::read(code, u16::from_be_bytes([high, low]))),
                _ => None,
            })
            .collect()
    }

    fn read(code: u8, value: u16) -> Self {
        let wide = u64::from(value);
        let known = value != 0;
        // Most of the codes are common operations.
        match code % 32 {
            0..=5 => Self::Pass(Duration::from_micros(wide.saturating_mul(4))),
            6 => Self::Pass(Duration::from_millis(wide)),
            7..=13 => Self::Send(value % 1_024),
            14..=19 => Self::Ack(value % 64),
            20 => Self::Ack(value),
            21 => Self::AckNewest(value % 64),
            22..=23 => Self::Lose(value % 16),
            24 => Self::LosePersistently(value % 16),
            25 => Self::EcnCe,
            26 => Self::Mtu(Bytes::new(1_200_u64.saturating_add(wide % 8_000))),
            27 => Self::Idle(Duration::from_millis(wide)),
            28 => Self::KnowRate(known.then(|| Bitrate::from_kbps(wide))),
            29 => Self::KnowPlayoutBuffer(known.then(|| Bytes::from_kb(wide))),
            30 => Self::KnowBuffered(known.then(|| Duration::from_millis(wide))),
            _ => Self::Clone,
        }
    }
}
