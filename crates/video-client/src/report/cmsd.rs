//! CMSD of the server, in both forms of the report.

use std::time::Duration;

use playrate_units::Bitrate;
use serde::Serialize;

use super::dash::Estimates;
use super::json::seconds;
use super::segments_form::spread;
use crate::cmsd::CmsdReport;

/// `cmsd` of the JSON report.
#[derive(Serialize)]
pub(super) struct CmsdJson {
    answers: usize,
    etp: Option<Estimates>,
    rtt_min_s: Option<f64>,
    rtt_median_s: Option<f64>,
    rtt_max_s: Option<f64>,
    series: CmsdColumns,
}

/// Columns, one value for each response.
#[derive(Default, Serialize)]
struct CmsdColumns {
    at_s: Vec<f64>,
    etp_bps: Vec<Option<Bitrate>>,
    rtt_s: Vec<Option<f64>>,
    mb_bps: Vec<Option<Bitrate>>,
}

impl CmsdJson {
    /// `None` if no response had CMSD.
    pub(super) fn new(report: &CmsdReport) -> Option<Self> {
        if report.samples.is_empty() {
            return None;
        }
        let mut series = CmsdColumns::default();
        for sample in &report.samples {
            series.at_s.push(seconds(sample.at));
            series.etp_bps.push(sample.path.throughput);
            series.rtt_s.push(sample.path.rtt.map(seconds));
            series.mb_bps.push(sample.path.max_bitrate);
        }
        let rtts = rtts(report).map(|rtts| rtts.map(seconds));
        Some(Self {
            answers: report.samples.len(),
            etp: estimates(report),
            rtt_min_s: rtts.map(|[min, _, _]| min),
            rtt_median_s: rtts.map(|[_, median, _]| median),
            rtt_max_s: rtts.map(|[_, _, max]| max),
            series,
        })
    }
}

/// Minimum, median and maximum of the round-trip times.
fn rtts(report: &CmsdReport) -> Option<[Duration; 3]> {
    let mut rtts: Vec<_> = report.rtts().collect();
    rtts.sort_unstable();
    let median = rtts.get(rtts.len().saturating_sub(1) / 2)?;
    Some([*rtts.first()?, *median, *rtts.last()?])
}

fn estimates(report: &CmsdReport) -> Option<Estimates> {
    Estimates::of(report.samples.iter().filter_map(|sample| sample.path.throughput))
}

/// The rows of the text form.
pub(super) fn rows(report: &CmsdReport) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    if let Some(estimates) = estimates(report) {
        rows.push(("server's estimate", spread(&estimates)));
    }
    if let Some(rtts) = rtts(report) {
        let [min, median, max] = rtts.map(|time| time.as_millis());
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
