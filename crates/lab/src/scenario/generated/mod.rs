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
#[derive(Debug)]
struct Family {
    /// Beginning of the names of sets and paths, up to a colon.
    name: &'static str,
    /// First letter of the short names of paths.
    letter: char,
    /// Name of the child of a set's seed from which its paths are drawn.
    seed: &'static str,
    draw: fn(Point) -> Drawn,
}

static FAMILIES: [Family; 2] = [
    Family {
        name: "generated",
        letter: 'g',
        seed: "generated paths",
        draw: Drawn::new,
    },
    Family {
        name: "generated2",
        letter: 'h',
        seed: "second generated paths",
        draw: second::drawn,
    },
];

impl Family {
    /// The family of a set or path, and the rest of its name.
    fn of(name: &str) -> Option<(&'static Self, &str)> {
        let rest = |family: &Self| name.strip_prefix(family.name)?.strip_prefix(':');
        FAMILIES.iter().find_map(|family| Some((family, rest(family)?)))
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
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathSet {
    family: &'static Family,
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
        let beginning = format!("{}:{}#", self.family.name, self.seed);
        names.map(|number| format!("{beginning}{number}")).collect()
    }
}

/// Family of the generated path with this short name, such as `g017-20M-100ms`; `None` if it is not a path's name.
pub(crate) fn family(name: &str) -> Option<&'static str> {
    FAMILIES.iter().find_map(|family| {
        let (number, _) = name.strip_prefix(family.letter)?.split_once('-')?;
        (number.len() == 3 && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(family.name)
    })
}

/// Short name and scenario file of the path called `name`; `None` if that is not `generated:SEED#NUMBER`.
pub(super) fn find(name: &str) -> Option<(String, String)> {
    let (family, rest) = Family::of(name)?;
    let (seed, number) = rest.split_once('#')?;
    let (seed, number) = (Seed::new(seed.parse().ok()?), number.parse().ok()?);
    if !(1..=MOST).contains(&number) {
        return None;
    }
    let drawn = (family.draw)(Point::new(seed.child(family.seed), number));
    let short = format!("{}{}", family.letter, text::name(number, &drawn));
    Some((short, text::scenario(name, &drawn)))
}

#[cfg(test)]
mod tests;
