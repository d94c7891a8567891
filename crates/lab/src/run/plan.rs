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
    /// How much work it is, in bytes of title to be received.
    pub fn weight(&self) -> u64 {
        if self.controller.is_none() {
            return 0;
        }
        let title = self.scenario.title.source().len();
        title.saturating_mul(self.scenario.viewers.into())
    }

    /// How many rows it makes.
    pub fn rows(&self) -> u32 {
        if self.controller.is_none() {
            1
        } else {
            self.scenario.viewers
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
        // A fluid link knows no other viewers and no changing rate.
        if scenario.ideal && scenario.viewers == 1 && scenario.path.forward.rate.mean().is_some() {
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
