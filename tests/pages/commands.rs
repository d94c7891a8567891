//! Every line in the `sh` and `console` blocks of README, tutorials and the crates' pages is run, or compared with the
//! tree if it builds the programs or needs those of others.
//!
//! The lines of a page run one after the other in a directory of its own, with this build's programs on the PATH.

use std::collections::BTreeSet;
use std::env;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::slice;
use std::time::Duration;

use playrate_test_support::{Running, ServerProcess, TITLE, program, root, text, title};
use rstest::rstest;
use serde_json::Value;

use super::claims::{README, claims};
use super::numbers::{numbers, place};
use super::{blocks, read};

/// Limit for one line, which is ample for a debug build on a busy machine.
const LIMIT: Duration = Duration::from_secs(900);

/// Programs that run as the line says.
const RUN: [&str; 4] = ["cp", "lab", "mkdir", "video-client"];

/// Programs that need more than Rust, and a file of the tree which uses them with all options of the line.
const OTHERS: [(&str, &str); 3] = [
    ("chromium", "crates/video-server/src/pages/page.js"),
    ("ffmpeg", "tests/needs/ffmpeg.rs"),
    ("tar", ".ci/run"),
];

/// Lines that take long in real time or in a debug build, and arguments that shorten them outside the README.
const SHORTER: [(&str, &str); 3] = [
    ("lab demo scenario ", "--controllers cubic --trials 2"),
    (" demo", "--rate 40Mbit/s --rtt 20ms"),
    ("--over ", "--trials 1"),
];

/// Beginnings of output lines whose rest differs between runs.
const MEASURED: [&str; 4] = ["Pin ", "start-up delay ", "server: ", "client: "];

/// A page with its commands' directory and output so far.
struct Session {
    page: &'static str,
    directory: tempfile::TempDir,
    printed: String,
    /// The lines that were run to their end.
    ran: String,
}

/// The commands of a page and the comments behind them.
fn lines(page: &str) -> Vec<(String, String)> {
    let text = blocks(page, "sh").join("\n").replace("\\\n", " ");
    let prompts = blocks(page, "console").join("\n");
    let prompts = prompts.lines().filter_map(|line| line.strip_prefix("$ "));
    let lines = text.lines().chain(prompts);
    let split = |line: &str| {
        let (command, comment) = line.split_once(" #").unwrap_or((line, ""));
        (command.trim().to_owned(), comment.to_owned())
    };
    lines
        .map(split)
        .filter(|(command, _)| !command.is_empty())
        .collect()
}

/// A `cargo` command before ` -- `, its arguments behind that, and the package that it is about.
struct CargoLine<'a> {
    words: Vec<&'a str>,
    arguments: &'a str,
    packages: Vec<Value>,
}

impl<'a> CargoLine<'a> {
    fn new(line: &'a str) -> Self {
        let (own, arguments) = line.split_once(" -- ").unwrap_or((line, ""));
        let metadata = cargo(&["metadata", "--no-deps", "--offline", "--format-version=1"]);
        let mut metadata: Value = serde_json::from_str(&metadata).unwrap();
        Self {
            words: own.split_whitespace().collect(),
            arguments,
            packages: serde_json::from_value(metadata["packages"].take()).unwrap(),
        }
    }

    /// The word after an option.
    fn after(&self, option: &str) -> Option<&'a str> {
        let at = self.words.iter().position(|word| *word == option)?;
        self.words.get(at + 1).copied()
    }

    fn package(&self) -> &Value {
        let name = self.after("-p").unwrap_or("playrate");
        // Users have the checkout next to their own package.
        let path = self
            .after("--path")
            .map(|path| path.trim_start_matches("../playrate").trim_matches('/'));
        let path = path.map(|path| root().canonicalize().unwrap().join(path).join("Cargo.toml"));
        let is_it = |package: &&Value| match &path {
            Some(path) => package["manifest_path"].as_str() == path.to_str(),
            None => package["name"] == name,
        };
        self.packages
            .iter()
            .find(is_it)
            .unwrap_or_else(|| panic!("no such package: {:?}", self.words))
    }

    /// Names of the targets of some packages with a kind such as `bin`.
    fn targets<'b>(packages: &'b [Value], kind: &str) -> Vec<&'b str> {
        let targets = packages
            .iter()
            .flat_map(|package| package["targets"].as_array().unwrap());
        let named = targets.filter(|target| target["kind"][0] == kind);
        named.map(|target| target["name"].as_str().unwrap()).collect()
    }

    /// Fails unless cargo has the options of the line, and the tree the targets, features and versions that it names.
    fn check(&self) {
        let help = cargo(&[self.words[1], "-h"]);
        for option in self.words.iter().filter(|word| word.starts_with('-')) {
            assert!(
                has_word(&help, option),
                "`cargo {}` has no {option}",
                self.words[1]
            );
        }
        let package = self.package();
        for kind in ["bin", "example", "bench", "test"] {
            let name = self.after(&format!("--{kind}"));
            let known = Self::targets(&self.packages, kind);
            assert!(
                name.is_none_or(|name| known.contains(&name)),
                "no {kind}: {:?}",
                self.words
            );
        }
        for feature in self
            .after("--features")
            .into_iter()
            .flat_map(|features| features.split(','))
        {
            assert!(
                package["features"].get(feature).is_some(),
                "no feature {feature}: {:?}",
                self.words
            );
        }
        if self.words[1] == "add" {
            let (name, version) = self.words[2].split_once('@').unwrap_or((self.words[2], ""));
            let ours = package["dependencies"]
                .as_array()
                .unwrap()
                .iter()
                .find(|used| used["name"] == name);
            let req = ours.map_or("", |used| used["req"].as_str().unwrap());
            let is_version = version.is_empty() || format!("{req}.").starts_with(&format!("^{version}."));
            assert!(
                package["name"] == name || ours.is_some() && is_version,
                "the tree uses {name} `{req}`"
            );
        }
    }

    /// The command that runs this build's program in place of `cargo run`, which would build it.
    fn program(&self) -> String {
        let programs = program("lab").parent().unwrap().to_owned();
        let path = match self.after("--example") {
            Some(name) => {
                let path = programs.join("examples").join(name);
                if !path.exists() {
                    cargo(&["build", "--quiet", "--example", name]);
                }
                path.to_str().unwrap().to_owned()
            }
            None => Self::targets(slice::from_ref(self.package()), "bin")[0].to_owned(),
        };
        format!("{path} {}", self.arguments)
    }
}

