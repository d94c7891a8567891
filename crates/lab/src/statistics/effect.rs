//! How far apart two controllers are, beside how sure that is.

use std::cmp::Ordering;

/// Cliff's delta: the share of pairs of trials, one of each controller, in which the first has more, minus the share in which it
/// has less. From −1 (always less) to 1 (always more); `None` if one has no trials.
///
/// It is taken instead of Cohen's d because discards and underflows are far from normal, and because trials of a path without
/// random loss hardly vary: a difference divided by a standard deviation of nearly nothing means nothing.
pub fn cliffs_delta(one: &[f64], other: &[f64]) -> Option<f64> {
    if one.is_empty() || other.is_empty() {
        return None;
    }
    let pairs = one
        .iter()
        .flat_map(|one| other.iter().map(move |other| one.total_cmp(other)));
    let sum: i64 = pairs
        .map(|order| match order {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        })
        .sum();
    Some(sum as f64 / (one.len() * other.len()) as f64)
}

/// What a size of Cliff's delta is called (Romano et al. 2006).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// Below 0.147.
    Negligible,
    /// Below 0.33.
    Small,
    /// Below 0.474.
    Medium,
    /// From there on.
    Large,
}

impl Effect {
    /// Of this delta, of either sign.
    pub fn of(delta: f64) -> Self {
        match delta.abs() {
            size if size < 0.147 => Self::Negligible,
            size if size < 0.33 => Self::Small,
            size if size < 0.474 => Self::Medium,
            _ => Self::Large,
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Negligible => "negligible",
            Self::Small => "small",
            Self::Medium => "medium",
            Self::Large => "large",
        }
    }
}
