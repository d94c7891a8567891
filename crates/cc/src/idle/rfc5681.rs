//! `rfc5681`: after a pause the window starts again as on a new connection.

use crate::entry::{Entry, Key};
use crate::events::Sent;
use crate::state::Core;

use super::{AnyIdlePolicy, IdlePolicy, MINIMUM_RTO, PauseRule, restart_window};

/// RFC 5681 §4.1: "a TCP SHOULD set cwnd to no more than RW before beginning transmission if the TCP has not sent data
/// in an interval exceeding the retransmission timeout", with RW = min(IW, cwnd). ssthresh stays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rfc5681 {
    pause: PauseRule,
}

impl IdlePolicy for Rfc5681 {
    fn on_sent(&mut self, core: &mut Core, event: &Sent) -> bool {
        let window = restart_window(core);
        let restarts = window < core.window() && self.pause.ends_pause(core, event.now);
        if restarts {
            core.set_window(window);
        }
        restarts
    }
}

pub(crate) fn entry() -> Entry {
    Entry::component(Key::Idle, "rfc5681", |components, arguments| {
        let pause = PauseRule::from_arguments(arguments);
        components.idle = AnyIdlePolicy::Rfc5681(Rfc5681 { pause });
    })
    .about("after a pause of more than an RTO the window is the initial one again; ssthresh stays")
    .defined_in("RFC 5681 §4.1")
    .with_parameters(&[MINIMUM_RTO])
}
