//! [`PromptSamples`]: the RTT samples without delay by the peer's ACK timer.

use crate::Timestamp;

/// If the peer had delayed the acknowledgement of a lone packet, it would have acknowledged a packet that left this
/// soon afterwards in the same frame.
const COMPANION_NS: u64 = 1_000_000;

/// Separates RTT samples that the peer's timer may have lengthened from the others.
///
/// The acknowledgement of a lone packet may have waited for the timer. It did not if the next packet left right behind
/// it and was acknowledged separately: then the peer acknowledges every packet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PromptSamples {
    /// A lone packet's sample that may still prove prompt.
    lone: Option<Lone>,
}

/// A packet that was acknowledged alone.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Lone {
    sent: Timestamp,
    sample_ns: u64,
}

impl PromptSamples {
    /// Takes the sample of an ACK batch whose newest packet left at `sent`. Returns the larger of this sample and the
    /// previous lone packet's, considering only samples known to be prompt.
    #[inline]
    pub(crate) fn on_sample(&mut self, sent: Timestamp, packets: u32, sample_ns: u64) -> Option<u64> {
        let lone = self.lone;
        let mut prompt = None;
        if packets >= 2 {
            prompt = Some(sample_ns);
        } else {
            self.lone = Some(Lone { sent, sample_ns });
        }
        let Some(lone) = lone else { return prompt };
        if packets >= 2 {
            self.lone = None;
        }
        if sent.nanos_since(lone.sent) <= COMPANION_NS {
            prompt = prompt.max(Some(lone.sample_ns));
        }
        prompt
    }
}
