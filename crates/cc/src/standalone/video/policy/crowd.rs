//! The policy in a crowd: others fill the queue, so the window is CUBIC's until a back-off succeeds again.

use crate::algorithm::Algorithm;
use crate::events::Congestion;
use crate::standalone::video::model::{Model, Round};
use crate::state::Core;
use crate::{Phase, Reason};

use super::{Mode, Policy, now};

impl Policy {
    /// Changes to CUBIC's window, because others fill the queue. It starts from its size before the back-offs.
    pub(super) fn be_crowded(&mut self, core: &mut Core) {
        let now = now(core);
        let before = self
            .giving_way
            .begin_crowd(now, core.rtt.smoothed_ns().unwrap_or(0));
        self.mode = Mode::Crowded;
        self.start_left_at = None;
        core.set_window(before.max(core.window()));
        self.cubic.begin(core, Reason::Idle, now);
        self.giving_way.reset();
    }

    pub(super) fn judge_crowd(&mut self, core: &mut Core, path: &mut Model, round: &Round) {
        self.note_contention(core);
        let stood = path.queue.within(round.rtt_min) > path.queue.target(core.mtu());
        let min_rtt = path.queue.min_rtt().unwrap_or(0);
        if self.giving_way.is_over(stood, now(core), min_rtt) {
            self.be_alone(core, Reason::RecoveryEnded);
            path.queue.forget_losses();
        }
    }

    /// Answers losses that count while others fill the queue.
    pub(super) fn reduce(&mut self, core: &mut Core, event: &Congestion) {
        self.may_double = false;
        if let Some(reduction) = self.cubic.on_congestion(core, event) {
            core.set_window(reduction.window);
            core.recovery_start = Some(event.now);
            core.enter(Phase::Recovery, event.reason());
        }
    }
}
