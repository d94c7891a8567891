//! [`TraceSource`]: a title of generated payload, sized by a frame trace.

use std::io;
use std::sync::LazyLock;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::{MAX_READ, MediaSource, hex, readable};
use crate::title::Title;
use crate::trace::FrameTrace;

/// A title whose frames have the sizes and times of a [`FrameTrace`] and a generated payload. The byte at an offset is
/// always the same, and nothing is decodable. There are no boxes, so a client takes the frames from
/// [`MediaSource::title`] (or from the trace) instead of parsing them. It serves experiments that would otherwise need
/// very large files.
#[derive(Debug)]
pub struct TraceSource {
    trace: FrameTrace,
    title: Title,
    identity: String,
}

impl TraceSource {
    /// Creates a title from the trace's frames, without gaps.
    pub fn new(trace: &FrameTrace) -> Self {
        let title = Title::of_frames(trace.frames(), trace.duration());
        let mut hash = Sha256::new();
        for frame in title.frames() {
            hash.update(frame.size.as_u64().to_be_bytes());
        }
        let digest = hash.finalize();
        let identity = hex(&digest);
        Self {
            trace: trace.clone(),
            title,
            identity,
        }
    }

    /// The trace from which the title was made.
    pub fn trace(&self) -> &FrameTrace {
        &self.trace
    }
}

/// The payload repeats after this many bytes. The number is prime, so that it matches no frame, segment or chunk, and
/// small enough for the processor's cache.
const PERIOD: usize = 65_521;

/// The payload of all generated titles: one period, plus enough to make every read a slice of it. It is generated once:
/// doing so for each read took a twentieth of a simulated session's time.
static PAYLOAD: LazyLock<Bytes> = LazyLock::new(|| {
    let period: Vec<u8> = (0..).flat_map(block).take(PERIOD).collect();
    period.iter().copied().cycle().take(PERIOD + MAX_READ).collect()
});

/// Eight payload bytes: the `SplitMix64` generator (Steele et al., OOPSLA 2014) at its `block`-th step.
fn block(block: u64) -> [u8; 8] {
    let mut bits = block.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (bits ^ (bits >> 31)).to_le_bytes()
}

impl MediaSource for TraceSource {
    fn len(&self) -> u64 {
        self.title.file_size().as_u64()
    }

    fn read_at(&self, offset: u64, max: usize) -> io::Result<Bytes> {
        let count = readable(self.len(), offset, max);
        // Less than the period, so it fits.
        let start = usize::try_from(offset % PERIOD as u64).unwrap_or(0);
        Ok(PAYLOAD.slice(start..start + count))
    }

    fn title(&self) -> &Title {
        &self.title
    }

    fn identity(&self) -> &str {
        &self.identity
    }
}
