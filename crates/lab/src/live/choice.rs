//! The scenario of a live run: a single case, shortened, with a path that a relay can model.

use std::sync::Arc;
use std::time::Duration;

use playrate_units::{Bitrate, duration};

use super::LiveArgs;
use crate::error::CommandError;
use crate::scenario::{self, Changes, Scenario, ScenarioError, Setting};
use crate::sim;

/// Maximum rate at which servers, relay and clients in one process keep up on two cores.
const FASTEST: Bitrate = Bitrate::from_mbps(200);
/// Maximum number of viewers that do not disturb each other in one process.
const MOST_VIEWERS: u32 = 16;

/// The scenario of `args`, with its number of trials and viewers who leave in time.
///
/// # Errors
/// If it is invalid, or cannot be run live.
pub(super) fn scenario(args: &LiveArgs) -> Result<Arc<Scenario>, CommandError> {
    let controllers = args.controllers.iter();
    let controllers = controllers.map(|list| Setting::new("controllers", list.names()));
    let mut changes = Changes {
        trials: Some(args.trials.get()),
        seed: args.seed,
        settings: controllers.collect(),
        ..Changes::default()
    };
    let watching = args.watching();
    let mut scenario = one(args, &changes)?;
    if scenario.viewers.leaves_after.is_none_or(|after| after > watching) {
        let time = duration::display(watching).to_string();
        changes.settings.push(Setting::new("viewer.leaves_after", time));
        scenario = one(args, &changes)?;
    }
    // The ideal sender exists only in virtual time.
    scenario.ideal = false;
    match unfit(&scenario) {
        Some(reason) => Err(CommandError::BadInput(format!(
            "`{}` cannot be run live: {reason}; use `lab run`",
            scenario.full_name()
        ))),
        None => Ok(Arc::new(scenario)),
    }
}

/// The one case of `args`.
fn one(args: &LiveArgs, changes: &Changes) -> Result<Scenario, CommandError> {
    let cases = scenario::open(&args.scenario, changes)?;
    let names: Vec<_> = cases.iter().map(|scenario| scenario.case.clone()).collect();
    let names = names.join(", ");
    let wanted = |scenario: &Scenario| args.case.as_ref().is_none_or(|name| scenario.case == *name);
    let mut fitting = cases.into_iter().filter(wanted);
    match (fitting.next(), fitting.next(), &args.case) {
        (Some(only), None, _) => Ok(only),
        (None, _, Some(name)) => Err(CommandError::Scenario(ScenarioError::UnknownCase {
            name: name.clone(),
            known: names,
        })),
        _ => Err(CommandError::BadInput(format!(
            "`{}` has the cases {names}; name one with --case, since each takes its time",
            args.scenario
        ))),
    }
}

/// The reason why the scenario cannot run in real time.
fn unfit(scenario: &Scenario) -> Option<String> {
    if scenario.viewers.count > MOST_VIEWERS {
        return Some(format!(
            "its {} viewers would disturb each other on one machine; the limit is {MOST_VIEWERS}",
            scenario.viewers.count
        ));
    }
    let path = &scenario.path;
    let rate = match path.forward.rate.mean() {
        None => Some("no limit".to_owned()),
        Some(mean) if mean > FASTEST => Some(mean.to_string()),
        Some(_) => None,
    };
    if let Some(rate) = rate {
        return Some(format!(
            "with a bottleneck of {rate} the run would measure this machine, not the path; the relay keeps up with \
             {FASTEST}"
        ));
    }
    let controller = scenario.controllers.first()?;
    sim::virtual_only(&scenario.setup(controller, scenario.seed)).map(str::to_owned)
}

/// Maximum duration of one run.
pub(super) fn length(scenario: &Scenario) -> Duration {
    let stays = scenario.viewers.leaves_after.unwrap_or(Duration::MAX);
    stays.saturating_add(scenario.viewers.last_joins())
}
