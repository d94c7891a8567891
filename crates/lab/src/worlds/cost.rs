//! `lab worlds --plan`: the stages of a search and an estimate of their CPU time.

use std::fmt::Write as _;
use std::time::Duration;

use super::TestBed;
use super::runs::{Instances, Ledger, Needs, WorldRun};
use super::stages::{Stage, Stages};
use super::unknown::World;
use crate::error::CommandError;
use crate::run::Job;
use crate::words::{grouped, time};

/// Bytes received for each second of CPU time in runs of one flow, as measured in whole searches on two busy cores.
const ALONE_BYTES_PER_SECOND: u64 = 180_000_000;
/// The same in runs of several flows.
const SHARED_BYTES_PER_SECOND: u64 = 400_000_000;

/// Runs of a stage.
struct StageCost {
    name: &'static str,
    worlds: usize,
    runs: usize,
    cpu: Duration,
    /// True if the search may need fewer.
    at_most: bool,
}

/// Estimate of the CPU time of a run.
fn cpu_time(job: &Job) -> Duration {
    let rate = if job.scenario.flows() > 1 {
        SHARED_BYTES_PER_SECOND
    } else {
        ALONE_BYTES_PER_SECOND
    };
    Duration::from_secs_f64(job.weight() as f64 / rate as f64)
}

/// Plans stages as the search does, with worlds of the sample in place of those that it will choose.
struct Planner<'a> {
    bed: &'a TestBed,
    stages: Stages,
    instances: Instances,
    ledger: Ledger,
    costs: Vec<StageCost>,
}

impl Planner<'_> {
    fn add(
        &mut self,
        name: &'static str,
        worlds: &[World],
        needs: &Needs,
        stage: Stage,
    ) -> Result<(), CommandError> {
        let mut cost = StageCost {
            name,
            worlds: worlds.len(),
            runs: 0,
            cpu: Duration::ZERO,
            at_most: false,
        };
        for world in worlds {
            let runs = self
                .instances
                .runs(self.bed, world, needs, self.stages.length(stage))?;
            self.count(&mut cost, &runs);
        }
        self.costs.push(cost);
        Ok(())
    }

    fn count(&mut self, cost: &mut StageCost, runs: &[WorldRun]) {
        for job in self.ledger.fresh(runs) {
            cost.runs += 1;
            cost.cpu += cpu_time(job);
        }
    }

    /// One pass of steps from each climber, as often as there may be passes.
    fn add_steps(&mut self, sample: &[World], needs: &Needs) -> Result<(), CommandError> {
        let beside = sample.iter().take(self.stages.climbers).flat_map(|world| {
            let world = world.where_fitted(&self.bed.unknowns);
            let unknowns = self
                .bed
                .unknowns
                .iter()
                .enumerate()
                .filter(|(_, unknown)| unknown.fitted);
            unknowns
                .flat_map(move |(place, unknown)| world.beside(place, unknown))
                .collect::<Vec<_>>()
        });
        let beside: Vec<World> = beside.collect();
        self.add("steps of one unknown", &beside, needs, Stage::Refined)?;
        if let Some(cost) = self.costs.last_mut() {
            let passes = self.stages.passes;
            cost.worlds *= passes as usize;
            cost.runs *= passes as usize;
            cost.cpu *= passes;
            cost.at_most = true;
        }
        Ok(())
    }
}

/// The plan in words.
///
/// # Errors
/// If a scenario cannot be read.
pub(super) fn plan(
    bed: &TestBed,
    stages: Stages,
    sample: &[World],
    judged: usize,
) -> Result<String, CommandError> {
    let (fit, all) = (Needs::of(&bed.fit), Needs::of(bed.claims()));
    let nominal = World::nominal(&bed.unknowns);
    let mut planner = Planner {
        bed,
        stages,
        instances: Instances::default(),
        ledger: Ledger::default(),
        costs: Vec::new(),
    };
    let with_nominal: Vec<World> = std::iter::once(&nominal).chain(sample).cloned().collect();
    planner.add("random sample, fitted rows", &with_nominal, &fit, Stage::Sample)?;
    planner.add(
        "random sample, judged rows",
        &with_nominal[..=judged],
        &all,
        Stage::Sample,
    )?;
    let first = |number: usize| &sample[..number.min(sample.len())];
    planner.add(
        "its best with more trials",
        first(stages.leaders + 1),
        &fit,
        Stage::Refined,
    )?;
    planner.add_steps(sample, &fit)?;
    let shown = &with_nominal[..=stages.judged.min(sample.len())];
    planner.add("judged rows of the best", shown, &all, Stage::Refined)?;
    planner.add(
        "nominal and fitted world",
        &with_nominal[..2.min(with_nominal.len())],
        &all,
        Stage::Last,
    )?;
    Ok(text(bed, &planner.costs))
}

/// A time in the unit that a reader plans with: seconds, minutes or hours.
fn in_words(cpu: Duration) -> String {
    let minutes = cpu.as_secs_f64() / 60.0;
    match minutes {
        _ if minutes < 2.0 => time(cpu),
        _ if minutes < 120.0 => format!("{minutes:.0} min"),
        _ => format!("{:.1} h", minutes / 60.0),
    }
}

fn text(bed: &TestBed, costs: &[StageCost]) -> String {
    let mut text = format!(
        "{}: {} unknowns, {} fitted parts, {} judged parts\n\n{:<28} {:>9} {:>11} {:>14}\n",
        bed.name,
        bed.unknowns.len(),
        bed.fit.len(),
        bed.judged.len(),
        "stage",
        "worlds",
        "runs",
        "CPU time"
    );
    let mut line = |name: &str, worlds: String, runs: usize, cpu: Duration, at_most: bool| {
        let limit = if at_most { "at most " } else { "" };
        let runs = grouped(runs as u64);
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(
            text,
            "{name:<28} {worlds:>9} {runs:>11} {limit:>8}{}",
            in_words(cpu)
        );
    };
    for cost in costs {
        line(
            cost.name,
            grouped(cost.worlds as u64),
            cost.runs,
            cost.cpu,
            cost.at_most,
        );
    }
    let runs = costs.iter().map(|cost| cost.runs).sum();
    let cpu = costs.iter().map(|cost| cost.cpu).sum();
    line("all", String::new(), runs, cpu, true);
    text.push_str("\nThe time on a clock is the CPU time divided by the number of runs at once (--jobs).\n");
    text
}
