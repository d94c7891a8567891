//! How controllers are ranked: by what viewers see first, then by what it costs others.
//!
//! In a scenario or case of one, controllers are compared by, in this order:
//!
//! 1. the share of the watching time that was spoilt ([`spoilt`]): the picture stood still, or pictures were missing because they came
//!    too late. Mean over viewers and trials, in steps of 0.1 %, which is 0.6 s of a title of ten minutes;
//! 2. if the players choose among representations, the mean bitrate, in steps of 1 % of the best;
//! 3. the share of packets lost, in steps of 0.01 %.
//!
//! Start-up delay and throughput beyond what the player needs do not count. Those that come out equal share the mean of their ranks. The
//! overall standing is the mean rank: over the cases of a scenario, then over scenarios, so that a scenario with many cases counts
//! as one with a single case. Ranks do not depend on how bad a hopeless path is, but on who takes part; the worst case stands
//! beside them for that reason.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use crate::metric::Metric;
use crate::report::results::{CaseResults, Flows, Results};
use crate::run::Row;
use crate::scenario::{Scenario, full_name};

/// What came of all controllers in all scenarios.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// Scenarios with their cases.
    pub places: Vec<Place>,
    /// The controllers, best first.
    pub standings: Vec<Standing>,
}

/// A column of the matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The scenario.
    pub scenario: String,
    /// Its case; empty if it has none.
    pub case: String,
}

impl Place {
    /// Scenario and case.
    pub fn name(&self) -> String {
        full_name(&self.scenario, &self.case)
    }
}

/// A row of the matrix.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Canonical spec.
    pub spec: String,
    /// Name in tables and figures.
    pub name: String,
    /// One for each place; `None` if it was not run there.
    pub cells: Vec<Option<Cell>>,
    /// Mean rank, cases of a scenario counted as one; `None` if it was run nowhere.
    pub mean_rank: Option<f64>,
    /// The place where it spoils most beyond the best controller there, and by how much; `None` if it is nowhere worse than the best.
    pub worst: Option<(String, f64)>,
}

/// What came of one controller in one place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// Its rank there; 1 is best, equals share the mean of theirs.
    pub rank: f64,
    /// How many are ranked there.
    pub of: usize,
    /// Whether nobody is better.
    pub best: bool,
    /// Share of the watching time that was spoilt.
    pub spoilt: f64,
    /// Mean bitrate, if the players choose among representations.
    pub bitrate: Option<f64>,
    /// Share of packets lost.
    pub loss: f64,
}

/// Share of the watching time of one viewer that was spoilt, of a title with frames of this length.
///
/// Spoilt is the time in which the picture stood still, or that of the frames that were discarded or never came, whichever is more: while
/// a late frame is waited for the picture stands still, so the two are mostly the same time and not to be added up. The rest is the time of the
/// frames that were shown. For a player that waits for every frame this is the rebuffer ratio. Who failed, or saw nothing, had all of it spoilt.
pub(super) fn spoilt(row: &Row, frame: Duration) -> f64 {
    let seen = &row.seen;
    let time = |frames: u64| frames as f64 * frame.as_secs_f64();
    let shown = time(seen.frames_shown);
    if row.outcome == "failed" || shown <= 0.0 {
        return 1.0;
    }
    let lost = seen
        .frozen_s
        .max(time(seen.frames_discarded + seen.frames_missing));
    lost / (lost + shown)
}

