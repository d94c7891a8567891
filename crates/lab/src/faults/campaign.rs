//! [`campaign`]: the sessions of many seeds, on all cores.

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use super::ending::Ending;
use super::invariants::{Findings, Invariant, KnownDefect, Violation, findings};
use super::plan::FaultPlan;
use super::run::{SessionRecord, run};
use crate::run::ProgressDisplay;
use crate::sim::SimError;

/// Interval of progress reports.
const TICK: Duration = Duration::from_millis(100);

/// Outcome of the session of one seed.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    pub(super) seed: u64,
    /// Names of its faults.
    pub(super) faults: Vec<&'static str>,
    pub(super) ending: Ending,
    pub(super) violations: Vec<Violation>,
    /// Defects outside of this project without which there would be more violations.
    pub(super) known: Vec<KnownDefect>,
    pub(super) wire_hash: u64,
}

/// Plays the session of `plan` and checks it. A panic is a violation.
pub(super) fn judge(plan: &FaultPlan) -> (Option<SessionRecord>, Verdict) {
    let played = catch_unwind(AssertUnwindSafe(|| {
        let record = run(plan)?;
        let found = findings(plan, &record);
        Ok::<_, SimError>((record, found))
    }));
    let (record, Findings { violations, known }) = match played {
        Ok(Ok((record, found))) => (Some(record), found),
        failed => {
            let text = match failed {
                Ok(Err(error)) => error.to_string(),
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

/// Judges `seeds` from `first` on, `threads` at once (`None` is the number of cores), and shows progress on stderr.
/// Returns the verdicts in the order of seeds: all of them, unless `stop` has become true.
pub(super) fn campaign(
    first: u64,
    seeds: u64,
    threads: Option<NonZeroUsize>,
    stop: &AtomicBool,
) -> Vec<Verdict> {
    let runs = usize::try_from(seeds).unwrap_or(usize::MAX);
    let mut display = ProgressDisplay::new(runs, seeds);
    let threads = threads.or_else(|| std::thread::available_parallelism().ok());
    let threads = threads.map_or(1, NonZeroUsize::get);
    let next = AtomicU64::new(0);
    let (sender, verdicts) = channel();
    let mut judged = Vec::new();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while !stop.load(Relaxed) {
                    let number = next.fetch_add(1, Relaxed);
                    if number >= seeds {
                        break;
                    }
                    let (_, verdict) = judge(&FaultPlan::of(first.wrapping_add(number)));
                    if sender.send(verdict).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        loop {
            match verdicts.recv_timeout(TICK) {
                Ok(verdict) => judged.push(verdict),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            display.show(judged.len(), judged.len() as u64);
        }
    });
    display.finish();
    judged.sort_by_key(|verdict| verdict.seed.wrapping_sub(first));
    judged
}
