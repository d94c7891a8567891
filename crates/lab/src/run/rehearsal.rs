//! [`rehearsed`]: a run before the actual one, whose slow start threshold the hosts remember.

use std::sync::Arc;

use playrate_transport::ControllerChoice;

use crate::scenario::{Scenario, kept_ssthresh, with_ssthresh};
use crate::sim::{self, RunHandle, SimError};

/// Difference between the seeds of a run and its rehearsal.
const SEEDS_APART: u64 = 1_000;

/// The controller for the run of `scenario` with this seed. If its hosts remember ssthresh, one viewer first plays
/// alone in virtual time, and `controller` begins with the threshold that this connection leaves behind. If that
/// connection never left its first slow start, `controller` is unchanged.
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
    // The last sample shows the end of the connection.
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
