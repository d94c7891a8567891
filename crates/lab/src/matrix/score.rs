//! Ranking of controllers: first by what viewers see, then by what it costs other traffic.
//!
//! In each scenario, or case of one, controllers are compared by, in this order:
//!
//! 1. the score ([`Row::score`]): mean over viewers and trials, in steps of 0.1 % (0.6 s of a title of ten minutes);
//! 2. if the players choose among representations, the mean bitrate, in steps of 1 % of the best;
//! 3. the share of packets lost, in steps of 0.01 %.
//!
//! Start-up delay and throughput beyond the player's needs do not count. Ties share the mean of their ranks. The
//! overall standing is the mean rank: over the cases of a scenario, then over scenarios, so that a scenario with
//! many cases counts as much as one with a single case. Ranks do not depend on how bad a path is for everybody,
//! but they do depend on which controllers take part; therefore each standing has its worst case beside it.

use std::cmp::Ordering;
use std::sync::Arc;

use super::classes::classes;
use crate::metric::Metric;
use crate::result::{BULK, ResultSet, Row, VIEWER, throughput_bps};
use crate::scenario::{Scenario, full_name};

/// Step of scores: differences below it do not decide.
pub(super) const SCORE_STEP: f64 = 0.001;

#[derive(Clone, Debug)]
pub(super) struct Matrix {
    /// Scenarios with their cases: the columns.
    pub(super) places: Vec<Place>,
    /// Controllers, best first: the rows.
    pub(super) standings: Vec<Standing>,
}

/// A scenario, or a case of one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Place {
    pub(super) scenario: String,
    /// Empty if the scenario has no cases.
    pub(super) case: String,
    pub(super) path: PathFacts,
}

/// Facts on a place's path that do not depend on the controller.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PathFacts {
    /// The path in words, and the publication that it is from.
    pub(super) about: String,
    /// Average rate of the title on the wire, of its lowest representation if there are several, in bit/s.
    pub(super) needed_bps: f64,
    /// Throughput of an ideal sender in bit/s; `None` if the link has no limit.
    pub(super) ideal_bps: Option<f64>,
    /// True if the title needs at most 0.9 of that.
    pub(super) fits: bool,
    /// Kinds of paths that it belongs to.
    pub(super) classes: Vec<&'static str>,
}

impl PathFacts {
    fn of(scenario: &Scenario) -> Self {
        Self {
            about: scenario.summary(),
            needed_bps: scenario.needed_rate(),
            ideal_bps: scenario.ideal_rate(),
            fits: scenario.fits(),
            classes: classes(scenario),
        }
    }
}

