//! Cost of each controller per acknowledged packet behind quinn's trait, as a ratio to quinn's own
//! controllers.
//!
//! All controllers are measured in turn over many rounds, in an order that changes from round to round, so that other
//! load affects all of them alike; a ratio compares two controllers within the same round.
//!
//! `cargo bench --bench cwnd_ratios [-- [--check] [--rounds N] [--packets 1|2|10|1+1]]`; `--check` fails if a
//! controller costs more than it may, `--packets` measures one pattern only.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use quinn::congestion::Controller;

#[path = "common/arguments.rs"]
mod arguments;
#[expect(dead_code, reason = "shared with benchmarks that use more of it")]
mod common;
#[path = "common/spread.rs"]
mod spread;

use arguments::value;
use common::clock::PACKET;
use common::drive::{Driver, Pattern, Quinn};
use common::{estimator, subjects};
use spread::spread;

/// ACK frames per measurement: about 200 µs, short enough that most are not interrupted.
const FRAMES: u32 = 4_000;
/// Maximum time of our controllers per packet in ns: less than `BBRv2` in other stacks (85–93), 4 % of a server's CPU
/// time.
const MOST_NS: f64 = 60.0;
/// `reno` against quinn's NewReno, which does next to nothing. The rest is the cost of two clock conversions per ACK
/// frame, telemetry and the components common to all controllers.
const MOST_RENO: f64 = 2.3;
/// `cubic` against quinn's Cubic.
const MOST_CUBIC: f64 = 1.0;

struct Subject {
    name: String,
    size: usize,
    driver: Driver<Quinn>,
    /// ns per packet, by round.
    costs: Vec<f64>,
}

fn subjects(pattern: Pattern) -> anyhow::Result<Vec<Subject>> {
    let origin = Instant::now();
    let rtt = estimator::measured()?;
    let quinns = subjects::quinns()
        .map(|(name, factory)| (name.to_owned(), Arc::clone(&factory).build(origin, PACKET)));
    let ours = subjects::specs();
    let ours = ours
        .iter()
        .map(|choice| (choice.to_string(), subjects::adapted(choice, origin)));
    let subject = |(name, controller): (String, Box<dyn Controller>)| Subject {
        name,
        size: size_of_val(&*controller),
        driver: Driver::new(Quinn { controller, rtt }, origin, pattern),
        costs: Vec::new(),
    };
    Ok(quinns.into_iter().chain(ours).map(subject).collect())
}

fn run(subjects: &mut [Subject], rounds: usize, pattern: Pattern) {
    let packets = f64::from(FRAMES * pattern.packets());
    for round in 0..rounds {
        let count = subjects.len();
        for place in 0..count {
            // Each round begins with another one, and every other round runs backwards.
            let place = if round % 2 == 0 { place } else { count - 1 - place };
            let subject = &mut subjects[(place + round) % count];
            // The first frames bring its state back into the caches.
            subject.driver.cycles(FRAMES / 10);
            let began = Instant::now();
            subject.driver.cycles(FRAMES);
            subject.costs.push(began.elapsed().as_secs_f64() * 1e9 / packets);
        }
    }
}

/// Prints the table; returns the names of those that cost too much.
fn report(subjects: &[Subject], pattern: Pattern) -> anyhow::Result<Vec<String>> {
    let costs = |name: &str| {
        let found = subjects.iter().find(|subject| subject.name == name);
        found
            .map(|subject| &subject.costs)
            .context("quinn's controllers are measured too")
    };
    let (newreno, cubic) = (costs("quinn-newreno")?, costs("quinn-cubic")?);
    println!("\n### {} packets per ACK frame\n", pattern.name());
    println!("| controller | B | ns per packet | ÷ quinn-newreno | ÷ quinn-cubic |");
    println!("| --- | ---: | ---: | ---: | ---: |");
    let mut dear = Vec::new();
    for Subject {
        name, size, costs, ..
    } in subjects
    {
        let ratio = |to: &[f64]| spread(costs.iter().zip(to).map(|(cost, by)| cost / by).collect());
        let (ns, cost) = spread(costs.clone());
        let ((to_newreno, by_newreno), (to_cubic, by_cubic)) = (ratio(newreno), ratio(cubic));
        println!("| `{name}` | {size} | {cost} | {by_newreno} | {by_cubic} |");
        // The bounds are for the usual pattern: two packets per burst and per frame.
        let too_dear = match name.as_str() {
            _ if pattern != Pattern::Bursts(2) || name.starts_with("quinn-") => false,
            "reno" => to_newreno > MOST_RENO,
            "cubic" => to_cubic > MOST_CUBIC,
            _ => ns > MOST_NS,
        };
        if too_dear {
            dear.push(name.clone());
        }
    }
    Ok(dear)
}

fn main() -> anyhow::Result<ExitCode> {
    let rounds: usize = value("--rounds")?.unwrap_or(60);
    anyhow::ensure!(rounds > 0, "--rounds takes a number of at least 1");
    let wanted: Option<String> = value("--packets")?;
    let patterns: Vec<Pattern> = Pattern::ALL
        .into_iter()
        .filter(|pattern| wanted.as_ref().is_none_or(|wanted| wanted == pattern.name()))
        .collect();
    anyhow::ensure!(!patterns.is_empty(), "--packets takes 1, 2, 10 or 1+1");
    println!("{FRAMES} frames × {rounds} rounds; median [10th percentile – 90th percentile]");
    let mut dear = Vec::new();
    for pattern in patterns {
        let mut subjects = subjects(pattern)?;
        run(&mut subjects, rounds, pattern);
        dear.extend(report(&subjects, pattern)?);
    }
    if dear.is_empty() {
        println!(
            "\nwithin bounds: reno ≤ {MOST_RENO} × quinn-newreno, cubic ≤ {MOST_CUBIC} × quinn-cubic, \
             all ≤ {MOST_NS} ns"
        );
        return Ok(ExitCode::SUCCESS);
    }
    println!("\nmore expensive than allowed: {}", dear.join(", "));
    let check = std::env::args().any(|argument| argument == "--check");
    Ok(ExitCode::from(u8::from(check)))
}
