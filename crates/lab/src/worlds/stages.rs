//! [`Stages`]: the parts of a search, and [`Length`]: how many trials of which titles each of them makes.

use super::TestBed;

/// Seed of the first trial of the last stage: none of its trials has been seen by the search.
const UNSEEN_SEED: u64 = 201;

/// Sizes of the stages after the random sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stages {
    /// The worlds of the sample that hold most are run again with this number of trials.
    pub(super) trials: u32,
    /// Number of worlds that are run again.
    pub(super) leaders: usize,
    /// Number of the best worlds for which the judged rows are run too.
    pub(super) judged: usize,
    /// Trials and titles of the fitted and the nominal world at the end.
    pub(super) last: Length,
}

impl Stages {
    /// The stages of a search of `bed`, in full or `quick`.
    pub(super) const fn of(bed: &TestBed, quick: bool) -> Self {
        if quick {
            Self {
                trials: 1,
                leaders: 3,
                judged: 1,
                last: Length {
                    quick: true,
                    trials: Trials::Exactly(3),
                    seed: Some(UNSEEN_SEED),
                },
            }
        } else {
            Self {
                trials: 3,
                leaders: 8,
                judged: 5,
                last: Length {
                    quick: false,
                    trials: Trials::AtMost(bed.trials),
                    seed: Some(UNSEEN_SEED),
                },
            }
        }
    }

    /// Trials and titles of a stage.
    pub(super) const fn length(self, stage: Stage) -> Length {
        match stage {
            Stage::Sample | Stage::Compared => Length {
                quick: true,
                trials: Trials::Exactly(1),
                seed: None,
            },
            Stage::Refined => Length {
                quick: true,
                trials: Trials::Exactly(self.trials),
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
    /// The fitted world once more with the sample's one trial, for all rows.
    Compared,
    /// The end of the search.
    Last,
}

impl Stage {
    /// Name in files and listings.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Sample => "sample",
            Self::Refined => "refined",
            Self::Compared => "compared",
            Self::Last => "last",
        }
    }
}

/// Number of trials of an evaluation, and length of its titles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Length {
    /// True for the titles and cases of the scenarios' `quick` tables.
    pub(super) quick: bool,
    /// Trials of each controller.
    pub(super) trials: Trials,
    /// Seed of the first trial; `None` is as the scenarios say.
    pub(super) seed: Option<u64>,
}

/// Number of trials of each controller, given that of the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trials {
    /// This number, whatever the scenario says.
    Exactly(u32),
    /// As the scenario says, and no more than this.
    AtMost(u32),
}

impl Trials {
    /// The number for a scenario that has `written` trials.
    pub(super) fn of(self, written: u32) -> u32 {
        match self {
            Self::Exactly(number) => number,
            Self::AtMost(most) => written.min(most),
        }
    }
}
