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

use anyhow::Context;

#[path = "common/arguments.rs"]
mod arguments;
#[path = "common/callgrind.rs"]
mod callgrind;
#[expect(dead_code, reason = "shared with benchmarks that use more of it")]
mod common;

use arguments::value;
use common::clock::PACKET;
use common::drive::{Driver, Pattern, Quinn};
use common::{estimator, subjects};

const FRAMES: u32 = 2_048;
const PATTERNS: [Pattern; 3] = [Pattern::Bursts(1), Pattern::Bursts(2), Pattern::Bursts(10)];
/// Counts of two runs differ by a fraction of this: the handshake that yields the RTT estimator is not counted.
const TOLERANCE: f64 = 0.02;

/// callgrind counts only while this runs.
#[inline(never)]
fn counted_frames(driver: &mut Driver<Quinn>) {
    driver.cycles(FRAMES);
}

/// Runs `subject`, a controller and a pattern, in the process under valgrind.
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
    let options = ["--collect-atstart=no", "--toggle-collect=*counted_frames*"];
    let (_, count) = callgrind::count(&format!("{name}|{}", pattern.name()), &options)?;
    Ok(count / f64::from(FRAMES * pattern.packets()))
}

fn main() -> anyhow::Result<ExitCode> {
    if let Ok(subject) = std::env::var(callgrind::SUBJECT) {
        child(&subject)?;
        return Ok(ExitCode::SUCCESS);
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("skipped: counting instructions needs `valgrind` on the PATH");
        return Ok(ExitCode::SUCCESS);
    }
    let before: BTreeMap<String, f64> = match value::<String>("--against")? {
        Some(file) => serde_json::from_str(&fs::read_to_string(&file).context(file)?)?,
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
    if let Some(file) = value::<String>("--save")? {
        fs::write(&file, serde_json::to_string_pretty(&counts)?).context(file)?;
    }
    if grown.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!("\ngrew by more than {TOLERANCE}:\n{}", grown.join("\n"));
    Ok(ExitCode::FAILURE)
}
