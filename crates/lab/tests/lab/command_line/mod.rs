//! The `lab` binary as a user sees it: messages, exit status, files.

mod run;
mod shards;
mod shell;
mod width;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use playrate_media::assets;
use playrate_test_support::assert_contains;
use serde_json::Value;

/// An empty directory where commands run.
struct Lab {
    home: tempfile::TempDir,
}

impl Lab {
    fn new() -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
        }
    }

    /// A directory with the scenario `few.toml` containing this text.
    fn with(scenario: &str) -> Self {
        let lab = Self::new();
        lab.write("few.toml", scenario);
        lab
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// The rows of results in the directory `name`.
    fn rows(&self, name: &str) -> Vec<Value> {
        let rows = self.read(&format!("{name}/runs.jsonl"));
        rows.lines()
            .map(|row| serde_json::from_str(row).unwrap())
            .collect()
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lab"));
        command.current_dir(self.home.path()).args(line.split(' '));
        command
    }

    /// Runs the command, which must succeed. Returns its standard output.
    fn succeeds(&self, line: &str) -> String {
        let output = self.command(line).output().unwrap();
        assert!(output.status.success(), "{line}: {}", text(output.stderr));
        text(output.stdout)
    }

    /// Runs the command, which must print nothing and exit with 2. Returns its standard error.
    fn is_refused(&self, line: &str) -> String {
        let Output {
            status,
            stdout,
            stderr,
        } = self.command(line).output().unwrap();
        let said = text(stderr);
        assert_eq!(status.code(), Some(2), "{line}: {said}");
        assert_eq!(text(stdout), "", "{line}: {said}");
        said
    }

    /// Path and content of every file of a directory.
    fn tree(&self, name: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        collect(&self.path(name), Path::new(""), &mut files);
        files
    }
}

fn collect(root: &Path, inside: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(root.join(inside)).unwrap() {
        let entry = entry.unwrap();
        let name = inside.join(entry.file_name());
        if entry.path().is_dir() {
            collect(root, &name, files);
        } else {
            files.insert(name, fs::read(entry.path()).unwrap());
        }
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn bad_input_exits_2_and_names_the_value() {
    for (arguments, value) in [
        ("--out out --controllers reno,qubic", "qubic"),
        ("--out out --rate 20", "20"),
        ("--out out --queue 100B", "100B"),
        ("--out /dev/null/results", "/dev/null/results"),
    ] {
        assert_contains(&Lab::new().is_refused(&format!("demo {arguments}")), &[value]);
    }
}

#[test]
fn help_lists_what_there_is() {
    let help = Lab::new().succeeds("--help");
    for command in "demo list show run rows report title relay completions man".split(' ') {
        assert_contains(&help, &[&format!("\n  {command} ")]);
    }
}

#[test]
fn no_command_says_in_a_few_lines_what_to_do_first() {
    let mut alone = Command::new(env!("CARGO_BIN_EXE_lab"));
    let output = alone.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = text(output.stderr);
    assert!(said.lines().count() <= 12, "{said}");
    let help = Lab::new().succeeds("--help");
    assert_contains(&said, &["\n  lab demo"]);
    for line in said.lines().filter_map(|line| line.strip_prefix("  lab ")) {
        let command = line.split(' ').next().unwrap();
        assert!(
            command == "--help" || help.contains(&format!("\n  {command} ")),
            "{line}"
        );
    }
}

#[test]
fn the_embedded_title_is_written_into_a_new_directory() {
    let lab = Lab::new();
    let written = lab.succeeds("title new/films");
    assert_eq!(written, format!("new/films/{}\n", assets::TITLE_NAME));
    assert_eq!(fs::read(lab.path(written.trim())).unwrap(), assets::TITLE);
    assert_eq!(lab.succeeds("title new/films"), written);
    lab.write("taken", "");
    assert_contains(&lab.is_refused("title taken"), &["cannot write taken/"]);
}

#[test]
fn a_title_is_written_whole_or_not_at_all() {
    let lab = Lab::new();
    lab.write(assets::TITLE_NAME, "mine");
    let said = lab.is_refused("title .");
    assert_contains(&said, &[assets::TITLE_NAME, "another file has this name"]);
    assert_eq!(lab.read(assets::TITLE_NAME), "mine");
    // Files may have at most 2,000 blocks of 512 bytes, as on a disk with as much room.
    let script = "trap '' XFSZ; ulimit -f 2000; exec \"$0\" title full";
    let mut limited = Command::new("sh");
    limited
        .current_dir(lab.path(""))
        .args(["-c", script, env!("CARGO_BIN_EXE_lab")]);
    let output = limited.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_contains(&text(output.stderr), &["cannot write full/", "File too large"]);
    assert_eq!(lab.tree("full"), BTreeMap::new());
}
