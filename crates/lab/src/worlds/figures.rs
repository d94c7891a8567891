//! [`Figures`]: what the outcome of a search says about parts and unknowns. Robustness and landscape are counted in the
//! random sample alone, which no fitting has touched.

use super::TestBed;
use super::outcome::{Evaluation, NOMINAL, Outcome, Score, Verdicts};
use super::stages::Stage;
use super::unknown::World;
use crate::claims::Verdict;

/// Numbers of a search.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figures {
    /// Fitted parts first, then judged ones.
    pub(super) parts: Vec<PartFigures>,
    pub(super) unknowns: Vec<Vec<ChoiceFigures>>,
    /// Number of fitted parts that hold in each world of the sample, ascending.
    pub(super) sample: Vec<usize>,
    pub(super) nominal: WorldFigures,
    pub(super) fitted: WorldFigures,
    /// Worlds in which at most one fitted part less holds than in the fitted world.
    pub(super) as_good: AsGood,
}

/// The verdicts on a part of a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PartFigures {
    pub(super) id: String,
    /// True if the search did not look at it.
    pub(super) judged: bool,
    pub(super) nominal: PartVerdict,
    pub(super) fitted: PartVerdict,
    /// Worlds of the random sample in which it holds by the means.
    pub(super) holds: usize,
    /// Worlds of the random sample in which it was to be run.
    pub(super) worlds: usize,
    /// Number of them in which a run that it needs failed; it counts as one that does not hold.
    pub(super) not_run: usize,
}

impl PartFigures {
    /// Share of the random sample in which the part holds; `None` if it was not run there.
    pub(super) fn robustness(&self) -> Option<f64> {
        (self.worlds > 0).then(|| self.holds as f64 / self.worlds as f64)
    }
}

/// The verdict on a part in one world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartVerdict {
    /// The verdict by confidence intervals.
    pub(super) interval: Verdict,
    /// The verdict by the means alone.
    pub(super) means: Verdict,
}

/// Worlds of the sample with one choice for an unknown.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ChoiceFigures {
    pub(super) text: String,
    pub(super) worlds: usize,
    /// Mean number of fitted parts that hold; `None` if no world has the choice.
    pub(super) mean: Option<f64>,
}

/// Parts that hold in one world at the end of the search, by the means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WorldFigures {
    pub(super) trials: u32,
    pub(super) fit: Count,
    pub(super) judged: Count,
}

/// Number of parts that hold, and of those that were run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) holds: usize,
    pub(super) of: usize,
}

impl Count {
    pub(super) fn of(verdicts: &[Verdict]) -> Self {
        Self {
            holds: Score::of(verdicts).holds,
            of: verdicts.iter().filter(|one| **one != Verdict::NotRun).count(),
        }
    }
}

/// Worlds that do as well as the fitted one, within one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AsGood {
    pub(super) sample: Count,
    pub(super) refined: Count,
}

impl Figures {
    pub(super) fn of(bed: &TestBed, outcome: &Outcome) -> Self {
        let last = |world| outcome.evaluation(world, Stage::Last);
        let (nominal, fitted) = (last(NOMINAL), last(outcome.fitted));
        let holds = |one: &Evaluation| Score::of(&one.means.fit).holds;
        let mut sample: Vec<usize> = outcome.sampled().map(holds).collect();
        sample.sort_unstable();
        Self {
            parts: parts(bed, outcome, nominal, fitted),
            unknowns: landscape(bed, outcome),
            sample,
            nominal: nominal.map(WorldFigures::of).unwrap_or_default(),
            fitted: fitted.map(WorldFigures::of).unwrap_or_default(),
            as_good: AsGood {
                sample: as_good(outcome, Stage::Sample, Stage::Compared),
                refined: as_good(outcome, Stage::Refined, Stage::Refined),
            },
        }
    }

    /// The number of fitted parts that hold in this share of the sample's worlds or fewer.
    pub(super) fn percentile(&self, share: f64) -> usize {
        let last = self.sample.len().saturating_sub(1);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a place in a list, between 0 and its length"
        )]
        let place = (share * last as f64).round() as usize;
        self.sample.get(place).copied().unwrap_or(0)
    }
}

impl WorldFigures {
    fn of(one: &Evaluation) -> Self {
        Self {
            trials: one.trials,
            fit: Count::of(&one.means.fit),
            judged: Count::of(&one.means.judged),
        }
    }
}

