//! [`Claim`] and [`Check`]: statements about results, with their canonical text form ([`super::syntax`]).

use std::fmt;

use crate::metric::Measure;
use crate::result::VIEWER;

/// Prefix of a metric that means its distance from the median over the seeds: of two such readings the larger
/// one varies more (Brown and Forsythe 1974).
pub(super) const DEVIATION: &str = "deviation_";

/// A statement of a scenario file about its results.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    /// The row of the papers' claims, and after a `/` the piece of it: `P13-4/discards`.
    pub(crate) id: String,
    pub(crate) scenario: String,
    /// The statement in words.
    pub(crate) says: String,
    /// The paper's own words.
    pub(crate) paper: Option<String>,
    /// Reason for the thresholds in the checks.
    pub(crate) why: Option<String>,
    /// Advice on reading the verdict.
    pub(crate) note: Option<String>,
    pub(crate) checks: Vec<Check>,
    /// True if one check is enough for the claim to hold.
    pub(crate) any: bool,
    /// False for a claim that is reported beside its row and does not decide it.
    pub(crate) decides: bool,
}

impl Claim {
    /// The checks as the scenario has them.
    pub(crate) fn checks_text(&self) -> Vec<String> {
        self.checks.iter().map(Check::to_string).collect()
    }

    /// Id of the row of the papers' claims.
    pub(crate) fn row(&self) -> &str {
        self.id.split_once('/').map_or(self.id.as_str(), |(row, _)| row)
    }
}

/// Other controllers with which all claims are reported once more, beside those that decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Substitution {
    pub(crate) name: String,
    /// Piece of a canonical spec that is replaced.
    pub(crate) replace: String,
    pub(crate) by: String,
}

/// A condition that results meet or not.
#[derive(Clone, Debug)]
pub(crate) enum Check {
    Comparison(Comparison),
    Superlative(Superlative),
}

/// An inequality between sums of means; as parsed, its readings are names.
#[derive(Clone, Debug)]
pub(crate) struct Comparison<R = Reading> {
    pub(crate) left: Vec<Term<R>>,
    pub(crate) relation: Relation,
    pub(crate) right: Vec<Term<R>>,
}

/// The statement that some flows have the least, or the most, of a metric among several.
#[derive(Clone, Debug)]
pub(crate) struct Superlative {
    pub(crate) extreme: Extreme,
    /// Readings of the flows that are said to have the least or the most.
    pub(crate) members: Vec<Reading>,
    /// Readings of all flows that are compared, with those of the members.
    pub(crate) among: Vec<Reading>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extreme {
    Least,
    Most,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Relation {
    Less,
    AtMost,
    More,
    AtLeast,
    /// Equal up to this share of the right side.
    About(f64),
}

/// A summand: a factor times a reading, or the factor alone.
#[derive(Clone, Debug)]
pub(crate) struct Term<R = Reading> {
    pub(crate) factor: f64,
    pub(crate) reading: Option<R>,
}

/// A metric of one controller's runs.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub(crate) measure: Measure,
    /// True for the distance from the median over the seeds ([`DEVIATION`]).
    pub(crate) deviation: bool,
    pub(crate) flow: Flow,
    /// Place and name of a measurement window; `None` for the whole session.
    pub(crate) window: Option<(usize, String)>,
    /// Name of another scenario; `None` for the one that makes the claim.
    pub(crate) scenario: Option<String>,
}

/// Flows whose numbers are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flow {
    /// The controller as the scenario file writes it.
    pub(crate) name: String,
    /// The controller's canonical spec, as in rows.
    pub(crate) controller: String,
    /// Case of the scenario; empty if it has none.
    pub(crate) case: String,
    /// Role of the flows; those of one run are pooled.
    pub(crate) role: String,
}

impl<R> Comparison<R> {
    pub(super) fn readings(&self) -> impl Iterator<Item = &R> {
        let terms = self.left.iter().chain(&self.right);
        terms.filter_map(|term| term.reading.as_ref())
    }
}

impl Comparison {
    /// True if both sides read the same.
    pub(super) fn sides_are_equal(&self) -> bool {
        format!("{}", Sum(&self.left)) == format!("{}", Sum(&self.right))
    }

