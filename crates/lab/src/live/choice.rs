//! What is run live: one case of a scenario, cut short, if a relay can be its path.

use std::sync::Arc;
use std::time::Duration;

use playrate_netsim::Rate;
use playrate_units::{Bitrate, duration};

use super::{LiveArgs, LiveError};
use crate::scenario::{self, Changes, Scenario, ScenarioError, Setting};
use crate::sim;

/// What servers, relay and clients in one process keep up with on two cores.
const FASTEST: Bitrate = Bitrate::from_mbps(200);
/// How many viewers they serve at once without getting in each other's way.
const MOST_VIEWERS: u32 = 16;

/// The scenario that `args` name, with as many trials as they ask for and viewers who leave in time.
///
/// # Errors
/// If it is no good, or cannot be run live.
pub(super) fn scenario(args: &LiveArgs) -> Result<Arc<Scenario>, LiveError> {
    let mut changes = Changes {
        trials: Some(args.trials.get()),
        seed: args.seed,
        ..Changes::default()
    };
    let watching = args.watching();
    let mut scenario = one(args, &changes)?;
    if scenario.viewers.leaves_after.is_none_or(|after| after > watching) {
        let time = duration::display(watching).to_string();
        changes.settings.push(Setting::new("viewer.leaves_after", time));
        scenario = one(args, &changes)?;
    }
    if let Some(asked) = &args.controllers {
        scenario.controllers.clone_from(&asked.0);
    }
    // The best that any sender could do has nothing to do in real time.
    scenario.ideal = false;
    match unfit(&scenario) {
        Some(reason) => Err(LiveError::Unfit {
            scenario: scenario.full_name(),
            reason,
        }),
        None => Ok(Arc::new(scenario)),
    }
}

/// The one case that is asked for.
fn one(args: &LiveArgs, changes: &Changes) -> Result<Scenario, LiveError> {
    let cases = scenario::open(&args.scenario, changes)?;
    let names = |cases: &[Scenario]| {
        let names: Vec<_> = cases.iter().map(|scenario| scenario.case.clone()).collect();
        names.join(", ")
    };
    let all = names(&cases);
    let mut fitting: Vec<_> = match &args.case {
        Some(name) => cases
            .into_iter()
            .filter(|scenario| scenario.case == *name)
            .collect(),
        None => cases,
    };
    match (fitting.len(), &args.case) {
        (0, Some(name)) => Err(ScenarioError::UnknownCase {
            name: name.clone(),
            known: all,
        }
        .into()),
        (1, _) => Ok(fitting.remove(0)),
        _ => Err(LiveError::Cases {
            scenario: args.scenario.clone(),
            cases: all,
        }),
    }
}

/// What of the scenario cannot be in real time.
fn unfit(scenario: &Scenario) -> Option<String> {
    if scenario.viewers.count > MOST_VIEWERS {
        return Some(format!(
            "{} viewers at once would get in each other's way on one machine, where {MOST_VIEWERS} are the most",
            scenario.viewers.count
        ));
    }
    let path = &scenario.path;
    let rate = match (&path.forward.rate, path.forward.rate.mean()) {
        (Rate::Unlimited, _) => Some("no limit".to_owned()),
        (_, Some(mean)) if mean > FASTEST => Some(mean.to_string()),
        _ => None,
    };
    if let Some(rate) = rate {
        return Some(format!(
            "a bottleneck of {rate} would measure this machine and not the path; the relay keeps up with {FASTEST}"
        ));
    }
    let controller = scenario.controllers.first()?;
    sim::virtual_only(&scenario.setup(controller, scenario.seed)).map(str::to_owned)
}

/// How long one run of it takes at most.
pub(super) fn length(scenario: &Scenario) -> Duration {
    let stays = scenario.viewers.leaves_after.unwrap_or(Duration::MAX);
    stays.saturating_add(scenario.viewers.last_joins())
}