fn parts(
    bed: &TestBed,
    outcome: &Outcome,
    nominal: Option<&Evaluation>,
    fitted: Option<&Evaluation>,
) -> Vec<PartFigures> {
    let numbered = |judged: bool| {
        let claims = if judged { &bed.judged } else { &bed.fit };
        claims
            .iter()
            .enumerate()
            .map(move |(place, claim)| (judged, place, claim))
    };
    let part = |(judged, place, claim): (bool, usize, &crate::claims::Claim)| {
        let of = |verdicts: &Verdicts| {
            let list = if judged { &verdicts.judged } else { &verdicts.fit };
            list.get(place).copied().unwrap_or(Verdict::NotRun)
        };
        let verdict = |one: Option<&Evaluation>| PartVerdict {
            interval: one
                .and_then(|one| one.intervals.as_ref())
                .map_or(Verdict::NotRun, of),
            means: one.map_or(Verdict::NotRun, |one| of(&one.means)),
        };
        let scope = |one: &&Evaluation| !judged || !one.means.judged.is_empty();
        let sampled: Vec<Verdict> = outcome
            .sampled()
            .filter(scope)
            .map(|one| of(&one.means))
            .collect();
        let Count { holds, of: decided } = Count::of(&sampled);
        // Parts of cases that short titles leave out are run in no world.
        let worlds = if decided > 0 { sampled.len() } else { 0 };
        PartFigures {
            id: claim.id.clone(),
            judged,
            nominal: verdict(nominal),
            fitted: verdict(fitted),
            holds,
            worlds,
            not_run: worlds - decided.min(worlds),
        }
    };
    numbered(false).chain(numbered(true)).map(part).collect()
}

/// The worlds of the random sample by choice, for each unknown in the order of its candidates.
pub(super) fn landscape(bed: &TestBed, outcome: &Outcome) -> Vec<Vec<ChoiceFigures>> {
    let of_choice = |place: usize, choice: Option<usize>| {
        let chosen = |one: &&Evaluation| {
            let world = outcome.worlds.get(one.world);
            world.is_some_and(|world| world.choice(place) == choice)
        };
        let scores = outcome
            .sampled()
            .filter(chosen)
            .map(|one| Score::of(&one.means.fit).holds);
        let (worlds, sum) = scores.fold((0, 0), |(worlds, sum), holds| (worlds + 1, sum + holds));
        (worlds, (worlds > 0).then(|| sum as f64 / worlds as f64))
    };
    let all = bed.unknowns.iter().enumerate().map(|(place, unknown)| {
        let choices = unknown.candidates().enumerate().map(|(number, choice)| {
            let (worlds, mean) = of_choice(place, choice);
            ChoiceFigures {
                text: unknown.text(Some(number)),
                worlds,
                mean,
            }
        });
        choices.collect()
    });
    all.collect()
}

/// The world that has, for each unknown that acts on fitted rows, the choice with the highest mean score in the random
/// sample; of equal ones the nominal value, else the first.
pub(super) fn best_choices(bed: &TestBed, outcome: &Outcome) -> World {
    let mut world = World::nominal(&bed.unknowns);
    for (place, (unknown, choices)) in bed.unknowns.iter().zip(landscape(bed, outcome)).enumerate() {
        let scored = unknown.candidates().zip(choices);
        let scored = scored.filter_map(|(choice, figures)| Some((figures.mean?, choice.is_none(), choice)));
        let better = |one: &Scored, other: &Scored| (one.0, one.1) > (other.0, other.1);
        let best = scored.reduce(|best, one| if better(&one, &best) { one } else { best });
        if let Some((_, _, choice)) = best.filter(|_| unknown.fitted) {
            world = world.with(place, choice);
        }
    }
    world
}

/// Mean score of a choice, true if it is the nominal value, and the choice.
type Scored = (f64, bool, Option<usize>);

/// Worlds of a stage in which at most one fitted part less holds than in the fitted world, which was evaluated in the
/// stage `own` for this.
fn as_good(outcome: &Outcome, stage: Stage, own: Stage) -> Count {
    let holds = |one: &Evaluation| Score::of(&one.means.fit).holds;
    let best = outcome.evaluation(outcome.fitted, own).map_or(0, holds);
    let mut seen = std::collections::BTreeSet::new();
    let mine = outcome.evaluations.iter().filter(|one| {
        let in_sample = stage != Stage::Sample || outcome.sample.contains(&one.world);
        one.stage == stage && in_sample && seen.insert(one.world)
    });
    let scores: Vec<usize> = mine.map(holds).collect();
    Count {
        holds: scores.iter().filter(|score| **score + 1 >= best).count(),
        of: scores.len(),
    }
}
