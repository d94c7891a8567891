//! The search: a plain random sample of worlds, the best of it with more trials, steps of one unknown at a time,
//! and the best world of all in full. Only the fitted rows are looked at; `docs/worlds.md` has the protocol.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::runs::{Instances, Length, Needs, Runner, WorldRun};
use super::unknown::World;
use super::{Effort, TestBed};
use crate::claims::{self, Claim, Verdict};
use crate::error::CommandError;
use crate::words::count;

/// Seed of the first trial of the last stage: none of its trials has been seen by the search.
const UNSEEN_SEED: u64 = 101;

/// Sizes of the stages after the random sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stages {
    /// The worlds of the sample that hold most are run again with this number of trials.
    pub(super) trials: u32,
    /// Number of worlds that are run again.
    pub(super) leaders: usize,
    /// Number of leaders from which steps of one unknown at a time are made.
    pub(super) climbers: usize,
    /// Most times that each climber tries every unknown.
    pub(super) passes: usize,
    /// Number of the best worlds for which the judged rows are run too.
    pub(super) judged: usize,
    /// Trials and titles of the fitted and the nominal world at the end.
    pub(super) last: Length,
}

impl Stages {
    const FULL: Self = Self {
        trials: 3,
        leaders: 24,
        climbers: 3,
        passes: 3,
        judged: 5,
        last: Length {
            quick: false,
            trials: None,
            seed: Some(UNSEEN_SEED),
        },
    };

    const QUICK: Self = Self {
        trials: 1,
        leaders: 3,
        climbers: 1,
        passes: 1,
        judged: 1,
        last: Length {
            quick: true,
            trials: Some(3),
            seed: Some(UNSEEN_SEED),
        },
    };

    pub(super) const fn of(quick: bool) -> Self {
        if quick { Self::QUICK } else { Self::FULL }
    }

    /// Trials and titles of a stage.
    pub(super) const fn length(self, stage: Stage) -> Length {
        match stage {
            Stage::Sample => Length {
                quick: true,
                trials: Some(1),
                seed: None,
            },
            Stage::Refined => Length {
                quick: true,
                trials: Some(self.trials),
                seed: None,
            },
            Stage::Last => self.last,
        }
    }
}

/// Part of the search in which a world is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// One trial with short titles.
    Sample,
    /// More trials with short titles.
    Refined,
    /// The end of the search.
    Last,
}

impl Stage {
    /// Name in files and listings.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Sample => "sample",
            Self::Refined => "refined",
            Self::Last => "last",
        }
    }
}

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
    /// All worlds by number: the nominal one, the sample, those that steps led to.
    pub(super) worlds: Vec<World>,
    /// Numbers of the random sample.
    pub(super) sample: RangeInclusive<usize>,
    pub(super) evaluations: Vec<Evaluation>,
    /// Number of the world that fits best.
    pub(super) fitted: usize,
}

/// Number of the nominal world.
pub(super) const NOMINAL: usize = 0;

