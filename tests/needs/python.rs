//! The Python package `playrate-lab` with two nodes of a Ray cluster, the template for Kubernetes and the example
//! notebook; and `papers`, which judges the papers.
//!
//! `python/install` installs what these need into `target/python`.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use libtest_mimic::Trial;

use crate::support::{self, output_within};
use playrate_test_support::{program, root};

const LIMIT: Duration = Duration::from_secs(150);

pub(crate) fn tests() -> Vec<Trial> {
    let python = python();
    let missing = if python.exists() {
        Ok(())
    } else {
        Err("python/install has not been run".to_owned())
    };
    let test = |name, run| support::test(name, &missing, run);
    vec![
        test("python::ruff_and_mypy_find_no_fault", || {
            let lint = [
                "-m",
                "ruff",
                "check",
                "--config",
                "python/pyproject.toml",
                "python",
                "papers",
                "docs/draw.py",
            ];
            checked(&lint);
            let format = [
                "-m",
                "ruff",
                "format",
                "--check",
                "--config",
                "python/pyproject.toml",
                "python",
                "papers",
                "docs/draw.py",
            ];
            checked(&format);
            checked(&[
                "-m",
                "mypy",
                "--config-file",
                "python/pyproject.toml",
                "python/src",
                "papers",
                "docs/draw.py",
            ]);
        }),
        test(
            "python::comparisons_scores_and_figures_are_those_of_known_rows",
            || {
                for file in ["compare", "before", "scores", "fairness", "plots"] {
                    pytest(&format!("python/tests/test_{file}.py"));
                }
            },
        ),
        test("python::functions_return_what_the_program_writes", || {
            pytest("python/tests/test_package.py");
        }),
        test("python::two_nodes_of_ray_give_the_bytes_of_one_machine", || {
            pytest("python/tests/test_ray.py");
        }),
        test(
            "python::kubernetes_reads_the_template_and_its_pods_make_the_rows_of_one_machine",
            || {
                pytest("python/tests/test_kubernetes.py");
            },
        ),
        test("python::the_example_notebook_runs", || {
            pytest("python/tests/test_notebook.py");
        }),
        test("python::papers_are_judged_by_known_rows", || {
            pytest("papers/tests");
        }),
        test(
            "python::the_page_on_the_papers_is_that_of_the_committed_values",
            || {
                checked(&["-m", "papers", "page", "--check"]);
            },
        ),
    ]
}

fn python() -> PathBuf {
    root().join("target/python/bin/python")
}

/// Runs Python in the root of the checkout; it must succeed.
fn checked(arguments: &[&str]) {
    let mut command = Command::new(python());
    command
        .args(arguments)
        .current_dir(root())
        .env("PLAYRATE_LAB", program("lab"))
        .env("RAY_USAGE_STATS_ENABLED", "0");
    output_within(LIMIT, &mut command, "");
}

fn pytest(file: &str) {
    checked(&[
        "-m",
        "pytest",
        "--quiet",
        "--exitfirst",
        "-p",
        "no:cacheprovider",
        file,
    ]);
}
