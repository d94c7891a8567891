//! Tests the product's server and client under random faults in virtual time, and checks both.
//!
//! A seed determines a path, a title, a controller and a schedule of faults (`plan`). `run` plays the session with the
//! server's and the client's own libraries; `invariants` checks it. The tests play the first seeds, the binary any
//! number: `docs/faults.md`.

mod campaign;
mod draw;
mod ending;
mod gap;
mod invariants;
mod kind;
mod media;
mod plan;
mod run;
mod server;
mod story;
mod table;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::num::{NonZeroU64, NonZeroUsize};
use std::sync::atomic::AtomicBool;

use clap::Parser;
use playrate_units::rounded::grouped;
use serde_json::json;
use thiserror::Error;

use campaign::Verdict;
use invariants::KnownDefect;
use plan::FaultPlan;
use words::wrapped;

/// Maximum number of seeds listed individually.
const NAMED: usize = 20;

/// Play many sessions under random faults in virtual time and check the invariants of server and client
///
/// Each seed is one session of the product's server and client in virtual time. The seed decides on the path, the
/// title, the player, the controller and up to three faults: loss, outages of up to a minute, reordering,
/// duplication, corruption, a smaller MTU, a NAT that gives the client a new port or address, a server that crashes and
/// is started again, a client that vanishes or stops reading, a slow or broken disk, suspended processes.
///
/// Every session is checked: every byte is right; the session completes, or ends with an error that its faults explain;
/// no connection or task outlives its limits; the server's memory stays within its windows; after a fault has ended,
/// bytes arrive again or the session ends; both ends report the same. The exit code is 1 if one of these does not hold,
/// and 2 if the options are invalid.
///
/// The same seeds give the same output with any number of jobs. `--seed N` shows one session: its path, its faults, a
/// time line and the verdict. `RUST_LOG` sets what is logged (nothing, by default). See docs/faults.md.
#[derive(Clone, Debug, Parser)]
#[command(bin_name = "cargo run --release -p faults --", max_term_width = 80)]
pub struct FaultsArgs {
    /// Show the session of this seed with a time line
    #[arg(long, value_name = "N", conflicts_with_all = ["seeds", "from", "jobs"])]
    seed: Option<u64>,

    /// Number of sessions of the campaign
    #[arg(long, value_name = "N", default_value = "1000")]
    seeds: NonZeroU64,

    /// Seed of the first session
    #[arg(long, value_name = "S", default_value_t = 1)]
    from: u64,

    /// Number of sessions at once [default: number of cores]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// Reason why a campaign did not finish, or finished with violations.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CampaignError {
    /// The options are inconsistent.
    #[error("{0}")]
    BadInput(String),
    /// The outcome cannot be printed.
    #[error("cannot print the results: {0}")]
    Print(io::Error),
    /// The campaign was interrupted.
    #[error("stopped after {done} of {all} sessions")]
    Stopped {
        /// Number of finished sessions.
        done: usize,
        /// Number of all sessions.
        all: u64,
    },
    /// Sessions violate an invariant.
    #[error("an invariant does not hold in {}; `--seed N` shows one", listed(.seeds))]
    Violated {
        /// Seeds of these sessions.
        seeds: Vec<u64>,
    },
}

/// The number of sessions with these seeds, and the first seeds.
fn listed(seeds: &[u64]) -> String {
    let noun = if seeds.len() == 1 {
        "session: seed"
    } else {
        "sessions: seeds"
    };
    let named: Vec<_> = seeds.iter().take(NAMED).map(u64::to_string).collect();
    let more = if seeds.len() > NAMED { ", …" } else { "" };
    format!("{} {noun} {}{more}", seeds.len(), named.join(", "))
}

/// Plays the campaign, or the session of one seed, and prints the outcome to `out`. Once `stop` is true, it finishes
/// the running sessions and starts no others.
///
/// # Errors
/// If an invariant does not hold, if the campaign is stopped, or if the outcome cannot be printed.
pub fn run(args: &FaultsArgs, stop: &AtomicBool, out: &mut impl Write) -> Result<(), CampaignError> {
    if args.from.checked_add(args.seeds.get() - 1).is_none() {
        return Err(CampaignError::BadInput(format!(
            "{} seeds from {} on go beyond {}: begin with a smaller one",
            args.seeds,
            args.from,
            u64::MAX
        )));
    }
    let (verdicts, text) = match args.seed {
        Some(seed) => one(seed, args.json),
        None => many(args, stop),
    };
    out.write_all(text.as_bytes()).map_err(CampaignError::Print)?;
    let (done, all) = (verdicts.len(), args.seeds.get());
    if args.seed.is_none() && (done as u64) < all {
        return Err(CampaignError::Stopped { done, all });
    }
    let seeds: Vec<u64> = violating(&verdicts).map(|verdict| verdict.seed).collect();
    if seeds.is_empty() {
        Ok(())
    } else {
        Err(CampaignError::Violated { seeds })
    }
}

