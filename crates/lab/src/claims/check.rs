//! [`Claim`] and [`Check`]: statements about results. The syntax of checks, as `docs/scenarios.md` has it:
//!
//! ```text
//! check   = sum ( "<" | "<=" | ">" | ">=" ) sum | sum "~" sum "within" number
//! sum     = [ "-" ] term { ( "+" | "-" ) term }
//! term    = number [ "*" reading ] | reading
//! number  = digits [ "%" ]
//! reading = metric "[" flows "]" [ "@" window ] [ "in" scenario ]
//! ```
//!
//! [`parse`] only splits off names; [`super::read`] looks them up.

use std::fmt;

use winnow::ascii::{multispace0, multispace1};
use winnow::combinator::{alt, opt, peek, preceded, repeat, terminated};
use winnow::error::{ErrMode, ParserError};
use winnow::stream::Stream;
use winnow::token::{one_of, take_till, take_while};
use winnow::{ModalResult, Parser};

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
}

impl Claim {
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

/// An inequality between sums of means; as parsed, its readings are [`NamedReading`]s.
#[derive(Clone, Debug)]
pub(crate) struct Check<R = Reading> {
    pub(crate) left: Vec<Term<R>>,
    pub(crate) relation: Relation,
    pub(crate) right: Vec<Term<R>>,
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

/// A metric with the names that say of which runs, as a check writes them.
#[derive(Debug)]
pub(super) struct NamedReading<'t> {
    pub(super) metric: &'t str,
    /// Text between the brackets.
    pub(super) flows: &'t str,
    pub(super) window: Option<&'t str>,
    pub(super) scenario: Option<&'t str>,
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

impl<R> Check<R> {
    pub(super) fn readings(&self) -> impl Iterator<Item = &R> {
        let terms = self.left.iter().chain(&self.right);
        terms.filter_map(|term| term.reading.as_ref())
    }
}

impl Check {
    /// True if both sides read the same.
    pub(super) fn sides_are_equal(&self) -> bool {
        format!("{}", Sum(&self.left)) == format!("{}", Sum(&self.right))
    }

    /// The same check with other controllers in place; `None` if none is replaced.
    #[must_use]
    pub(super) fn substituted(&self, substitution: &Substitution) -> Option<Self> {
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

/// A problem in a check; empty while alternatives are still being tried.
#[derive(Debug)]
struct SyntaxProblem(String);

impl<I: Stream> ParserError<I> for SyntaxProblem {
    type Inner = Self;

    fn from_input(_: &I) -> Self {
        Self(String::new())
    }

    fn into_inner(self) -> Result<Self, Self> {
        Ok(self)
    }
}

type Parsed<T> = ModalResult<T, SyntaxProblem>;

/// Reads the text form of a check, as the head of this file has it; names are not looked up yet.
///
/// # Errors
/// If the text does not have that form; the error says in words what was found and what is expected.
pub(super) fn parse(text: &str) -> Result<Check<NamedReading<'_>>, String> {
    let mut rest = text;
    check(&mut rest).map_err(|error| match error {
        ErrMode::Backtrack(SyntaxProblem(problem)) | ErrMode::Cut(SyntaxProblem(problem)) => problem,
        ErrMode::Incomplete(_) => "unexpected end".to_owned(),
    })
}

fn problem<T>(text: String) -> Parsed<T> {
    Err(ErrMode::Cut(SyntaxProblem(text)))
}

/// The unread rest as error messages name it.
fn rest(input: &str) -> String {
    match input.trim() {
        "" => "the end".to_owned(),
        rest => format!("`{rest}`"),
    }
}

fn symbol<'t>(text: &'static str) -> impl Parser<&'t str, &'t str, ErrMode<SyntaxProblem>> {
    preceded(multispace0, text)
}

fn check<'t>(input: &mut &'t str) -> Parsed<Check<NamedReading<'t>>> {
    let left = sum(input)?;
    let mut relation = relation(input)?;
    let right = sum(input)?;
    if let Relation::About(share) = &mut relation {
        *share = within(input)?;
    }
    if !input.trim().is_empty() {
        return problem(format!(
            "unexpected {} after the end of the expression",
            rest(input)
        ));
    }
    Ok(Check {
        left,
        relation,
        right,
    })
}

