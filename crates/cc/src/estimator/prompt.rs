//! [`PromptSamples`]: the RTT samples without delay by the peer's ACK timer.

use crate::Timestamp;

/// A peer that delays the acknowledgement of a lone packet also acknowledges, in the same frame, a packet that left
/// this soon after it.
const COMPANION_NS: u64 = 1_000_000;

/// Separates RTT samples that the peer's timer may have lengthened from the others.
///
/// The acknowledgement of a lone packet may have waited for the timer. It did not wait if the next packet left right
/// after it and was acknowledged separately, because the peer then acknowledges every packet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PromptSamples {
    /// Departure of a packet that was acknowledged alone, and its sample, ns, which may still prove prompt.
    lone: Option<(Timestamp, u64)>,
}

impl PromptSamples {
    /// Processes the sample of an ACK batch whose newest packet left at `sent`. Returns the larger of this sample and
    /// the previous lone packet's, considering only samples known to be prompt.
    #[inline]
    pub(crate) fn on_sample(&mut self, sent: Timestamp, packets: u32, sample_ns: u64) -> Option<u64> {
        let (lone, prompt) = match packets {
            0..=1 => (Some((sent, sample_ns)), None),
            _ => (None, Some(sample_ns)),
        };
        let before = core::mem::replace(&mut self.lone, lone);
        let before = before.filter(|&(left, _)| sent.nanos_since(left) <= COMPANION_NS);
        prompt.max(before.map(|(_, sample_ns)| sample_ns))
    }
}
