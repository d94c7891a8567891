//! The report as two columns for people.

use std::time::Duration;

use askama::Template;
use playrate_units::{Bitrate, Bytes};

use super::{Estimates, Outcome, QualityReport};
use crate::cmsd::CmsdReport;

/// Lines of the report, each a label, two spaces and a value.
#[derive(Template)]
#[template(path = "report.txt", escape = "none")]
struct Lines<'a> {
    it: &'a QualityReport,
}

impl QualityReport {
    /// The report as a text of several lines, numbers rounded for reading.
    pub fn to_text(&self) -> String {
        // Writing to a String cannot fail.
        let text = Lines { it: self }.render().unwrap_or_default();
        let rows = || {
            text.lines()
                .map(|line| line.split_once("  ").unwrap_or(("", line)))
        };
        let width = rows().map(|(label, _)| label.len()).max().unwrap_or(0);
        let aligned: Vec<_> = rows()
            .map(|(label, value)| format!("{label:<width$}  {value}"))
            .collect();
        aligned.join("\n")
    }
}

fn rtt_count(report: &CmsdReport) -> usize {
    report.samples.iter().filter(|it| it.path.rtt.is_some()).count()
}

fn spread(estimates: &Estimates) -> String {
    format!(
        "{:.2} Mbit/s on average, varying by {:.0} %; 5 % {:.2}, median {:.2}, 95 % {:.2} Mbit/s",
        estimates.mean_bps / 1e6,
        estimates.variation * 100.0,
        estimates.p5_bps as f64 / 1e6,
        estimates.p50_bps as f64 / 1e6,
        estimates.p95_bps as f64 / 1e6,
    )
}

fn seconds(time: &Duration) -> String {
    if *time < Duration::from_millis(10) {
        format!("{:.1} ms", time.as_secs_f64() * 1e3)
    } else {
        format!("{:.2} s", time.as_secs_f64())
    }
}

fn mbps<'a>(rate: impl Into<Option<&'a Bitrate>>) -> String {
    rate.into().map_or("unknown".to_owned(), |rate| {
        format!("{:.2} Mbit/s", rate.as_mbps())
    })
}

fn size(bytes: u64) -> String {
    if bytes < 100_000 {
        Bytes::new(bytes).to_string()
    } else {
        format!("{:.2} MB", bytes as f64 / 1e6)
    }
}
