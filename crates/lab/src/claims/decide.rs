//! The rules by which differences of means decide a check; `docs/claims.md` has them in words.

use super::check::{Comparison, Extreme, Reading, Relation, Superlative};
use super::verdict::Verdict;
use crate::metric::Unit;
use crate::statistics::Interval;

/// Share of the larger mean that a difference has to exceed.
const SHARE: f64 = 0.05;
/// Smallest difference of numbers of events that matters, in events of a run.
const EVENTS: f64 = 1.0;
/// Metrics without a unit that are rates or factors, not numbers of events.
const NO_EVENTS: [&str; 2] = ["underflows_per_minute", "window_growth"];

/// The size from which a difference of two means matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Margin {
    /// Any size: the check states its threshold.
    Stated,
    /// More than [`SHARE`] of the larger mean.
    Share,
    /// The same, and at least [`EVENTS`].
    Events,
}

impl Margin {
    /// The margin of a reading's metric.
    fn of_metric(reading: &Reading) -> Self {
        let metric = reading.measure.metric;
        if metric.unit == Unit::Count && !NO_EVENTS.contains(&metric.name) {
            Self::Events
        } else {
            Self::Share
        }
    }

    /// True if the difference of two means matters.
    pub(super) fn is_exceeded(self, left: f64, right: f64) -> bool {
        let size = (left - right).abs();
        let share = SHARE * left.abs().max(right.abs());
        match self {
            Self::Stated => size > 0.0,
            Self::Share => size > share,
            Self::Events => size > share && size >= EVENTS,
        }
    }

    /// A tie in words: what is true of means whose difference does not matter.
    pub(super) const fn of_ties(self) -> &'static str {
        match self {
            Self::Stated => "both sides are the same",
            Self::Share => "the means differ by at most 5 %",
            Self::Events => "the means differ by at most 5 % or by less than one event",
        }
    }
}

impl Comparison {
    /// The margin of a strict comparison without a number or factor of its own is that of its metric.
    pub(super) fn margin(&self) -> Margin {
        match self.readings().next() {
            Some(first) if self.relation.is_strict() && !self.states_a_threshold() => {
                Margin::of_metric(first)
            }
            _ => Margin::Stated,
        }
    }
}

impl Superlative {
    /// The margin of its metric.
    pub(super) fn margin(&self) -> Margin {
        self.members.first().map_or(Margin::Stated, Margin::of_metric)
    }
}

/// The difference of two means, left minus right, and the ends between which it lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Difference {
    pub(super) mean: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    /// True if it exceeds the margin.
    pub(super) matters: bool,
}

impl Difference {
    /// The difference with its confidence interval.
    pub(super) const fn of_interval(interval: &Interval, matters: bool) -> Self {
        Self {
            mean: interval.mean,
            low: interval.low,
            high: interval.high,
            matters,
        }
    }

    /// The difference of means that are taken as certain: none if it does not exceed the margin.
    pub(super) fn of_means(left: f64, right: f64, margin: Margin) -> Self {
        let matters = margin.is_exceeded(left, right);
        let mean = if matters { left - right } else { 0.0 };
        Self {
            mean,
            low: mean,
            high: mean,
            matters,
        }
    }

    /// The difference from right to left.
    const fn reversed(self) -> Self {
        Self {
            mean: -self.mean,
            low: -self.high,
            high: -self.low,
            matters: self.matters,
        }
    }

    /// True if the left is certainly less, by more than the margin.
    fn is_less(self) -> bool {
        self.matters && self.high < 0.0
    }
}

/// The verdict on a comparison other than [`Relation::About`].
pub(super) fn decide(relation: Relation, difference: Difference) -> Verdict {
    let (low, high) = (difference.low, difference.high);
    let (holds, fails) = match relation {
        Relation::Less => (difference.is_less(), difference.reversed().is_less()),
        Relation::More => (difference.reversed().is_less(), difference.is_less()),
        Relation::AtMost => (high <= 0.0, low > 0.0),
        Relation::AtLeast => (low >= 0.0, high < 0.0),
        Relation::About(_) => (false, false),
    };
    match (holds, fails) {
        (true, _) => Verdict::Holds,
        (_, true) => Verdict::Fails,
        _ => Verdict::Undecided,
    }
}

/// The verdict on a superlative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) verdict: Verdict,
    /// Places of the other and of the member whose difference decides, or comes closest to it.
    pub(super) pair: [usize; 2],
    /// True if the mean difference of that pair exceeds the margin, so that only certainty may be missing.
    pub(super) is_beyond: bool,
}

impl Standing {
    /// The verdict by the differences of each other, member minus other for each member; `None` without any.
    ///
    /// It fails if one other is certainly beyond a member on the wrong side. It holds if no mean is, and one other is
    /// certainly beyond all members on the stated side. Both have to be beyond by more than the margin.
    pub(super) fn of(extreme: Extreme, others: &[Vec<Difference>]) -> Option<Self> {
        // Below zero on the stated side.
        let stated = |difference: &Difference| match extreme {
            Extreme::Least => *difference,
            Extreme::Most => difference.reversed(),
        };
        // Of all on the wrong side; and of each other that with the member closest to it. Certain ones first.
        let mut contrary: Option<(bool, [usize; 2], Difference)> = None;
        let mut best: Option<(bool, [usize; 2], Difference)> = None;
        for (place, members) in others.iter().enumerate() {
            let differences: Vec<Difference> = members.iter().map(stated).collect();
            let (member, closest) = differences
                .iter()
                .enumerate()
                .max_by(|(_, one), (_, other)| one.mean.total_cmp(&other.mean))?;
            if closest.matters && closest.mean > 0.0 {
                let (certain, member, difference) = differences
                    .iter()
                    .enumerate()
                    .filter(|(_, one)| one.matters && one.mean > 0.0)
                    .map(|(member, one)| (one.reversed().is_less(), member, *one))
                    .max_by(|one, other| one.0.cmp(&other.0).then(one.2.mean.total_cmp(&other.2.mean)))?;
                if contrary.is_none_or(|known| (certain, difference.mean) > (known.0, known.2.mean)) {
                    contrary = Some((certain, [place, member], difference));
                }
            }
            let confirms = differences.iter().all(|one| one.is_less());
            if best.is_none_or(|known| (confirms, -closest.mean) > (known.0, -known.2.mean)) {
                best = Some((confirms, [place, member], *closest));
            }
        }
        let (confirms, pair, closest) = best?;
        let (verdict, pair, is_beyond) = match contrary {
            Some((true, pair, _)) => (Verdict::Fails, pair, true),
            Some((false, pair, _)) => (Verdict::Undecided, pair, true),
            None if confirms => (Verdict::Holds, pair, true),
            None => (Verdict::Undecided, pair, closest.matters && closest.mean < 0.0),
        };
        Some(Self {
            verdict,
            pair,
            is_beyond,
        })
    }
}
