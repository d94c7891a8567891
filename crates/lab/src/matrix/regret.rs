//! Regret: what a viewer loses because it has one controller on every path and not the best of all on each.
//!
//! Ranks say who is better and not by how much. The *oracle* of a path is the best of the controllers that were run
//! there; the regret of a controller on the path is its score less the oracle's. Only paths on which the title fits
//! count, and all of them if there are none: on the others no controller can do well.

use serde_json::{Value, json};

use super::classes::CLASSES;
use super::page::share_cell;
use super::score::{Matrix, MatrixCell, SCORE_STEP, Standing};
use crate::figure::HeatMap;
use crate::words::{percent, stacked_tables};

/// Controller whose queueing others are compared with.
const SHORT_QUEUES: &str = "vegas";
/// Controller of a viewer that competitors are used to.
const USUAL: &str = "cubic";

/// A controller over all paths on which the title fits.
#[derive(Clone, Debug, Default)]
pub(super) struct Regret {
    pub(super) controller: String,
    name: String,
    /// Number of paths that count.
    paths: usize,
    /// Number of paths that do not because some controller has no result there.
    left_out: usize,
    /// Mean of score less the oracle's.
    pub(super) mean: f64,
    /// The largest, and its path.
    pub(super) worst: Option<(f64, String)>,
    /// Share of the paths on which no score is better by more than [`SCORE_STEP`].
    first: f64,
    /// Mean over ladders of mean bitrate ÷ the oracle's.
    bitrate: Option<f64>,
    /// Mean share of packets lost, less what the path loses at random.
    pub(super) lost: f64,
    /// The same over the paths on which its viewers are not impaired.
    lost_unimpaired: Option<f64>,
    /// Mean queueing delay in seconds.
    pub(super) queueing_s: Option<f64>,
    /// Sum of queueing delays ÷ that of `vegas` on the same paths.
    queueing_of_vegas: Option<f64>,
    /// Mean over paths with competitors of their throughput ÷ that beside a `cubic` viewer.
    others: Option<f64>,
    /// The smallest, and its path.
    others_worst: Option<(f64, String)>,
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The extreme of `values` by `worse`, which returns true if the first is worse than the second.
fn worst(values: &[(f64, String)], worse: fn(f64, f64) -> bool) -> Option<(f64, String)> {
    let pick = |one: &(f64, String), other: &(f64, String)| worse(one.0, other.0);
    let found = values
        .iter()
        .reduce(|one, other| if pick(other, one) { other } else { one });
    found.cloned()
}

/// Places that count, and the number of those left out: of the places on which the title fits, or of all if there are
/// none, those where every controller has a result. A controller that has none anywhere leaves nothing out.
fn counted(matrix: &Matrix) -> (Vec<usize>, usize) {
    let all: Vec<usize> = (0..matrix.places.len()).collect();
    let fits = |&index: &usize| matrix.places[index].path.fits;
    let mut places: Vec<usize> = all.iter().copied().filter(fits).collect();
    if places.is_empty() {
        places = all;
    }
    let before = places.len();
    let compared = matrix.standings.iter();
    for one in compared.filter(|one| one.cells.iter().any(Option::is_some)) {
        places.retain(|&place| one.cells[place].is_some());
    }
    let left_out = before - places.len();
    (places, left_out)
}

/// The cell of the best controller at a place.
fn oracle(matrix: &Matrix, place: usize) -> Option<MatrixCell> {
    let cells = matrix.standings.iter().filter_map(|one| one.cells[place]);
    let mut oracle = cells
        .clone()
        .min_by(|one, other| one.rank.total_cmp(&other.rank))?;
    // Ranks are in steps; the oracle is exact.
    oracle.score = cells.map(|cell| cell.score).fold(oracle.score, f64::min);
    Some(oracle)
}

/// Score of a cell less the oracle's.
fn excess(matrix: &Matrix, place: usize, cell: MatrixCell) -> Option<f64> {
    Some(cell.score - oracle(matrix, place)?.score)
}

/// The regret of every controller, least first.
pub(super) fn of(matrix: &Matrix) -> Vec<Regret> {
    let (places, left_out) = counted(matrix);
    let reference = |spec: &str| matrix.standings.iter().find(|one| one.spec == spec);
    let mut all: Vec<Regret> = matrix
        .standings
        .iter()
        .filter_map(|standing| {
            let others = (reference(SHORT_QUEUES), reference(USUAL));
            let regret = one(matrix, &places, standing, others)?;
            Some(Regret { left_out, ..regret })
        })
        .collect();
    all.sort_by(|one, other| one.mean.total_cmp(&other.mean));
    all
}

fn one(
    matrix: &Matrix,
    places: &[usize],
    standing: &Standing,
    (vegas, usual): (Option<&Standing>, Option<&Standing>),
) -> Option<Regret> {
    let (mut excesses, mut bitrates, mut lost, mut lost_unimpaired) = (vec![], vec![], vec![], vec![]);
    let (mut queueing, mut ours, mut theirs, mut others) = (vec![], 0.0, 0.0, vec![]);
    for &place in places {
        let (Some(cell), Some(best)) = (standing.cells[place], oracle(matrix, place)) else {
            continue;
        };
        let name = matrix.places[place].name();
        excesses.push((cell.score - best.score, name.clone()));
        if let (Some(bitrate), Some(best)) = (cell.bitrate, best.bitrate.filter(|best| *best > 0.0)) {
            bitrates.push(bitrate / best);
        }
        let beyond = (cell.loss - cell.own_loss).max(0.0);
        lost.push(beyond);
        if cell.score < SCORE_STEP {
            lost_unimpaired.push(beyond);
        }
        queueing.extend(cell.queueing_s);
        let beside = |other: Option<&Standing>| other.and_then(|other| other.cells[place]);
        if let (Some(our), Some(their)) = (cell.queueing_s, beside(vegas).and_then(|cell| cell.queueing_s)) {
            ours += our;
            theirs += their;
        }
        if let (Some(our), Some(their)) = (cell.others_bps, beside(usual).and_then(|cell| cell.others_bps))
            && their > 0.0
        {
            others.push((our / their, name));
        }
    }
    let values: Vec<f64> = excesses.iter().map(|one| one.0).collect();
    let shares: Vec<f64> = others.iter().map(|one| one.0).collect();
    Some(Regret {
        controller: standing.spec.clone(),
        name: standing.name.clone(),
        paths: values.len(),
        left_out: 0,
        mean: mean(&values)?,
        worst: worst(&excesses, |one, other| one > other),
        first: values.iter().filter(|value| **value <= SCORE_STEP).count() as f64 / values.len() as f64,
        bitrate: mean(&bitrates),
        lost: mean(&lost)?,
        lost_unimpaired: mean(&lost_unimpaired),
        queueing_s: mean(&queueing),
        queueing_of_vegas: (theirs > 0.0).then(|| ours / theirs),
        others: mean(&shares),
        others_worst: worst(&others, |one, other| one < other),
    })
}

/// The table of regrets for people.
pub(super) fn text(regrets: &[Regret]) -> String {
    let head = [
        "controller",
        "regret, mean",
        "worst",
        "first or tied",
        "bitrate ÷ best",
        "lost beyond the path's",
        "same, unimpaired",
        "queueing",
        "÷ vegas",
        "others ÷ beside cubic",
    ];
    let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.2}"));
    let share = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), percent);
    let row = |one: &Regret| {
        let worst = one.worst.as_ref().filter(|worst| worst.0 > 0.0);
        vec![
            one.name.clone(),
            percent(one.mean.max(0.0)),
            worst.map_or_else(
                || "–".to_owned(),
                |(by, path)| format!("{} in {path}", percent(*by)),
            ),
            percent(one.first),
            number(one.bitrate),
            percent(one.lost),
            share(one.lost_unimpaired),
            one.queueing_s
                .map_or_else(|| "–".to_owned(), |time| format!("{:.0} ms", time * 1e3)),
            number(one.queueing_of_vegas),
            number(one.others),
        ]
    };
    let rows: Vec<_> = regrets.iter().map(row).collect();
    let tables = stacked_tables(&head.map(str::to_owned), &rows, 1, 5);
    let paths = regrets.iter().map(|one| one.paths).max().unwrap_or(0);
    let left_out = regrets.iter().map(|one| one.left_out).max().unwrap_or(0);
    let left_out = match left_out {
        0 => String::new(),
        left_out => format!("\nLeft out, as some controller has no results: {left_out} more"),
    };
    format!(
        "Regret over {paths} paths on which the title fits{left_out}\n{}",
        tables.trim_end()
    )
}

