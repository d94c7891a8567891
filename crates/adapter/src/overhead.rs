//! [`WireOverhead`]: the bytes that packets, frames and HTTP add, as a share of the video's bytes. A window that
//! carries a video's rate must carry these bytes as well.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use playrate_cc::VideoKnowledge;
use playrate_units::{Bytes, Probability};

/// Overhead of a full packet of 1452 bytes: 1 byte of flags, 8 of connection ID, 2 of packet number, 16 of AEAD tag,
/// 10 of STREAM frame header.
const TYPICAL: Probability = Probability::from_parts_per_billion(26_148_409);
/// Minimum bytes of bodies for measuring a share: with fewer, the handshake dominates it.
const LEAST_PAYLOAD: u64 = 256 * 1024;

/// Counts one connection's bodies and compares them with the bytes on the wire.
#[derive(Debug, Default)]
pub struct WireOverhead {
    payload: AtomicU64,
    open: AtomicU32,
}

impl WireOverhead {
    /// Sets the share to that of a full packet until one is measured.
    pub fn assume(knowledge: &VideoKnowledge) {
        knowledge.set_wire_overhead(Some(TYPICAL));
    }

    /// Counts a body that begins.
    pub fn begin(&self) {
        self.open.fetch_add(1, Relaxed);
    }

    /// Counts `bytes` of a body handed to the transport.
    pub fn wrote(&self, bytes: usize) {
        self.payload.fetch_add(bytes as u64, Relaxed);
    }

    /// Counts a body that has ended, delivered or not.
    pub fn end(&self) {
        self.open.fetch_sub(1, Relaxed);
    }

    /// Measures the share once all of a body has been delivered, from the connection's totals of bytes `sent` and
    /// `lost`. Does nothing during another body, because the difference then includes its bytes.
    pub fn measure(&self, sent: Bytes, lost: Bytes, knowledge: &VideoKnowledge) {
        const BILLION: u128 = 1_000_000_000;
        let payload = self.payload.load(Relaxed);
        if self.open.load(Relaxed) == 1 && payload >= LEAST_PAYLOAD {
            let extra = u128::from((sent - lost).as_u64().saturating_sub(payload));
            let parts = u32::try_from(extra * BILLION / u128::from(payload)).unwrap_or(u32::MAX);
            knowledge.set_wire_overhead(Some(Probability::from_parts_per_billion(parts)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_the_excess_of_the_wire_over_the_bodies() {
        let (overhead, knowledge) = (WireOverhead::default(), VideoKnowledge::new());
        WireOverhead::assume(&knowledge);
        assert_eq!(knowledge.wire_overhead(), Some(TYPICAL));
        overhead.begin();
        overhead.wrote(1_000_000);
        overhead.measure(Bytes::new(1_130_000), Bytes::new(100_000), &knowledge);
        assert_eq!(knowledge.wire_overhead(), "3%".parse().ok());
    }

    #[test]
    fn nothing_is_measured_while_another_body_is_under_way_or_after_few_bytes() {
        let (overhead, knowledge) = (WireOverhead::default(), VideoKnowledge::new());
        let measure = |sent| overhead.measure(Bytes::new(sent), Bytes::ZERO, &knowledge);
        overhead.begin();
        overhead.wrote(1_000);
        measure(2_000);
        overhead.wrote(1_000_000);
        overhead.begin();
        measure(2_000_000);
        assert_eq!(knowledge.wire_overhead(), None);
        overhead.end();
        measure(1_101_100);
        assert_eq!(knowledge.wire_overhead(), "10%".parse().ok());
    }
}
