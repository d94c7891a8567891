//! The counterpart of `cwnd_ratios` with instruction counts: instructions of each controller per acknowledged packet
//! behind quinn's trait, counted by callgrind. Counts hardly depend on the machine's load, so small changes show.
//!
//! `cargo bench --bench cwnd_instructions [-- --save FILE | --against FILE]`: `--save` stores the counts, `--against`
//! compares with stored ones and exits with 1 if one grew by more than a fiftieth. Counts are specific to a compiler
//! and a target. Without valgrind it says so and measures nothing.

use std::collections::BTreeMap;
use std::fs;
use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, bail};

#[expect(dead_code, reason = "shared with benchmarks that use more of it")]
mod common;

use common::clock::PACKET;
use common::drive::{Driver, Pattern, Quinn};
use common::{estimator, subjects};

const FRAMES: u32 = 2_048;
const PATTERNS: [Pattern; 3] = [Pattern::Bursts(1), Pattern::Bursts(2), Pattern::Bursts(10)];
/// Counts repeat to a fraction of this: the handshake that yields the RTT estimator is not counted.
const TOLERANCE: f64 = 0.02;
/// Set in the process under valgrind: the controller and the pattern.
const CHILD: &str = "PLAYRATE_BENCH_SUBJECT";

/// callgrind counts only while this runs.
#[inline(never)]
fn counted_frames(driver: &mut Driver<Quinn>) {
    driver.cycles(FRAMES);
}

/// In the process under valgrind.
fn child(subject: &str) -> anyhow::Result<()> {
    let (name, pattern) = subject.split_once('|').context("no pattern")?;
    let pattern = PATTERNS
        .into_iter()
        .find(|known| known.name() == pattern)
        .context("no such pattern")?;
    let origin = Instant::now();
    let factory = subjects::quinns().into_iter().find(|(quinns, _)| *quinns == name);
    let controller = match factory {
        Some((_, factory)) => Arc::clone(&factory).build(origin, PACKET),
        None => subjects::adapted(&name.parse()?, origin),
    };
    let rtt = estimator::measured()?;
    let mut driver = Driver::new(Quinn { controller, rtt }, origin, pattern);
    counted_frames(black_box(&mut driver));
    Ok(())
}

/// Instructions per acknowledged packet.
fn count(name: &str, pattern: Pattern) -> anyhow::Result<f64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(["--collect-atstart=no", "--toggle-collect=*counted_frames*"])
        .arg(std::env::current_exe()?)
        .env(CHILD, format!("{name}|{}", pattern.name()))
        .output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let collected = text
        .lines()
        .filter_map(|line| line.split_once("Collected :"))
        .find_map(|(_, number)| number.trim().parse::<u32>().ok())
        .filter(|&count| output.status.success() && count > 0);
    match collected {
        Some(count) => Ok(f64::from(count) / f64::from(FRAMES * pattern.packets())),
        None => bail!("callgrind counted nothing for {name}: {text}"),
    }
}

fn value<'a>(arguments: &'a [String], flag: &str) -> anyhow::Result<Option<&'a String>> {
    match arguments.iter().position(|argument| argument == flag) {
        None => Ok(None),
        Some(at) => Ok(Some(
            arguments
                .get(at + 1)
                .with_context(|| format!("{flag} takes a file"))?,
        )),
    }
}

fn main() -> anyhow::Result<ExitCode> {
    if let Ok(subject) = std::env::var(CHILD) {
        child(&subject)?;
        return Ok(ExitCode::SUCCESS);
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("skipped: counting instructions needs `valgrind` on the PATH");
        return Ok(ExitCode::SUCCESS);
    }
    let arguments: Vec<String> = std::env::args().collect();
    let before: BTreeMap<String, f64> = match value(&arguments, "--against")? {
        Some(file) => serde_json::from_str(&fs::read_to_string(file).with_context(|| file.clone())?)?,
        None => BTreeMap::new(),
    };
    let ours = subjects::specs();
    let names = subjects::quinns()
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .chain(ours.iter().map(ToString::to_string))
        .collect::<Vec<_>>();
    println!("instructions per packet, by packets per ACK frame\n");
    println!("| controller | 1 | 2 | 10 |\n| --- | ---: | ---: | ---: |");
    let (mut counts, mut grown) = (BTreeMap::new(), Vec::new());
    for name in &names {
        print!("| `{name}` |");
        for pattern in PATTERNS {
            let count = count(name, pattern)?;
            let key = format!("{name} {}", pattern.name());
            print!(" {count:.1} |");
            if let Some(&before) = before
                .get(&key)
                .filter(|&&before| count > before * (1.0 + TOLERANCE))
            {
                grown.push(format!("{key}: {before:.1} -> {count:.1}"));
            }
            counts.insert(key, count);
        }
        println!();
    }
    if let Some(file) = value(&arguments, "--save")? {
        fs::write(file, serde_json::to_string_pretty(&counts)?).with_context(|| file.clone())?;
    }
    if grown.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!("\ngrew by more than {TOLERANCE}:\n{}", grown.join("\n"));
    Ok(ExitCode::FAILURE)
}