/// The output of `cargo` in the root of the tree.
fn cargo(arguments: &[&str]) -> String {
    let made = Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        made.status.success(),
        "cargo {arguments:?}: {}",
        text(&made.stderr)
    );
    text(&made.stdout)
}

impl Session {
    fn check(&mut self, line: &str, comment: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[0] {
            "cargo" => {
                let cargo = CargoLine::new(line);
                cargo.check();
                match words[1] {
                    "run" => self.check(&cargo.program(), comment),
                    "add" | "build" | "install" | "test" => {}
                    other => panic!("no rule for `cargo {other}`: add one to {}", file!()),
                }
            }
            "video-server" if words[1] == "serve" => self.serve(&words),
            "python" | "python3" => {
                let module = words[2].replace('.', "/");
                let found = [format!("python/src/{module}.py"), format!("{module}/__main__.py")];
                let file = found.into_iter().find(|file| root().join(file).exists());
                assert_uses(&file.unwrap_or_else(|| panic!("no module: {line}")), &words[3..]);
            }
            name if RUN.contains(&name) || name.contains("/examples/") => self.run(line, comment),
            // A script of the tree that builds the programs.
            name if root().join(name).is_file() => {}
            name => {
                let other = OTHERS.iter().find(|(other, _)| *other == name);
                let (_, file) = other.unwrap_or_else(|| {
                    panic!("no rule for `{line}`: add {name} to RUN or OTHERS of {}", file!())
                });
                // A test that reads the page runs this very line.
                if !read(file).contains(self.page) {
                    assert_uses(file, &words[1..]);
                }
            }
        }
    }

    /// A program in the page's directory, with this build's programs first on its PATH.
    fn command(&self, name: &str) -> Command {
        let programs = program("lab").parent().unwrap().to_owned();
        let path = env::var_os("PATH").unwrap();
        let path = env::join_paths([programs].into_iter().chain(env::split_paths(&path)));
        let mut command = Command::new(name);
        command
            .current_dir(self.directory.path())
            .env("PATH", path.unwrap());
        command
    }

    /// Runs a line to its end, and checks that the files which its comment names are there.
    fn run(&mut self, line: &str, comment: &str) {
        let shorter = SHORTER
            .iter()
            .find(|(part, _)| self.page != README && line.contains(part));
        let line = format!("{line} {}", shorter.map_or("", |(_, more)| more));
        let out = tempfile::NamedTempFile::new().unwrap();
        let to_file = || Stdio::from(File::options().append(true).open(out.path()).unwrap());
        let mut bash = self.command("bash");
        bash.args(["-euc", &line]);
        // `lab relay` runs until its input ends.
        bash.stdin(Stdio::null()).stdout(to_file()).stderr(to_file());
        let status = Running(bash.spawn().unwrap()).wait(LIMIT);
        let printed = fs::read_to_string(out.path()).unwrap();
        let code = status.and_then(|status| status.code());
        // On a busy machine the demo gives no verdict and exits with 1.
        let has_no_verdict = printed.contains("No verdict") || printed.contains("do NOT agree");
        let is_fine = code == Some(0) || code == Some(1) && has_no_verdict;
        assert!(is_fine, "{}: `{line}` ended with {code:?}:\n{printed}", self.page);
        let words = comment.split(|c: char| c.is_whitespace() || c == ':' || c == ',');
        for file in words.filter(|word| word.contains('/') && word.contains('.')) {
            assert!(
                self.directory.path().join(file).exists(),
                "`{line}` wrote no {file}"
            );
        }
        let found = numbers(&printed);
        let own = claims().filter(|[page, _, source, _]| {
            *page == self.page && source.starts_with('`') && line.trim().starts_with(source.trim_matches('`'))
        });
        for number in own.flat_map(|[_, words, ..]| numbers(words)) {
            assert!(
                found.iter().any(|exact| number.is_printed(exact)),
                "the page says `{}`, but `{line}` prints\n{printed}",
                number.text
            );
        }
        self.printed += &printed;
        self.ran += &line;
    }