fn relation(input: &mut &str) -> Parsed<Relation> {
    let mut known = alt((
        symbol("<=").value(Relation::AtMost),
        symbol(">=").value(Relation::AtLeast),
        symbol("<").value(Relation::Less),
        symbol(">").value(Relation::More),
        symbol("~").value(Relation::About(0.0)),
    ));
    match opt(known.by_ref()).parse_next(input)? {
        Some(relation) => Ok(relation),
        None => problem(format!("expected one of <, <=, >, >=, ~ before {}", rest(input))),
    }
}

/// The share after `within`.
fn within(input: &mut &str) -> Parsed<f64> {
    let share = match opt(symbol("within")).parse_next(input)? {
        Some(_) => number(input)?,
        None => None,
    };
    match share.filter(|share| *share > 0.0) {
        Some(share) => Ok(share),
        None => problem("a check with `~` needs a tolerance at its end: write ~ … within 10%".to_owned()),
    }
}

fn sum<'t>(input: &mut &'t str) -> Parsed<Vec<Term<NamedReading<'t>>>> {
    let negative = opt(symbol("-")).parse_next(input)?.is_some();
    let first = (if negative { -1.0 } else { 1.0 }, term(input)?);
    let sign = alt((symbol("+").value(1.0), symbol("-").value(-1.0)));
    let more: Vec<(f64, Term<NamedReading<'t>>)> = repeat(0.., (sign, term)).parse_next(input)?;
    let signed = std::iter::once(first).chain(more);
    let terms = signed.map(|(sign, term)| Term {
        factor: sign * term.factor,
        ..term
    });
    Ok(terms.collect())
}

fn term<'t>(input: &mut &'t str) -> Parsed<Term<NamedReading<'t>>> {
    let Some(factor) = number(input)? else {
        return Ok(Term {
            factor: 1.0,
            reading: Some(reading(input)?),
        });
    };
    let reading = opt(preceded(symbol("*"), reading)).parse_next(input)?;
    Ok(Term { factor, reading })
}

/// A number, with `%` for hundredths; `None` if none follows.
fn number(input: &mut &str) -> Parsed<Option<f64>> {
    let begins = peek(one_of(('0'..='9', '.')));
    let digits = take_while(1.., |c: char| c.is_ascii_alphanumeric() || c == '.');
    let Some(digits) = opt(preceded((multispace0, begins), digits)).parse_next(input)? else {
        return Ok(None);
    };
    let number: Option<f64> = digits.parse().ok().filter(|number: &f64| number.is_finite());
    let Some(number) = number else {
        return problem(format!(
            "invalid number `{digits}`: write it such as 0.05, 5% or 15e6"
        ));
    };
    let percent = opt(symbol("%")).parse_next(input)?.is_some();
    Ok(Some(if percent { number / 100.0 } else { number }))
}

fn reading<'t>(input: &mut &'t str) -> Parsed<NamedReading<'t>> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let Some(metric) = opt(preceded(multispace0, take_while(1.., word))).parse_next(input)? else {
        return problem(format!(
            "expected a number or a reading such as frames_discarded[cubic] before {}",
            rest(input)
        ));
    };
    if opt(symbol("[")).parse_next(input)?.is_none() {
        return problem(format!(
            "metric `{metric}` needs a controller: write `{metric}[cubic]`"
        ));
    }
    let Some(flows) = opt(terminated(take_till(0.., ']'), "]")).parse_next(input)? else {
        return problem(format!("missing `]` after `{metric}[`"));
    };
    let window = take_while(0.., |c: char| c.is_ascii_alphanumeric() || c == '.');
    let scenario = take_while(0.., |c: char| c.is_ascii_alphanumeric() || c == '-');
    Ok(NamedReading {
        metric,
        flows,
        window: opt(preceded("@", window)).parse_next(input)?,
        scenario: opt(preceded((multispace0, "in", multispace1), scenario)).parse_next(input)?,
    })
}
