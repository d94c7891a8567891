//! The Python package `playrate-lab`: its functions, two nodes of a Ray cluster, the manifest for Kubernetes, and the
//! example notebook.
//!
//! `python/install` installs what these need into `target/python`.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use libtest_mimic::Trial;

use crate::support::{self, output_within, program, root};

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
            checked(&["-m", "ruff", "check"]);
            checked(&["-m", "ruff", "format", "--check"]);
            checked(&["-m", "mypy", "src"]);
        }),
        test("python::functions_return_what_the_program_writes", || {
            pytest("test_package.py");
        }),
        test("python::two_nodes_of_ray_give_the_bytes_of_one_machine", || {
            pytest("test_ray.py");
        }),
        test(
            "python::kubernetes_reads_the_manifest_and_its_pods_give_the_bytes_of_one_machine",
            || {
                pytest("test_kubernetes.py");
            },
        ),
        test("python::the_example_notebook_runs", || pytest("test_notebook.py")),
    ]
}

fn python() -> PathBuf {
    root().join("target/python/bin/python")
}

/// Runs Python in the directory of the package; it must succeed.
fn checked(arguments: &[&str]) {
    let mut command = Command::new(python());
    command
        .args(arguments)
        .current_dir(root().join("python"))
        .env("PLAYRATE_LAB", program("lab"))
        .env("RAY_USAGE_STATS_ENABLED", "0");
    output_within(LIMIT, &mut command, "");
}

fn pytest(file: &str) {
    let file = format!("tests/{file}");
    checked(&[
        "-m",
        "pytest",
        "--quiet",
        "--exitfirst",
        "-p",
        "no:cacheprovider",
        &file,
    ]);
}