/// The regrets as JSON.
pub(super) fn json(regrets: &[Regret]) -> Vec<Value> {
    let place = |worst: &Option<(f64, String)>| {
        worst
            .as_ref()
            .map(|(value, path)| json!({ "value": value, "path": path }))
    };
    regrets
        .iter()
        .map(|one| {
            json!({
                "controller": one.controller,
                "name": one.name,
                "paths": one.paths,
                "paths_left_out": one.left_out,
                "mean": one.mean,
                "worst": place(&one.worst),
                "first_share": one.first,
                "bitrate_of_best": one.bitrate,
                "lost_beyond_own": one.lost,
                "lost_beyond_own_unimpaired": one.lost_unimpaired,
                "queueing_s": one.queueing_s,
                "queueing_of_vegas": one.queueing_of_vegas,
                "others_of_cubic": one.others,
                "others_of_cubic_worst": place(&one.others_worst),
            })
        })
        .collect()
}

/// Mean regret of each controller on each kind of path.
pub(super) fn map(matrix: &Matrix) -> HeatMap {
    let (places, _) = counted(matrix);
    let of_class = |class: Option<&str>| -> Vec<usize> {
        let belongs =
            |&&place: &&usize| class.is_none_or(|class| matrix.places[place].path.classes.contains(&class));
        places.iter().filter(belongs).copied().collect()
    };
    let columns: Vec<(String, Vec<usize>)> = [None]
        .into_iter()
        .chain(CLASSES.map(Some))
        .map(|class| (class.unwrap_or("all"), of_class(class)))
        .filter(|(_, places)| !places.is_empty())
        .map(|(class, places)| (format!("{class} ({})", places.len()), places))
        .collect();
    let order = of(matrix);
    let rows = order.iter().filter_map(|one| {
        let standing = matrix
            .standings
            .iter()
            .find(|standing| standing.spec == one.controller)?;
        let cells = columns.iter().map(|(_, places)| {
            let values = places
                .iter()
                .filter_map(|&place| excess(matrix, place, standing.cells[place]?));
            mean(&values.collect::<Vec<f64>>()).map(share_cell)
        });
        Some(cells.collect())
    });
    HeatMap {
        title: "Mean regret by kind of path".to_owned(),
        unit: "%, score beyond the best controller's; number of paths in brackets".to_owned(),
        cells: rows.collect(),
        rows: order.iter().map(|one| one.name.clone()).collect(),
        columns: columns.into_iter().map(|(name, _)| name).collect(),
        ends: ("none".to_owned(), "all".to_owned()),
        gap_after: 1,
    }
}

