//! `reno`: NewReno as defined in RFC 9002 §7.

use crate::component::Reduction;
use crate::events::Congestion;
use crate::state::{Batch, Core};
use crate::{Reason, Timestamp};

use super::Algorithm;

/// NewReno. One packet per window of acknowledged bytes; half on congestion.
///
/// RFC 9002 appendix B.5 adds `mtu · bytes / window` per ACK. This counts bytes instead (RFC 3465, which RFC
/// 9002 §7.3.3 allows), so that no remainder is lost and the result does not depend on how ACKs are grouped.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reno {
    /// Bytes acknowledged towards the next packet.
    counted: u64,
}

impl Reno {
    /// Counts `allowance` bytes and grows the window by a packet once a whole window is acknowledged.
    #[inline]
    fn count(&mut self, core: &mut Core, allowance: u64) {
        // Bytes counted under a larger window must not grow a smaller one by themselves.
        if allowance == 0 {
            return;
        }
        self.counted = self.counted.saturating_add(allowance);
        let window = core.window();
        if self.counted >= window {
            core.grow(core.mtu());
            // No more than a window can be in flight; the cap only matters right after a reduction.
            self.counted = self.counted.saturating_sub(window).min(window);
        }
    }
}

impl Algorithm for Reno {
    fn begin(&mut self, _core: &mut Core, _reason: Reason, _now: Timestamp) {
        self.counted = 0;
    }

    #[inline]
    fn on_batch(&mut self, core: &mut Core, batch: &Batch) {
        self.count(core, batch.allowance);
    }

    /// RFC 9002 §7.3.2, B.6: ssthresh is half the window, and the window is that or the minimum.
    fn on_congestion(&mut self, core: &mut Core, _event: &Congestion) -> Option<Reduction> {
        self.counted = 0;
        let half = core.window() / 2;
        Some(Reduction {
            window: half,
            ssthresh: half,
        })
    }

    fn on_persistent(&mut self, _core: &mut Core) {
        self.counted = 0;
    }
}
