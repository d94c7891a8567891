//! Repeats the demo's sessions in virtual time, to check the real ones.

use std::sync::Arc;

use super::DemoRun;
use crate::error::CommandError;
use crate::live::{ControllerComparison, simulate_all};
use crate::scenario::Scenario;

/// Number of seeds. The first is the demo's own: its run is the virtual reference run. All together take a second or
/// two.
pub(super) const SEEDS: u32 = 10;

/// Runs `scenario` in virtual time with [`SEEDS`] seeds, and compares each of `runs` with its controller's virtual
/// runs.
///
/// # Errors
/// If a virtual run fails.
pub(super) async fn compare(
    scenario: &Scenario,
    runs: &[DemoRun],
) -> Result<Vec<ControllerComparison>, CommandError> {
    let mut seeds = scenario.clone();
    seeds.trials = SEEDS;
    let virtual_runs = simulate_all(&Arc::new(seeds), &Arc::default()).await?;
    let compared = runs.iter().zip(virtual_runs).map(|(run, virtual_runs)| {
        let attempts = vec![run.attempt.clone()];
        let controller = run.row.key.controller.clone();
        ControllerComparison::new(controller, attempts, vec![run.row.clone()], virtual_runs)
    });
    Ok(compared.collect())
}
