//! [`Explanation`]: why the viewers' experiences differ, in words computed from the rows alone.
//!
//! Every sentence states measured quantities; the measurements decide which sentences appear.

use std::time::Duration;

use playrate_units::Bytes;
use playrate_units::rounded::{percent, rate, size, time};

use super::{DemoReport, DemoRun, SEEDS};
use crate::controllers::short_name;
use crate::live::{ControllerComparison, ReferenceVerdict};
use crate::metric::{Metric, Unit};
use crate::result::{Row, SessionOutcome};
use crate::rounding::whole;
use crate::words::{count, wrapped};

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

impl Explanation {
    pub(super) fn of(report: &DemoReport) -> Self {
        let mut reasons = vec![report.demand()];
        reasons.extend(report.rate_after_cuts());
        reasons.extend(report.runs.iter().map(|run| report.account(run)));
        reasons.extend(report.difference());
        let random = |run: &DemoRun| run.row.link.as_ref().is_some_and(|link| link.random_losses > 0);
        if report.runs.len() > 1 && report.runs.iter().any(random) {
            reasons.push(report.other_seeds());
        }
        let verdict = ReferenceVerdict::of(&report.comparisons);
        Self {
            headline: report.headline(),
            reasons,
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

    /// The title's demand on the path.
    fn demand(&self) -> String {
        let (title, args) = (self.scenario.title_rate(), &self.args);
        // Headers add about 4 %.
        let sufficient = if args.rate >= title.scaled(104, 100) {
            "suffices"
        } else {
            "does not suffice for that under any controller"
        };
        let depth = self.queue.as_u64() as f64 / self.bdp().as_u64().max(1) as f64;
        let depth = format!("{depth:.2}");
        let depth = depth.trim_end_matches('0').trim_end_matches('.');
        let (needed, flight, rtt) = (rate(title), size(self.needed_window()), time(args.rtt));
        let (link, queue, bdp) = (rate(args.rate), size(self.queue), size(self.bdp()));
        format!(
            "The title needs {needed} on average, which at an RTT of {rtt} is {flight} in flight. The bottleneck's \
             {link} {sufficient}; its queue holds {queue}, {depth} × the bandwidth-delay product of {bdp}."
        )
    }

    /// The rate that remains immediately after a cut, if most cuts follow a full queue: the bandwidth-delay product and
    /// the queue are then in flight, and the queue is empty again once the rest has been sent.
    fn rate_after_cuts(&self) -> Option<String> {
        let links = || self.runs.iter().filter_map(|run| run.row.link.as_ref());
        let overflows: u64 = links().map(|link| link.queue_drops).sum();
        let random: u64 = links().map(|link| link.random_losses).sum();
        if overflows <= random {
            return None;
        }
        let full = self.bdp() + self.queue;
        let left = self.runs.iter().filter_map(|run| {
            let kept = value(&run.row, "window_kept_share")?;
            let left = Bytes::new(whole(full.as_u64() as f64 * kept)).per(self.args.rtt)?;
            let (kept, left) = (percent(kept), rate(left.min(self.args.rate)));
            Some(format!("{} keeps {kept} and sends at {left}", run.spec()))
        });
        let left = left.collect::<Vec<_>>().join(", ");
        let (full, needed) = (size(full), rate(self.scenario.title_rate()));
        (!left.is_empty()).then(|| {
            format!(
                "Most losses came from the full queue, with {full} in flight. Right after a cut from there, {left}; \
                 the title needs {needed}."
            )
        })
    }

    /// The account of one run.
    fn account(&self, run: &DemoRun) -> String {
        let row = &run.row;
        let events = row.sender.as_ref().map_or(0, |sender| sender.congestion_events);
        let (overflows, random) = row
            .link
            .as_ref()
            .map_or((0, 0), |link| (link.queue_drops, link.random_losses));
        let cause = if events == 0 || value(row, "window_kept_share").is_none() {
            "nothing made it cut its window".to_owned()
        } else {
            format!(
                "{} ({}, {}) in {}; a cut left {} of the window on average{}",
                count(overflows + random, "lost packet", "lost packets"),
                count(overflows, "overflow of the queue", "overflows of the queue"),
                count(random, "random loss", "random losses"),
                count(events, "congestion event", "congestion events"),
                text(row, "window_kept_share"),
                recovery(row),
            )
        };
        let link_rate = self.args.rate.as_bits_per_second().max(1) as f64;
        let share = value(row, "throughput_bps").unwrap_or_default() / link_rate;
        let queueing = value(row, "rtt_p50_s").map_or_else(String::new, |rtt| {
            let queueing = Unit::Seconds.text((rtt - self.args.rtt.as_secs_f64()).max(0.0));
            format!(", with {queueing} of queueing at the median")
        });
        let (window, needed) = (text(row, "window_mean_bytes"), size(self.needed_window()));
        let (arrived, share) = (text(row, "throughput_bps"), percent(share));
        format!(
            "{}: {cause}. The window averaged {window}, where the title needs {needed}. Data arrived at {arrived}, \
             {share} of the bottleneck's rate{queueing}.",
            run.spec()
        )
    }

    /// The largest differences between the best and the worst run.
    fn difference(&self) -> Option<String> {
        let Some((best, worst)) = self.extremes() else {
            let all_equal = "On this path the controllers differ too little for a viewer to notice.";
            return (self.runs.len() > 1).then(|| all_equal.to_owned());
        };
        let (best_spec, worst_spec) = (best.spec(), worst.spec());
        let mut contrasts: Vec<(f64, String)> = CONTRASTS
            .iter()
            .filter_map(|name| {
                let metric = Metric::find(name)?;
                let (good, bad) = (metric.value(&best.row)?, metric.value(&worst.row)?);
                let ratio = good.max(bad) / good.min(bad);
                let label = metric.label.to_lowercase().replace("rtt", "RTT");
                let [of_best, of_worst] = [good, bad].map(|value| metric.unit.text(value));
                let said = format!("{label} ({of_best} for {best_spec}, {of_worst} for {worst_spec})");
                (good > 0.0 && bad > 0.0 && ratio >= NOTABLE).then_some((ratio, said))
            })
            .collect();
        contrasts.sort_by(|one, other| other.0.total_cmp(&one.0));
        let [by_best, by_worst] = [best, worst].map(|run| text(&run.row, "throughput_bps"));
        let outcome =
            format!("On average {best_spec} delivered {by_best}, {worst_spec} delivered {by_worst}");
        if contrasts.is_empty() {
            return Some(format!(
                "Neither windows nor cuts, recoveries or delays differ by more than a tenth between {best_spec} and \
                 {worst_spec}: the difference is one of timing, and another seed may reverse it. {outcome}."
            ));
        }
        let largest: Vec<String> = contrasts.into_iter().take(3).map(|(_, said)| said).collect();
        let largest = largest.join("; ");
        Some(format!("The largest differences: {largest}. {outcome}."))
    }

    /// The stalled time over many seeds in virtual time: with random losses, a single session each is not a comparison.
    fn other_seeds(&self) -> String {
        let stalled = |compared: &ControllerComparison| {
            let spread = compared.measured("frozen_s")?.spread();
            Some(format!("{} {spread}", short_name(&compared.controller)))
        };
        let stalled: Vec<String> = self.comparisons.iter().filter_map(stalled).collect();
        if stalled.is_empty() {
            return "One session each is not a comparison: random losses hit every run at different times. Another \
                    --seed gives other losses."
                .to_owned();
        }
        format!(
            "Random losses hit every run at different times. Stalled time in virtual time, mean of {SEEDS} seeds \
             (smallest to largest): {}.",
            stalled.join(", ")
        )
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

fn recovery(row: &Row) -> String {
    let control = row.control.as_ref();
    match control.map_or(0, |control| control.window_recoveries) {
        0 => "; it never came back to 90 % of its former size".to_owned(),
        some => format!(
            "; {} it came back to 90 % of its former size, after {} on average",
            count(some, "time", "times"),
            text(row, "window_recovery_mean_s")
        ),
    }
}

#[cfg(test)]
pub(super) mod tests;