    /// Starts a server as the line says, except for its ports, and plays its title if the page has a report of it.
    fn serve(&mut self, words: &[&str]) {
        let at = words.iter().position(|word| *word == "--media").unwrap();
        let arguments = [&words[2..at], &words[at + 2..]].concat();
        let arguments: Vec<_> = arguments.iter().map(|word| word.replace(":9433", ":0")).collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let media = self.directory.path().join(words[at + 1]);
        if fs::read_dir(&media).unwrap().next().is_none() {
            fs::copy(title(), media.join(TITLE)).unwrap();
        }
        let command = self.command("video-server");
        let server = ServerProcess::start(command, "[::]:0", Path::new(words[at + 1]), &arguments);
        let mut announced = server
            .announcement()
            .replace(&format!(":{}", server.address().port()), ":4433");
        if arguments.contains(&"--metrics") {
            announced = announced.replace(server.announced("Metrics"), "http://127.0.0.1:9433/");
        }
        self.printed += &announced;
        if read(self.page).contains("\noutcome ") {
            self.run(server.announced("Watch"), "");
        }
        server.stop();
    }
}

/// Fails unless the file has each option among `words`.
fn assert_uses(file: &str, words: &[&str]) {
    let text = read(file);
    for word in words.iter().filter(|word| word.starts_with(['-', '+'])) {
        let option = word.split('=').next().unwrap();
        assert!(has_word(&text, option), "{file} does not use {option}");
    }
}

/// Returns true if `text` has `word` other than as the beginning of a longer one.
fn has_word(text: &str, word: &str) -> bool {
    let goes_on = |c: char| c.is_alphanumeric() || c == '-';
    let mut found = text.match_indices(word);
    found.any(|(at, _)| !text[at + word.len()..].starts_with(goes_on))
}

/// Fails unless each line of the page's `text` blocks is in `printed`, where `…` stands for any end of a line.
fn assert_printed(page: &str, printed: &str) {
    let printed: BTreeSet<&str> = printed.lines().map(str::trim_end).collect();
    for line in blocks(&read(page), "text").iter().flat_map(|block| block.lines()) {
        let measured = MEASURED.iter().find(|start| line.starts_with(**start)).copied();
        let start = measured.or(line.strip_suffix('…'));
        let is_same = |found: &&str| start.map_or(*found == line, |start| found.starts_with(start));
        assert!(
            printed.iter().any(is_same),
            "{}\nshould be a line that the commands print:\n{printed:#?}",
            place(page, line)
        );
    }
}

#[rstest]
#[case(README)]
#[case("docs/tutorials/embedder.md")]
#[case("docs/tutorials/operator.md")]
#[case("docs/tutorials/researcher.md")]
#[case("crates/quinn/README.md")]
fn the_commands_of_a_page_do_what_it_says(#[case] page: &'static str) {
    let directory = tempfile::tempdir().unwrap();
    symlink(root().join("assets"), directory.path().join("assets")).unwrap();
    let text = read(page);
    // "Save this as `FILE`:" and the block after it.
    for part in text.split("Save this as `").skip(1) {
        let (name, block) = (part.split('`').next().unwrap(), blocks(part, "toml")[0]);
        fs::write(directory.path().join(name), block).unwrap();
    }
    let found = lines(&text);
    assert!(!found.is_empty());
    let mut session = Session {
        page,
        directory,
        printed: String::new(),
        ran: String::new(),
    };
    for (line, comment) in found {
        for command in line.split(" && ") {
            // Shown if the test fails.
            println!("{}", place(page, command));
            session.check(command, &comment);
        }
    }
    assert_printed(page, &session.printed);
    for [_, words, source, _] in
        claims().filter(|[of, _, source, _]| *of == page && source.starts_with("`lab "))
    {
        let ran = session.ran.contains(source.trim_matches('`'));
        assert!(
            ran,
            "{}\nhas a number of {source}, which the page does not run",
            place(page, words)
        );
    }
}

#[test]
fn every_page_with_commands_is_among_the_cases() {
    let source = read(file!());
    for folder in ["docs/tutorials", "crates"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let page = if path.is_dir() {
                path.join("README.md")
            } else {
                path
            };
            let name = page.strip_prefix(root()).unwrap().to_str().unwrap();
            let is_checked = || source.contains(&format!("#[case(\"{name}\")]"));
            assert!(
                !page.exists() || lines(&read(name)).is_empty() || is_checked(),
                "add a case for {name}"
            );
        }
    }
}
