//! What packets, frames and HTTP add to the video's bytes: a window that shall carry a video's rate has to carry that too.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use playrate_cc::VideoKnowledge;
use playrate_units::Probability;

/// What a full packet adds: 1 byte of flags, 8 of connection id, 2 of packet number, 16 of AEAD tag, 10 of STREAM frame header, of
/// 1452.
const TYPICAL: Probability = Probability::from_parts_per_billion(26_148_409);
/// A share measured over less than this says more of the handshake than of the video, bytes.
const ENOUGH: u64 = 256 * 1024;

/// Counts one connection's response bodies, to compare with what went over the wire.
#[derive(Debug, Default)]
pub(crate) struct WireOverhead {
    payload: AtomicU64,
    open: AtomicU32,
}

impl WireOverhead {
    /// What to take until something is measured.
    pub(crate) fn assume(known: &VideoKnowledge) {
        known.set_wire_overhead(Some(TYPICAL));
    }

    /// A body begins.
    pub(crate) fn begin(&self) {
        self.open.fetch_add(1, Relaxed);
    }

    /// `bytes` of a body were handed to the transport.
    pub(crate) fn wrote(&self, bytes: usize) {
        self.payload.fetch_add(bytes as u64, Relaxed);
    }

    /// A body is over, delivered or not.
    pub(crate) fn end(&self) {
        self.open.fetch_sub(1, Relaxed);
    }

    /// All of a body was delivered. If no other is under way, what was sent and not lost is all there is.
    pub(crate) fn measure(&self, sent: u64, lost: u64, known: &VideoKnowledge) {
        let payload = self.payload.load(Relaxed);
        if self.open.load(Relaxed) == 1
            && payload >= ENOUGH
            && let Some(share) = share(sent.saturating_sub(lost), payload)
        {
            known.set_wire_overhead(Some(share));
        }
    }
}

/// What `wire` has more than `payload`, as a share of `payload`.
fn share(wire: u64, payload: u64) -> Option<Probability> {
    const BILLION: u128 = 1_000_000_000;
    let extra = u128::from(wire.saturating_sub(payload));
    let parts = (extra * BILLION).checked_div(u128::from(payload))?;
    Some(Probability::from_parts_per_billion(
        u32::try_from(parts).unwrap_or(u32::MAX),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_what_the_wire_carried_beside_the_bodies() {
        let (overhead, known) = (WireOverhead::default(), VideoKnowledge::new());
        WireOverhead::assume(&known);
        assert_eq!(known.wire_overhead(), Some(TYPICAL));
        overhead.begin();
        overhead.wrote(1_000_000);
        overhead.measure(1_130_000, 100_000, &known);
        assert_eq!(known.wire_overhead(), "3%".parse().ok());
    }

    #[test]
    fn nothing_is_measured_while_another_body_is_under_way_or_after_little() {
        let (overhead, known) = (WireOverhead::default(), VideoKnowledge::new());
        overhead.begin();
        overhead.wrote(1_000);
        overhead.measure(2_000, 0, &known);
        overhead.wrote(1_000_000);
        overhead.begin();
        overhead.measure(2_000_000, 0, &known);
        assert_eq!(known.wire_overhead(), None);
        overhead.end();
        overhead.measure(1_101_100, 0, &known);
        assert_eq!(known.wire_overhead(), "10%".parse().ok());
    }
}
