//! The blocks of the tutorial for developers are a program, and examples say what they need in a package of their own.

use std::collections::BTreeSet;
use std::fs;

fn read(path: &str) -> String {
    let whole = format!("{}/{path}", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(&whole).unwrap_or_else(|error| panic!("{whole}: {error}"))
}

/// The blocks of a page in `language`, without their fences.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let blocks = page.split(&fence).skip(1);
    let inside = |block: &str| block.split_once("\n```").map(|(inside, _)| format!("{inside}\n"));
    blocks.filter_map(inside).collect()
}

/// The header of an example, and the rest.
fn example(name: &str) -> (String, String) {
    let source = read(&format!("examples/{name}.rs"));
    let (header, body) = source.split_once("\n\n").expect("an empty line after the header");
    let lines = header.lines().map(|line| line.trim_start_matches("//!"));
    let header: Vec<_> = lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    (format!("{}\n", header.join("\n")), body.to_owned())
}

#[test]
fn the_blocks_of_the_tutorial_joined_are_the_example() {
    let page = read("docs/tutorials/embedder.md");
    let (header, body) = example("quinn_server");
    assert_eq!(blocks(&page, "rust,ignore").join("\n"), body);
    assert_eq!(blocks(&page, "toml"), blocks(&header, "toml"));
}

#[test]
fn the_excerpts_in_the_tutorial_are_from_the_example() {
    let excerpts = blocks(&read("docs/tutorials/embedder.md"), "rust,ignore,excerpt");
    assert_eq!(excerpts.len(), 2);
    let (_, body) = example("estimate");
    for excerpt in excerpts {
        assert!(body.contains(&excerpt), "examples/estimate.rs has no {excerpt}");
    }
}

/// Names of crates at the beginning of a source's `use` lines.
fn used(body: &str) -> BTreeSet<&str> {
    let uses = body.lines().filter_map(|line| line.strip_prefix("use "));
    let first = uses.filter_map(|path| path.split("::").next());
    first.filter(|name| *name != "std").collect()
}

#[test]
fn examples_say_which_crates_they_need() {
    for name in ["quinn_server", "own_controller"] {
        let (header, body) = example(name);
        let needed = blocks(&header, "toml").join("\n");
        let lines = needed.lines().filter_map(|line| line.split_once(" = "));
        let declared: BTreeSet<_> = lines.map(|(name, _)| name).collect();
        assert!(declared.is_superset(&used(&body)), "examples/{name}.rs uses more");
        for crate_name in declared {
            let path = format!("{crate_name}::");
            assert!(
                body.contains(&path),
                "examples/{name}.rs does not use {crate_name}"
            );
        }
    }
}
