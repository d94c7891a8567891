//! `new-cwv`: RFC 7661, which keeps the window over a pause but marks it as not validated.

use crate::component::Reduction;
use crate::events::{Congestion, Sent};
use crate::parameter::{Arguments, Parameter};
use crate::state::{Batch, Core};
use crate::timestamp::nanos;
use crate::{Phase, Timestamp};

use super::pipe_ack::{PipeAck, sampling_period_ns};
use super::{IdlePolicy, remember_three_quarters, restart_window};

/// A pause longer than this many non-validated periods has no further effect: the window is the initial one by then.
const MOST_HALVINGS: u64 = 32;

/// New congestion window validation. The window is validated while pipeACK, the bytes acknowledged per recent round
/// trip, is undefined or at least half of it. Sizes are bytes.
///
/// A window that is not validated is kept, but does not grow unless it limits the sender. Congestion then reduces the
/// part in use, and every five minutes the window is halved.
///
/// NOTE: the transport reports whether the window limits the sender, and counts pacing as such a limit (RFC 9002 §7.8).
/// RFC 7661 has "less than one SMSS is left of it" instead.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewCwv {
    /// The non-validated period, ns.
    nvp_ns: u64,
    /// In slow start a quarter of the window in use validates it.
    quarter: bool,
    /// A reduction in the non-validated phase sets ssthresh to the new window instead of the algorithm's ssthresh.
    window_is_ssthresh: bool,
    pipe_ack: PipeAck,
    /// Time when the window was last known to be validated, or last halved because it was not.
    validated_at: Timestamp,
    /// The current recovery, if it began in the non-validated phase.
    episode: Option<Episode>,
}

/// A recovery from congestion in the non-validated phase.
#[derive(Clone, Copy, Debug)]
struct Episode {
    /// max(pipeACK, `LossFlightSize`) when it began.
    in_use: u64,
    /// R: each lost byte is sent again.
    retransmitted: u64,
}

impl NewCwv {
    pub(crate) fn from_arguments(arguments: &Arguments) -> Self {
        Self {
            nvp_ns: nanos(arguments.time(NVP.name)),
            quarter: arguments.is_on(QUARTER.name),
            window_is_ssthresh: arguments.word(SSTHRESH.name) == "window",
            pipe_ack: PipeAck::default(),
            validated_at: Timestamp::ZERO,
            episode: None,
        }
    }

    fn pipe_ack(&self, core: &Core, now: Timestamp) -> Option<u64> {
        self.pipe_ack.get(now, sampling_period_ns(core.rtt.smoothed_ns()))
    }

    /// Returns true if the window is validated: pipeACK ≥ ½ · cwnd (RFC 7661 §4.3).
    fn is_validated(&self, core: &Core, now: Timestamp) -> bool {
        let window = core.window();
        let relaxed = self.quarter && core.ssthresh.is_none_or(|ssthresh| window < ssthresh);
        let share = if relaxed { 4 } else { 2 };
        self.pipe_ack(core, now)
            .is_none_or(|bytes| bytes.saturating_mul(share) >= window)
    }

    /// Halves the window for each full non-validated period (RFC 7661 §4.4.3). Returns true if it did.
    fn give_up_half(&mut self, core: &mut Core, now: Timestamp) -> bool {
        let periods = now
            .nanos_since(self.validated_at)
            .checked_div(self.nvp_ns)
            .unwrap_or(0);
        if periods == 0 {
            return false;
        }
        self.validated_at = self.validated_at.plus_nanos(periods.saturating_mul(self.nvp_ns));
        let before = core.window();
        for _ in 0..periods.min(MOST_HALVINGS) {
            remember_three_quarters(core);
            core.set_window((core.window() / 2).max(restart_window(core)));
        }
        core.window() < before
    }
}

impl IdlePolicy for NewCwv {
    fn on_sent(&mut self, core: &mut Core, event: &Sent) -> bool {
        if self.is_validated(core, event.now) {
            self.validated_at = event.now;
            return false;
        }
        let gave_up = self.give_up_half(core, event.now);
        if gave_up {
            self.episode = None;
        }
        gave_up
    }

    fn on_batch(&mut self, core: &mut Core, batch: &mut Batch) -> bool {
        self.pipe_ack
            .on_batch(batch, sampling_period_ns(core.rtt.smoothed_ns()));
        if self.is_validated(core, batch.now) {
            self.validated_at = batch.now;
            return false;
        }
        if batch.limited {
            batch.allowance = 0;
        }
        core.phase != Phase::Recovery && self.give_up_half(core, batch.now)
    }

    /// max(pipeACK, `LossFlightSize`), if the window is not validated.
    fn window_in_use(&self, core: &Core, now: Timestamp) -> Option<u64> {
        if self.is_validated(core, now) {
            return None;
        }
        Some(self.pipe_ack(core, now).unwrap_or(0).max(core.in_flight))
    }

    /// RFC 7661 §4.4.1: in the non-validated phase cwnd = max(pipeACK, `LossFlightSize`)/2.
    fn on_congestion(&mut self, event: &Congestion, in_use: Option<u64>, reduction: Reduction) -> Reduction {
        self.episode = in_use.map(|in_use| Episode {
            in_use,
            retransmitted: event.lost(),
        });
        let Some(in_use) = in_use else { return reduction };
        let window = reduction.window.min(in_use / 2);
        Reduction {
            window,
            ssthresh: if self.window_is_ssthresh {
                window
            } else {
                reduction.ssthresh
            },
        }
    }

    fn on_further_congestion(&mut self, _core: &mut Core, event: &Congestion) {
        if let Some(episode) = &mut self.episode {
            episode.retransmitted = episode.retransmitted.saturating_add(event.lost());
        }
    }

    /// RFC 7661 §4.4.1: cwnd = (max(pipeACK, `LossFlightSize`) − R)/2; pipeACK is undefined from here (§4.2).
    fn on_recovery_end(&mut self, core: &mut Core) {
        self.pipe_ack.forget();
        let Some(episode) = self.episode.take() else {
            return;
        };
        let left = episode.in_use.saturating_sub(episode.retransmitted) / 2;
        core.set_window(core.window().min(left));
        if self.window_is_ssthresh {
            core.ssthresh = Some(core.window());
        }
    }

    fn on_persistent(&mut self, _core: &mut Core) {
        self.pipe_ack.forget();
        self.episode = None;
    }
}

pub(crate) const NVP: Parameter = Parameter::millis("nvp", 300_000, 1_000..=86_400_000)
    .about("length of the non-validated period; after each, half of the window is given up");
pub(crate) const QUARTER: Parameter = Parameter::switch("quarter", false).about(
    "in slow start a quarter of the window in use validates it instead of half, as in Apple's stack: pipeACK \
     lags doubling",
);
pub(crate) const SSTHRESH: Parameter = Parameter::word("ssthresh", "window", &["window", "law"]).about(
    "ssthresh after congestion in the non-validated phase: the new window (the authors' module) or what the \
     algorithm says",
);
