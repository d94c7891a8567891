//! [`Action`]: what a plan does to hosts and processes, besides the faults of links and disks.

use std::time::Duration;

use crate::kind::FaultKind;
use crate::plan::FaultPlan;

/// A change at a given time of the run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    /// The server crashes; if it does not return, it is not started again.
    Crash {
        returns: bool,
    },
    Start {
        same_key: bool,
    },
    Vanish,
    Rebind {
        address: bool,
    },
    SuspendServer(Duration),
    SuspendClient(Duration),
}

/// The changes of a plan, in chronological order.
pub(crate) fn actions(plan: &FaultPlan) -> Vec<(Duration, Action)> {
    let mut actions = Vec::new();
    for fault in &plan.faults {
        let at = fault.at;
        match fault.kind {
            FaultKind::Restart { gap, same_key } => {
                actions.push((at, Action::Crash { returns: true }));
                actions.push((at + gap, Action::Start { same_key }));
            }
            FaultKind::ServerGone => actions.push((at, Action::Crash { returns: false })),
            FaultKind::ClientGone => actions.push((at, Action::Vanish)),
            FaultKind::NewPort => actions.push((at, Action::Rebind { address: false })),
            FaultKind::NewAddress => actions.push((at, Action::Rebind { address: true })),
            FaultKind::ServerSuspended(lasts) => actions.push((at, Action::SuspendServer(lasts))),
            FaultKind::ClientSuspended(lasts) => actions.push((at, Action::SuspendClient(lasts))),
            _ => {}
        }
    }
    actions.sort_by_key(|(at, _)| *at);
    actions
}
