//! `short`: slow start that ends with the first estimate of the path's capacity (CCPSSS).

use crate::Reason;
use crate::component::{Bursts, Needs, Step};
use crate::entry::{Entry, Key};
use crate::state::{Batch, Core};

use super::{AnyStartup, Startup, standard};

/// CCPSSS: slow start until the first sample gives a capacity estimate, or a loss, or ssthresh. Watanabe et al. 2014:
/// "the scheme waits until a first capacity estimate is available to transition out of slow start."
///
/// After persistent congestion or a pause, slow start ends immediately if the capacity is known by then.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Short;

impl Startup for Short {
    fn needs(&self) -> Needs {
        Needs {
            bursts: Bursts::Capacity,
            ..Needs::default()
        }
    }

    fn on_batch(&mut self, core: &mut Core, batch: &Batch) -> Step {
        if core.early_capacity().is_some() {
            return Step::Leave {
                reason: Reason::CapacityKnown,
                unused: batch.allowance,
            };
        }
        standard::grow(core, batch.allowance)
    }
}

pub(crate) fn entry() -> Entry {
    Entry::component(Key::Start, "short", |components, _| {
        components.startup = AnyStartup::Short(Short);
    })
    .about(
        "slow start until the first estimate of the path's capacity",
        "Watanabe et al. 2014, CCPSSS",
    )
}
