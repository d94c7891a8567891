//! The pairs as text, as JSON and as heat maps.

use std::fmt::Write as _;

use playrate_transport::ControllerChoice;
use playrate_units::Bitrate;
use serde_json::{Value, json};

use super::Demand;
use super::pairs::{Cells, Pair, Pairs};
use crate::figure::{HeatCell, HeatMap, short_name};
use crate::words::{count, rate};

const FORMAT: &str = "lab-fairness";
/// Version of the format: within one, fields are added, never renamed or removed.
const VERSION: u32 = 1;
/// Widest line of a table, unless a controller's name needs more.
const WIDTH: usize = 80;
/// Score above which a viewer counts as impaired in the figure.
const IMPAIRED: f64 = 0.01;

/// Short names of controllers, which are read as the same: the first argument without its name where that goes.
fn names(specs: &[String]) -> Vec<String> {
    let shorter = |spec: &String, name: &str| {
        let (head, arguments) = name.split_once('(')?;
        let (_, value) = arguments.split_once('=')?;
        let shorter = format!("{head}({value}");
        let read = shorter.parse::<ControllerChoice>().ok()?;
        (read.to_string() == *spec).then_some(shorter)
    };
    let names = specs.iter().map(|spec| (spec, short_name(spec)));
    names
        .map(|(spec, name)| shorter(spec, &name).unwrap_or(name))
        .collect()
}

fn percent(share: f64) -> String {
    let text = format!("{:.0}", share * 100.0);
    if text == "-0" { "0".to_owned() } else { text }
}

/// Adds a table with `cell` of each row and column, in blocks of as many columns as fit.
fn table(text: &mut String, pairs: &Pairs, title: &str, cell: impl Fn(usize, usize) -> Option<String>) {
    let (rows, columns) = (names(&pairs.rows), names(&pairs.columns));
    let size = |text: &String| text.chars().count();
    let first = rows.iter().map(size).max().unwrap_or(0);
    let columns: Vec<(Vec<String>, usize)> = columns
        .into_iter()
        .enumerate()
        .map(|(column, name)| {
            let cells = (0..rows.len()).map(|row| cell(row, column).unwrap_or_else(|| "–".to_owned()));
            let cells: Vec<String> = [name].into_iter().chain(cells).collect();
            let width = cells.iter().map(size).max().unwrap_or(0) + 2;
            (cells, width)
        })
        .collect();
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(text, "\n{title}");
    let mut rest = columns.as_slice();
    while !rest.is_empty() {
        let mut used = first;
        let fitting = rest.iter().take_while(|(_, width)| {
            used += width;
            used <= WIDTH
        });
        let (block, others) = rest.split_at(fitting.count().max(1));
        rest = others;
        for line in 0..=rows.len() {
            let name = line.checked_sub(1).map_or("", |row| rows[row].as_str());
            let _ = write!(text, "{name:first$}");
            for (cells, width) in block {
                let _ = write!(text, "{:>width$}", cells[line]);
            }
            text.push('\n');
        }
    }
}

/// The tables, within 80 columns.
pub(super) fn text(pairs: &Pairs) -> String {
    let (needy, calm) = (pairs.title(Demand::Needy), pairs.title(Demand::Calm));
    let mut text = format!(
        "A viewer (rows) beside one endless download (columns)\n{}, {}, queue {}, {} of each pair\n",
        rate(pairs.link),
        pairs.rtt,
        pairs.queue,
        count(pairs.trials.into(), "trial", "trials"),
    );
    let of = |cells: &Cells, row: usize, column: usize, show: &dyn Fn(Pair) -> Option<String>| {
        cells[row][column].and_then(show)
    };
    let both = |pair: Pair| {
        let (one, other) = (pairs.share(pair.viewer_bps), pairs.share(pair.download_bps));
        Some(format!("{}/{}", percent(one), percent(other)))
    };
    let title = |title: Bitrate, shows: &str| format!("Title of {}: {shows}", rate(title));
    table(
        &mut text,
        pairs,
        &title(needy, "both want all. Viewer/download, % of the link"),
        |row, column| of(&pairs.needy, row, column, &both),
    );
    table(
        &mut text,
        pairs,
        "Jain's index of the two: 1 is equal",
        |row, column| {
            of(&pairs.needy, row, column, &|pair| {
                Some(format!("{:.2}", pair.jain()?))
            })
        },
    );
    table(
        &mut text,
        pairs,
        "Harm, %: 1 - the download's throughput over that beside its own kind",
        |row, column| pairs.harm(row, column).map(percent),
    );
    table(
        &mut text,
        pairs,
        &title(calm, "the download should get more than half. % of the link"),
        |row, column| of(&pairs.calm, row, column, &both),
    );
    table(
        &mut text,
        pairs,
        "The viewer's score, %: 0 is not impaired",
        |row, column| {
            of(&pairs.calm, row, column, &|pair| {
                Some(format!("{:.1}", pair.score * 100.0))
            })
        },
    );
    text.push('\n');
    text
}

