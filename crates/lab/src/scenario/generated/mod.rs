//! Generated paths: scenarios of one title each, whose paths are a random sample of what networks are like.
//!
//! `generated:SEED:N` is a set of N of them, `generated:SEED#NUMBER` the one with that number in any of the seed's
//! sets. `docs/matrix.md` has the distributions; `draw` draws the values, `text` writes them as a scenario file.

mod cube;
mod draw;
mod text;

use std::path::Path;

use playrate_netsim::Seed;

use super::ScenarioSource;
pub(crate) use cube::{BLOCK, Point};
use draw::Drawn;

/// Beginning of the names of generated sets and paths.
const PREFIX: &str = "generated:";
/// Most paths of one set: a number has at most three digits in names.
const MOST: u32 = 999;
/// Form of a set's name, for help and errors.
pub(crate) const FORM: &str = "generated:SEED:N";

/// The half of a set: parameters of controllers are fitted on one and judged on the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Half {
    /// Paths with odd numbers, on which parameters are fitted.
    Fit,
    /// Paths with even numbers, on which results are reported.
    Judge,
}

impl Half {
    /// The half of the path with this number.
    pub(crate) const fn of(number: u32) -> Self {
        if number % 2 == 1 { Self::Fit } else { Self::Judge }
    }

    /// Name on the command line and in JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Fit => "fit",
            Self::Judge => "judge",
        }
    }
}

/// A set of generated paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathSet {
    seed: u64,
    count: u32,
}

impl PathSet {
    /// Reads `generated:SEED:N`; `None` if `name` is not the name of a set.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let (seed, count) = name.strip_prefix(PREFIX)?.split_once(':')?;
        let set = Self {
            seed: seed.parse().ok()?,
            count: count.parse().ok()?,
        };
        (1..=MOST).contains(&set.count).then_some(set)
    }

    /// Names of its paths, `generated:SEED#NUMBER`, those of one half or all.
    pub(crate) fn names(self, half: Option<Half>) -> Vec<String> {
        let wanted = |number: &u32| half.is_none_or(|half| half == Half::of(*number));
        let names = (1..=self.count).filter(wanted);
        names
            .map(|number| format!("{PREFIX}{}#{number}", self.seed))
            .collect()
    }
}

/// The number of a generated path by its short name: 17 of `g017-20M-100ms`.
pub(crate) fn number(name: &str) -> Option<u32> {
    let (number, _) = name.strip_prefix('g')?.split_once('-')?;
    number.parse().ok().filter(|number| (1..=MOST).contains(number))
}

/// The path with this seed and number as a scenario; `None` if `name` is not `generated:SEED#NUMBER`.
pub(super) fn find(name: &str) -> Option<ScenarioSource> {
    let (seed, number) = name.strip_prefix(PREFIX)?.split_once('#')?;
    let (seed, number) = (seed.parse().ok()?, number.parse().ok()?);
    if !(1..=MOST).contains(&number) {
        return None;
    }
    let drawn = Drawn::new(Point::new(Seed::new(seed).child("generated paths"), number));
    let short = text::name(number, &drawn);
    let whole = text::scenario(name, &drawn);
    Some(ScenarioSource::new(&short, name, whole, Path::new("scenarios")))
}

#[cfg(test)]
mod tests;