impl Matrix {
    /// Ranks those of `controllers` (canonical specs) that there are results of, in each of `scenarios`, by as many trials as these have.
    pub fn of(results: &Results, controllers: &[String], scenarios: &[Arc<Scenario>]) -> Self {
        let mut matrix = Self {
            places: Vec::new(),
            standings: controllers
                .iter()
                .map(|spec| Standing {
                    spec: spec.clone(),
                    name: crate::figure::short_name(spec),
                    cells: Vec::new(),
                    mean_rank: None,
                    worst: None,
                })
                .collect(),
        };
        for scenario in scenarios {
            let experiment = results.experiments.iter().find(|one| one.name == scenario.name);
            let found = experiment.and_then(|one| one.cases.iter().find(|one| one.name == scenario.case));
            let Some(found) = found else { continue };
            matrix.places.push(Place {
                scenario: scenario.name.clone(),
                case: scenario.case.clone(),
            });
            let measured = controllers.iter().map(|spec| measure(scenario, found, spec));
            let cells = ranked(measured.collect());
            for (standing, cell) in matrix.standings.iter_mut().zip(cells) {
                standing.cells.push(cell);
            }
        }
        let places = matrix.places.clone();
        let best: Vec<f64> = (0..places.len())
            .map(|place| {
                let cells = matrix.standings.iter().filter_map(|one| one.cells[place]);
                cells.map(|cell| cell.spoilt).fold(f64::INFINITY, f64::min)
            })
            .collect();
        for standing in &mut matrix.standings {
            standing.mean_rank = mean_rank(&places, &standing.cells);
            standing.worst = worst(&places, &standing.cells, &best);
        }
        let key = |standing: &Standing| standing.mean_rank.unwrap_or(f64::INFINITY);
        matrix
            .standings
            .sort_by(|one, other| key(one).total_cmp(&key(other)));
        matrix
    }
}

fn measure(scenario: &Scenario, case: &CaseResults, spec: &str) -> Option<Cell> {
    let one = case.controllers.iter().find(|one| one.spec == spec)?;
    // The directory may hold more trials of some controllers than of others.
    let fits = |row: &&Row| {
        row.key.scenario_hash == scenario.hash
            && row.key.trial <= scenario.trials
            && row.role == Flows::VIEWERS.role
    };
    let viewers: Vec<&Row> = one.trials.iter().flatten().filter(fits).collect();
    let first = viewers.first()?;
    let frames = u32::try_from(first.seen.frames).unwrap_or(u32::MAX).max(1);
    let frame = scenario.title.source().title().duration() / frames;
    let adaptive = viewers.iter().any(|row| row.adaptive.is_some());
    let pooled = |metric: &str| Metric::find(metric)?.pooled(viewers.iter().copied());
    Some(Cell {
        rank: 0.0,
        of: 0,
        best: false,
        spoilt: viewers.iter().map(|row| spoilt(row, frame)).sum::<f64>() / viewers.len() as f64,
        bitrate: pooled("mean_bitrate_bps").filter(|_| adaptive),
        loss: pooled("loss_ratio").unwrap_or(0.0),
    })
}

/// Gives every cell its rank among those that there are.
fn ranked(mut cells: Vec<Option<Cell>>) -> Vec<Option<Cell>> {
    let all: Vec<Cell> = cells.iter().flatten().copied().collect();
    let highest = all.iter().filter_map(|cell| cell.bitrate).fold(0.0, f64::max);
    for cell in cells.iter_mut().flatten() {
        let count = |wanted: Ordering| {
            let same = all.iter().filter(|other| compare(other, cell, highest) == wanted);
            same.count() as f64
        };
        let (better, equal) = (count(Ordering::Less), count(Ordering::Equal));
        cell.rank = better + f64::midpoint(equal, 1.0);
        cell.of = all.len();
        cell.best = better < 1.0;
    }
    cells
}

/// Which of two is better; better is less.
fn compare(one: &Cell, other: &Cell, highest: f64) -> Ordering {
    let steps = |value: f64, step: f64| (value / step).round();
    let by =
        |value: fn(&Cell) -> f64, step: f64| steps(value(one), step).total_cmp(&steps(value(other), step));
    let bitrate = by(|cell| -cell.bitrate.unwrap_or(0.0), (highest * 0.01).max(1.0));
    by(|cell| cell.spoilt, 0.001)
        .then(bitrate)
        .then(by(|cell| cell.loss, 0.0001))
}

/// Mean over scenarios of the mean over their cases.
fn mean_rank(places: &[Place], cells: &[Option<Cell>]) -> Option<f64> {
    let pairs: Vec<(&Place, f64)> = places
        .iter()
        .zip(cells)
        .filter_map(|(place, cell)| Some((place, (*cell)?.rank)))
        .collect();
    let scenarios = pairs.chunk_by(|one, other| one.0.scenario == other.0.scenario);
    let means: Vec<f64> = scenarios
        .map(|cases| cases.iter().map(|case| case.1).sum::<f64>() / cases.len() as f64)
        .collect();
    (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64)
}

