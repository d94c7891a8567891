//! [`Explanation`]: why the viewers' experiences differ, in words computed from the rows alone.
//!
//! Every sentence states measured quantities; the measurements decide which sentences appear.

use std::borrow::Borrow;
use std::time::Duration;

use askama::Template;
use playrate_units::Bytes;
use playrate_units::rounded::percent;

use super::{DemoReport, DemoRun, SEEDS};
use crate::controllers::short_name;
use crate::live::ReferenceVerdict;
use crate::metric::{Metric, Unit};
use crate::result::{Row, SessionOutcome};
use crate::rounding::whole;
use crate::words::{count, rate, size, time, wrapped};

/// Summary of a demo in sentences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Explanation {
    /// One sentence: what the viewers saw.
    pub(super) headline: String,
    /// Sentences with one reason each.
    pub(super) reasons: Vec<String>,
    /// One sentence: agreement with the virtual reference run.
    pub(super) verdict: Option<String>,
    /// Warning that the machine was too busy and the results differ from the virtual reference run, or that there is
    /// none.
    pub(super) warning: Option<String>,
}

/// Sessions count as equal if their impaired times differ by less than this, in seconds.
const EQUAL_S: f64 = 0.25;

/// Differences between two controllers below this ratio are not mentioned.
const NOTABLE: f64 = 1.1;

/// Metrics whose differences explain what viewers see.
const CONTRASTS: [&str; 7] = [
    "window_mean_bytes",
    "window_kept_share",
    "congestion_events",
    "window_recovery_mean_s",
    "startup_s",
    "startup_window_bytes",
    "rtt_p50_s",
];

/// A line per reason.
#[derive(Template)]
#[template(path = "explanation.txt", escape = "none")]
struct Reasons<'a> {
    it: &'a DemoReport,
}

impl Explanation {
    pub(super) fn of(report: &DemoReport) -> Self {
        // Writing to a String cannot fail.
        let reasons = Reasons { it: report }.render().unwrap_or_default();
        let verdict = ReferenceVerdict::of(&report.comparisons);
        Self {
            headline: report.headline(),
            reasons: reasons.lines().map(str::to_owned).collect(),
            warning: report.warning(verdict.as_ref()),
            verdict: verdict.map(|verdict| verdict.sentence),
        }
    }

    /// The explanation in at most `width` columns: headline, an empty line, a line `- …` per reason, the verdict, and
    /// `WARNING: …` if there is one.
    pub(super) fn text(&self, width: usize) -> String {
        let reasons = self.reasons.iter().map(|reason| wrapped("- ", reason, width));
        let verdict = self.verdict.iter().map(|verdict| wrapped("", verdict, width));
        let warning = self
            .warning
            .iter()
            .map(|warning| wrapped("WARNING: ", warning, width));
        let ending = verdict.chain(warning).map(|text| format!("\n{text}"));
        let headline = wrapped("", &self.headline, width) + "\n";
        headline + &reasons.chain(ending).collect::<String>()
    }
}

fn value(row: &Row, metric: &str) -> Option<f64> {
    Metric::find(metric)?.value(row)
}

/// A metric of a row for people, with its unit.
pub(super) fn text(row: &Row, metric: &str) -> String {
    let metric = Metric::find(metric);
    let known = metric.and_then(|metric| Some(metric.unit.text(metric.value(row)?)));
    known.unwrap_or_else(|| "none".to_owned())
}

impl DemoRun {
    /// Name of the controller for people.
    pub(super) fn spec(&self) -> String {
        short_name(&self.row.key.controller)
    }

    /// The viewer's experience, to complete a sentence.
    fn experience(&self) -> String {
        let row = &self.row;
        let playback = &row.playback;
        if let Some(reason) = &row.error {
            return format!("failed ({reason})");
        }
        if playback.startup_delay.is_none() {
            return "never showed a frame".to_owned();
        }
        let discarded = match playback.frames_discarded {
            0 => String::new(),
            some => format!(" and lost {}", count(some, "frame", "frames")),
        };
        let seen = match playback.underflow_events {
            0 if playback.frames_discarded == 0 => "played without a stall".to_owned(),
            0 => format!("never stalled{discarded}"),
            1 => format!("stalled once, for {}{discarded}", time(playback.stalled_time)),
            n => format!(
                "stalled {n} times, for {} in all{discarded}",
                time(playback.stalled_time)
            ),
        };
        if row.outcome == SessionOutcome::Stopped {
            let end = playback.ended.unwrap_or(self.run.length);
            return format!("{seen} until it was stopped after {}", time(end));
        }
        seen
    }

    /// Impaired time in seconds; infinite for a session that failed or displayed nothing.
    fn impaired(&self) -> f64 {
        let failed = self.row.outcome == SessionOutcome::Failed || self.row.playback.startup_delay.is_none();
        let title = self.row.title_duration_s.filter(|_| !failed);
        title.map_or(f64::INFINITY, |seconds| {
            let impaired = self.row.playback.impaired_time(Duration::from_secs_f64(seconds));
            impaired.as_secs_f64()
        })
    }
}

impl DemoReport {
    /// The runs with the best and the worst experience, if they differ.
    fn extremes(&self) -> Option<(&DemoRun, &DemoRun)> {
        let by = |one: &&DemoRun, other: &&DemoRun| one.impaired().total_cmp(&other.impaired());
        let best = self.runs.iter().min_by(by)?;
        let worst = self.runs.iter().max_by(by)?;
        (worst.impaired() - best.impaired() >= EQUAL_S).then_some((best, worst))
    }