#[cfg(test)]
mod tests {
    use super::super::score::{PathFacts, Place};
    use super::*;

    /// Two paths on which the title fits, one of them beside competitors, and one on which it does not.
    fn matrix() -> Matrix {
        let place = |name: &str, fits, class| Place {
            scenario: name.into(),
            path: PathFacts {
                fits,
                classes: vec![class],
                ..PathFacts::default()
            },
            ..Place::default()
        };
        let cell = |rank, score, loss, queueing_s, others_bps| {
            Some(MatrixCell {
                rank,
                of: 2,
                score,
                loss,
                own_loss: 0.01,
                queueing_s: Some(queueing_s),
                others_bps,
                ..MatrixCell::default()
            })
        };
        let standing = |name: &str, cells| Standing {
            spec: name.into(),
            name: name.into(),
            cells,
            mean_rank: None,
            worst: None,
        };
        Matrix {
            places: vec![
                place("a", true, "alone"),
                place("b", true, "competitors"),
                place("c", false, "alone"),
            ],
            standings: vec![
                standing(
                    "cubic",
                    vec![
                        cell(2.0, 0.3, 0.02, 0.06, None),
                        cell(1.0, 0.0, 0.01, 0.04, Some(8e6)),
                        cell(2.0, 0.9, 0.5, 9.0, None),
                    ],
                ),
                standing(
                    "vegas",
                    vec![
                        cell(1.0, 0.1, 0.01, 0.01, None),
                        cell(2.0, 0.0005, 0.01, 0.01, Some(12e6)),
                        cell(1.0, 0.5, 0.5, 9.0, None),
                    ],
                ),
            ],
        }
    }

