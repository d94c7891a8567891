//! The text form of checks, as `docs/scenarios.md` has it:
//!
//! ```text
//! check       = comparison | superlative
//! comparison  = sum ( "<" | "<=" | ">" | ">=" ) sum | sum "~" sum "within" number
//! superlative = ( "least" | "most" ) reading "among" "[" flows "]"
//! sum         = [ "-" ] term { ( "+" | "-" ) term }
//! term        = number [ "*" reading ] | reading
//! number      = digits [ "%" ]
//! reading     = metric "[" flows "]" [ "@" window ] [ "in" scenario ]
//! ```
//!
//! [`parse`] only splits off names; [`super::read`] looks them up.

use winnow::ascii::{multispace0, multispace1};
use winnow::combinator::{alt, not, opt, peek, preceded, repeat, terminated};
use winnow::error::{ErrMode, ParserError};
use winnow::stream::Stream;
use winnow::token::{one_of, take_till, take_while};
use winnow::{ModalResult, Parser};

use super::check::{Comparison, Extreme, Relation, Term};

/// A check with names that are not looked up yet.
#[derive(Debug)]
pub(super) enum NamedCheck<'t> {
    Comparison(Comparison<NamedReading<'t>>),
    Superlative(NamedSuperlative<'t>),
}

/// A superlative with names that are not looked up yet.
#[derive(Debug)]
pub(super) struct NamedSuperlative<'t> {
    pub(super) extreme: Extreme,
    pub(super) reading: NamedReading<'t>,
    /// Text between the brackets after `among`.
    pub(super) among: &'t str,
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
pub(super) fn parse(text: &str) -> Result<NamedCheck<'_>, String> {
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

fn check<'t>(input: &mut &'t str) -> Parsed<NamedCheck<'t>> {
    let check = match opt(extreme).parse_next(input)? {
        Some(extreme) => NamedCheck::Superlative(NamedSuperlative {
            extreme,
            reading: reading(input)?,
            among: among(input, extreme)?,
        }),
        None => NamedCheck::Comparison(comparison(input)?),
    };
    if !input.trim().is_empty() {
        return problem(format!(
            "unexpected {} after the end of the expression",
            rest(input)
        ));
    }
    Ok(check)
}

fn comparison<'t>(input: &mut &'t str) -> Parsed<Comparison<NamedReading<'t>>> {
    let left = sum(input)?;
    let mut relation = relation(input)?;
    let right = sum(input)?;
    if let Relation::About(share) = &mut relation {
        *share = within(input)?;
    }
    Ok(Comparison {
        left,
        relation,
        right,
    })
}

fn extreme(input: &mut &str) -> Parsed<Extreme> {
    let word = alt((
        symbol("least").value(Extreme::Least),
        symbol("most").value(Extreme::Most),
    ));
    terminated(word, not(one_of(is_in_word))).parse_next(input)
}

/// The list after `among`.
fn among<'t>(input: &mut &'t str, extreme: Extreme) -> Parsed<&'t str> {
    if opt((symbol("among"), symbol("["))).parse_next(input)?.is_none() {
        return problem(format!(
            "`{extreme}` needs a list of all that are compared before {}: write {extreme} … among [reno, cubic]",
            rest(input)
        ));
    }
    bracketed(input, "among [")
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

/// True for the characters of a metric's name.
fn is_in_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The text up to the closing bracket; `before` is what stands before it, for the error.
fn bracketed<'t>(input: &mut &'t str, before: &str) -> Parsed<&'t str> {
    match opt(terminated(take_till(0.., ']'), "]")).parse_next(input)? {
        Some(text) => Ok(text),
        None => problem(format!("missing `]` after `{before}`")),
    }
}

fn reading<'t>(input: &mut &'t str) -> Parsed<NamedReading<'t>> {
    let Some(metric) = opt(preceded(multispace0, take_while(1.., is_in_word))).parse_next(input)? else {
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
    let flows = bracketed(input, &format!("{metric}["))?;
    let window = take_while(0.., |c: char| c.is_ascii_alphanumeric() || c == '.');
    let scenario = take_while(0.., |c: char| c.is_ascii_alphanumeric() || c == '-');
    Ok(NamedReading {
        metric,
        flows,
        window: opt(preceded("@", window)).parse_next(input)?,
        scenario: opt(preceded((multispace0, "in", multispace1), scenario)).parse_next(input)?,
    })
}
