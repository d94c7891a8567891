//! The matrix as JSON.

use serde_json::{Value, json};

use super::score::Matrix;

/// Name of the format.
const FORMAT: &str = "lab-matrix";
/// Its version: within one, fields are added, never renamed or removed.
const VERSION: u32 = 1;

/// Everything that came of it, with a line break after it.
pub(super) fn text(matrix: &Matrix) -> String {
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
                    "spoilt_share": cell.spoilt,
                    "mean_bitrate_bps": cell.bitrate,
                    "loss_ratio": cell.loss,
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
    let whole = json!({
        "format": FORMAT,
        "version": VERSION,
        "program": env!("CARGO_PKG_VERSION"),
        "standings": standings.collect::<Vec<_>>(),
    });
    format!("{whole:#}\n")
}
