//! `new-cwv-restart`: New CWV as Yanev et al. 2022 describe it: a pause restarts the window, and ssthresh keeps its
//! previous size.

use crate::entry::{Entry, Key};
use crate::events::Sent;
use crate::parameter::Parameter;
use crate::state::Core;

use super::{AnyIdlePolicy, IdlePolicy, MINIMUM_RTO, PauseRule, restart_window};

/// After more than an RTO without sending: ssthresh = cwnd, cwnd = min(IW, cwnd).
///
/// NOTE: RFC 7661 keeps the window over a pause ([`new-cwv`](super::new_cwv)). The paper's figure 1b and its text
/// ("preserves the cwnd before the idle period as its slow-start threshold") show this instead: its kernel module did
/// not stop Linux from restarting the window. A window no larger than the initial one is left alone, and so is
/// ssthresh: the paper's connections never paused that early.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewCwvRestart {
    pause: PauseRule,
    /// A pause never lowers ssthresh.
    keep_higher: bool,
}

impl IdlePolicy for NewCwvRestart {
    fn on_sent(&mut self, core: &mut Core, event: &Sent) -> bool {
        let (before, window) = (core.window(), restart_window(core));
        if window == before || !self.pause.ends_pause(core, event.now) {
            return false;
        }
        let higher = core.ssthresh.filter(|_| self.keep_higher).unwrap_or(0);
        core.ssthresh = Some(before.max(higher));
        core.set_window(window);
        true
    }
}

const KEEP_HIGHER: Parameter = Parameter::switch("keep_higher", false).about(
    "keep an ssthresh that is above the window before the pause, so that short bursts do not wear it down",
);

pub(crate) fn entry() -> Entry {
    Entry::component(Key::Idle, "new-cwv-restart", |components, arguments| {
        components.idle = AnyIdlePolicy::NewCwvRestart(NewCwvRestart {
            pause: PauseRule::from_arguments(arguments),
            keep_higher: arguments.is_on(KEEP_HIGHER.name),
        });
    })
    .about(
        "after a pause of more than an RTO the window is the initial one, and slow start ends at the \
         window of before",
    )
    .defined_in("Yanev et al. 2022, §2 and figure 1b")
    .with_parameters(&[MINIMUM_RTO, KEEP_HIGHER])
}