    fn headline(&self) -> String {
        let saw = |run: &DemoRun| format!("{} {}", run.spec(), run.experience());
        match (self.extremes(), self.runs.as_slice()) {
            (Some((best, worst)), _) => format!("{}; {}.", saw(best), saw(worst)),
            (None, []) => "Nothing was run.".to_owned(),
            (None, [only]) => format!("{}.", saw(only)),
            (None, [first, ..]) => {
                let names: Vec<String> = self.runs.iter().map(DemoRun::spec).collect();
                format!(
                    "Viewers of {} saw the same, to within a quarter of a second: each {}.",
                    names.join(" and "),
                    first.experience()
                )
            }
        }
    }

    /// Bytes in flight that are needed to deliver the title at its average rate without queueing delay.
    fn needed_window(&self) -> Bytes {
        self.scenario.title_rate() * self.args.rtt
    }

    /// Bandwidth-delay product: the bytes in flight when the bottleneck is busy but its queue is empty.
    fn bdp(&self) -> Bytes {
        self.args.rate * self.args.rtt
    }

    /// True if the bottleneck carries the title at its average rate; headers add about 4 %.
    fn rate_suffices(&self) -> bool {
        self.args.rate >= self.scenario.title_rate().scaled(104, 100)
    }

    /// The queue in bandwidth-delay products, rounded to hundredths.
    fn queue_depth(&self) -> f64 {
        let depth = self.queue.as_u64() as f64 / self.bdp().as_u64().max(1) as f64;
        (depth * 100.0).round() / 100.0
    }

    /// Bytes in flight when the queue is full.
    fn full_path(&self) -> Bytes {
        self.bdp() + self.queue
    }

    /// Overflows of the queue and random losses of all runs.
    fn drops(&self) -> (u64, u64) {
        let runs = self.runs.iter().map(|run| drops(&run.row));
        runs.fold((0, 0), |sum, drops| (sum.0 + drops.0, sum.1 + drops.1))
    }

    /// The rate of each controller immediately after a cut that follows a full queue: the queue is empty again once the
    /// rest of what was in flight has been sent.
    fn rates_after_cuts(&self) -> Vec<String> {
        let rates = self.runs.iter().filter_map(|run| {
            let kept = value(&run.row, "window_kept_share")?;
            let left = Bytes::new(whole(self.full_path().as_u64() as f64 * kept)).per(self.args.rtt)?;
            let (kept, left) = (percent(kept), rate(left.min(self.args.rate)));
            Some(format!("{} keeps {kept} and sends at {left}", run.spec()))
        });
        rates.collect()
    }

    fn share_of_link(&self, row: &Row) -> String {
        let link_rate = self.args.rate.as_bits_per_second().max(1) as f64;
        percent(value(row, "throughput_bps").unwrap_or_default() / link_rate)
    }

    fn median_queueing(&self, row: &Row) -> Option<String> {
        let rtt = value(row, "rtt_p50_s")?;
        Some(Unit::Seconds.text((rtt - self.args.rtt.as_secs_f64()).max(0.0)))
    }

    /// The stalled time over many seeds in virtual time: with random losses, a single session each is not a comparison.
    fn stalled_with_seeds(&self) -> Vec<String> {
        let stalled = self.comparisons.iter().filter_map(|compared| {
            let spread = compared.measured("frozen_s")?.spread();
            Some(format!("{} {spread}", short_name(&compared.controller)))
        });
        stalled.collect()
    }

    fn warning(&self, verdict: Option<&ReferenceVerdict>) -> Option<String> {
        if verdict.is_some_and(|verdict| verdict.agrees) {
            return None;
        }
        let of_run = |run: &DemoRun| {
            let flaws = run.attempt.flaws.iter();
            flaws
                .map(|flaw| format!("{}: {flaw}", run.spec()))
                .collect::<Vec<_>>()
        };
        let flaws: Vec<String> = self.runs.iter().flat_map(of_run).collect();
        (!flaws.is_empty()).then(|| {
            format!(
                "Do not trust these numbers: this machine was too busy to keep the path as requested throughout \
                 ({}). Run it again when nothing else runs, or with real-time priority (chrt -r 10).",
                flaws.join("; ")
            )
        })
    }
}

/// Overflows of the queue and random losses.
fn drops(row: &Row) -> (u64, u64) {
    let link = row.link.as_ref();
    link.map_or((0, 0), |link| (link.queue_drops, link.random_losses))
}

fn congestion_events(row: &Row) -> u64 {
    row.sender.as_ref().map_or(0, |sender| sender.congestion_events)
}

fn recoveries(row: &Row) -> u64 {
    row.control
        .as_ref()
        .map_or(0, |control| control.window_recoveries)
}

/// The largest differences between the best and the worst run.
fn contrasts(best: &DemoRun, worst: &DemoRun) -> Vec<String> {
    let contrasts = CONTRASTS.iter().filter_map(|name| {
        let metric = Metric::find(name)?;
        let (good, bad) = (metric.value(&best.row)?, metric.value(&worst.row)?);
        let ratio = good.max(bad) / good.min(bad);
        let label = metric.label.to_lowercase().replace("rtt", "RTT");
        let [of_best, of_worst] = [good, bad].map(|value| metric.unit.text(value));
        let said = format!(
            "{label} ({of_best} for {}, {of_worst} for {})",
            best.spec(),
            worst.spec()
        );
        (good > 0.0 && bad > 0.0 && ratio >= NOTABLE).then_some((ratio, said))
    });
    let mut contrasts: Vec<(f64, String)> = contrasts.collect();
    contrasts.sort_by(|one, other| other.0.total_cmp(&one.0));
    contrasts.into_iter().take(3).map(|(_, said)| said).collect()
}

fn counted(number: impl Borrow<u64>, one: &str, many: &str) -> String {
    count(*number.borrow(), one, many)
}

#[cfg(test)]
pub(super) mod tests;
