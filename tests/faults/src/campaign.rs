//! [`campaign`]: the sessions of many seeds, on all cores.

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use indicatif::{ProgressBar, ProgressStyle};
use playrate_test_support::in_parallel;

use crate::ending::Ending;
use crate::invariants::{Findings, Invariant, KnownDefect, Violation, findings};
use crate::plan::FaultPlan;
use crate::run::{SessionRecord, run};

/// Progress on a terminal.
const PROGRESS: &str = "{bar:30} {pos} of {len} sessions, about {eta} to go";

/// Outcome of the session of one seed.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub(crate) seed: u64,
    /// Names of its faults.
    pub(crate) faults: Vec<&'static str>,
    pub(crate) ending: Ending,
    pub(crate) violations: Vec<Violation>,
    /// Defects outside this project that explain what would otherwise be violations.
    pub(crate) known: Vec<KnownDefect>,
    pub(crate) wire_hash: u64,
}

/// Plays the session of `plan` and checks it. A panic is a violation.
pub(crate) fn judge(plan: &FaultPlan) -> (Option<SessionRecord>, Verdict) {
    let played = catch_unwind(AssertUnwindSafe(|| {
        let record = run(plan)?;
        let found = findings(plan, &record);
        anyhow::Ok((record, found))
    }));
    let (record, Findings { violations, known }) = match played {
        Ok(Ok((record, found))) => (Some(record), found),
        failed => {
            let text = match failed {
                Ok(Err(error)) => format!("{error:#}"),
                _ => "the session panicked; see the message above".to_owned(),
            };
            let violation = Violation {
                invariant: Invariant::Panic,
                text,
            };
            let found = Findings {
                violations: vec![violation],
                known: Vec::new(),
            };
            (None, found)
        }
    };
    let verdict = Verdict {
        seed: plan.seed,
        faults: plan.faults.iter().map(|fault| fault.kind.name()).collect(),
        ending: record.as_ref().map_or(Ending::Unended, |record| record.ending),
        wire_hash: record.as_ref().map_or(0, |record| record.wire_hash),
        violations,
        known,
    };
    (record, verdict)
}

/// Judges `seeds` from `first` on, `threads` at a time (`None` means the number of cores), and shows progress on
/// stderr. Returns the verdicts in seed order: all of them, unless `stop` has become true.
pub(crate) fn campaign(
    first: u64,
    seeds: u64,
    threads: Option<NonZeroUsize>,
    stop: &AtomicBool,
) -> Vec<Verdict> {
    let style = ProgressStyle::with_template(PROGRESS).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(seeds).with_style(style);
    let numbers = (0..seeds).take_while(|_| !stop.load(Relaxed));
    let verdicts = in_parallel(numbers, threads, |number| {
        let (_, verdict) = judge(&FaultPlan::of(first.wrapping_add(number)));
        bar.inc(1);
        verdict
    });
    bar.finish_and_clear();
    verdicts
}