fn worst(places: &[Place], cells: &[Option<Cell>], best: &[f64]) -> Option<(String, f64)> {
    let beyond = places
        .iter()
        .zip(cells)
        .zip(best)
        .filter_map(|((place, cell), best)| {
            let beyond = (*cell)?.spoilt - best;
            (beyond > 0.0).then(|| (place.name(), beyond))
        });
    beyond.max_by(|one, other| one.1.total_cmp(&other.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(spoilt: f64, bitrate: Option<f64>, loss: f64) -> Cell {
        Cell {
            rank: 0.0,
            of: 0,
            best: false,
            spoilt,
            bitrate,
            loss,
        }
    }

    fn row(shown: u64, discarded: u64, frozen_s: f64) -> Row {
        let mut row = crate::samples::row("reno", 1);
        row.outcome = "complete".into();
        row.seen.frames_shown = shown;
        row.seen.frames_discarded = discarded;
        row.seen.frames_missing = 0;
        row.seen.frozen_s = frozen_s;
        row
    }

    #[test]
    fn time_without_a_picture_counts_once_and_who_saw_nothing_lost_all() {
        let frame = Duration::from_millis(40);
        let share = |shown, discarded, frozen_s| spoilt(&row(shown, discarded, frozen_s), frame);
        // 75 of 100 frames, 3 s; the other second stood still too.
        assert!((share(75, 25, 1.0) - 0.25).abs() < 1e-12);
        assert!((share(75, 25, 0.0) - 0.25).abs() < 1e-12);
        // As a rebuffer ratio: 1 s of 5 s.
        assert!((share(100, 0, 1.0) - 0.2).abs() < 1e-12);
        assert!(share(100, 0, 0.0).abs() < 1e-12);
        assert!((share(0, 0, 0.0) - 1.0).abs() < 1e-12);
        let failed = Row {
            outcome: "failed".into(),
            ..row(100, 0, 0.0)
        };
        assert!((spoilt(&failed, frame) - 1.0).abs() < 1e-12);
    }

    fn ranks(cells: Vec<Option<Cell>>) -> Vec<Option<f64>> {
        ranked(cells)
            .into_iter()
            .map(|cell| cell.map(|cell| cell.rank))
            .collect()
    }

    #[test]
    fn what_viewers_see_comes_before_losses_and_equals_share_their_ranks() {
        let cells = vec![
            Some(cell(0.2, None, 0.0)),
            Some(cell(0.0, None, 0.05)),
            None,
            Some(cell(0.0001, None, 0.01)),
            Some(cell(0.0, None, 0.010_01)),
        ];
        assert_eq!(ranks(cells), [Some(4.0), Some(3.0), None, Some(1.5), Some(1.5)]);
    }

    #[test]
    fn among_players_that_do_not_stall_a_better_picture_comes_before_losses() {
        let cells = vec![
            Some(cell(0.0, Some(4e6), 0.01)),
            Some(cell(0.0, Some(2e6), 0.0)),
            Some(cell(0.02, Some(5e6), 0.0)),
        ];
        assert_eq!(ranks(cells), [Some(1.0), Some(2.0), Some(3.0)]);
    }

    #[test]
    fn a_scenario_with_many_cases_counts_as_one() {
        let place = |scenario: &str, case: &str| Place {
            scenario: scenario.into(),
            case: case.into(),
        };
        let places = [place("a", "1"), place("a", "2"), place("a", "3"), place("b", "")];
        let cells: Vec<Option<Cell>> = [1.0, 1.0, 1.0, 5.0]
            .into_iter()
            .map(|rank| {
                Some(Cell {
                    rank,
                    ..cell(0.1, None, 0.0)
                })
            })
            .collect();
        assert_eq!(mean_rank(&places, &cells), Some(3.0));
        let worst = worst(&places, &cells, &[0.1, 0.05, 0.1, 0.08]).unwrap();
        assert!(worst.0 == "a 2" && (worst.1 - 0.05).abs() < 1e-12);
        assert_eq!(super::worst(&places, &cells, &[0.1; 4]), None);
    }
}
