//! The matrix as text, as JSON, as heat maps and as an HTML page.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, presets};
use serde_json::{Value, json};

use super::regret;
use super::score::{Matrix, MatrixCell, Standing};
use crate::figure::{HeatCell, HeatMap};
use crate::report::begin_page;
use crate::scenario::generated::{Half, number};
use crate::svg::escape;
use crate::words::{self, percent};

const FORMAT: &str = "lab-matrix";
/// Version of the format: within one, fields are added, never renamed or removed.
const VERSION: u32 = 1;

/// The rules of the ranking, for people.
const SCORE: &str = "Controllers are ranked in each scenario by the score, in steps of 0.1 %: the mean of the share \
    of time that a player waits which shows every frame, and the share of frames that come too late for players of a \
    fixed latency; for an adaptive player the stalled share. Equal ones are compared by mean \
    bitrate in steps of 1 % where players choose among representations, then by the share of packets lost in \
    steps of 0.01 %. Ties share the mean of their ranks. The overall standing is the mean rank over scenarios; \
    cases of a scenario are averaged first. Ranks do not say how much better a controller is. The worst case \
    does: the largest score beyond that of the best controller in the same place.";

fn rank_text(rank: f64) -> String {
    if (rank - rank.round()).abs() < 1e-9 {
        format!("{rank:.0}")
    } else {
        format!("{rank:.1}")
    }
}

fn mean_text(standing: &Standing) -> String {
    standing
        .mean_rank
        .map_or_else(|| "–".to_owned(), |rank| format!("{rank:.1}"))
}

fn worst_text(standing: &Standing) -> String {
    standing.worst.as_ref().map_or_else(
        || "nowhere".to_owned(),
        |(place, beyond)| format!("{} in {place}", percent(*beyond)),
    )
}

/// Mean over all places; `None` if there are none.
fn mean(standing: &Standing, value: impl Fn(&MatrixCell) -> f64) -> Option<f64> {
    let values: Vec<f64> = standing.cells.iter().flatten().map(value).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Heads of the columns after the controllers' names.
const HEADS: [&str; 6] = [
    "mean rank",
    "score, mean",
    "impaired, mean",
    "worst, beyond the best",
    "lost, mean",
    "best in",
];

fn line(standing: &Standing) -> [String; 6] {
    let share = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), percent);
    let firsts = standing.cells.iter().flatten().filter(|cell| cell.best).count();
    [
        mean_text(standing),
        share(mean(standing, |cell| cell.score)),
        share(mean(standing, |cell| cell.impaired)),
        worst_text(standing),
        share(mean(standing, |cell| cell.loss)),
        format!("{firsts} of {}", standing.cells.iter().flatten().count()),
    ]
}