    /// True if a side has a number or a factor, which then is the check's threshold.
    pub(super) fn states_a_threshold(&self) -> bool {
        let mut terms = self.left.iter().chain(&self.right);
        terms.any(|term| term.reading.is_none() || (term.factor.abs() - 1.0).abs() > 1e-12)
    }
}

impl Superlative {
    /// Readings of the flows that are compared with the members.
    pub(super) fn others(&self) -> impl Iterator<Item = &Reading> {
        let is_member = |one: &Reading| self.members.iter().any(|member| member.flow.is_of(&one.flow));
        self.among.iter().filter(move |one| !is_member(one))
    }
}

impl Flow {
    /// True if both read the same flows, however their controllers are spelt.
    pub(super) fn is_of(&self, other: &Self) -> bool {
        self.controller == other.controller && self.case == other.case && self.role == other.role
    }
}

impl Check {
    /// The first reading, which gives the unit of the numbers.
    pub(super) fn first_reading(&self) -> Option<&Reading> {
        match self {
            Self::Comparison(comparison) => comparison.readings().next(),
            Self::Superlative(superlative) => superlative.members.first(),
        }
    }

    fn readings_mut(&mut self) -> Vec<&mut Reading> {
        match self {
            Self::Comparison(comparison) => {
                let terms = comparison.left.iter_mut().chain(&mut comparison.right);
                terms.filter_map(|term| term.reading.as_mut()).collect()
            }
            Self::Superlative(superlative) => {
                let members = superlative.members.iter_mut();
                members.chain(&mut superlative.among).collect()
            }
        }
    }

    /// The same check with other controllers in place; `None` if none is replaced.
    #[must_use]
    pub(super) fn substituted(&self, substitution: &Substitution) -> Option<Self> {
        let mut other = self.clone();
        let mut changed = false;
        for reading in other.readings_mut() {
            let flow = &mut reading.flow;
            if flow.controller.contains(&substitution.replace) {
                flow.controller = flow.controller.replace(&substitution.replace, &substitution.by);
                flow.name.clone_from(&flow.controller);
                changed = true;
            }
        }
        changed.then_some(other)
    }
}

impl Relation {
    /// True if equal sides do not meet it.
    pub(super) const fn is_strict(self) -> bool {
        matches!(self, Self::Less | Self::More)
    }
}

impl Extreme {
    /// The reason for which a superlative is undecided when no other is beyond all members.
    pub(super) const fn without_loser(self) -> &'static str {
        match self {
            Self::Least => "no other has more than all of them by the margin",
            Self::Most => "no other has less than all of them by the margin",
        }
    }
}

impl fmt::Display for Extreme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Least => "least",
            Self::Most => "most",
        })
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

impl Reading {
    /// Writes the text form with `flows` between the brackets.
    fn write(&self, f: &mut fmt::Formatter<'_>, flows: &dyn fmt::Display) -> fmt::Result {
        let deviation = if self.deviation { DEVIATION } else { "" };
        write!(f, "{deviation}{}[{flows}]", self.measure.name())?;
        if let Some((_, window)) = &self.window {
            write!(f, "@{window}")?;
        }
        match &self.scenario {
            Some(scenario) => write!(f, " in {scenario}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, &self.flow)
    }
}

/// The flows of several readings, as a list.
struct FlowList<'a>(&'a [Reading]);

impl fmt::Display for FlowList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, reading) in self.0.iter().enumerate() {
            let separator = if place > 0 { ", " } else { "" };
            write!(f, "{separator}{}", reading.flow)?;
        }
        Ok(())
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Comparison(comparison) => comparison.fmt(f),
            Self::Superlative(superlative) => superlative.fmt(f),
        }
    }
}

impl fmt::Display for Superlative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.extreme)?;
        if let Some(first) = self.members.first() {
            first.write(f, &FlowList(&self.members))?;
        }
        write!(f, " among [{}]", FlowList(&self.among))
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", Sum(&self.left), self.relation, Sum(&self.right))?;
        match self.relation {
            Relation::About(share) => write!(f, " within {}%", round(share * 100.0)),
            _ => Ok(()),
        }
    }
}

struct Sum<'a>(&'a [Term]);

impl fmt::Display for Sum<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, term) in self.0.iter().enumerate() {
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
}

/// Rounded to nine decimals, to drop the digits that arithmetic leaves behind.
fn round(value: f64) -> f64 {
    (value * 1e9).round() / 1e9
}
