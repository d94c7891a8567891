//! [`Job`]: what is to be done, in the order in which results are written.

use std::sync::Arc;

use playrate_transport::ControllerChoice;

use super::row::{IDEAL, Key};
use crate::scenario::Scenario;

/// One run.
#[derive(Clone, Debug)]
pub struct Job {
    /// Of which scenario.
    pub scenario: Arc<Scenario>,
    /// Under which controller; `None` is the best that any sender could do.
    pub controller: Option<ControllerChoice>,
    /// What it is called.
    pub key: Key,
}

impl Job {
    /// How much work it is, in bytes to be received.
    pub fn weight(&self) -> u64 {
        if self.controller.is_none() {
            return 0;
        }
        let scenario = &self.scenario;
        let (viewers, title) = (&scenario.viewers, scenario.title.source());
        let of_titles = match viewers.leaves_after {
            None => title.len(),
            Some(after) => {
                let carried = scenario.path.forward.rate.mean().map(|rate| rate * after);
                carried.map_or(title.len(), |bytes| bytes.as_u64().min(title.len()))
            }
        };
        let of_titles = of_titles.saturating_mul(viewers.count.into());
        // Downloads take what the link has until the last viewer is done, which takes at least as long as the title.
        let stay = title.title().duration();
        let stay = viewers.leaves_after.map_or(stay, |after| after.min(stay));
        let length = viewers.last_joins().saturating_add(stay);
        let link = scenario
            .path
            .forward
            .rate
            .mean()
            .map(|rate| (rate * length).as_u64());
        match (&scenario.bulk, link) {
            (Some(_), Some(link)) => link.max(of_titles),
            _ => of_titles,
        }
    }

    /// How many rows it makes.
    pub fn rows(&self) -> u32 {
        if self.controller.is_none() {
            1
        } else {
            self.scenario.flows()
        }
    }
}

/// All runs of these scenarios, in order: by scenario, by case, by controller, by trial. The ideal comes first.
pub fn plan(scenarios: &[Arc<Scenario>]) -> Vec<Job> {
    let mut jobs = Vec::new();
    for scenario in scenarios {
        let mut add = |controller: Option<&ControllerChoice>, trial: u32| {
            jobs.push(Job {
                scenario: Arc::clone(scenario),
                controller: controller.cloned(),
                key: Key {
                    scenario: scenario.name.clone(),
                    case: scenario.case.clone(),
                    scenario_hash: scenario.hash.clone(),
                    controller: controller.map_or_else(|| IDEAL.to_owned(), ToString::to_string),
                    trial,
                    seed: scenario.seed_of(trial),
                },
            });
        };
        // A fluid link knows nobody else and no changing rate.
        let alone = scenario.flows() == 1 && scenario.path.forward.cross_traffic.is_empty();
        if scenario.ideal && alone && scenario.path.forward.rate.mean().is_some() {
            add(None, 1);
        }
        for controller in &scenario.controllers {
            for trial in 1..=scenario.trials {
                add(Some(controller), trial);
            }
        }
    }
    jobs
}
