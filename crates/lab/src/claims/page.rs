//! The verdicts as a page: text of a hundred columns, or Markdown.

use std::fmt::Write as _;

use super::check::{Check, Relation, Term};
use super::command::{ClaimsReport, RowReport};
use super::judge::{CheckResult, ClaimResult, Ranking};
use super::papers::PAPERS;
use super::verdict::Verdict;
use crate::metric::Unit;
use crate::statistics::{Effect, Interval, Method};
use crate::words::wrapped;

/// Columns of the text.
const WIDTH: usize = 100;
/// Columns of the Markdown source.
const MARKDOWN_WIDTH: usize = 118;

/// Explanation of the notation, one bullet each.
const NOTATION: [&str; 8] = [
    "A row (`P13-4`) is a statement of a paper: paper, then figure. It holds if all its claims hold; a claim holds if \
     all its checks hold, unless it says that one is enough.",
    "A check compares means over trials. It holds (+) if the 95 % confidence interval of left minus right confirms it, \
     fails (-) if the interval contradicts it, and is undecided (?) otherwise. Where a check states no number, means \
     that differ by at most 5 %, or by less than one event, are a tie, which is undecided.",
    "`least metric[members] among [all]` holds if no other has certainly less than a member and one has certainly \
     more than all members; `most` is the opposite.",
    "`metric[controller]` is a metric of docs/runs.md in the runs of a controller; `ideal` is a sender that keeps \
     a link of the same rate busy without loss.",
    "`[controller@case]` reads one case of the scenario. Case names say what varies: `n40` is 40 other downloads, \
     `pob448` a playout buffer of 448 packets, `10Mbit-5` five viewers on 10 Mbit/s.",
    "`[controller#bulk]` reads the downloads beside the viewers, `#all` all flows of a run.",
    "`[controller]@30s..60s` counts that part of the run only; `in p13-9` reads the results of another scenario.",
    "`excess_` before a metric takes off the number of the ideal sender; `deviation_` makes it the distance from the \
     median over the seeds.",
];

/// The report as text.
pub(crate) fn to_text(report: &ClaimsReport) -> String {
    written(report, false)
}

/// The report as a Markdown page.
pub(crate) fn to_markdown(report: &ClaimsReport) -> String {
    written(report, true)
}

fn written(report: &ClaimsReport, markdown: bool) -> String {
    let text = String::new();
    let mut page = Page { text, markdown };
    page.report(report);
    page.text
}

/// The conclusion in two sentences.
fn conclusion(report: &ClaimsReport) -> [String; 2] {
    let count = |verdicts: &[Verdict]| {
        let others = Verdict::ALL.iter().filter(|verdict| **verdict != Verdict::Holds);
        let counts = others.filter_map(|wanted| {
            let number = verdicts.iter().filter(|verdict| *verdict == wanted).count();
            let verb = match (wanted, number) {
                (Verdict::Fails, 1) => "fails",
                (Verdict::Fails, _) => "fail",
                (Verdict::Undecided, 1) => "is undecided",
                (Verdict::Undecided, _) => "are undecided",
                (_, 1) => "was not run",
                _ => "were not run",
            };
            (number > 0).then(|| format!("{number} {verb}"))
        });
        let counts: Vec<String> = counts.collect();
        let holds = verdicts
            .iter()
            .filter(|verdict| **verdict == Verdict::Holds)
            .count();
        let verb = if holds == 1 { "holds" } else { "hold" };
        let rest = if counts.is_empty() {
            String::new()
        } else {
            format!("; {}", counts.join(", "))
        };
        format!("{holds} of {} {verb}{rest}.", verdicts.len())
    };
    let rows: Vec<Verdict> = report.rows.iter().map(|row| row.verdict).collect();
    let claims = report.rows.iter().flat_map(|row| &row.claims);
    let claims = claims.chain(&report.others).filter(|claim| claim.claim.decides);
    let claims: Vec<Verdict> = claims.map(|claim| claim.verdict).collect();
    [
        format!("Rows of the papers in full: {}", count(&rows)),
        format!("Single claims in them: {}", count(&claims)),
    ]
}

