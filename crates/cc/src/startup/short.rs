//! `short`: slow start that ends with the first estimate of the path's capacity (CCPSSS).

use crate::Reason;
use crate::compose::{Batch, Core, Needs, Step};
use crate::registry::{Entry, Key};

use super::{Part, Startup, standard};

/// CCPSSS: slow start until one packet train has told the capacity, or a loss, or ssthresh.
///
/// Slow start again, after persistent congestion or a pause, ends at once if the capacity is known by then.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Short;

impl Part for Short {
    fn needs(&self) -> Needs {
        Needs {
            capacity: true,
            ..Needs::default()
        }
    }

    fn on_batch(&mut self, core: &mut Core, batch: &Batch) -> Step {
        if core.early_capacity().is_some() {
            return Step::Leave {
                reason: Reason::CapacityKnown,
                unused: batch.credit,
            };
        }
        standard::grow(core, batch.credit)
    }
}

pub(crate) fn entry() -> Entry {
    Entry::part(Key::Start, "short")
        .about(
            "slow start until the first estimate of the path's capacity",
            "Watanabe et al. 2014, CCPSSS",
        )
        .startup(|_| Startup::Short(Short))
}
