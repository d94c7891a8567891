//! `lab worlds`: searches for values of the parameters that the papers on a test bed leave open, a *world*, under which
//! their claims hold, and counts in how many plausible worlds each of them does.
//!
//! A test bed's file declares unknowns and candidates ([`file`], [`unknown`]); the runs of a world are ordinary
//! ones with other settings and controllers ([`runs`]); [`search`] has the protocol, [`figures`] what is computed of
//! it.

mod command;
mod cost;
mod figures;
mod file;
mod finished;
mod found;
mod outcome;
mod output;
mod runs;
mod search;
mod stages;
mod text;
mod unknown;

use std::collections::BTreeSet;

use playrate_transport::ControllerChoice;

pub(crate) use command::{WorldsArgs, run};
#[cfg(test)]
pub(crate) use finished::LabelledRow;
pub(crate) use finished::{
    AsGood, Declared, Finished, FinishedPart, ShortWorld, UnknownOutcome, WorldOutcome, WorldRuns,
    built_in_beds, is_finished, test_bed_of,
};
use found::Found;
use runs::Needs;
use unknown::{Effect, Unknown};

use crate::claims::Claim;
use crate::run::Job;
use crate::scenario::{Changes, ScenarioError, ScenarioSource};

/// A test bed: scenarios with parameters in common that the papers do not give.
#[derive(Clone, Debug)]
struct TestBed {
    name: String,
    about: String,
    scenarios: Vec<BedScenario>,
    unknowns: Vec<Unknown>,
    /// The world that a search found, if the file has it.
    found: Option<Found>,
    /// Claims that the search looks at.
    fit: Vec<Claim>,
    /// Claims that are decided afterwards.
    judged: Vec<Claim>,
    /// Most trials of a controller in the last stage of a search in full.
    trials: u32,
    search: Effort,
    quick: Effort,
}

/// Sizes of a random sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Effort {
    /// Number of worlds that are drawn.
    worlds: usize,
    /// Number of them, from the first, for which the judged rows are run too.
    judged: usize,
}

/// A scenario of a test bed.
#[derive(Clone, Debug)]
struct BedScenario {
    name: String,
    source: ScenarioSource,
    /// Its controllers without any choice.
    controllers: Vec<ControllerChoice>,
    /// Controller that it names for its downloads.
    bulk: Option<String>,
    /// Cases of which its figures show time series.
    series: BTreeSet<String>,
}

impl TestBed {
    /// Notes for each unknown whether it acts on a run that decides a fitted row.
    fn mark_fitted(&mut self) {
        let needs = Needs::of(&self.fit);
        let fitted = |unknown: &Unknown| {
            self.scenarios.iter().any(|scenario| {
                let whole = matches!(unknown.effect, Effect::Key(_)) || unknown.acts_on_bulk(scenario);
                let needed = |one: &ControllerChoice| needs.has(&scenario.name, &one.to_string());
                let mut mine = scenario
                    .controllers
                    .iter()
                    .filter(|one| unknown.acts_on_controller(one));
                needs.has_scenario(&scenario.name) && unknown.acts_on(scenario) && (whole || mine.any(needed))
            })
        };
        let all: Vec<bool> = self.unknowns.iter().map(fitted).collect();
        for (unknown, fitted) in self.unknowns.iter_mut().zip(all) {
            unknown.fitted = fitted;
        }
    }

    /// Scenarios and cases that are run, with `--quick` or in full.
    fn cases(&self, quick: bool) -> Result<BTreeSet<(String, String)>, ScenarioError> {
        let changes = Changes {
            quick,
            ..Changes::default()
        };
        let mut cases = BTreeSet::new();
        for scenario in &self.scenarios {
            let all = scenario.source.scenarios(&changes)?;
            cases.extend(all.into_iter().map(|case| (case.name, case.case)));
        }
        Ok(cases)
    }

    /// Returns true if figures show time series of a run: of a controller's first trial.
    fn shows_series_of(&self, job: &Job) -> bool {
        let mut mine = self.scenarios.iter().filter(|one| one.name == job.key.scenario);
        job.key.trial == 1 && mine.any(|one| one.series.contains(&job.key.case))
    }

    /// Claims of all rows, the fitted ones first.
    fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.fit.iter().chain(&self.judged)
    }
}

#[cfg(test)]
mod tests;
