//! What the `lab` binary says and how it exits.

use std::process::{Command, Output};

fn lab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(arguments)
        .output()
        .expect("the binary was built with the tests")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn bad_input_exits_2_and_names_the_value() {
    for (flag, value) in [
        ("--controllers", "reno,qubic"),
        ("--rate", "20"),
        ("--queue", "100B"),
        ("--out", "/dev/null/results"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("out");
        let mut arguments = vec!["demo", flag, value];
        if flag != "--out" {
            arguments.extend(["--out", out.to_str().unwrap()]);
        }
        let output = lab(&arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{flag} {value}: {said}");
        assert!(said.contains(value.trim_start_matches("reno,")), "{said}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn help_lists_what_there_is() {
    let output = lab(&["--help"]);
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{help}");
    for command in [
        "demo", "list", "show", "run", "merge", "live", "claims", "sweep", "report", "matrix",
    ] {
        assert!(help.contains(&format!("\n  {command} ")), "{help}");
    }
}