pub(super) fn text(matrix: &Matrix) -> String {
    let mut table = words::table(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["", "controller"].into_iter().chain(HEADS));
    for (place, standing) in (1..).zip(&matrix.standings) {
        let place: u32 = place;
        table.add_row(
            [place.to_string(), standing.name.clone()]
                .into_iter()
                .chain(line(standing)),
        );
    }
    let names = matrix.standings.iter().map(|standing| standing.name.as_str());
    words::keep_words_whole(&mut table, 1, names);
    for column in table.column_iter_mut() {
        if column.index != 1 && column.index != 5 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let regrets = regret::of(matrix);
    format!(
        "{} scenarios and cases\n{table}\n{}\n{}\n",
        matrix.places.len(),
        worst_places(matrix),
        regret::text(&regrets)
    )
}

/// A paragraph for each place of the worst cases: the name, and the path in words.
fn worst_places(matrix: &Matrix) -> String {
    let is_worst = |name: &str| {
        let mut worst = matrix.standings.iter().flat_map(|standing| &standing.worst);
        worst.any(|(place, _)| place == name)
    };
    let named = matrix
        .places
        .iter()
        .map(|place| (place.name(), &place.path.about));
    named
        .filter(|(name, about)| is_worst(name) && !about.is_empty())
        .map(|(name, about)| words::wrapped(&format!("{name}: "), about, words::WIDTH))
        .collect()
}

/// The whole matrix, with a line break at the end.
pub(super) fn json(matrix: &Matrix) -> String {
    let standings = matrix.standings.iter().map(|standing| {
        let cells = matrix.places.iter().zip(&standing.cells);
        let cells: Vec<Value> = cells
            .filter_map(|(place, cell)| {
                let cell = (*cell)?;
                Some(json!({
                    "scenario": place.scenario,
                    "case": place.case,
                    "rank": cell.rank,
                    "of": cell.of,
                    "score": cell.score,
                    "spoilt_share": cell.impaired,
                    "mean_bitrate_bps": cell.bitrate,
                    "loss_ratio": cell.loss,
                    "own_loss_ratio": cell.own_loss,
                    "queueing_s": cell.queueing_s,
                    "others_bps": cell.others_bps,
                }))
            })
            .collect();
        json!({
            "controller": standing.spec,
            "name": standing.name,
            "mean_rank": standing.mean_rank,
            "places": cells,
        })
    });
    let paths = matrix.places.iter().map(|place| {
        json!({
            "scenario": place.scenario,
            "case": place.case,
            "about": place.path.about,
            "half": number(&place.scenario).map(|number| Half::of(number).name()),
            "needed_bps": place.path.needed_bps.round(),
            "ideal_bps": place.path.ideal_bps.map(f64::round),
            "fits": place.path.fits,
            "classes": place.path.classes,
        })
    });
    let regrets = regret::of(matrix);
    let whole = json!({
        "format": FORMAT,
        "version": VERSION,
        "program": env!("CARGO_PKG_VERSION"),
        "regret": regret::json(&regrets),
        "paths": paths.collect::<Vec<_>>(),
        "standings": standings.collect::<Vec<_>>(),
    });
    format!("{whole:#}\n")
}

/// Places in the order of a map's columns: as they are, or by their worst score, then by the mean score, if they are
/// generated paths, whose numbers mean nothing.
fn column_order(matrix: &Matrix) -> Vec<usize> {
    let mut order: Vec<usize> = (0..matrix.places.len()).collect();
    if !is_generated(matrix) {
        return order;
    }
    let key = |place: &usize| {
        let cells = matrix.standings.iter().filter_map(|one| one.cells[*place]);
        let scores = cells.map(|cell| cell.score);
        (scores.clone().fold(0.0, f64::max), scores.sum::<f64>())
    };
    order.sort_by(|one, other| {
        let (one, other) = (key(one), key(other));
        other.0.total_cmp(&one.0).then(other.1.total_cmp(&one.1))
    });
    order
}

fn is_generated(matrix: &Matrix) -> bool {
    matrix
        .places
        .iter()
        .all(|place| number(&place.scenario).is_some())
}

/// A map with a column for each place, without cells.
fn map(matrix: &Matrix, title: &str, unit: &str, ends: (&str, &str)) -> HeatMap {
    let order = column_order(matrix);
    let places = order.iter().map(|&place| matrix.places[place].name());
    let sorted = if is_generated(matrix) {
        "; paths in the order of their worst score"
    } else {
        ""
    };
    HeatMap {
        title: title.to_owned(),
        unit: format!("{unit}{sorted}"),
        rows: matrix
            .standings
            .iter()
            .map(|standing| standing.name.clone())
            .collect(),
        columns: ["overall".to_owned()].into_iter().chain(places).collect(),
        cells: Vec::new(),
        ends: (ends.0.to_owned(), ends.1.to_owned()),
        gap_after: 1,
    }
}

pub(super) fn ranks(matrix: &Matrix) -> HeatMap {
    let most = matrix.standings.len().saturating_sub(1).max(1) as f64;
    let order = column_order(matrix);
    let cells = matrix.standings.iter().map(|standing| {
        let overall = standing.mean_rank.map(|rank| HeatCell {
            shade: (rank - 1.0) / most,
            text: format!("{rank:.1}"),
        });
        let places = order.iter().map(|&place| {
            standing.cells[place].map(|cell| HeatCell {
                shade: (cell.rank - 1.0) / (cell.of.max(2) - 1) as f64,
                text: rank_text(cell.rank),
            })
        });
        [overall].into_iter().chain(places).collect()
    });
    HeatMap {
        cells: cells.collect(),
        ..map(matrix, "Ranks", "1 is best", ("best", "worst"))
    }
}

/// The cell of a share in percent.
pub(super) fn share_cell(share: f64) -> HeatCell {
    HeatCell {
        // Square root, so that none and little differ visibly beside paths that are far too slow.
        shade: share.max(0.0).sqrt(),
        text: if share < 0.000_5 {
            "0".to_owned()
        } else if share < 0.1 {
            format!("{:.1}", share * 100.0)
        } else {
            format!("{:.0}", share * 100.0)
        },
    }
}

pub(super) fn scores(matrix: &Matrix) -> HeatMap {
    let order = column_order(matrix);
    let cells = matrix.standings.iter().map(|standing| {
        let overall = mean(standing, |cell| cell.score).map(share_cell);
        let found = order.iter().map(|&place| standing.cells[place]);
        let places = found.map(|found| found.map(|found| share_cell(found.score)));
        [overall].into_iter().chain(places).collect()
    });
    HeatMap {
        cells: cells.collect(),
        ..map(matrix, "Score", "%, impaired", ("none", "all"))
    }
}

pub(super) fn html(matrix: &Matrix) -> String {
    let mut page = begin_page("playrate: controllers by scenario");
    // Writing to a String cannot fail, here and below.
    let _ = write!(
        page,
        "<header>\n<p class=\"kicker\">playrate lab</p>\n<h1>{} controllers in {} scenarios and cases</h1>\n\
         <p class=\"lead\">{SCORE}</p>\n</header>\n<div class=\"wide\"><table>\n<thead><tr><th>controller</th>",
        matrix.standings.len(),
        matrix.places.len(),
    );
    for head in HEADS {
        let _ = write!(page, "<th class=\"value\">{head}</th>");
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for standing in &matrix.standings {
        let _ = write!(
            page,
            "<tr><th scope=\"row\" title=\"{}\">{}</th>",
            escape(&standing.spec),
            escape(&standing.name)
        );
        for value in line(standing) {
            let _ = write!(page, "<td class=\"value\">{}</td>", escape(&value));
        }
        page.push_str("</tr>\n");
    }
    let _ = write!(
        page,
        "</tbody>\n</table></div>\n<figure class=\"wide\">\n{}</figure>\n<figure class=\"wide\">\n{}</figure>\n\
         <figure class=\"wide\">\n{}</figure>\n\
         {}<p class=\"note\">To add a controller: <code>lab matrix --controllers +SPEC</code>; results \
         that exist are not run again.</p>\n\
         </main>\n</body>\n</html>\n",
        ranks(matrix).svg(),
        scores(matrix).svg(),
        regret::map(matrix).svg(),
        legend(matrix)
    );
    page
}

/// A table of the columns' names and their paths in words.
fn legend(matrix: &Matrix) -> String {
    let mut table =
        "<div class=\"wide\"><table>\n<thead><tr><th>column</th><th>path</th></tr></thead>\n<tbody>\n"
            .to_owned();
    for place in &matrix.places {
        let (name, about) = (place.name(), &place.path.about);
        // Writing to a String cannot fail.
        let _ = writeln!(
            table,
            "<tr><th scope=\"row\">{}</th><td>{}</td></tr>",
            escape(&name),
            escape(about)
        );
    }
    table.push_str("</tbody>\n</table></div>\n");
    table
}

#[cfg(test)]
mod tests {
    use super::super::score::{PathFacts, Place};
    use super::*;

    fn matrix() -> Matrix {
        let cell = |rank, score| {
            Some(MatrixCell {
                rank,
                of: 2,
                best: rank < 2.0,
                score,
                bitrate: None,
                loss: 0.012,
                ..MatrixCell::default()
            })
        };
        let standing = |name: &str, cells: Vec<Option<MatrixCell>>, mean_rank, worst| Standing {
            spec: name.into(),
            name: name.into(),
            cells,
            mean_rank,
            worst,
        };
        let place = |name: &str| Place {
            scenario: name.into(),
            path: PathFacts {
                about: format!("The long way to {name} & back."),
                ..PathFacts::default()
            },
            ..Place::default()
        };
        Matrix {
            places: vec![place("p13-4"), place("<mine>")],
            standings: vec![
                standing("cubic", vec![cell(1.0, 0.34), cell(1.5, 0.0)], Some(1.25), None),
                standing(
                    "reno",
                    vec![cell(2.0, 0.41), None],
                    Some(2.0),
                    Some(("p13-4".into(), 0.07)),
                ),
            ],
        }
    }

    #[test]
    fn the_page_shows_ranks_scores_and_the_worst_case() {
        let page = html(&matrix());
        for words in [
            "cubic",
            "reno",
            "p13-4",
            "&lt;mine&gt;",
            ">1.5<",
            ">34<",
            "7.0 % in p13-4",
            "nowhere",
            "in steps of 0.1 %",
            "<td>The long way to &lt;mine&gt; &amp; back.</td>",
        ] {
            assert!(page.contains(words), "{words} is missing");
        }
        assert_eq!(page.matches("<svg").count(), 3);
        assert!(!page.contains("<mine>") && page == html(&matrix()));
    }

    #[test]
    fn generated_paths_are_columns_in_the_order_of_their_worst_score_and_others_as_they_are() {
        let mut paths = matrix();
        assert_eq!(scores(&paths).columns, ["overall", "p13-4", "<mine>"]);
        assert_eq!(ranks(&paths).unit, "1 is best");
        paths.places[0].scenario = "g001-20M-100ms".into();
        paths.places[1].scenario = "g002-5.0M-20ms".into();
        paths.standings[0].cells[1].as_mut().unwrap().score = 0.9;
        let map = scores(&paths);
        assert_eq!(map.columns, ["overall", "g002-5.0M-20ms", "g001-20M-100ms"]);
        let texts = map.cells[0].iter().flatten().map(|cell| cell.text.as_str());
        assert_eq!(texts.collect::<Vec<_>>(), ["62", "90", "34"]);
        assert!(ranks(&paths).unit.contains("worst score"));
    }

    #[test]
    fn the_text_has_a_line_for_each_controller_in_order() {
        let text = text(&matrix());
        let (cubic, reno) = (text.find("cubic").unwrap(), text.find("reno").unwrap());
        assert!(cubic < reno && text.contains("2 of 2"), "{text}");
        assert!(text.contains("\np13-4: The long way"), "{text}");
        assert!(!text.contains("<mine>: "), "no controller is worst there\n{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= words::WIDTH),
            "{text}"
        );
    }
}
