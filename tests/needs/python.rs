//! The Python package `playrate-lab` with two nodes of a Ray cluster, the template for Kubernetes and the example
//! notebook; and `papers`, which judges the papers.
//!
//! `python/install` installs what these need into `target/python`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use libtest_mimic::Trial;

use crate::support::{self, output_within};
use playrate_test_support::{Media, assert_contains, program, root};

const LIMIT: Duration = Duration::from_secs(150);

/// Modules that each test runs with their arguments, one after the other.
const TESTS: [(&str, &[&str]); 8] = [
    (
        "ruff_and_mypy_find_no_fault",
        &[
            "ruff check --config python/pyproject.toml python papers docs/draw.py",
            "ruff format --check --config python/pyproject.toml python papers docs/draw.py",
            "mypy --config-file python/pyproject.toml python/src papers docs/draw.py",
        ],
    ),
    (
        "comparisons_scores_and_figures_are_those_of_known_rows",
        &[
            "pytest python/tests/test_compare.py",
            "pytest python/tests/test_before.py",
            "pytest python/tests/test_scores.py",
            "pytest python/tests/test_fairness.py",
            "pytest python/tests/test_plots.py",
        ],
    ),
    (
        "functions_return_what_the_program_writes",
        &["pytest python/tests/test_package.py"],
    ),
    (
        "two_nodes_of_ray_give_the_bytes_of_one_machine",
        &["pytest python/tests/test_ray.py"],
    ),
    (
        "kubernetes_reads_the_template_and_its_pods_make_the_rows_of_one_machine",
        &["pytest python/tests/test_kubernetes.py"],
    ),
    (
        "the_example_notebook_runs",
        &["pytest python/tests/test_notebook.py"],
    ),
    ("papers_are_judged_by_known_rows", &["pytest papers/tests"]),
    (
        "the_page_on_the_papers_is_that_of_the_committed_values",
        &["papers page --check"],
    ),
];

pub(crate) fn tests() -> Vec<Trial> {
    let missing = support::required(python().exists(), "python/install has not been run");
    let test = |(name, modules): (&str, &'static [&str])| {
        support::test(&format!("python::{name}"), &missing, move || {
            for line in modules {
                succeeds(line);
            }
        })
    };
    let mut tests: Vec<_> = TESTS.into_iter().map(test).collect();
    tests.push(support::test(
        "python::the_block_of_the_tutorial_runs",
        &missing,
        run_the_tutorial,
    ));
    tests
}

/// Runs the Python of the tutorial on its scenario, with fewer trials.
fn run_the_tutorial() {
    let page = fs::read_to_string(root().join("docs/tutorials/researcher.md")).expect("the tutorial");
    let block = |language: &str| {
        let (_, rest) = page.split_once(&format!("```{language}\n")).expect("a block");
        rest.split("```").next().expect("an end")
    };
    let media = Media::new();
    media.put("mine.toml", block("toml").replace("trials = 8", "trials = 2"));
    let mut command = Command::new(python());
    command
        .args(["-c", block("python")])
        .current_dir(media.root())
        .env("PLAYRATE_LAB", program("lab"));
    assert_contains(
        &output_within(LIMIT, &mut command, ""),
        &["cubic", "video", "3bdp"],
    );
}

fn python() -> PathBuf {
    root().join("target/python/bin/python")
}

/// Runs the module and arguments of `line` in the root of the checkout.
fn succeeds(line: &str) {
    let mut command = Command::new(python());
    command
        .arg("-m")
        .args(line.split(' '))
        .current_dir(root())
        .env("PLAYRATE_LAB", program("lab"))
        .env("PYTEST_ADDOPTS", "--quiet --exitfirst -p no:cacheprovider")
        .env("RAY_USAGE_STATS_ENABLED", "0");
    output_within(LIMIT, &mut command, "");
}
