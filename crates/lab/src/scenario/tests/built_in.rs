//! The program's built-in scenarios, and those of `examples/`.

use super::*;

#[test]
fn groups_are_the_scenarios_of_a_paper_and_of_all_of_them() {
    assert_eq!(named("p12"), ["p12-3", "p12-5"]);
    assert_eq!(named("p13-4"), ["p13-4"]);
    let papers = named(PAPERS);
    let has = |name: &str| papers.iter().any(|paper| paper == name);
    assert!(has("p15-pob") && !has("three-controllers"));
    let in_groups: usize = groups().iter().skip(1).map(|(_, names)| names.len()).sum();
    assert_eq!(in_groups, papers.len());
}

/// Stored results refer to these hashes: they must not change when the files' wording does.
#[test]
fn the_hashes_of_built_in_scenarios_stay() {
    let mut text = String::new();
    for (kind, changes) in [("full", Changes::default()), ("quick", QUICK)] {
        let names = groups().into_iter().next().unwrap().1;
        for name in names.into_iter().chain(["three-controllers"]) {
            for scenario in open(name, &changes).unwrap() {
                let case = if scenario.case.is_empty() {
                    "-"
                } else {
                    &scenario.case
                };
                writeln!(text, "{kind} {name} {case} {}", scenario.hash).unwrap();
            }
        }
    }
    assert_eq!(text, include_str!("../hashes.txt"));
}

#[test]
fn the_example_of_hard_paths_is_valid() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/hard-paths.toml");
    let cases = open(path, &Changes::default()).unwrap();
    assert_eq!(cases.len(), 13);
}