/// A page that is being written, in one of two formats.
struct Page {
    text: String,
    markdown: bool,
}

impl Page {
    fn report(&mut self, report: &ClaimsReport) {
        if self.markdown {
            self.text.push_str("# Claims of the papers\n\n");
        }
        for sentence in conclusion(report) {
            self.bullet(0, "- ", &sentence);
        }
        for note in &report.notes {
            self.bullet(0, "- ", note);
        }
        self.heading(2, "Notation");
        for (paper, title) in PAPERS {
            let words = if self.markdown {
                format!("`{paper}`: {title}")
            } else {
                format!("{paper}: {title}")
            };
            self.bullet(0, "- ", &words);
        }
        for words in NOTATION {
            self.bullet(0, "- ", words);
        }
        let was_run = |row: &RowReport| row.verdict != Verdict::NotRun;
        for (paper, title) in PAPERS {
            let of_paper = |row: &&RowReport| row.row.paper() == *paper && was_run(row);
            let rows = report.rows.iter().filter(of_paper);
            self.rows(&format!("{paper}  {title}"), rows, report);
        }
        if !report.others.is_empty() {
            self.heading(2, "Other claims");
            for claim in &report.others {
                self.claim(claim, report);
            }
        }
        // What has results comes before the rows of scenarios that were not run.
        let rows = report.rows.iter().filter(|row| !was_run(row));
        self.rows("Not run", rows, report);
    }

    /// The rows below a heading; nothing if there are none.
    fn rows<'a>(&mut self, heading: &str, rows: impl Iterator<Item = &'a RowReport>, report: &ClaimsReport) {
        let mut rows = rows.peekable();
        if rows.peek().is_some() {
            self.heading(2, heading);
        }
        rows.for_each(|row| self.row(row, report));
    }

    fn row(&mut self, row: &RowReport, report: &ClaimsReport) {
        let (id, verdict) = (row.row.id, row.verdict.name());
        if self.markdown {
            self.heading(3, &format!("{id}: {verdict}"));
            self.bullet(0, "", row.row.says);
            self.text.push('\n');
        } else {
            self.text.push('\n');
            self.bullet(0, &format!("{id:<11}{verdict:<11}"), row.row.says);
        }
        if row.claims.is_empty() {
            self.bullet(0, "- ", "no scenario decides it");
        }
        for claim in &row.claims {
            self.claim(claim, report);
        }
        for claim in &row.beside {
            self.claim(claim, report);
        }
    }

    fn claim(&mut self, result: &ClaimResult, report: &ClaimsReport) {
        let claim = &result.claim;
        let name = claim
            .id
            .split_once('/')
            .map_or(claim.id.as_str(), |(_, name)| name);
        let verdict = result.verdict.name();
        let decides = if claim.decides { "" } else { " (does not decide)" };
        let words = if self.markdown {
            format!("**{name}** {verdict}{decides}: {}", claim.says)
        } else {
            format!("{name} {verdict}{decides}: {}", claim.says)
        };
        self.bullet(0, "- ", &words);
        let parts = [
            ("paper", &claim.paper),
            ("threshold", &claim.why),
            ("note", &claim.note),
        ];
        for (label, words) in parts {
            if let Some(words) = words {
                self.bullet(1, "- ", &format!("{label}: {words}"));
            }
        }
        let runs = report.runs.get(&claim.scenario).map_or_else(
            || "not run".to_owned(),
            |runs| {
                let quick = if runs.quick { ", --quick" } else { "" };
                let trials = if runs.trials == 1 { "trial" } else { "trials" };
                format!("{} {trials}{quick}", runs.trials)
            },
        );
        let any = if claim.any { "; one check is enough" } else { "" };
        self.bullet(1, "- ", &format!("scenario {} ({runs}){any}", claim.scenario));
        for check in &result.checks {
            self.check(check);
        }
        for other in &result.beside {
            let holds = other
                .checks
                .iter()
                .filter(|check| check.verdict == Verdict::Holds);
            let words = format!(
                "with {} instead: {} ({} of {} checks hold)",
                other.name,
                other.verdict.name(),
                holds.count(),
                other.checks.len()
            );
            self.bullet(1, "- ", &words);
        }
    }

    fn check(&mut self, result: &CheckResult) {
        let (check, numbers) = (&result.check, numbers(result));
        if self.markdown {
            self.bullet(
                1,
                "- ",
                &format!("`{check}` {}: {numbers}", result.verdict.name()),
            );
            return;
        }
        let mark = match result.verdict {
            Verdict::Holds => "+ ",
            Verdict::Fails => "- ",
            Verdict::Undecided => "? ",
            Verdict::NotRun => "  ",
        };
        self.bullet(2, mark, &check.to_string());
        self.bullet(3, "", &numbers);
    }

    fn heading(&mut self, level: usize, words: &str) {
        let _ = if self.markdown {
            writeln!(self.text, "\n{} {words}\n", "#".repeat(level))
        } else {
            writeln!(self.text, "\n{words}\n{}", "═".repeat(WIDTH))
        };
    }

    /// Writes `mark` and `words`, wrapped and indented by two columns for each level.
    fn bullet(&mut self, level: usize, mark: &str, words: &str) {
        let width = if self.markdown { MARKDOWN_WIDTH } else { WIDTH };
        let mark = format!("{}{mark}", "  ".repeat(level));
        self.text.push_str(&wrapped(&mark, words, width));
    }
}

