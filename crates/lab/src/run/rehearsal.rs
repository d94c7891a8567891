//! [`rehearsed`]: the run before a run, whose slow start threshold its hosts remember.

use std::sync::Arc;

use playrate_transport::ControllerChoice;

use crate::scenario::{Scenario, kept_ssthresh, with_ssthresh};
use crate::sim::{self, RunHandle, SimError};

/// Difference between the seeds of a run and of its rehearsal.
const SEEDS_APART: u64 = 1_000;

/// The controller of the run of `scenario` with this seed. If its hosts remember ssthresh, one viewer plays alone
/// first, in virtual time, and `controller` begins with the threshold that this connection leaves behind; it begins as
/// it is if that connection never left its first slow start.
///
/// # Errors
/// If the rehearsal cannot be made.
pub(crate) fn rehearsed(
    scenario: &Scenario,
    controller: &ControllerChoice,
    seed: u64,
    handle: &Arc<RunHandle>,
) -> Result<ControllerChoice, SimError> {
    if !scenario.remembers_ssthresh {
        return Ok(controller.clone());
    }
    let mut setup = scenario.setup(controller, seed.wrapping_add(SEEDS_APART));
    setup.viewers.truncate(1);
    setup.bulk.clear();
    // The last sample has the end of the connection.
    setup.taps = true;
    let run = sim::run_with(&setup, handle)?;
    let last = run.viewers.first().and_then(|viewer| viewer.transport.last());
    match last.and_then(|sample| kept_ssthresh(&sample.snapshot)) {
        None => Ok(controller.clone()),
        Some(ssthresh) => {
            with_ssthresh(controller, ssthresh).map_err(|error| SimError::setup("the controller", &error))
        }
    }
}