fn violating(verdicts: &[Verdict]) -> impl Iterator<Item = &Verdict> {
    verdicts.iter().filter(|verdict| !verdict.violations.is_empty())
}

/// The session of one seed: its verdict and its text.
fn one(seed: u64, as_json: bool) -> (Vec<Verdict>, String) {
    let plan = FaultPlan::of(seed);
    let (record, verdict) = campaign::judge(&plan);
    let text = if as_json {
        format!("{:#}\n", story::json(&plan, record.as_ref(), &verdict))
    } else {
        story::text(&plan, record.as_ref(), &verdict)
    };
    (vec![verdict], text)
}

/// The sessions of all seeds, or those finished before it was stopped: their verdicts and the table.
fn many(args: &FaultsArgs, stop: &AtomicBool) -> (Vec<Verdict>, String) {
    let verdicts = campaign::campaign(args.from, args.seeds.get(), args.jobs, stop);
    let text = if args.json {
        format!("{:#}\n", campaign_json(args, &verdicts))
    } else {
        campaign_text(args, &verdicts)
    };
    (verdicts, text)
}

/// A hash of everything on the wire in all sessions, in seed order.
fn hash(verdicts: &[Verdict]) -> u64 {
    verdicts.iter().fold(0, |hash, verdict| {
        (hash.rotate_left(5) ^ verdict.wire_hash).wrapping_mul(0x517c_c1b7_2722_0a95)
    })
}

fn campaign_text(args: &FaultsArgs, verdicts: &[Verdict]) -> String {
    let last = args.from + (args.seeds.get() - 1);
    let mut text = format!("Seeds {} to {last}", args.from);
    if (verdicts.len() as u64) < args.seeds.get() {
        let _ = write!(text, ", of which {} were done", verdicts.len());
    }
    text.push_str("; a session counts in the row of each of its faults.\n\n");
    text.push_str(&table::table(verdicts));
    let _ = write!(text, "\nwire hash {:016x}\n", hash(verdicts));
    for (known, seeds) in known(verdicts) {
        let (number, first) = (seeds.len() as u64, seeds.first().copied().unwrap_or_default());
        let meet = if number == 1 {
            "session meets"
        } else {
            "sessions meet"
        };
        let _ = writeln!(text, "{} {meet} {} (seed {first})", grouped(number), known.page());
    }
    let number = violating(verdicts).count();
    if number == 0 {
        text.push_str("Every invariant holds in each of them.\n");
        return text;
    }
    text.push_str("\nInvariants that do not hold:\n");
    for verdict in violating(verdicts).take(NAMED) {
        for violation in &verdict.violations {
            let mark = format!("  {:<9} ", verdict.seed);
            text.push_str(&wrapped(&mark, &violation.to_string()));
        }
    }
    if number > NAMED {
        let _ = writeln!(text, "  and those of {} more seeds", number - NAMED);
    }
    text
}

/// Known defects and the seeds of the sessions that met them.
fn known(verdicts: &[Verdict]) -> BTreeMap<KnownDefect, Vec<u64>> {
    let mut known: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for verdict in verdicts {
        for defect in &verdict.known {
            known.entry(*defect).or_default().push(verdict.seed);
        }
    }
    known
}

fn campaign_json(args: &FaultsArgs, verdicts: &[Verdict]) -> serde_json::Value {
    let known = known(verdicts);
    let known: Vec<_> = known
        .iter()
        .map(|(known, seeds)| json!({ "page": known.page(), "seeds": seeds }))
        .collect();
    let violations: Vec<_> = violating(verdicts).flat_map(story::violations_json).collect();
    json!({
        "from": args.from,
        "seeds": args.seeds.get(),
        "done": verdicts.len(),
        "faults": table::json(verdicts),
        "wire_hash": format!("{:016x}", hash(verdicts)),
        "known": known,
        "violations": violations,
    })
}
