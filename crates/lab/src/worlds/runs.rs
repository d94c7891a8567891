//! Runs of worlds: those that claims need, each made once however many worlds share it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Write as _, stderr};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::TestBed;
use super::stages::Length;
use super::unknown::World;
use crate::claims::Claim;
use crate::error::CommandError;
use crate::result::{IDEAL, ResultKey, ResultSet, Store};
use crate::run::{Job, make_missing, plan};
use crate::scenario::{Changes, Scenario};
use crate::sim::ServedTitle;
use crate::words::count;

/// Controllers that claims read, by scenario and case; the ideal sender is one of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Needs(BTreeMap<String, BTreeMap<String, BTreeSet<String>>>);

impl Needs {
    /// The controllers that `claims` read.
    pub(super) fn of<'a>(claims: impl IntoIterator<Item = &'a Claim>) -> Self {
        let mut needs = Self::default();
        for claim in claims {
            for reading in claim.readings() {
                let scenario = reading.of_scenario(&claim.scenario).to_owned();
                let cases = needs.0.entry(scenario).or_default();
                let controllers = cases.entry(reading.flow.case.clone()).or_default();
                controllers.insert(reading.flow.controller.clone());
                if reading.measure.over_ideal {
                    controllers.insert(IDEAL.to_owned());
                }
            }
        }
        needs
    }

    /// Returns true if a run of `scenario` under `controller` is needed, in any case.
    pub(super) fn has(&self, scenario: &str, controller: &str) -> bool {
        let mut cases = self.0.get(scenario).into_iter().flat_map(BTreeMap::values);
        cases.any(|controllers| controllers.contains(controller))
    }

    /// Returns true if a run of `scenario` is needed.
    pub(super) fn has_scenario(&self, scenario: &str) -> bool {
        self.0.contains_key(scenario)
    }

    fn controllers(&self, scenario: &str, case: &str) -> Option<&BTreeSet<String>> {
        self.0.get(scenario)?.get(case)
    }
}

/// A run of a world.
#[derive(Clone, Debug)]
pub(super) struct WorldRun {
    /// Controller whose row claims look for: that of the scenario's file.
    pub(super) label: Arc<str>,
    pub(super) job: Job,
}

/// Makes the scenarios of worlds. Titles that several of them play are kept once.
#[derive(Default)]
pub(super) struct Instances {
    titles: BTreeMap<String, ServedTitle>,
}

impl Instances {
    /// The runs of `world` that `needs` names.
    ///
    /// # Errors
    /// If the choices of the world do not go together.
    pub(super) fn runs(
        &mut self,
        bed: &TestBed,
        world: &World,
        needs: &Needs,
        length: Length,
    ) -> Result<Vec<WorldRun>, CommandError> {
        let mut runs = Vec::new();
        for scenario in &bed.scenarios {
            if !needs.has_scenario(&scenario.name) {
                continue;
            }
            let wrong =
                |problem: String| CommandError::BadInput(format!("{} in a world: {problem}", scenario.name));
            let changes = Changes {
                quick: length.quick,
                seed: length.seed,
                settings: world.settings(&bed.unknowns, scenario).map_err(wrong)?,
                ..Changes::default()
            };
            for mut case in scenario.source.scenarios(&changes)? {
                let Some(needed) = needs.controllers(&case.name, &case.case) else {
                    continue;
                };
                self.share_title(&mut case);
                case.trials = length.trials.of(case.trials);
                let mut labels: Vec<(Arc<str>, String)> = vec![(IDEAL.into(), IDEAL.to_owned())];
                let mut controllers = Vec::new();
                for nominal in std::mem::take(&mut case.controllers) {
                    let label = nominal.to_string();
                    if needed.contains(&label) {
                        let own = world
                            .controller(&bed.unknowns, &nominal, &case.name)
                            .map_err(wrong)?;
                        labels.push((label.into(), own.to_string()));
                        if !controllers.contains(&own) {
                            controllers.push(own);
                        }
                    }
                }
                case.controllers = controllers;
                case.ideal &= needed.contains(IDEAL);
                for job in plan(&[Arc::new(case)]) {
                    let mine = labels.iter().filter(|(_, own)| *own == job.key.controller);
                    runs.extend(mine.map(|(label, _)| WorldRun {
                        label: Arc::clone(label),
                        job: job.clone(),
                    }));
                }
            }
        }
        Ok(runs)
    }

    /// Puts a title of equal content in place of the scenario's own.
    fn share_title(&mut self, scenario: &mut Scenario) {
        let resources = scenario.title.resources();
        let parts = resources
            .iter()
            .map(|(name, source)| format!("{name} {}", source.identity()));
        let identity = parts.collect::<Vec<_>>().join("\n");
        let known = self
            .titles
            .entry(identity)
            .or_insert_with(|| scenario.title.clone());
        scenario.title = known.clone();
    }
}

/// The runs that were planned so far, in order.
#[derive(Default)]
pub(super) struct Ledger {
    known: BTreeSet<ResultKey>,
    pub(super) order: Vec<ResultKey>,
}

impl Ledger {
    /// The runs among `runs` that were not planned before, each once. They count as planned from now on.
    pub(super) fn fresh<'r>(&mut self, runs: impl IntoIterator<Item = &'r WorldRun>) -> Vec<&'r Job> {
        let mut fresh = Vec::new();
        for WorldRun { job, .. } in runs {
            if self.known.insert(job.key.clone()) {
                self.order.push(job.key.clone());
                fresh.push(job);
            }
        }
        fresh
    }
}

/// Makes runs and keeps their rows.
pub(super) struct Runner<'a> {
    pub(super) store: Store,
    pub(super) ledger: Ledger,
    /// Name and error message of each run that failed.
    pub(super) failed: Vec<String>,
    /// Runs that were made by this process.
    pub(super) made: usize,
    pub(super) directory: &'a Path,
    /// Number of runs at once; `None` is the number of cores.
    pub(super) threads: Option<NonZeroUsize>,
    pub(super) stop: &'a AtomicBool,
}

impl Runner<'_> {
    /// Makes those of `runs` that are missing; `what` stands before the progress.
    ///
    /// # Errors
    /// If rows cannot be stored, or the runs were stopped.
    pub(super) fn make<'r>(
        &mut self,
        what: &str,
        runs: impl IntoIterator<Item = &'r WorldRun>,
    ) -> Result<(), CommandError> {
        let fresh = self.ledger.fresh(runs);
        if fresh.is_empty() {
            return Ok(());
        }
        // A closed stderr is no error.
        let _ = writeln!(stderr(), "{what}: {}", count(fresh.len() as u64, "run", "runs"));
        let made = make_missing(&fresh, &mut self.store, self.threads, self.stop)
            .map_err(|error| CommandError::store(self.directory, error, ""))?;
        self.made += made.made;
        let unmade = made.missing - made.made - made.failed.len();
        self.failed.extend(made.failed);
        if self.stop.load(Relaxed) && unmade > 0 {
            let all = self.ledger.order.len();
            return Err(CommandError::Stopped {
                done: all - unmade - self.failed.len(),
                all,
                directory: self.directory.to_owned(),
            });
        }
        Ok(())
    }

    /// The rows of a world's runs, under the controllers whose rows claims look for.
    pub(super) fn results<'s>(&'s self, runs: &'s [WorldRun]) -> ResultSet<'s> {
        let mut results = ResultSet::default();
        for WorldRun { label, job } in runs {
            for row in job.stored(&self.store).unwrap_or_default() {
                results.add(label, row);
            }
        }
        results
    }
}
