//! [`Claim`] and [`Check`]: what is stated.

use std::fmt;

use crate::metric::Measure;
use crate::run::VIEWER;

/// What is written before a metric for the distance from its median over the seeds: two of them compared say which varies more
/// (Brown and Forsythe 1974).
pub(super) const DEVIATION: &str = "deviation_";

/// What is written for a role to mean the flows of all.
pub const EVERYBODY: &str = "all";

/// A statement of a scenario.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Its name: the row of the papers' claims that it is about, and after a `/` which part of it: `P13-4/discards`.
    pub id: String,
    /// The scenario that makes it.
    pub scenario: String,
    /// The statement in words.
    pub says: String,
    /// What the paper says of it, with its figures.
    pub paper: Option<String>,
    /// Why the thresholds in its checks are what they are.
    pub why: Option<String>,
    /// What has to be known to read its outcome.
    pub note: Option<String>,
    /// What is stated.
    pub checks: Vec<Check>,
    /// Whether one of them has to hold, and not all.
    pub any: bool,
}

impl Claim {
    /// The row of the papers' claims that it is about.
    pub fn row(&self) -> &str {
        self.id.split_once('/').map_or(self.id.as_str(), |(row, _)| row)
    }
}

/// Claims once more with other controllers in place, to be reported beside those that decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Substitution {
    /// What this is called.
    pub name: String,
    /// This part of a controller's canonical spec …
    pub replace: String,
    /// … is replaced by this.
    pub by: String,
}

/// An inequality between means.
#[derive(Clone, Debug)]
pub struct Check {
    /// What stands on the left.
    pub left: Vec<Term>,
    /// How the two are said to be related.
    pub relation: Relation,
    /// What stands on the right.
    pub right: Vec<Term>,
}

/// How two sums are said to be related.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Relation {
    /// The left is less.
    Less,
    /// The left is less or the same.
    AtMost,
    /// The left is more.
    More,
    /// The left is more or the same.
    AtLeast,
    /// They differ by no more than this share of the right.
    About(f64),
}

/// A part of a sum.
#[derive(Clone, Debug)]
pub struct Term {
    /// What the reading is multiplied with, or the number itself if there is none.
    pub factor: f64,
    /// What is read from the results.
    pub reading: Option<Reading>,
}

/// A number read from the results of one controller.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Which number.
    pub measure: Measure,
    /// Whether its distance from the median over the seeds is meant (`deviation_` before the metric).
    pub deviation: bool,
    /// Whose.
    pub flow: Flow,
    /// In which of the scenario's measurement windows, by its place among them and its name; `None` for the whole session.
    pub window: Option<(usize, String)>,
    /// In which other scenario; `None` for the one that makes the claim.
    pub scenario: Option<String>,
}

/// Whose numbers are read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flow {
    /// The controller as the scenario file writes it.
    pub name: String,
    /// Its canonical spec, as rows have it.
    pub controller: String,
    /// The case of the scenario; empty if it has none.
    pub case: String,
    /// The role of the flows, of all of which the numbers are pooled.
    pub role: String,
}

impl Check {
    /// Everything that is read from the results.
    pub fn readings(&self) -> impl Iterator<Item = &Reading> {
        self.left
            .iter()
            .chain(&self.right)
            .filter_map(|term| term.reading.as_ref())
    }

    /// The same check with other controllers in place; `None` if none is replaced.
    #[must_use]
    pub fn substituted(&self, substitution: &Substitution) -> Option<Self> {
        let mut other = self.clone();
        let mut changed = false;
        for term in other.left.iter_mut().chain(&mut other.right) {
            if let Some(reading) = &mut term.reading
                && reading.flow.controller.contains(&substitution.replace)
            {
                let flow = &mut reading.flow;
                flow.controller = flow.controller.replace(&substitution.replace, &substitution.by);
                flow.name = flow.controller.clone();
                changed = true;
            }
        }
        changed.then_some(other)
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::More => ">",
            Self::AtLeast => ">=",
            Self::About(_) => "~",
        })
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if !self.case.is_empty() {
            write!(f, "@{}", self.case)?;
        }
        if self.role != VIEWER {
            write!(f, "#{}", self.role)?;
        }
        Ok(())
    }
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let deviation = if self.deviation { DEVIATION } else { "" };
        write!(f, "{deviation}{}[{}]", self.measure.name(), self.flow)?;
        if let Some((_, window)) = &self.window {
            write!(f, "@{window}")?;
        }
        match &self.scenario {
            Some(scenario) => write!(f, " in {scenario}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        sum(f, &self.left)?;
        write!(f, " {} ", self.relation)?;
        sum(f, &self.right)?;
        match self.relation {
            Relation::About(share) => write!(f, " within {}%", round(share * 100.0)),
            _ => Ok(()),
        }
    }
}

fn sum(f: &mut fmt::Formatter<'_>, terms: &[Term]) -> fmt::Result {
    for (place, term) in terms.iter().enumerate() {
        let size = if place == 0 {
            term.factor
        } else {
            term.factor.abs()
        };
        if place > 0 {
            f.write_str(if term.factor < 0.0 { " - " } else { " + " })?;
        }
        match &term.reading {
            None => write!(f, "{}", round(size))?,
            Some(reading) if (size - 1.0).abs() < 1e-12 => write!(f, "{reading}")?,
            Some(reading) => write!(f, "{} * {reading}", round(size))?,
        }
    }
    Ok(())
}

/// Without the digits that arithmetic leaves behind.
fn round(value: f64) -> f64 {
    (value * 1e9).round() / 1e9
}
