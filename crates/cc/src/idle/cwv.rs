//! `cwv`: congestion window validation as in RFC 2861 and Linux (`tcp_slow_start_after_idle`).

use crate::events::Sent;
use crate::parameter::{Arguments, Parameter};
use crate::state::{Batch, Core};
use crate::timestamp::nanos;
use crate::{Phase, Timestamp};

use super::{IdlePolicy, MINIMUM_RTO, remember_three_quarters, restart_window};

/// An ssthresh that no window reaches (Linux `TCP_INFINITE_SSTHRESH`), bytes. Unlike after `None`, slow start has to
/// find a threshold again.
const INFINITE_SSTHRESH: u64 = i32::MAX as u64;

/// A pause halves the window for each RTO of its length. An RTO without a full window brings the window halfway to the
/// used part. ssthresh keeps three quarters of the previous window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cwv {
    minimum_rto_ns: u64,
    /// A pause makes ssthresh infinite again.
    forget_ssthresh: bool,
    /// Time when the window was last filled or last checked (Linux `snd_cwnd_stamp`).
    checked: Option<Timestamp>,
    /// Largest flight since, bytes (RFC 2861's `W_used`).
    used: u64,
}

impl Cwv {
    pub(crate) fn from_arguments(arguments: &Arguments) -> Self {
        Self {
            minimum_rto_ns: nanos(arguments.time(MINIMUM_RTO.name)),
            forget_ssthresh: arguments.is_on(FORGET_SSTHRESH.name),
            checked: None,
            used: 0,
        }
    }

    fn start_over(&mut self, now: Timestamp) {
        self.checked = Some(now);
        self.used = 0;
    }

    /// The window after a whole RTO with at most `used` bytes in flight, if it is smaller.
    fn after_unused_rto(core: &Core, used: u64) -> Option<u64> {
        let window = core.window();
        // Linux `tcp_is_cwnd_limited`: in slow start, half a window in flight counts as a full one.
        let in_slow_start = core.ssthresh.is_none_or(|ssthresh| window < ssthresh);
        if in_slow_start && used.saturating_mul(2) > window {
            return None;
        }
        // Linux `tcp_cwnd_application_limited`: the used part counts as at least the initial window.
        let used = used.max(core.initial_window());
        (used < window).then(|| window.midpoint(used))
    }
}

impl IdlePolicy for Cwv {
    /// As in Linux `tcp_cwnd_restart`.
    fn on_sent(&mut self, core: &mut Core, event: &Sent) -> bool {
        let Some((quiet, rto)) = core.pause(event.now, self.minimum_rto_ns) else {
            return false;
        };
        self.start_over(event.now);
        let before = core.window();
        let restart = restart_window(core);
        if self.forget_ssthresh {
            core.ssthresh = Some(INFINITE_SSTHRESH);
        } else {
            remember_three_quarters(core);
        }
        let mut window = before;
        let mut left = quiet.saturating_sub(rto);
        while left > 0 && window > restart {
            window /= 2;
            left = left.saturating_sub(rto);
        }
        core.set_window(window.max(restart));
        core.window() < before
    }

    /// As in Linux `tcp_cwnd_validate`.
    fn on_batch(&mut self, core: &mut Core, batch: &mut Batch) -> bool {
        if !batch.limited {
            self.start_over(batch.now);
            return false;
        }
        self.used = self.used.max(batch.prior_in_flight());
        let since = *self.checked.get_or_insert(batch.now);
        let Some(rto) = core.rtt.rto_ns() else {
            return false;
        };
        if batch.now.nanos_since(since) < rto.max(self.minimum_rto_ns) {
            return false;
        }
        let used = self.used;
        self.start_over(batch.now);
        if core.phase == Phase::Recovery {
            return false;
        }
        let Some(window) = Self::after_unused_rto(core, used) else {
            return false;
        };
        remember_three_quarters(core);
        core.set_window(window);
        batch.allowance = 0;
        true
    }

    fn on_persistent(&mut self, _core: &mut Core) {
        self.checked = None;
        self.used = 0;
    }
}

pub(crate) const FORGET_SSTHRESH: Parameter = Parameter::switch("forget_ssthresh", false)
    .about("a pause makes ssthresh infinite again: the faulty control of Yanev et al. 2022, not RFC 2861");
