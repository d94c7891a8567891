//! [`Outcome`]: what a search found, with the verdicts on each world that was run.

use std::ops::RangeInclusive;

use super::TestBed;
use super::runs::Needs;
use super::stages::{Length, Stage};
use super::unknown::World;
use crate::claims::{Claim, Verdict};
use crate::error::CommandError;

/// The rows that an evaluation looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    /// The fitted rows, which the search looks at.
    Fit,
    /// The judged rows beside the fitted ones.
    All,
}

/// Verdicts on parts, in the order of the test bed's claims. Parts whose cases are not run are `NotRun`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Verdicts {
    pub(super) fit: Vec<Verdict>,
    /// Empty if the judged rows were not run.
    pub(super) judged: Vec<Verdict>,
}

/// Number of parts that hold, and of those that are undecided, which decides between equal numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Score {
    pub(super) holds: usize,
    pub(super) undecided: usize,
}

impl Score {
    pub(super) fn of(verdicts: &[Verdict]) -> Self {
        let number = |verdict| verdicts.iter().filter(|one| **one == verdict).count();
        Self {
            holds: number(Verdict::Holds),
            undecided: number(Verdict::Undecided),
        }
    }
}

/// The verdicts on a world.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Evaluation {
    /// Number of the world.
    pub(super) world: usize,
    pub(super) stage: Stage,
    /// Most trials of a controller.
    pub(super) trials: u32,
    /// By the means alone.
    pub(super) means: Verdicts,
    /// By confidence intervals; of the last stage only.
    pub(super) intervals: Option<Verdicts>,
}

/// Everything that a search found.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    /// All worlds by number: the nominal one, the sample, those that the search made.
    pub(super) worlds: Vec<World>,
    /// Numbers of the random sample; empty if there was no search.
    pub(super) sample: RangeInclusive<usize>,
    pub(super) evaluations: Vec<Evaluation>,
    /// Number of the world of best choices; `None` before the sample was run.
    pub(super) best_choices: Option<usize>,
    /// Number of the world that fits best.
    pub(super) fitted: usize,
}

/// Number of the nominal world.
pub(super) const NOMINAL: usize = 0;

impl Outcome {
    /// The world that fits best.
    pub(super) fn fitted_world(&self) -> &World {
        &self.worlds[self.fitted]
    }

    /// The way in which the search came to a world, as files name it.
    pub(super) fn origin(&self, world: usize) -> &'static str {
        match world {
            NOMINAL => "nominal",
            world if self.sample.contains(&world) => "sample",
            world if self.best_choices == Some(world) => "best choices",
            _ if self.sample.is_empty() => "found",
            _ => "step",
        }
    }

    /// The evaluation of a world in a stage, with the judged rows if they were run.
    pub(super) fn evaluation(&self, world: usize, stage: Stage) -> Option<&Evaluation> {
        let mut all = self.evaluations.iter().rev();
        all.find(|one| one.world == world && one.stage == stage)
    }

    /// The evaluations of the random sample.
    pub(super) fn sampled(&self) -> impl Iterator<Item = &Evaluation> {
        let all = self.evaluations.iter();
        all.filter(|one| one.stage == Stage::Sample && self.sample.contains(&one.world))
    }
}

/// The claims of a test bed, limited to what an evaluation of a length runs.
pub(super) struct Judges {
    fit: Vec<Option<Claim>>,
    judged: Vec<Option<Claim>>,
}

impl Judges {
    pub(super) fn new(bed: &TestBed, length: Length) -> Result<Self, CommandError> {
        let cases = bed.cases(length.quick)?;
        let limited = |claims: &[Claim]| {
            let has = |scenario: &str, case: &str| cases.contains(&(scenario.to_owned(), case.to_owned()));
            claims.iter().map(|claim| claim.limited_to(has)).collect()
        };
        Ok(Self {
            fit: limited(&bed.fit),
            judged: limited(&bed.judged),
        })
    }

    pub(super) fn needs(&self, scope: Scope) -> Needs {
        let judged = self.judged.iter().filter(|_| scope == Scope::All);
        Needs::of(self.fit.iter().chain(judged).flatten())
    }

    pub(super) fn verdicts(&self, scope: Scope, decide: impl Fn(&Claim) -> Verdict) -> Verdicts {
        let all = |claims: &[Option<Claim>]| {
            let claims = claims.iter();
            claims
                .map(|claim| claim.as_ref().map_or(Verdict::NotRun, &decide))
                .collect()
        };
        Verdicts {
            fit: all(&self.fit),
            judged: if scope == Scope::All {
                all(&self.judged)
            } else {
                Vec::new()
            },
        }
    }
}