/// The numbers of a check in words, or the reason for which there are none.
pub(crate) fn numbers(result: &CheckResult) -> String {
    let reason = result.reason.as_deref();
    let Some(numbers) = &result.numbers else {
        return reason.unwrap_or_default().to_owned();
    };
    let unit = result
        .check
        .first_reading()
        .map_or(Unit::Count, |reading| reading.measure.metric.unit);
    let mut words = match (&result.check, &result.ranking) {
        (Check::Comparison(comparison), _) => {
            let relation = match comparison.relation {
                Relation::About(_) => "and",
                _ => "against",
            };
            format!(
                "{} {relation} {}",
                unit_of(&comparison.left).unwrap_or(unit).text(numbers.left.mean),
                unit_of(&comparison.right)
                    .unwrap_or(unit)
                    .text(numbers.right.mean)
            )
        }
        (Check::Superlative(_), Some(ranking)) => ranked(ranking, unit),
        (Check::Superlative(_), None) => String::new(),
    };
    let _ = write!(
        words,
        ", difference {}",
        interval(unit, &numbers.paired.difference)
    );
    if let Some(ratio) = numbers.paired.ratio
        && numbers.compares
    {
        let _ = write!(words, ", {:.2} ×", ratio.value);
        if let Some((low, high)) = ratio.ends
            && high > low
        {
            let _ = write!(words, " ({low:.2} to {high:.2})");
        }
    }
    if numbers.compares && !numbers.paired.difference.is_constant() {
        let delta = numbers.paired.delta;
        let _ = write!(words, ", effect {delta:.2} ({})", Effect::of(delta).name());
    }
    if let Some(reason) = reason {
        let _ = write!(words, "; {reason}");
    }
    words
}

/// The means of members and others, and the two flows whose difference follows.
fn ranked(ranking: &Ranking, unit: Unit) -> String {
    let means_of = |members: bool| {
        let means = ranking.means.iter().filter(|mean| mean.is_member == members);
        let words = means.map(|mean| format!("{} {}", mean.flow, unit.text(mean.mean)));
        words.collect::<Vec<_>>().join(", ")
    };
    let [member, other] = &ranking.pair;
    format!(
        "{} against {}; {member} against {other}",
        means_of(true),
        means_of(false)
    )
}

/// Unit of the first reading of a sum.
fn unit_of(terms: &[Term]) -> Option<Unit> {
    let reading = terms.iter().find_map(|term| term.reading.as_ref())?;
    Some(reading.measure.metric.unit)
}

fn interval(unit: Unit, interval: &Interval) -> String {
    let mean = unit.text(interval.mean);
    match interval.method {
        Method::Single => mean,
        Method::Constant => format!("{mean} (the same for all seeds)"),
        _ => format!(
            "{mean} ({} to {})",
            unit.text(interval.low),
            unit.text(interval.high)
        ),
    }
}
