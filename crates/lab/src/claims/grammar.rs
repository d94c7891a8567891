//! The grammar of checks, as `docs/scenarios.md` has it:
//!
//! ```text
//! check   = sum ( "<" | "<=" | ">" | ">=" ) sum | sum "~" sum "within" number "%"
//! sum     = [ "-" ] term { ( "+" | "-" ) term }
//! term    = number [ "*" reading ] | reading
//! reading = [ "deviation_" ] metric "[" flow { "," flow } "]" [ "@" window ] [ "in" scenario ]
//! flow    = ( controller | group ) [ "@" case ] [ "#" role ]
//! ```

use std::collections::BTreeMap;

use playrate_transport::ControllerChoice;
use thiserror::Error;

use super::check::{DEVIATION, Flow, Relation};
use crate::metric::{METRICS, Measure};
use crate::run::{IDEAL, VIEWER};

/// Why a check cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("in `{check}`: {problem}")]
pub struct GrammarError {
    /// The check as it is written.
    pub check: String,
    /// What is wrong in it, and the mend.
    pub problem: String,
}

/// What a check may speak of.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// The scenario's controllers, canonical.
    pub controllers: Vec<String>,
    /// Whether it has a row for the best that any sender could do.
    pub ideal: bool,
    /// Its cases; empty if it has none.
    pub cases: Vec<String>,
    /// Names for lists of controllers.
    pub groups: BTreeMap<String, Vec<String>>,
    /// The roles of its flows.
    pub roles: Vec<String>,
    /// Its measurement windows.
    pub windows: Vec<String>,
    /// Scenarios whose results may be read besides.
    pub scenarios: Vec<String>,
}

/// A check whose readings may be of several flows each.
#[derive(Clone, Debug)]
pub(super) struct Template {
    pub(super) left: Vec<TemplateTerm>,
    pub(super) relation: Relation,
    pub(super) right: Vec<TemplateTerm>,
    /// What stands in brackets; equal brackets are one list, and go together.
    pub(super) lists: Vec<(String, Vec<NamedFlow>)>,
}

#[derive(Clone, Debug)]
pub(super) struct TemplateTerm {
    pub(super) factor: f64,
    pub(super) reading: Option<TemplateReading>,
}

#[derive(Clone, Debug)]
pub(super) struct TemplateReading {
    pub(super) measure: Measure,
    pub(super) deviation: bool,
    /// Place in `lists`.
    pub(super) list: usize,
    pub(super) window: Option<(usize, String)>,
    pub(super) scenario: Option<String>,
}

/// A flow whose case may be left open.
#[derive(Clone, Debug)]
pub(super) struct NamedFlow {
    pub(super) flow: Flow,
    /// Whether each of the claim's cases is to be put in.
    pub(super) any_case: bool,
}

struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
    scope: &'a Scope,
    lists: Vec<(String, Vec<NamedFlow>)>,
}

/// Reads a check.
pub(super) fn parse(text: &str, scope: &Scope) -> Result<Template, GrammarError> {
    let mut parser = Parser {
        text,
        rest: text,
        scope,
        lists: Vec::new(),
    };
    let left = parser.sum()?;
    let relation = parser.relation()?;
    let right = parser.sum()?;
    let relation = match relation {
        Relation::About(_) => parser.within()?,
        other => other,
    };
    parser.skip();
    if !parser.rest.is_empty() {
        return Err(parser.wrong(format!("`{}` is too much", parser.rest)));
    }
    if parser.lists.is_empty() {
        return Err(parser.wrong("nothing of it is read from results"));
    }
    Ok(Template {
        left,
        relation,
        right,
        lists: parser.lists,
    })
}

