//! One check of a file says something of several controllers and cases: here it becomes as many checks.

use super::check::{Check, Reading, Term};
use super::grammar::{GrammarError, NamedFlow, Scope, Template, TemplateTerm, parse};

/// The checks that `text` stands for. `cases` are those of the claim, or of the whole scenario.
pub(crate) fn expand(text: &str, scope: &Scope, cases: &[String]) -> Result<Vec<Check>, GrammarError> {
    let template = parse(text, scope)?;
    let any_case = |list: &(String, Vec<NamedFlow>)| list.1.iter().any(|flow| flow.any_case);
    let no_case = [String::new()];
    let cases = if template.lists.iter().any(any_case) {
        cases
    } else {
        &no_case
    };
    let mut checks = Vec::new();
    for case in cases {
        let mut places = vec![0; template.lists.len()];
        loop {
            let check = Check {
                left: side(&template, &template.left, &places, case),
                relation: template.relation,
                right: side(&template, &template.right, &places, case),
            };
            if sides_are_equal(&check) {
                return Err(GrammarError {
                    check: text.to_owned(),
                    problem: format!("`{check}` compares something with itself"),
                });
            }
            checks.push(check);
            if !advance(&mut places, &template) {
                break;
            }
        }
    }
    Ok(checks)
}

/// Moves on to the next choice of one flow out of each list; `false` after the last.
fn advance(places: &mut [usize], template: &Template) -> bool {
    for (place, (_, flows)) in places.iter_mut().zip(&template.lists).rev() {
        *place += 1;
        if *place < flows.len() {
            return true;
        }
        *place = 0;
    }
    false
}

fn side(template: &Template, terms: &[TemplateTerm], places: &[usize], case: &str) -> Vec<Term> {
    let reading = |term: &TemplateTerm| {
        let read = term.reading.as_ref()?;
        let (_, flows) = template.lists.get(read.list)?;
        let named = flows.get(*places.get(read.list)?)?;
        let mut flow = named.flow.clone();
        if named.any_case && read.scenario.is_none() {
            case.clone_into(&mut flow.case);
        }
        Some(Reading {
            measure: read.measure,
            deviation: read.deviation,
            flow,
            window: read.window.clone(),
            scenario: read.scenario.clone(),
        })
    };
    terms
        .iter()
        .map(|term| Term {
            factor: term.factor,
            reading: reading(term),
        })
        .collect()
}

fn sides_are_equal(check: &Check) -> bool {
    let text = check.to_string();
    let middle = format!(" {} ", check.relation);
    text.split_once(&middle)
        .is_some_and(|(left, right)| left == right.split(" within ").next().unwrap_or(right))
}