impl Outcome {
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
struct Judges {
    fit: Vec<Option<Claim>>,
    judged: Vec<Option<Claim>>,
}

impl Judges {
    fn new(bed: &TestBed, length: Length) -> Result<Self, CommandError> {
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

    fn needs(&self, scope: Scope) -> Needs {
        let judged = self.judged.iter().filter(|_| scope == Scope::All);
        Needs::of(self.fit.iter().chain(judged).flatten())
    }

    fn verdicts(&self, scope: Scope, decide: impl Fn(&Claim) -> Verdict) -> Verdicts {
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

/// A search under way.
pub(super) struct Search<'a, 'r> {
    bed: &'a TestBed,
    stages: Stages,
    runner: &'a mut Runner<'r>,
    instances: Instances,
    judges: BTreeMap<Length, Judges>,
    /// Number of the first world of this content.
    numbers: BTreeMap<World, usize>,
    outcome: Outcome,
}

impl<'a, 'r> Search<'a, 'r> {
    /// A search from the nominal world and the random sample `sample`.
    ///
    /// # Errors
    /// If a scenario cannot be read.
    pub(super) fn new(
        bed: &'a TestBed,
        stages: Stages,
        sample: Vec<World>,
        runner: &'a mut Runner<'r>,
    ) -> Result<Self, CommandError> {
        let mut judges = BTreeMap::new();
        for length in [Stage::Sample, Stage::Refined, Stage::Last].map(|stage| stages.length(stage)) {
            judges.insert(length, Judges::new(bed, length)?);
        }
        let size = sample.len();
        let worlds: Vec<World> = std::iter::once(World::nominal(&bed.unknowns))
            .chain(sample)
            .collect();
        let mut numbers = BTreeMap::new();
        for (number, world) in worlds.iter().enumerate() {
            numbers.entry(world.clone()).or_insert(number);
        }
        Ok(Self {
            bed,
            stages,
            runner,
            instances: Instances::default(),
            judges,
            numbers,
            outcome: Outcome {
                worlds,
                sample: 1..=size,
                evaluations: Vec::new(),
                fitted: NOMINAL,
            },
        })
    }

    /// Searches; `judged` is the number of worlds of the sample for which the judged rows are run.
    ///
    /// # Errors
    /// If rows cannot be stored, or the search is stopped.
    pub(super) fn run(mut self, judged: usize) -> Result<Outcome, CommandError> {
        self.sample(judged)?;
        let leaders = self.leaders()?;
        let best = self.climb(&leaders)?;
        let best: Vec<usize> = best.into_iter().take(self.stages.judged).collect();
        self.outcome.fitted = best.first().copied().unwrap_or(NOMINAL);
        let shown: Vec<usize> = std::iter::once(NOMINAL).chain(best).collect();
        self.evaluate(
            "the judged rows of the best worlds",
            &shown,
            Stage::Refined,
            Scope::All,
        )?;
        // For comparison with the sample: the same trial, which the worlds' other evaluations made already.
        let fitted = self.outcome.fitted;
        if self.outcome.evaluation(fitted, Stage::Sample).is_none() {
            self.evaluate(
                "the fitted world, as in the sample",
                &[fitted],
                Stage::Sample,
                Scope::Fit,
            )?;
        }
        let last: Vec<usize> = if fitted == NOMINAL {
            vec![NOMINAL]
        } else {
            vec![NOMINAL, fitted]
        };
        self.evaluate(
            "the nominal and the fitted world in full",
            &last,
            Stage::Last,
            Scope::All,
        )?;
        Ok(self.outcome)
    }

    /// Evaluates the nominal world and the sample, the first `judged` of it with the judged rows.
    fn sample(&mut self, judged: usize) -> Result<(), CommandError> {
        let size = self.outcome.worlds.len();
        let judged = (judged + 1).min(size);
        let with: Vec<usize> = (0..judged).collect();
        let without: Vec<usize> = (judged..size).collect();
        let what = |number: usize, rows: &str| {
            format!(
                "random sample, {}, {rows}",
                count(number as u64, "world", "worlds")
            )
        };
        self.evaluate(&what(with.len(), "all rows"), &with, Stage::Sample, Scope::All)?;
        self.evaluate(
            &what(without.len(), "fitted rows"),
            &without,
            Stage::Sample,
            Scope::Fit,
        )
    }

    /// Runs the best of the sample again with more trials. Returns their numbers.
    fn leaders(&mut self) -> Result<Vec<usize>, CommandError> {
        let mut scored: Vec<(Score, usize)> = self.scores(Stage::Sample);
        scored.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(&other.1)));
        let mut leaders: Vec<usize> = Vec::new();
        for (_, number) in scored {
            let world = self
                .outcome
                .worlds
                .get(number)
                .map(|world| world.where_fitted(&self.bed.unknowns));
            let number = world.map_or(number, |world| self.number_of(world));
            if leaders.len() < self.stages.leaders && !leaders.contains(&number) {
                leaders.push(number);
            }
        }
        self.evaluate("the best of the sample", &leaders, Stage::Refined, Scope::Fit)?;
        Ok(leaders)
    }

    /// Steps from the best leaders: each takes the best other choice of one unknown after another, until no step helps.
    /// Returns all worlds that were run with more trials, the best first.
    fn climb(&mut self, leaders: &[usize]) -> Result<Vec<usize>, CommandError> {
        let mut climbers: Vec<usize> = self.best(Stage::Refined);
        climbers.retain(|number| leaders.contains(number));
        climbers.truncate(self.stages.climbers);
        let bed = self.bed;
        let fitted = bed
            .unknowns
            .iter()
            .enumerate()
            .filter(|(_, unknown)| unknown.fitted);
        let fitted: Vec<_> = fitted.collect();
        for pass in 1..=self.stages.passes {
            let before = climbers.clone();
            for (place, unknown) in &fitted {
                let mut beside = Vec::new();
                for climber in &climbers {
                    let worlds = self.outcome.worlds[*climber].beside(*place, unknown);
                    beside.push(
                        worlds
                            .into_iter()
                            .map(|world| self.number_of(world))
                            .collect::<Vec<_>>(),
                    );
                }
                let mut fresh: Vec<usize> = beside.iter().flatten().copied().collect();
                fresh.sort_unstable();
                fresh.dedup();
                fresh.retain(|number| self.outcome.evaluation(*number, Stage::Refined).is_none());
                let what = format!("steps of `{}`, pass {pass}", unknown.name);
                self.evaluate(&what, &fresh, Stage::Refined, Scope::Fit)?;
                for (climber, beside) in climbers.iter_mut().zip(beside) {
                    for number in beside {
                        if self.score(number, Stage::Refined) > self.score(*climber, Stage::Refined) {
                            *climber = number;
                        }
                    }
                }
                climbers.sort_unstable();
                climbers.dedup();
            }
            if before == climbers {
                break;
            }
        }
        Ok(self.best(Stage::Refined))
    }

    /// Evaluates worlds, and keeps the verdicts.
    fn evaluate(
        &mut self,
        what: &str,
        worlds: &[usize],
        stage: Stage,
        scope: Scope,
    ) -> Result<(), CommandError> {
        let length = self.stages.length(stage);
        let Some(judges) = self.judges.get(&length) else {
            return Ok(());
        };
        let needs = judges.needs(scope);
        let mut runs: Vec<Vec<WorldRun>> = Vec::with_capacity(worlds.len());
        for number in worlds {
            runs.push(
                self.instances
                    .runs(self.bed, &self.outcome.worlds[*number], &needs, length)?,
            );
        }
        self.runner.make(what, runs.iter().flatten())?;
        for (number, runs) in worlds.iter().zip(&runs) {
            let results = self.runner.results(runs);
            let by_interval = |claim: &Claim| claims::judge(claim, &[], &results).verdict;
            self.outcome.evaluations.push(Evaluation {
                world: *number,
                stage,
                trials: runs.iter().map(|run| run.job.key.trial).max().unwrap_or(0),
                means: judges.verdicts(scope, |claim| claims::judge_by_means(claim, &results)),
                intervals: (stage == Stage::Last).then(|| judges.verdicts(scope, by_interval)),
            });
        }
        Ok(())
    }

    /// The number of a world, which is added if it is new.
    fn number_of(&mut self, world: World) -> usize {
        let next = self.outcome.worlds.len();
        let number = *self.numbers.entry(world.clone()).or_insert(next);
        if number == next {
            self.outcome.worlds.push(world);
        }
        number
    }

    fn score(&self, world: usize, stage: Stage) -> Score {
        let evaluation = self.outcome.evaluation(world, stage);
        evaluation.map_or_else(Score::default, |one| Score::of(&one.means.fit))
    }

    /// The scores of a stage's worlds.
    fn scores(&self, stage: Stage) -> Vec<(Score, usize)> {
        let mine = self.outcome.evaluations.iter().filter(|one| one.stage == stage);
        mine.map(|one| (Score::of(&one.means.fit), one.world)).collect()
    }

    /// The worlds of a stage, best first, of equal ones that of the lowest number.
    fn best(&self, stage: Stage) -> Vec<usize> {
        let mut scored = self.scores(stage);
        scored.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(&other.1)));
        scored.into_iter().map(|(_, number)| number).collect()
    }
}

/// The random sample of a search.
pub(super) fn sample(bed: &TestBed, effort: Effort, seed: u64) -> Vec<World> {
    (1..=effort.worlds)
        .map(|number| World::random(&bed.unknowns, seed, number))
        .collect()
}
