//! The search: a plain random sample of worlds, the best of it with more trials, steps of one unknown at a time,
//! and the best world of all in full. Only the fitted rows are looked at; `docs/worlds.md` has the protocol.

use std::collections::BTreeMap;

use super::figures;
use super::outcome::{Evaluation, Judges, NOMINAL, Outcome, Scope, Score};
use super::runs::{Instances, Runner, WorldRun};
use super::stages::{Length, Stage, Stages};
use super::unknown::World;
use super::{Effort, TestBed};
use crate::claims::{self, Claim};
use crate::error::CommandError;
use crate::words::count;

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
                best_choices: None,
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
        self.leaders()?;
        let best = self.climb()?;
        let best: Vec<usize> = best.into_iter().take(self.stages.judged).collect();
        self.outcome.fitted = best.first().copied().unwrap_or(NOMINAL);
        let shown: Vec<usize> = std::iter::once(NOMINAL).chain(best).collect();
        self.evaluate(
            "the judged rows of the best worlds",
            &shown,
            Stage::Refined,
            Scope::All,
        )?;
        let what = "the fitted world, as in the sample";
        self.evaluate(what, &[self.outcome.fitted], Stage::Compared, Scope::All)?;
        self.last()?;
        Ok(self.outcome)
    }

    /// Evaluates the nominal world and `world` in the last stage alone.
    ///
    /// # Errors
    /// If rows cannot be stored, or the runs are stopped.
    pub(super) fn judge(mut self, world: World) -> Result<Outcome, CommandError> {
        self.outcome.fitted = self.number_of(world);
        self.last()?;
        Ok(self.outcome)
    }

    /// Evaluates the nominal world and the one that fits best in full.
    fn last(&mut self) -> Result<(), CommandError> {
        let mut worlds = vec![NOMINAL, self.outcome.fitted];
        worlds.dedup();
        let what = "the nominal and the fitted world in full";
        self.evaluate(what, &worlds, Stage::Last, Scope::All)
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

    /// Runs the best of the sample and the world of best choices with more trials.
    fn leaders(&mut self) -> Result<(), CommandError> {
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
        let best_choices = self.number_of(figures::best_choices(self.bed, &self.outcome));
        self.outcome.best_choices = Some(best_choices);
        if !leaders.contains(&best_choices) {
            leaders.push(best_choices);
        }
        let what = "the best of the sample and the world of best choices";
        self.evaluate(what, &leaders, Stage::Refined, Scope::Fit)
    }

    /// Steps from the best world that was run with more trials: takes the best other choice of one unknown after
    /// another if a fitted part more holds with it. Returns all worlds that were run with more trials, the best first.
    fn climb(&mut self) -> Result<Vec<usize>, CommandError> {
        let mut current = self.best(Stage::Refined).first().copied().unwrap_or(NOMINAL);
        let bed = self.bed;
        let fitted = bed.unknowns.iter().enumerate();
        for (place, unknown) in fitted.filter(|(_, unknown)| unknown.fitted) {
            let worlds = self.outcome.worlds[current].beside(place, unknown);
            let beside: Vec<usize> = worlds.into_iter().map(|world| self.number_of(world)).collect();
            let mut fresh = beside.clone();
            fresh.sort_unstable();
            fresh.dedup();
            fresh.retain(|number| self.outcome.evaluation(*number, Stage::Refined).is_none());
            let what = format!("steps of `{}`", unknown.name);
            self.evaluate(&what, &fresh, Stage::Refined, Scope::Fit)?;
            let scored = beside.into_iter().map(|number| (self.score(number), number));
            current = step(self.score(current), scored).unwrap_or(current);
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
        if stage == Stage::Last {
            for run in runs.iter_mut().flatten() {
                run.job.series = self.bed.shows_series_of(&run.job);
            }
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

    /// The score of a world with more trials.
    fn score(&self, world: usize) -> Score {
        let evaluation = self.outcome.evaluation(world, Stage::Refined);
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

/// The best of the worlds `beside` one whose score is `before`, if a fitted part more holds in it; of equal ones the
/// first. A part that becomes undecided is no reason for a step.
pub(super) fn step(before: Score, beside: impl Iterator<Item = (Score, usize)>) -> Option<usize> {
    let better = beside.filter(|(score, _)| score.holds > before.holds);
    let best = better.reduce(|best, one| if one.0 > best.0 { one } else { best });
    best.map(|(_, number)| number)
}

/// The random sample of a search.
pub(super) fn sample(bed: &TestBed, effort: Effort, seed: u64) -> Vec<World> {
    (1..=effort.worlds)
        .map(|number| World::random(&bed.unknowns, seed, number))
        .collect()
}
