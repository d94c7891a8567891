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

impl<'a> Planner<'a> {
    fn new(bed: &'a TestBed, stages: Stages) -> Self {
        Self {
            bed,
            stages,
            instances: Instances::default(),
            ledger: Ledger::default(),
            costs: Vec::new(),
        }
    }

    fn plan(self) -> Plan<'a> {
        Plan {
            bed: self.bed,
            costs: self.costs,
        }
    }

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

    /// Adds the steps of every unknown from one world, of which no search makes more.
    fn add_steps(&mut self, from: &World, needs: &Needs) -> Result<(), CommandError> {
        let world = from.where_fitted(&self.bed.unknowns);
        let unknowns = self.bed.unknowns.iter().enumerate();
        let beside: Vec<World> = unknowns
            .filter(|(_, unknown)| unknown.fitted)
            .flat_map(|(place, unknown)| world.beside(place, unknown))
            .collect();
        self.add("steps of one unknown", &beside, needs, Stage::Refined)?;
        if let Some(cost) = self.costs.last_mut() {
            cost.at_most = true;
        }
        Ok(())
    }
}

/// The stages of a search and their cost.
pub(super) struct Plan<'a> {
    bed: &'a TestBed,
    costs: Vec<StageCost>,
}

impl<'a> Plan<'a> {
    /// The plan of a search with this sample, of which the first `judged` worlds are run with the judged rows.
    ///
    /// # Errors
    /// If a scenario cannot be read.
    pub(super) fn of_search(
        bed: &'a TestBed,
        stages: Stages,
        sample: &[World],
        judged: usize,
    ) -> Result<Self, CommandError> {
        let (fit, all) = (Needs::of(&bed.fit), Needs::of(bed.claims()));
        let mut planner = Planner::new(bed, stages);
        let nominal = World::nominal(&bed.unknowns);
        let with_nominal: Vec<World> = std::iter::once(&nominal).chain(sample).cloned().collect();
        planner.add("random sample, fitted rows", &with_nominal, &fit, Stage::Sample)?;
        let judged = &with_nominal[..=judged];
        planner.add("random sample, judged rows", judged, &all, Stage::Sample)?;
        let leaders = &sample[..sample.len().min(stages.leaders + 1)];
        planner.add("leaders with more trials", leaders, &fit, Stage::Refined)?;
        planner.add_steps(sample.first().unwrap_or(&nominal), &fit)?;
        let shown = &with_nominal[..=stages.judged.min(sample.len())];
        planner.add("judged rows of the best", shown, &all, Stage::Refined)?;
        let last = &with_nominal[..with_nominal.len().min(2)];
        planner.add("nominal and fitted world", last, &all, Stage::Last)?;
        Ok(planner.plan())
    }

    /// The plan of a last stage with the nominal world and `found`.
    ///
    /// # Errors
    /// If a scenario cannot be read.
    pub(super) fn of_found(bed: &'a TestBed, stages: Stages, found: &World) -> Result<Self, CommandError> {
        let mut planner = Planner::new(bed, stages);
        let worlds = [World::nominal(&bed.unknowns), found.clone()];
        planner.add(
            "nominal and found world",
            &worlds,
            &Needs::of(bed.claims()),
            Stage::Last,
        )?;
        Ok(planner.plan())
    }

    /// The CPU time of all stages.
    pub(super) fn cpu(&self) -> Duration {
        self.costs.iter().map(|cost| cost.cpu).sum()
    }

    /// A CPU time in the unit that a reader plans with: seconds, minutes or hours.
    pub(super) fn in_words(cpu: Duration) -> String {
        let minutes = cpu.as_secs_f64() / 60.0;
        match minutes {
            _ if minutes < 2.0 => time(cpu),
            _ if minutes < 120.0 => format!("{minutes:.0} min"),
            _ => format!("{:.1} h", minutes / 60.0),
        }
    }

    /// The plan in words.
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "{}: {} unknowns, {} fitted parts, {} judged parts\n\n{:<28} {:>9} {:>11} {:>14}\n",
            self.bed.name,
            self.bed.unknowns.len(),
            self.bed.fit.len(),
            self.bed.judged.len(),
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
                Self::in_words(cpu)
            );
        };
        for cost in &self.costs {
            line(
                cost.name,
                grouped(cost.worlds as u64),
                cost.runs,
                cost.cpu,
                cost.at_most,
            );
        }
        let runs = self.costs.iter().map(|cost| cost.runs).sum();
        let at_most = self.costs.iter().any(|cost| cost.at_most);
        line("all", String::new(), runs, self.cpu(), at_most);
        text.push_str(
            "\nThe time on a clock is the CPU time divided by the number of runs at once (--jobs).\n",
        );
        text
    }
}
