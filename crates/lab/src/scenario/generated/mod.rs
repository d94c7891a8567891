//! Generated paths: scenarios with one title each, whose paths are a random sample of real networks' properties.
//!
//! `generated:SEED:N` is a set of N of them, `generated:SEED#NUMBER` the one with that number in any of the seed's
//! sets. `generated2:` is a second family, whose paths also change routes and have slow uplinks, batches of ACKs and
//! fades. `docs/matrix.md` has the distributions; `draw` draws the values of both, `second` those of the second alone,
//! and `text` writes them as a scenario file.

mod cube;
mod draw;
mod second;
mod text;

use playrate_netsim::Seed;

use cube::Point;
use draw::Drawn;

/// Paths drawn from the same distributions. A name always gives the same paths, so new properties require a new family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    First,
    Second,
}

impl Family {
    /// The family of a set or path, and the rest of its name.
    fn of(name: &str) -> Option<(Self, &str)> {
        [Self::First, Self::Second]
            .into_iter()
            .find_map(|family| Some((family, name.strip_prefix(family.prefix())?)))
    }

    /// Prefix of the names of sets and paths.
    const fn prefix(self) -> &'static str {
        match self {
            Self::First => "generated:",
            Self::Second => "generated2:",
        }
    }

    /// First letter of the short names of paths.
    const fn letter(self) -> char {
        match self {
            Self::First => 'g',
            Self::Second => 'h',
        }
    }

    /// Values of the path with this number.
    fn draw(self, seed: u64, number: u32) -> Drawn {
        let seed = Seed::new(seed);
        match self {
            Self::First => Drawn::new(Point::new(seed.child("generated paths"), number)),
            Self::Second => second::drawn(Point::new(seed.child("second generated paths"), number)),
        }
    }
}

/// Maximum number of paths per set: numbers in names have at most three digits.
const MOST: u32 = 999;
/// Form of a set's name, for help and errors; `generated2` is the other family.
pub(crate) const FORM: &str = "generated:SEED:N";

/// The half of a set: one is used to fit controllers' parameters, the other to judge them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Half {
    /// Paths with odd numbers, used to fit parameters.
    Fit,
    /// Paths with even numbers, used to report results.
    Judge,
}

impl Half {
    /// The half of the path with this number.
    pub(crate) const fn of(number: u32) -> Self {
        if number % 2 == 1 { Self::Fit } else { Self::Judge }
    }
}

/// A set of generated paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathSet {
    family: Family,
    seed: u64,
    count: u32,
}

impl PathSet {
    /// Reads `generated:SEED:N` or `generated2:SEED:N`; `None` if `name` is not the name of a set.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let (family, rest) = Family::of(name)?;
        let (seed, count) = rest.split_once(':')?;
        let set = Self {
            family,
            seed: seed.parse().ok()?,
            count: count.parse().ok()?,
        };
        (1..=MOST).contains(&set.count).then_some(set)
    }

    /// Names of its paths, `generated:SEED#NUMBER`, either all or those of one half.
    pub(crate) fn names(self, half: Option<Half>) -> Vec<String> {
        let wanted = |number: &u32| half.is_none_or(|half| half == Half::of(*number));
        let names = (1..=self.count).filter(wanted);
        let beginning = format!("{}{}#", self.family.prefix(), self.seed);
        names.map(|number| format!("{beginning}{number}")).collect()
    }
}

/// Family of the generated path with this short name, such as `g017-20M-100ms`; `None` if it is not a path's name.
pub(crate) fn family(name: &str) -> Option<&'static str> {
    let families = [(Family::First, "generated"), (Family::Second, "generated2")];
    families.into_iter().find_map(|(family, called)| {
        let (number, _) = name.strip_prefix(family.letter())?.split_once('-')?;
        (number.len() == 3 && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(called)
    })
}

/// Short name and scenario file of the path called `name`; `None` if that is not `generated:SEED#NUMBER`.
pub(super) fn find(name: &str) -> Option<(String, String)> {
    let (family, rest) = Family::of(name)?;
    let (seed, number) = rest.split_once('#')?;
    let (seed, number) = (seed.parse().ok()?, number.parse().ok()?);
    if !(1..=MOST).contains(&number) {
        return None;
    }
    let drawn = family.draw(seed, number);
    let short = format!("{}{}", family.letter(), text::name(number, &drawn));
    Some((short, text::scenario(name, &drawn)))
}

#[cfg(test)]
mod tests;