impl<'a> Parser<'a> {
    fn wrong(&self, problem: impl Into<String>) -> GrammarError {
        GrammarError {
            check: self.text.to_owned(),
            problem: problem.into(),
        }
    }

    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, token: &str) -> bool {
        self.skip();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// What follows as long as `wanted` says so.
    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        self.skip();
        let end = self.rest.find(|c| !wanted(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn relation(&mut self) -> Result<Relation, GrammarError> {
        for (token, relation) in [
            ("<=", Relation::AtMost),
            (">=", Relation::AtLeast),
            ("<", Relation::Less),
            (">", Relation::More),
            ("~", Relation::About(0.0)),
        ] {
            if self.take(token) {
                return Ok(relation);
            }
        }
        Err(self.wrong(format!(
            "one of <, <=, >, >=, ~ is missing before `{}`",
            self.rest
        )))
    }

    fn within(&mut self) -> Result<Relation, GrammarError> {
        let mend = "a check with `~` says how much is about the same: ~ … within 10%";
        if !self.take("within") {
            return Err(self.wrong(mend));
        }
        match self.number()? {
            Some(share) if share > 0.0 => Ok(Relation::About(share)),
            _ => Err(self.wrong(mend)),
        }
    }

    fn sum(&mut self) -> Result<Vec<TemplateTerm>, GrammarError> {
        let mut terms = Vec::new();
        let mut sign = if self.take("-") { -1.0 } else { 1.0 };
        loop {
            let mut term = self.term()?;
            term.factor *= sign;
            terms.push(term);
            sign = if self.take("+") {
                1.0
            } else if self.take("-") {
                -1.0
            } else {
                return Ok(terms);
            };
        }
    }

    fn term(&mut self) -> Result<TemplateTerm, GrammarError> {
        let Some(factor) = self.number()? else {
            return Ok(TemplateTerm {
                factor: 1.0,
                reading: Some(self.reading()?),
            });
        };
        let reading = if self.take("*") {
            Some(self.reading()?)
        } else {
            None
        };
        Ok(TemplateTerm { factor, reading })
    }

    /// A number, with `%` for hundredths; `None` if none follows.
    fn number(&mut self) -> Result<Option<f64>, GrammarError> {
        self.skip();
        if !self.rest.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return Ok(None);
        }
        let digits = self.take_while(|c| c.is_ascii_alphanumeric() || c == '.');
        let number: f64 = digits
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite())
            .ok_or_else(|| {
                self.wrong(format!(
                    "`{digits}` is no number: write it such as 0.05, 5% or 15e6"
                ))
            })?;
        Ok(Some(if self.take("%") { number / 100.0 } else { number }))
    }

    fn reading(&mut self) -> Result<TemplateReading, GrammarError> {
        let name = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
        if name.is_empty() {
            return Err(self.wrong(format!(
                "a number or a reading such as frames_discarded[cubic] is missing before `{}`",
                self.rest
            )));
        }
        let (deviation, measured) = match name.strip_prefix(DEVIATION) {
            Some(measured) => (true, measured),
            None => (false, name),
        };
        let measure = Measure::find(measured).ok_or_else(|| {
            let known: Vec<_> = METRICS.iter().map(|metric| metric.name).collect();
            self.wrong(format!(
                "`{name}` is no metric; there are {}, and `excess_` or `{DEVIATION}` before any of them",
                known.join(", ")
            ))
        })?;
        if !self.take("[") {
            return Err(self.wrong(format!("whose is missing: {name}[CONTROLLER]")));
        }
        let (inside, rest) = self
            .rest
            .split_once(']')
            .ok_or_else(|| self.wrong(format!("the bracket of {name}[ is not closed")))?;
        self.rest = rest;
        let list = self.list(inside)?;
        let window = match self.rest.strip_prefix('@') {
            Some(rest) => {
                self.rest = rest;
                Some(self.window()?)
            }
            None => None,
        };
        if window.is_some() && (measure.over_ideal || !measure.metric.has_windows()) {
            return Err(self.wrong(format!(
                "`{name}` is not counted in windows, only for whole sessions"
            )));
        }
        let scenario = if self.take("in ") {
            Some(self.scenario()?)
        } else {
            None
        };
        Ok(TemplateReading {
            measure,
            deviation,
            list,
            window,
            scenario,
        })
    }

    fn scenario(&mut self) -> Result<String, GrammarError> {
        let name = self.take_while(|c| c.is_ascii_alphanumeric() || c == '-');
        if self.scope.scenarios.iter().any(|known| known == name) {
            return Ok(name.to_owned());
        }
        Err(self.wrong(format!(
            "`{name}` is no scenario; {}",
            there_are(&self.scope.scenarios)
        )))
    }

    fn window(&mut self) -> Result<(usize, String), GrammarError> {
        let name = self.take_while(|c| c.is_ascii_alphanumeric() || c == '.');
        if let Some(place) = self.scope.windows.iter().position(|known| known == name) {
            return Ok((place, name.to_owned()));
        }
        Err(self.wrong(format!(
            "`{name}` is no measurement window of this scenario; {}",
            there_are(&self.scope.windows)
        )))
    }

    fn list(&mut self, inside: &str) -> Result<usize, GrammarError> {
        let mut flows = Vec::new();
        for part in split(inside) {
            self.flow(part.trim(), &mut flows)?;
        }
        let text: String = inside.split_whitespace().collect();
        if let Some(known) = self.lists.iter().position(|(known, _)| *known == text) {
            return Ok(known);
        }
        self.lists.push((text, flows));
        Ok(self.lists.len() - 1)
    }

    fn flow(&self, text: &str, flows: &mut Vec<NamedFlow>) -> Result<(), GrammarError> {
        let (text, role) = text.split_once('#').unwrap_or((text, VIEWER));
        let (name, case) = match text.split_once('@') {
            Some((name, case)) => (name.trim(), Some(case.trim())),
            None => (text.trim(), None),
        };
        if role != VIEWER && !self.scope.roles.iter().any(|known| known == role.trim()) {
            return Err(self.wrong(format!(
                "`{role}` is no role of this scenario's flows; {}",
                there_are(&self.scope.roles)
            )));
        }
        if let Some(case) = case
            && !self.scope.cases.iter().any(|known| known == case)
        {
            return Err(self.wrong(format!(
                "`{case}` is no case of this scenario; {}",
                there_are(&self.scope.cases)
            )));
        }
        let one = [name.to_owned()];
        let names = self.scope.groups.get(name).map_or(one.as_slice(), Vec::as_slice);
        for name in names {
            flows.push(NamedFlow {
                any_case: case.is_none() && !self.scope.cases.is_empty(),
                flow: Flow {
                    controller: self.controller(name)?,
                    name: name.clone(),
                    case: case.unwrap_or_default().to_owned(),
                    role: role.trim().to_owned(),
                },
            });
        }
        Ok(())
    }

    fn controller(&self, name: &str) -> Result<String, GrammarError> {
        if name == IDEAL && self.scope.ideal {
            return Ok(IDEAL.to_owned());
        }
        let spec = name
            .parse::<ControllerChoice>()
            .map_err(|error| self.wrong(error.to_string()))?
            .to_string();
        if self.scope.controllers.contains(&spec) {
            Ok(spec)
        } else {
            Err(self.wrong(format!(
                "`{name}` is no controller of this scenario; {}",
                there_are(&self.scope.controllers)
            )))
        }
    }
}

fn there_are(names: &[String]) -> String {
    if names.is_empty() {
        "there are none".to_owned()
    } else {
        format!("there are {}", names.join(", "))
    }
}

/// Splits at commas outside parentheses.
pub(crate) fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0_i32, 0, Vec::new());
    for (place, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..place]);
                start = place + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}
