//! Hosts that remember the slow start threshold of the previous connection.

use std::sync::Arc;

use playrate_cc::Snapshot;
use playrate_units::Bytes;

use super::{Scenario, ScenarioError, SourceMap};
use crate::controllers::Controller;
use crate::sim::{self, RunHandle, SimError};

/// Difference between the seeds of a run and its rehearsal.
const SEEDS_APART: u64 = 1_000;

/// Checks, if `remembers` is set, that all `controllers` can begin with a given slow start threshold.
pub(super) fn check(
    map: SourceMap<'_>,
    remembers: bool,
    controllers: &[Controller],
) -> Result<(), ScenarioError> {
    if !remembers {
        return Ok(());
    }
    for controller in controllers {
        with_ssthresh(controller, Bytes::ZERO).map_err(|error| {
            let problem = format!(
                "`viewer.remembers_ssthresh` needs controllers with the parameter `ssthresh`: {error}; leave \
                 `{controller}` out, or write remembers_ssthresh = false"
            );
            map.at_key("viewer.remembers_ssthresh", problem)
        })?;
    }
    Ok(())
}

/// The controller with this initial slow start threshold.
///
/// # Errors
/// If it has no such parameter; the text says so.
pub(super) fn with_ssthresh(controller: &Controller, ssthresh: Bytes) -> Result<Controller, String> {
    match controller {
        Controller::Spec(spec) => spec
            .with_argument("ssthresh", &ssthresh.to_string())
            .map(Controller::Spec)
            .map_err(|error| error.to_string()),
        other => Err(format!("`{other}` takes no parameters")),
    }
}

/// The threshold that Linux keeps when a connection ends like this (`tcp_update_metrics`, outside slow start): the
/// larger of ssthresh and half the window. `None` if the connection never left its first slow start.
pub(super) fn kept_ssthresh(end: &Snapshot) -> Option<Bytes> {
    end.ssthresh.map(|ssthresh| ssthresh.max(end.window / 2))
}

impl Scenario {
    /// The controller for the run with this seed. If the hosts remember ssthresh, one viewer first plays alone in
    /// virtual time, and `controller` begins with the threshold that this connection leaves behind. If that connection
    /// never left its first slow start, `controller` is unchanged.
    ///
    /// # Errors
    /// If the rehearsal cannot be made.
    pub(crate) fn rehearsed(
        &self,
        controller: &Controller,
        seed: u64,
        handle: &Arc<RunHandle>,
    ) -> Result<Controller, SimError> {
        if !self.remembers_ssthresh {
            return Ok(controller.clone());
        }
        let mut setup = self.setup(controller, seed.wrapping_add(SEEDS_APART));
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
}