    #[test]
    fn regret_is_the_score_beyond_the_best_where_the_title_fits() {
        let all = of(&matrix());
        let (vegas, cubic) = (&all[0], &all[1]);
        assert_eq!((vegas.name.as_str(), cubic.name.as_str()), ("vegas", "cubic"));
        assert_eq!((cubic.paths, vegas.paths), (2, 2));
        assert!((cubic.mean - 0.1).abs() < 1e-12);
        let worst = cubic.worst.as_ref().unwrap();
        assert!((worst.0 - 0.2).abs() < 1e-12 && worst.1 == "a");
        // 0.0005 is within a step of the best.
        assert!((vegas.first - 1.0).abs() < 1e-12 && (cubic.first - 0.5).abs() < 1e-12);
    }

    #[test]
    fn means_are_over_the_paths_where_every_controller_has_a_result() {
        let mut partial = matrix();
        // Alone on `a`, cubic would regret nothing there.
        partial.standings[1].cells[0] = None;
        partial.standings.push(Standing {
            spec: "reno".into(),
            cells: vec![None; 3],
            ..partial.standings[1].clone()
        });
        let all = of(&partial);
        assert_eq!(all.len(), 2, "reno has no result anywhere");
        for one in &all {
            assert_eq!((one.paths, one.left_out), (1, 1), "{}", one.name);
        }
        let lines = text(&all);
        assert!(lines.contains("Regret over 1 paths"), "{lines}");
        assert!(
            lines.contains("\nLeft out, as some controller has no results: 1 more\n"),
            "{lines}"
        );
        assert_eq!(json(&all)[0]["paths_left_out"], 1);
        assert_eq!(map(&partial).columns, ["all (1)", "competitors (1)"]);
        let whole = of(&matrix());
        assert!(whole[0].left_out == 0 && !text(&whole).contains("Left out"));
    }

    #[test]
    fn losses_queueing_and_harm_are_beyond_the_path_over_vegas_and_over_cubic() {
        let all = of(&matrix());
        let (vegas, cubic) = (&all[0], &all[1]);
        assert!((cubic.lost - 0.005).abs() < 1e-12 && vegas.lost.abs() < 1e-12);
        assert!((cubic.lost_unimpaired.unwrap()).abs() < 1e-12);
        assert!((cubic.queueing_of_vegas.unwrap() - 5.0).abs() < 1e-9);
        assert!((vegas.others.unwrap() - 1.5).abs() < 1e-12);
        assert_eq!(vegas.others_worst.as_ref().unwrap().1, "b");
    }

    #[test]
    fn the_map_has_a_column_for_each_kind_that_some_path_is_of() {
        let map = map(&matrix());
        assert_eq!(map.columns, ["all (2)", "alone (1)", "competitors (1)"]);
        assert_eq!(map.rows, ["vegas", "cubic"]);
        assert_eq!(map.cells[1][1].as_ref().unwrap().text, "20");
        let text = text(&of(&matrix()));
        assert!(text.contains("2 paths") && text.contains("1.50"), "{text}");
    }
}
