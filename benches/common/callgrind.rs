//! Counts instructions with callgrind, a tool of valgrind. Benchmarks include this file by its path.

use std::process::Command;

use anyhow::{Context as _, bail};

/// Environment variable of the process under valgrind: the subject that it runs.
pub(crate) const SUBJECT: &str = "PLAYRATE_BENCH_SUBJECT";

/// Runs `subject` in this program under callgrind with `options`. Returns its output and its number of instructions.
///
/// # Errors
/// valgrind is not installed, or the run fails.
pub(crate) fn count(subject: &str, options: &[&str]) -> anyhow::Result<(String, f64)> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(options)
        .arg(std::env::current_exe()?)
        .env(SUBJECT, subject)
        .output()
        .context("cannot run valgrind, which counts the instructions: install it")?;
    let log = String::from_utf8_lossy(&output.stderr);
    let number = |line: &str| line.split_once("Collected :")?.1.trim().parse::<f64>().ok();
    match log.lines().find_map(number) {
        Some(count) if output.status.success() && count > 0.0 => {
            Ok((String::from_utf8_lossy(&output.stdout).into_owned(), count))
        }
        _ => bail!("callgrind counted nothing for {subject}:\n{log}"),
    }
}
