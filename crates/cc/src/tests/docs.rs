//! `docs/controllers.md` and `docs/controllers/all.md` describe everything in the registry.

use std::collections::BTreeSet;
use std::path::Path;

use crate::SpecError;
use crate::registry::{Entry, Parameter, Registry};
use crate::state::{GROWTH, of_all_algorithms};
use crate::testing::examples;

/// Both pages, one after the other.
const DOCS: &str = concat!(
    include_str!("../../../../docs/controllers.md"),
    include_str!("../../../../docs/controllers/all.md")
);

/// Parameters that [`Entry::with_shared_parameters`] gives algorithms.
fn shared() -> Vec<Parameter> {
    [vec![GROWTH], of_all_algorithms()].concat()
}

/// The section of an algorithm or component: from its heading to the next.
fn section(entry: &Entry) -> &'static str {
    let name = entry.name();
    let heading = match entry.key() {
        None => format!("\n### `{name}`\n"),
        Some(key) => format!("\n### `{key}={name}`\n"),
    };
    let start = DOCS
        .find(&heading)
        .unwrap_or_else(|| panic!("docs/controllers/all.md lacks the heading `{}`", heading.trim()));
    let rest = &DOCS[start + heading.len()..];
    rest.find("\n##").map_or(rest, |end| &rest[..end])
}

/// Rows of a text that describe parameters.
fn rows(text: &str) -> usize {
    text.lines().filter(|line| line.starts_with("| `")).count()
}

#[track_caller]
fn has_row(text: &str, parameter: &Parameter) {
    let row = format!("\n| `{}` | {} | ", parameter.name, parameter.default);
    assert!(text.contains(&row), "no row {row}");
}

#[test]
fn every_algorithm_and_component_has_a_section_with_its_parameters_and_their_defaults() {
    let shared = shared();
    for entry in Registry::builtin().entries() {
        let text = section(entry);
        let own = entry.parameters().iter().filter(|own| !shared.contains(own));
        assert_eq!(rows(text), own.clone().count(), "rows of {}", entry.name());
        own.for_each(|parameter| has_row(text, parameter));
    }
}

#[test]
fn one_section_has_the_parameters_that_algorithms_share() {
    let text = DOCS.split_once("\n## What all share\n").expect("the section").1;
    let text = text.split_once("\n## ").map_or(text, |(section, _)| section);
    assert_eq!(rows(text), shared().len());
    for parameter in &shared() {
        has_row(text, parameter);
    }
}

#[test]
fn every_alias_is_listed_with_what_it_stands_for() {
    for alias in Registry::builtin().aliases() {
        let row = format!("\n| `{}` | `{}` | ", alias.name, alias.expansion);
        assert!(DOCS.contains(&row), "no row {row}");
    }
}

#[test]
fn every_example_is_drawn_and_shown() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/controllers");
    for example in examples().expect("all parse") {
        let file = format!("{}.svg", example.name);
        let links = ["", "controllers/"].map(|at| [format!("]({at}{file})"), format!("](<{at}{file}>)")]);
        let shown = links.iter().flatten().any(|link| DOCS.contains(link));
        assert!(shown, "docs/controllers/all.md does not show {file}");
        assert!(
            folder.join(&file).exists(),
            "{file} is missing: run `cargo run --example controller_windows` and `python docs/draw.py`"
        );
    }
}

/// The text between backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn the_combinations_that_are_refused_are_those_that_the_table_lists() {
    let registry = Registry::builtin();
    let mut refused = BTreeSet::new();
    for algorithm in registry.controllers().map(Entry::name) {
        for component in registry.entries() {
            let Some(key) = component.key() else { continue };
            let component = format!("{key}={}", component.name());
            if let Err(SpecError::Refused { .. }) = registry.parse(&format!("{algorithm}+{component}")) {
                refused.insert((algorithm.to_owned(), component));
            }
        }
    }
    let table = DOCS.split_once("| combination |").expect("the table").1;
    let mut listed = BTreeSet::new();
    for row in table.lines().skip(2).take_while(|line| line.starts_with('|')) {
        let names = quoted(row.split('|').nth(1).expect("a cell"));
        let (components, algorithms): (Vec<&str>, Vec<&str>) =
            names.iter().partition(|name| name.contains('='));
        for component in components {
            let pair = |algorithm: &&str| ((*algorithm).to_owned(), component.to_owned());
            listed.extend(algorithms.iter().map(pair));
        }
    }
    let others: Vec<_> = listed.symmetric_difference(&refused).collect();
    assert!(
        others.is_empty(),
        "only in the table, or only refused: {others:?}"
    );
}
