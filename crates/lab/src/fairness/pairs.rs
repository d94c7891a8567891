//! [`Pairs`]: the numbers of every pair of controllers.

use std::sync::Arc;

use playrate_units::{Bitrate, duration};

use super::{Demand, FairnessArgs};
use crate::metric::Metric;
use crate::result::{BULK, ResultSet, VIEWER, throughput_bps};
use crate::scenario::Scenario;

/// One viewer beside one download, mean over trials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pair {
    /// Throughputs while the viewer was there, in bit/s.
    pub(super) viewer_bps: f64,
    pub(super) download_bps: f64,
    /// Impaired share of the title by the arrival of its bytes, 0 to 1.
    pub(super) score: f64,
}

impl Pair {
    /// Jain's index of the two throughputs (Jain, Chiu and Hawe 1984): 1 if they are equal, 0.5 if one flow has all;
    /// `None` if both have nothing.
    pub(super) fn jain(self) -> Option<f64> {
        let (one, other) = (self.viewer_bps, self.download_bps);
        let squares = 2.0 * (one * one + other * other);
        (squares > 0.0).then(|| (one + other).powi(2) / squares)
    }
}

/// Cells by row; `None` if a pair was not run.
pub(super) type Cells = Vec<Vec<Option<Pair>>>;

/// All pairs, with the path that they share.
#[derive(Clone, Debug)]
pub(super) struct Pairs {
    pub(super) link: Bitrate,
    pub(super) rtt: String,
    pub(super) queue: String,
    pub(super) trials: u32,
    /// Canonical specs of the viewer's controllers.
    pub(super) rows: Vec<String>,
    /// Canonical specs of the download's.
    pub(super) columns: Vec<String>,
    pub(super) needy: Cells,
    pub(super) calm: Cells,
}

impl Pairs {
    /// Reads the pairs of `args` from `results`; `needy` and `calm` have a scenario for each column.
    pub(super) fn of(
        args: &FairnessArgs,
        results: &ResultSet<'_>,
        needy: &[Arc<Scenario>],
        calm: &[Arc<Scenario>],
    ) -> Self {
        let specs = |list: &[_]| list.iter().map(ToString::to_string).collect::<Vec<String>>();
        let rows: Vec<String> = specs(&args.controllers.0);
        let cells = |columns: &[Arc<Scenario>]| -> Cells {
            rows.iter()
                .map(|row| {
                    columns
                        .iter()
                        .map(|column| measure(results, column, row))
                        .collect()
                })
                .collect()
        };
        Self {
            link: args.rate,
            rtt: duration::display(args.rtt).to_string(),
            queue: args.queue.to_string(),
            trials: needy.first().map_or(0, |scenario| scenario.trials),
            columns: specs(&args.beside().0),
            needy: cells(needy),
            calm: cells(calm),
            rows,
        }
    }

    /// Rate of the title with this demand.
    pub(super) fn title(&self, demand: Demand) -> Bitrate {
        demand.title_rate(self.link)
    }

    /// Part of the link that a throughput is.
    pub(super) fn share(&self, bps: f64) -> f64 {
        bps / self.link.as_bits_per_second() as f64
    }

    /// Harm that the viewer's controller does to the download's where both want all: 1 less the download's throughput
    /// over that beside a viewer under the download's own controller. The formula is that of Ware et al. ("Beyond
    /// Jain's Fairness Index", 2019), with what a flow gets beside its own kind in place of what it gets alone. `None`
    /// if the own kind is not among the rows.
    pub(super) fn harm(&self, row: usize, column: usize) -> Option<f64> {
        let own = self.rows.iter().position(|spec| *spec == self.columns[column])?;
        let download = |row: usize| self.needy[row][column].map(|pair| pair.download_bps);
        let beside_own = download(own).filter(|bps| *bps > 0.0)?;
        Some(1.0 - download(row)? / beside_own)
    }
}

fn measure(results: &ResultSet<'_>, scenario: &Scenario, controller: &str) -> Option<Pair> {
    let of = |role: &str| results.flows(scenario, controller, role);
    let viewers = of(VIEWER);
    Some(Pair {
        viewer_bps: throughput_bps(&viewers)?,
        download_bps: throughput_bps(&of(BULK))?,
        score: Metric::find("score")?.pooled(viewers)?,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn pair(viewer: f64, download: f64, score: f64) -> Pair {
        Pair {
            viewer_bps: viewer * 1e6,
            download_bps: download * 1e6,
            score,
        }
    }

    /// `vegas` yields to `cubic`; `video` was not run under both demands.
    pub(in super::super) fn pairs() -> Pairs {
        Pairs {
            link: Bitrate::from_mbps(20),
            rtt: "50ms".into(),
            queue: "1bdp".into(),
            trials: 3,
            rows: ["cubic", "vegas", "video"].map(str::to_owned).into(),
            columns: ["cubic", "vegas", "bbr"].map(str::to_owned).into(),
            needy: vec![
                [pair(10.0, 10.0, 0.4), pair(18.0, 2.0, 0.0), pair(8.0, 12.0, 0.5)]
                    .map(Some)
                    .into(),
                [pair(2.0, 18.0, 0.9), pair(8.0, 8.0, 0.5), pair(1.0, 19.0, 1.0)]
                    .map(Some)
                    .into(),
                vec![None; 3],
            ],
            calm: vec![
                [pair(10.0, 10.0, 0.0), pair(18.0, 2.0, 0.0), pair(8.0, 12.0, 0.0)]
                    .map(Some)
                    .into(),
                [pair(3.0, 16.0, 0.25), pair(8.0, 8.0, 0.0), pair(1.0, 18.0, 0.5)]
                    .map(Some)
                    .into(),
                vec![Some(pair(4.0, 15.5, 0.0)), None, None],
            ],
        }
    }

    #[test]
    fn harm_is_measured_against_what_a_download_gets_beside_its_own_kind() {
        let pairs = pairs();
        let close = |harm: Option<f64>, expected: f64| (harm.unwrap() - expected).abs() < 1e-12;
        // Vegas is gentler to cubic than another cubic is; cubic takes three quarters of what vegas leaves vegas.
        assert!(close(pairs.harm(1, 0), -0.8) && close(pairs.harm(0, 1), 0.75));
        assert!(close(pairs.harm(0, 0), 0.0));
        assert_eq!(pairs.harm(0, 2), None);
        assert_eq!(pairs.harm(2, 0), None);
    }

    #[test]
    fn jains_index_is_one_for_equal_flows_and_half_for_one_that_has_all() {
        let jain = |one, other| pair(one, other, 0.0).jain();
        assert_eq!(jain(5.0, 5.0), Some(1.0));
        assert_eq!(jain(5.0, 0.0), Some(0.5));
        assert_eq!(jain(0.0, 0.0), None);
    }
}