impl Place {
    pub(super) fn name(&self) -> String {
        full_name(&self.scenario, &self.case)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Standing {
    pub(super) spec: String,
    /// Short name for tables and figures.
    pub(super) name: String,
    /// One cell for each place; `None` if the controller was not run there.
    pub(super) cells: Vec<Option<MatrixCell>>,
    /// Mean rank, cases of a scenario counted as one; `None` if the controller was run nowhere.
    pub(super) mean_rank: Option<f64>,
    /// The place with the largest score beyond the best controller's there, and that difference; `None` if the
    /// controller is nowhere worse than the best.
    pub(super) worst: Option<(String, f64)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct MatrixCell {
    /// Rank among all controllers there, from 1; ties share the mean of theirs.
    pub(super) rank: f64,
    /// Number of controllers there.
    pub(super) of: usize,
    /// True if no controller is better there.
    pub(super) best: bool,
    /// Impaired share of the title by the arrival of its bytes, 0 to 1: what controllers are ranked by.
    pub(super) score: f64,
    /// Impaired share of the watching time of the scenario's own player.
    pub(super) impaired: f64,
    /// Mean bitrate in bit/s, if the players choose among representations.
    pub(super) bitrate: Option<f64>,
    pub(super) loss: f64,
    /// Share of packets that the path loses at random, whatever the sender does.
    pub(super) own_loss: f64,
    /// Mean time in the bottleneck's queue in seconds; beside other downloads the mean RTT above propagation.
    pub(super) queueing_s: Option<f64>,
    /// Mean throughput in bit/s of each download beside the viewers, while it lasted.
    pub(super) others_bps: Option<f64>,
}

impl Matrix {
    /// Ranks `controllers` (canonical specs) in each of `scenarios` of which there are results, by the trials
    /// that the scenarios ask for.
    pub(super) fn of(results: &ResultSet<'_>, controllers: &[String], scenarios: &[Arc<Scenario>]) -> Self {
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
            let rows = |spec: &String| results.rows(&scenario.name, &scenario.case, spec);
            if controllers.iter().all(|spec| rows(spec).is_empty()) {
                continue;
            }
            matrix.places.push(Place {
                scenario: scenario.name.clone(),
                case: scenario.case.clone(),
                path: PathFacts::of(scenario),
            });
            let measured = controllers.iter().map(|spec| measure(results, scenario, spec));
            let cells = ranked(measured.collect());
            for (standing, cell) in matrix.standings.iter_mut().zip(cells) {
                standing.cells.push(cell);
            }
        }
        let places = matrix.places.clone();
        let best: Vec<f64> = (0..places.len())
            .map(|place| {
                let cells = matrix.standings.iter().filter_map(|one| one.cells[place]);
                cells.map(|cell| cell.score).fold(f64::INFINITY, f64::min)
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

/// The cell of a controller, not ranked yet.
fn measure(results: &ResultSet<'_>, scenario: &Scenario, controller: &str) -> Option<MatrixCell> {
    let of = |role: &str| results.flows(scenario, controller, role);
    let (viewers, others) = (of(VIEWER), of(BULK));
    let adaptive = viewers.iter().any(|row| row.adaptive.is_some());
    let pooled = |metric: &str| Metric::find(metric)?.pooled(viewers.iter().copied());
    Some(MatrixCell {
        score: pooled("score")?,
        impaired: pooled("impaired_share")?,
        bitrate: pooled("mean_bitrate_bps").filter(|_| adaptive),
        loss: pooled("loss_ratio").unwrap_or(0.0),
        own_loss: mean(viewers.iter().filter_map(|row| own_loss(row))).unwrap_or(0.0),
        queueing_s: mean(viewers.iter().filter_map(|row| queueing(scenario, row))),
        others_bps: throughput(scenario, &others),
        ..MatrixCell::default()
    })
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    (count > 0.0).then(|| sum / count)
}

/// Share of the packets that left the bottleneck's queue and were lost at random.
fn own_loss(row: &Row) -> Option<f64> {
    let link = row.link.as_ref()?;
    let lost = link.random_losses.saturating_add(link.retry_losses) as f64;
    let left = lost + link.link_packets as f64;
    (left > 0.0).then(|| lost / left)
}

/// Mean queueing delay of a viewer's packets in seconds. The link knows the mean over all flows, so beside other
/// downloads it is what the sender measured.
fn queueing(scenario: &Scenario, row: &Row) -> Option<f64> {
    if scenario.bulk.is_none() {
        return Some(row.link.as_ref()?.mean_queue_delay_s);
    }
    let propagation = scenario.trial_path(row.key.seed).round_trip().as_secs_f64();
    Some((row.control.as_ref()?.rtt_mean_s - propagation).max(0.0))
}

/// Bits per second of downloads over the time that each was there; `None` if there were none. If the scenario says how
/// long the run lasts for them, only that time counts, and one that failed counts to the end of its stay, so that the
/// time does not depend on the viewers' controller.
fn throughput(scenario: &Scenario, rows: &[&Row]) -> Option<f64> {
    let bulk = scenario.bulk.as_ref()?;
    let Some(window) = bulk.window().map(|window| window.to_string()) else {
        return throughput_bps(rows);
    };
    let stay = bulk.flows.leaves_after;
    let stay = stay.map_or(f64::INFINITY, |stay| stay.as_secs_f64());
    let (mut bytes, mut time) = (0, 0.0);
    for row in rows {
        let counts = row.windows.iter().find(|counts| counts.window == window)?;
        bytes += counts.received_bytes;
        time += (counts.to_s - row.joined_s).clamp(0.0, stay);
    }
    (time > 0.0).then(|| bytes as f64 * 8.0 / time)
}

/// Fills in the ranks among the cells that there are.
fn ranked(mut cells: Vec<Option<MatrixCell>>) -> Vec<Option<MatrixCell>> {
    let all: Vec<MatrixCell> = cells.iter().flatten().copied().collect();
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

/// Compares two cells; the better one is less.
fn compare(one: &MatrixCell, other: &MatrixCell, highest: f64) -> Ordering {
    let steps = |value: f64, step: f64| (value / step).round();
    let by = |value: fn(&MatrixCell) -> f64, step: f64| {
        steps(value(one), step).total_cmp(&steps(value(other), step))
    };
    let bitrate = by(|cell| -cell.bitrate.unwrap_or(0.0), (highest * 0.01).max(1.0));
    by(|cell| cell.score, SCORE_STEP)
        .then(bitrate)
        .then(by(|cell| cell.loss, 0.0001))
}

/// Mean rank over scenarios of the means over their cases.
fn mean_rank(places: &[Place], cells: &[Option<MatrixCell>]) -> Option<f64> {
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

fn worst(places: &[Place], cells: &[Option<MatrixCell>], best: &[f64]) -> Option<(String, f64)> {
    let beyond = places
        .iter()
        .zip(cells)
        .zip(best)
        .filter_map(|((place, cell), best)| {
            let beyond = (*cell)?.score - best;
            (beyond > 0.0).then(|| (place.name(), beyond))
        });
    beyond.max_by(|one, other| one.1.total_cmp(&other.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Changes, open};
    use crate::sim::WindowCounts;

    fn cell(score: f64, bitrate: Option<f64>, loss: f64) -> MatrixCell {
        MatrixCell {
            score,
            bitrate,
            loss,
            ..MatrixCell::default()
        }
    }

    fn ranks(cells: Vec<Option<MatrixCell>>) -> Vec<Option<f64>> {
        ranked(cells)
            .into_iter()
            .map(|cell| cell.map(|cell| cell.rank))
            .collect()
    }

    #[test]
    fn the_score_comes_before_losses_and_ties_share_their_ranks() {
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
    fn among_players_that_do_not_stall_a_higher_bitrate_comes_before_losses() {
        let cells = vec![
            Some(cell(0.0, Some(4e6), 0.01)),
            Some(cell(0.0, Some(2e6), 0.0)),
            Some(cell(0.02, Some(5e6), 0.0)),
        ];
        assert_eq!(ranks(cells), [Some(1.0), Some(2.0), Some(3.0)]);
    }

    #[test]
    fn downloads_count_over_their_stay_in_the_time_that_does_not_depend_on_the_viewer() {
        let paths = crate::scenario::named("generated:1:96").into_iter();
        let mut paths = paths.map(|path| open(&path, &Changes::default()).unwrap().remove(0));
        let for_a_time = |path: &Scenario| {
            let bulk = path.bulk.as_ref();
            bulk.and_then(|bulk| bulk.flows.leaves_after)
                .map(|stay| stay.as_secs_f64())
        };
        let (path, stay) = paths
            .find_map(|path| for_a_time(&path).map(|stay| (path, stay)))
            .unwrap();
        let row = |joined_s: f64, received_bytes: u64| Row {
            joined_s,
            // It broke off after a second, or went on beyond the window: neither counts.
            download_s: 1.0,
            received_bytes: 1 << 40,
            windows: vec![WindowCounts {
                window: "0s..120s".into(),
                from_s: 0.0,
                to_s: 120.0,
                received_bytes,
                goodput_bps: None,
                sent_bytes: 0,
                lost_bytes: 0,
                sent_packets: 0,
                lost_packets: 0,
            }],
            ..Row::default()
        };
        // The second is there for the last 10 s of the window only.
        let (first, second) = (row(0.0, 3_000_000), row(110.0, 1_000_000));
        let mean = throughput(&path, &[&first, &second]).unwrap();
        assert!((mean - 32e6 / (stay + 10.0)).abs() < 1.0, "{mean}");
    }

    #[test]
    fn a_scenario_with_many_cases_counts_as_one() {
        let place = |scenario: &str, case: &str| Place {
            scenario: scenario.into(),
            case: case.into(),
            ..Place::default()
        };
        let places = [place("a", "1"), place("a", "2"), place("a", "3"), place("b", "")];
        let cells: Vec<Option<MatrixCell>> = [1.0, 1.0, 1.0, 5.0]
            .into_iter()
            .map(|rank| {
                Some(MatrixCell {
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
