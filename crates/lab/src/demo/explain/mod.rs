//! [`Explanation`]: why the viewers' experiences differ, in words computed from the rows alone.
//!
//! Every sentence states measured quantities; the measurements decide which sentences appear.

use askama::Template;
use playrate_units::Bytes;

use super::{DemoReport, DemoRun, SEEDS};
use crate::controllers::short_name;
use crate::live::{MetricComparison, SeedsVerdict};
use crate::result::SessionOutcome;
use crate::words::{count, rate, size, time, wrapped};

/// Summary of a demo in sentences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Explanation {
    /// One sentence: what the viewers saw.
    pub(super) headline: String,
    /// Sentences with one reason each.
    pub(super) reasons: Vec<String>,
    /// One sentence: agreement with the seeds in virtual time.
    pub(super) verdict: Option<String>,
    /// Warning that the machine was too busy and the results differ from virtual time, or were not compared.
    pub(super) warning: Option<String>,
}

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
        let verdict = SeedsVerdict::of(&report.comparisons);
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
        let lost = match playback.frames_discarded {
            0 => String::new(),
            some => format!(" and lost {}", count(some, "frame", "frames")),
        };
        let seen = match playback.underflow_events {
            0 => format!("played without a stall{lost}"),
            n => format!(
                "stalled {}, for {}{lost}",
                count(n, "time", "times"),
                time(playback.stalled_time)
            ),
        };
        if row.outcome == SessionOutcome::Stopped {
            let end = playback.ended.unwrap_or(self.run.length);
            return format!("{seen} until it was stopped after {}", time(end));
        }
        seen
    }
}

impl DemoReport {
    /// The experience of each viewer, in the order of the table.
    fn headline(&self) -> String {
        let runs = self.runs.iter();
        let seen: Vec<String> = runs
            .map(|run| format!("{} {}", run.spec(), run.experience()))
            .collect();
        match seen.as_slice() {
            [] => "Nothing was run.".to_owned(),
            seen => seen.join("; ") + ".",
        }
    }

    /// Bytes in flight that are needed to deliver the title at its average rate without queueing delay.
    fn needed_window(&self) -> Bytes {
        self.scenario.title_rate() * self.args.rtt
    }

    /// True if the bottleneck carries the title at its average rate; headers add about 4 %.
    fn rate_suffices(&self) -> bool {
        self.args.rate >= self.scenario.title_rate().scaled(104, 100)
    }

    /// The stalled time over many seeds in virtual time: with random losses, a single session each is not a comparison.
    fn stalled_with_seeds(&self) -> String {
        let measured = self.comparisons.iter();
        self.listed(measured.map(|compared| compared.measured("frozen_s")))
    }

    /// The throughput of the downloads that share links with viewers over many seeds.
    fn downloads_with_seeds(&self) -> String {
        self.listed(self.downloads.iter().map(Option::as_ref))
    }

    /// The values of a metric in virtual time, one for each controller that has one.
    fn listed<'a>(&self, measured: impl Iterator<Item = Option<&'a MetricComparison>>) -> String {
        let values = self.runs.iter().zip(measured);
        let values: Vec<_> = values
            .filter_map(|(run, measured)| Some(format!("{} {}", run.spec(), measured?.spread())))
            .collect();
        values.join(", ")
    }

    fn warning(&self, verdict: Option<&SeedsVerdict>) -> Option<String> {
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

#[cfg(test)]
pub(super) mod tests;
