//! `rfc5681` and `new-cwv-restart`: after a pause the window starts again as on a new connection.

use crate::events::Sent;
use crate::parameter::{Arguments, Parameter};
use crate::state::Core;
use crate::timestamp::nanos;

use super::{IdlePolicy, MINIMUM_RTO, restart_window};

/// After more than an RTO without sending: cwnd = min(IW, cwnd). The policies differ in ssthresh.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Restart {
    minimum_rto_ns: u64,
    /// Derives ssthresh from the window and the ssthresh before the pause, bytes.
    ssthresh: fn(u64, Option<u64>) -> Option<u64>,
}

impl Restart {
    /// `rfc5681`. RFC 5681 §4.1: "a TCP SHOULD set cwnd to no more than RW before beginning transmission if the TCP has
    /// not sent data in an interval exceeding the retransmission timeout", with RW = min(IW, cwnd). ssthresh stays.
    pub(crate) fn rfc5681(arguments: &Arguments) -> Self {
        Self {
            minimum_rto_ns: nanos(arguments.time(MINIMUM_RTO.name)),
            ssthresh: |_, ssthresh| ssthresh,
        }
    }

    /// `new-cwv-restart`: new CWV as Yanev et al. 2022 describe it, ssthresh = cwnd and cwnd = min(IW, cwnd).
    ///
    /// NOTE: RFC 7661 keeps the window over a pause ([`new-cwv`](super::new_cwv)). The paper's figure 1b and its text
    /// ("preserves the cwnd before the idle period as its slow-start threshold") show this instead: its kernel module
    /// did not stop Linux from restarting the window. A window no larger than the initial one is left alone, and so is
    /// ssthresh: the paper's connections never paused that early.
    pub(crate) fn new_cwv_restart(arguments: &Arguments) -> Self {
        Self {
            minimum_rto_ns: nanos(arguments.time(MINIMUM_RTO.name)),
            ssthresh: if arguments.is_on(KEEP_HIGHER.name) {
                |before, ssthresh| ssthresh.max(Some(before))
            } else {
                |before, _| Some(before)
            },
        }
    }
}

impl IdlePolicy for Restart {
    fn on_sent(&mut self, core: &mut Core, event: &Sent) -> bool {
        let (before, window) = (core.window(), restart_window(core));
        if window == before || core.pause(event.now, self.minimum_rto_ns).is_none() {
            return false;
        }
        core.ssthresh = (self.ssthresh)(before, core.ssthresh);
        core.set_window(window);
        true
    }
}

pub(crate) const KEEP_HIGHER: Parameter = Parameter::switch("keep_higher", false).about(
    "keep an ssthresh that is above the window before the pause, so that short bursts do not wear it down",
);
