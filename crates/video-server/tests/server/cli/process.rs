//! The program in a process of its own.

use std::path::Path;
use std::process::{Command, Output};

use playrate_test_support::{Media, ServerProcess, text};
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_video-server");

pub(crate) fn program() -> Command {
    let mut command = Command::new(PROGRAM);
    command.env_remove("RUST_LOG");
    command
}

/// Runs the program to completion.
pub(crate) fn run(arguments: &[&str]) -> Output {
    program().args(arguments).output().unwrap()
}

/// Runs the program, which must exit with 2 and print nothing on stdout. Returns its complaint.
pub(crate) fn refused(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    text(&output.stderr)
}

/// Output of `check` about a good config file.
pub(crate) fn checked(file: &str) -> String {
    let output = run(&["check", file]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    text(&output.stdout)
}

/// Fails if a field of `value` differs from that of `expected`, which may have fewer.
#[track_caller]
pub(crate) fn assert_fields(value: &Value, expected: &Value) {
    for (name, expected) in expected.as_object().unwrap() {
        assert_eq!(&value[name], expected, "{name}");
    }
}

/// Starts `serve` on a free port of 127.0.0.1 with further `arguments`, and waits until it is ready.
pub(crate) fn start(media: &Path, arguments: &[&str]) -> ServerProcess {
    start_on("127.0.0.1:0", media, arguments)
}

/// The same with an address for metrics.
pub(crate) fn start_with_metrics(media: &Media, arguments: &[&str]) -> ServerProcess {
    start(media.root(), &[&["--metrics", "127.0.0.1:0"], arguments].concat())
}

/// The same on the address and port `listen`.
pub(crate) fn start_on(listen: &str, media: &Path, arguments: &[&str]) -> ServerProcess {
    ServerProcess::start(program(), listen, media, arguments)
}

/// As [`start`], with a limit set by the shell's `ulimit`.
#[cfg(target_os = "linux")]
pub(crate) fn start_limited(limit: &str, media: &Path, arguments: &[&str]) -> ServerProcess {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit {limit} && exec \"$0\" \"$@\""), PROGRAM]);
    command.env_remove("RUST_LOG");
    ServerProcess::start(command, "127.0.0.1:0", media, arguments)
}