/// All numbers, with a line break at the end.
pub(super) fn json(pairs: &Pairs) -> String {
    let numbers = |pair: Pair| {
        json!({
            "viewer_bps": pair.viewer_bps.round(),
            "download_bps": pair.download_bps.round(),
            "viewer_share": pairs.share(pair.viewer_bps),
            "download_share": pairs.share(pair.download_bps),
            "jain": pair.jain(),
            "score": pair.score,
        })
    };
    let of_pair = |row: usize, column: usize| {
        json!({
            "controller": pairs.rows[row],
            "beside": pairs.columns[column],
            "needy": pairs.needy[row][column].map(numbers),
            "calm": pairs.calm[row][column].map(numbers),
            "harm": pairs.harm(row, column),
        })
    };
    let all = (0..pairs.rows.len())
        .flat_map(|row| (0..pairs.columns.len()).map(move |column| (row, column)))
        .map(|(row, column)| of_pair(row, column));
    let whole = json!({
        "format": FORMAT,
        "version": VERSION,
        "program": env!("CARGO_PKG_VERSION"),
        "link_rate_bps": pairs.link.as_bits_per_second(),
        "rtt": pairs.rtt,
        "queue": pairs.queue,
        "trials": pairs.trials,
        "needy_title_bps": pairs.title(Demand::Needy).as_bits_per_second(),
        "calm_title_bps": pairs.title(Demand::Calm).as_bits_per_second(),
        "pairs": all.collect::<Vec<Value>>(),
    });
    format!("{whole:#}\n")
}

fn map(pairs: &Pairs, cells: &Cells, cell: impl Fn(Pair) -> HeatCell) -> HeatMap {
    let row = |row: &Vec<Option<Pair>>| row.iter().map(|pair| pair.map(&cell)).collect();
    HeatMap {
        rows: names(&pairs.rows),
        columns: names(&pairs.columns),
        cells: cells.iter().map(row).collect(),
        ..HeatMap::default()
    }
}

/// The viewer's share of the link where both want all.
pub(super) fn shares(pairs: &Pairs) -> HeatMap {
    HeatMap {
        title: "Viewer's share".to_owned(),
        unit: "% of the link where both want all; rows: viewer, columns: download".to_owned(),
        ends: ("nothing".to_owned(), "the whole link".to_owned()),
        ..map(pairs, &pairs.needy, |pair| HeatCell {
            shade: pairs.share(pair.viewer_bps),
            text: percent(pairs.share(pair.viewer_bps)),
        })
    }
}

/// The download's throughput beside a viewer that needs little.
pub(super) fn left(pairs: &Pairs) -> HeatMap {
    let leaves = 1.0 - pairs.share(pairs.title(Demand::Calm).as_bits_per_second() as f64);
    HeatMap {
        title: "Download's throughput".to_owned(),
        unit: format!(
            "Mbit/s; rows: viewer of {} (* impaired), columns: download",
            rate(pairs.title(Demand::Calm))
        ),
        ends: ("what the title leaves".to_owned(), "nothing".to_owned()),
        ..map(pairs, &pairs.calm, |pair| HeatCell {
            shade: (1.0 - pairs.share(pair.download_bps) / leaves).max(0.0),
            text: format!(
                "{:.1}{}",
                pair.download_bps / 1e6,
                if pair.score > IMPAIRED { "*" } else { "" }
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::pairs::tests::pairs;
    use super::*;
    use crate::samples::assert_has;

    #[test]
    fn the_text_has_both_shares_harm_and_the_score_within_80_columns() {
        let mut pairs = pairs();
        assert_has(&text(&pairs), "10/90|40/40|0.61|-80|25.0|–|20.0 Mbit/s|3 trials");
        pairs.columns = vec![
            "cubic".into(),
            "cubic+start=hystartpp".repeat(2),
            "reno".repeat(9),
        ];
        let text = text(&pairs);
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(WIDTH), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("vegas")).count(), 10);
    }

    #[test]
    fn names_are_as_short_as_can_be_read_back() {
        let specs = ["ccp-lb(2)", "cubic(off)", "bbr", "video(queue=2ms)"].map(|text| {
            let read: ControllerChoice = text.parse().unwrap();
            read.to_string()
        });
        assert_eq!(
            names(&specs),
            ["ccp-lb(2)", "cubic(off)", "bbr", "video(queue=2ms)"]
        );
    }

    #[test]
    fn the_json_has_every_pair_with_its_numbers() {
        let json: Value = serde_json::from_str(&json(&pairs())).unwrap();
        let all = json["pairs"].as_array().unwrap();
        assert_eq!(all.len(), 9);
        let pair = &all[3];
        assert_eq!(
            (&pair["controller"], &pair["beside"]),
            (&json!("vegas"), &json!("cubic"))
        );
        assert_eq!(pair["needy"]["download_share"], json!(0.9));
        assert_eq!(pair["calm"]["score"], json!(0.25));
        assert!(all[8]["needy"].is_null() && all[8]["harm"].is_null());
    }

    #[test]
    fn the_figures_show_the_viewers_share_and_mark_impaired_viewers() {
        let (shares, left) = (shares(&pairs()), left(&pairs()));
        let cell = |map: &HeatMap, row: usize, column: usize| map.cells[row][column].clone().unwrap();
        assert_eq!(cell(&shares, 1, 0).text, "10");
        assert!((cell(&shares, 0, 1).shade - 0.9).abs() < 1e-12);
        assert_eq!(cell(&left, 1, 0).text, "16.0*");
        assert_eq!(cell(&left, 2, 0).text, "15.5");
        assert!(
            cell(&left, 1, 0).shade.abs() < 1e-12,
            "a download with all that is left"
        );
        assert_eq!(shares.cells[2][0], None);
    }
}
