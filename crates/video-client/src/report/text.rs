//! The report as two columns for people.

use std::time::Duration;

use playrate_units::{Bitrate, Bytes};

use super::{DashReport, Estimates, Outcome, QualityReport};
use crate::cmsd::CmsdReport;

const UNKNOWN: &str = "unknown";

/// A line of the report: its label and its value.
type Row = (&'static str, String);

impl QualityReport {
    /// The report as a text of several lines, numbers rounded for reading.
    pub fn to_text(&self) -> String {
        let rows = self.rows();
        let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let lines: Vec<_> = rows
            .iter()
            .map(|(name, value)| format!("{name:<width$}  {value}"))
            .collect();
        lines.join("\n")
    }

    fn rows(&self) -> Vec<Row> {
        let (seen, network) = (&self.playback, &self.network);
        let outcome = match &self.outcome {
            Outcome::Complete => "complete".to_owned(),
            Outcome::Encrypted(scheme) => {
                format!("encrypted ({scheme}): it arrived, and no frame can be shown without a key")
            }
            Outcome::Stopped => "stopped before the end".to_owned(),
            Outcome::Failed(reason) => format!("broke off: {reason}"),
        };
        let mut rows = vec![("title", self.url.clone()), ("outcome", outcome)];
        if let Some(title) = &self.title {
            let duration = title.duration.unwrap_or(self.known_time);
            let rate = self.average_rate.map_or(UNKNOWN.to_owned(), mbps);
            let label = if title.has_video { "video" } else { "sound" };
            let size = match (title.width, title.height) {
                (0, _) | (_, 0) => String::new(),
                (width, height) => format!("{width}x{height}, "),
            };
            let codecs = &title.codecs;
            rows.push((
                label,
                format!("{size}{codecs}, {} at {rate} on average", seconds(duration)),
            ));
        }
        rows.extend([
            (
                "start-up delay",
                seen.startup_delay.map_or("never started".to_owned(), seconds),
            ),
            ("frames", self.frames()),
            ("underflow events", self.underflows()),
        ]);
        if let Some(ratio) = seen.rebuffering_ratio {
            rows.push(("rebuffer ratio", format!("{:.2} %", ratio * 100.0)));
        }
        rows.extend(self.dash.iter().flat_map(dash_rows));
        rows.extend(cmsd_rows(&self.cmsd));
        rows.extend([
            ("mean bitrate", seen.mean_bitrate.map_or(UNKNOWN.to_owned(), mbps)),
            ("throughput", self.throughput()),
            ("received", self.received()),
        ]);
        if network.interruptions.count > 0 {
            rows.push(("interruptions", self.interruptions()));
        }
        rows.push((
            "player",
            format!(
                "{} clock, playout buffer {}",
                self.player.clock, self.player.playout_buffer
            ),
        ));
        if network.connected.is_some() {
            rows.push(("retransmissions", "known to the server only".to_owned()));
        }
        rows.extend(self.notes.iter().map(|note| ("note", note.clone())));
        rows
    }

    fn frames(&self) -> String {
        let seen = &self.playback;
        let rest = [
            (seen.frames_missing, "missing"),
            (seen.frames_remaining(), "still to come"),
        ];
        let rest = rest.iter().filter(|(count, _)| *count > 0);
        let mut parts = vec![
            format!("{} shown", seen.frames_shown),
            format!("{} discarded", seen.frames_discarded),
        ];
        parts.extend(rest.map(|(count, what)| format!("{count} {what}")));
        parts.push(format!("of {}", seen.frames));
        parts.join(", ")
    }

    fn underflows(&self) -> String {
        let seen = &self.playback;
        if seen.underflow_events == 0 {
            return "none".to_owned();
        }
        let rebased = match seen.rebases {
            0 => String::new(),
            1 => ", clock rebased once".to_owned(),
            times => format!(", clock rebased {times} times"),
        };
        format!(
            "{}, frozen for {}{rebased}",
            seen.underflow_events,
            seconds(seen.stalled_time)
        )
    }

    fn throughput(&self) -> String {
        let rates = &self.network.throughput;
        match (rates.mean, rates.p5, rates.p50, rates.p95) {
            (Some(mean), Some(p5), Some(p50), Some(p95)) => format!(
                "{} on average; by the second: 5 % {}, median {}, 95 % {}",
                mbps(mean),
                mbps(p5),
                mbps(p50),
                mbps(p95)
            ),
            (Some(mean), ..) => format!("{} on average", mbps(mean)),
            (None, ..) => UNKNOWN.to_owned(),
        }
    }

    fn interruptions(&self) -> String {
        let seen = &self.network.interruptions;
        let times = if seen.reconnects == 1 { "" } else { "s" };
        format!(
            "{}; reconnected {} time{times}, without a connection for {}",
            seen.count,
            seen.reconnects,
            seconds(seen.disconnected)
        )
    }

    fn received(&self) -> String {
        let network = &self.network;
        let total = network
            .promised
            .filter(|&promised| promised != network.received)
            .map_or(String::new(), |promised| format!(" of {}", size(promised)));
        let first = network.first_byte.map_or(String::new(), |first| {
            format!(", first byte after {}", seconds(first))
        });
        let (received, ended) = (size(network.received), seconds(network.ended));
        format!("{received}{total} in {ended}{first}")
    }
}

/// Lines of an adaptive session.
fn dash_rows(report: &DashReport) -> Vec<Row> {
    let choices: Vec<_> = report
        .representations
        .iter()
        .map(|it| format!("{} at {} ({})", it.segments, it.name, mbps(it.rate)))
        .collect();
    let begins = match report.first_segment {
        0 => String::new(),
        skipped => format!(", from number {} on", skipped + 1),
    };
    let (fetched, all) = (report.segments_fetched, report.segment_count);
    let mut rows = vec![(
        "segments",
        format!("{fetched} of {all}{begins}: {}", choices.join(", ")),
    )];
    if let (Some(share), Some(rate)) = (report.switch_share, report.mean_rate) {
        let changes = report.switch_sizes.iter().filter(|(size, _)| **size != 0);
        let sizes: Vec<_> = changes
            .map(|(size, count)| format!("{size:+}: {count}"))
            .collect();
        let sizes = if sizes.is_empty() {
            String::new()
        } else {
            format!(" ({})", sizes.join(", "))
        };
        let (count, percent) = (report.switches, share * 100.0);
        rows.push(("switches", format!("{count}, {percent:.1} % of segments{sizes}")));
        rows.push(("mean representation", mbps(rate)));
    }
    let estimates = |label, estimates: &Option<Estimates>| Some((label, spread(estimates.as_ref()?)));
    rows.extend(estimates("instantaneous estimate", &report.instantaneous));
    rows.extend(estimates("smoothed estimate", &report.smoothed));
    rows
}

/// Lines of the server's CMSD.
fn cmsd_rows(report: &CmsdReport) -> Vec<Row> {
    let mut rows = Vec::new();
    if let Some(estimates) = &report.etp {
        rows.push(("server's estimate", spread(estimates)));
    }
    if let (Some(min), Some(median), Some(max)) = (report.rtt_min, report.rtt_median, report.rtt_max) {
        let [min, median, max] = [min, median, max].map(|time| time.as_millis());
        let count = report.samples.iter().filter(|it| it.path.rtt.is_some()).count();
        rows.push((
            "server's RTT",
            format!("{median} ms (median of {count}; {min} to {max} ms)"),
        ));
    }
    rows
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

fn seconds(time: Duration) -> String {
    if time < Duration::from_millis(10) {
        format!("{:.1} ms", time.as_secs_f64() * 1e3)
    } else {
        format!("{:.2} s", time.as_secs_f64())
    }
}

fn mbps(rate: Bitrate) -> String {
    format!("{:.2} Mbit/s", rate.as_mbps())
}

fn size(bytes: Bytes) -> String {
    if bytes < Bytes::new(100_000) {
        bytes.to_string()
    } else {
        format!("{:.2} MB", bytes.as_f64() / 1e6)
    }
}
