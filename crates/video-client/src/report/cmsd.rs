//! What the server said, in both forms of the report.

use std::time::Duration;

use playrate_units::Bitrate;
use serde::Serialize;

use super::dash::{Spread, spread};
use super::json::seconds;
use crate::cmsd::CmsdReport;
use crate::dash::Estimates;

/// `cmsd` of the JSON report.
#[derive(Serialize)]
pub(super) struct Cmsd {
    answers: usize,
    etp: Option<Spread>,
    rtt_min_s: Option<f64>,
    rtt_median_s: Option<f64>,
    rtt_max_s: Option<f64>,
    series: Series,
}

/// Columns, one value for each answer.
#[derive(Default, Serialize)]
struct Series {
    at_s: Vec<f64>,
    etp_bps: Vec<Option<u64>>,
    rtt_s: Vec<Option<f64>>,
    mb_bps: Vec<Option<u64>>,
}

impl Cmsd {
    /// `None` if the server said nothing.
    pub(super) fn new(report: &CmsdReport) -> Option<Self> {
        if report.answers.is_empty() {
            return None;
        }
        let mut series = Series::default();
        for told in &report.answers {
            series.at_s.push(seconds(told.at));
            series
                .etp_bps
                .push(told.throughput.map(Bitrate::as_bits_per_second));
            series.rtt_s.push(told.rtt.map(seconds));
            series.mb_bps.push(told.most.map(Bitrate::as_bits_per_second));
        }
        let rtts = Rtts::of(report);
        Some(Self {
            answers: report.answers.len(),
            etp: estimates(report).map(Spread::from),
            rtt_min_s: rtts.map(|rtts| seconds(rtts.min)),
            rtt_median_s: rtts.map(|rtts| seconds(rtts.median)),
            rtt_max_s: rtts.map(|rtts| seconds(rtts.max)),
            series,
        })
    }
}

#[derive(Clone, Copy)]
struct Rtts {
    min: Duration,
    median: Duration,
    max: Duration,
}

impl Rtts {
    fn of(report: &CmsdReport) -> Option<Self> {
        let mut rtts: Vec<_> = report.rtts().collect();
        rtts.sort_unstable();
        Some(Self {
            min: *rtts.first()?,
            median: *rtts.get((rtts.len() - 1) / 2)?,
            max: *rtts.last()?,
        })
    }
}

fn estimates(report: &CmsdReport) -> Option<Estimates> {
    Estimates::of(report.answers.iter().filter_map(|told| told.throughput))
}

/// The rows of the text form.
pub(super) fn rows(report: &CmsdReport) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    if let Some(estimates) = estimates(report) {
        rows.push(("server's estimate", spread(&estimates)));
    }
    if let Some(rtts) = Rtts::of(report) {
        let [min, median, max] = [rtts.min, rtts.median, rtts.max].map(|time| time.as_millis());
        rows.push((
            "server's RTT",
            format!(
                "{median} ms (median of {}; {min} to {max} ms)",
                report.rtts().count()
            ),
        ));
    }
    rows
}
