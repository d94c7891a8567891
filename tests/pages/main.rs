//! The README and the tutorials are true: their commands do what the pages say, and the README's numbers have sources.
#![expect(clippy::unwrap_used, reason = "what a test needs and cannot have fails it")]

mod claims;
mod commands;
mod numbers;

use std::fs;

use playrate_test_support::root;

/// Reads a file of the tree.
fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The fenced blocks of a page in `language`, without their fences.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    // A block of another language may end right before one in this language.
    let openings = page
        .match_indices(&fence)
        .map(|(at, _)| &page[at + fence.len()..]);
    openings
        .filter_map(|rest| Some(rest.split_once("\n```")?.0))
        .collect()
}
