//! `report.html`: one page of figures and tables.

use std::fmt::Write as _;

use super::papers::papers;
use super::request::Drawn;
use super::results::{CaseResults, Experiment, Flows, Results};
use crate::claims::{ClaimsReport, to_text};
use crate::metric::{Measure, Metric, Unit};
use crate::statistics::Spread;
use crate::svg::escape;
use crate::words::count;

/// The style sheet of every page of the lab.
const STYLE: &str = include_str!("style.css");

/// Metrics of the tables. Those that no row of a case has are left out.
const TABLE: [&str; 9] = [
    "frames_discarded",
    "underflow_events",
    "frozen_s",
    "startup_delay_s",
    "rebuffer_ratio",
    "throughput_bps",
    "lost_packets",
    "loss_ratio",
    "mean_queue_delay_s",
];

/// Texts of the page beside the results.
#[derive(Default)]
pub(super) struct Texts {
    /// The papers' claims, judged by the results.
    pub(super) claims: Option<ClaimsReport>,
    /// A headline and, in the lines below, reasons: the file `explanation.txt` of the directory.
    pub(super) explanation: Option<String>,
}

/// The page. `drawn` has the figures of each experiment.
pub(super) fn html(results: &Results, drawn: &[Vec<Drawn>], texts: &Texts) -> String {
    let mut page = begin("playrate: results of the lab");
    let figures: usize = drawn.iter().map(Vec::len).sum();
    let (headline, reasons) = texts.explanation.as_ref().map_or_else(
        || ("Playback by paper and controller", Vec::new()),
        |text| {
            let mut lines = text.lines().filter(|line| !line.trim().is_empty());
            (lines.next().unwrap_or_default(), lines.collect())
        },
    );
    // Writing to a String cannot fail, here and below.
    let _ = write!(
        page,
        "<header>\n<p class=\"kicker\">playrate lab</p>\n<h1>{}</h1>\n<p class=\"lead\">{}, {}, {}. Every number \
         and figure is made from the stored rows and series; a controller has the same colour in all figures.</p>\n\
         </header>\n",
        escape(headline),
        count(results.experiments.len() as u64, "scenario", "scenarios"),
        count(results.rows.len() as u64, "row of results", "rows of results"),
        count(figures as u64, "figure", "figures"),
    );
    if !reasons.is_empty() {
        page.push_str("<section>\n<h2>Why</h2>\n<ul class=\"why\">\n");
        for reason in reasons {
            let _ = writeln!(page, "<li>{}</li>", escape(reason.trim_start_matches("- ")));
        }
        page.push_str("</ul>\n</section>\n");
    }
    contents(&mut page, results, texts.claims.is_some());
    if let Some(claims) = &texts.claims {
        claims_table(&mut page, claims);
    }
    for paper in papers() {
        let mine: Vec<_> = results
            .experiments
            .iter()
            .zip(drawn)
            .filter(|(experiment, _)| paper.holds(&experiment.name))
            .collect();
        if mine.is_empty() {
            continue;
        }
        let _ = writeln!(
            page,
            "<section>\n<h2 class=\"paper\" id=\"{}\">{} <span class=\"meaning\">{}</span></h2>",
            paper.short,
            paper.short,
            escape(paper.title)
        );
        for (experiment, drawn) in mine {
            section(&mut page, experiment, drawn);
        }
        page.push_str("</section>\n");
    }
    let _ = write!(
        page,
        "<section class=\"method\">\n<h2>How to read this</h2>\n<p>Each run is the product's server and client over a \
         modelled path, in virtual time unless the scenario says real UDP. Trials differ in what their seeds draw, \
         and all controllers have the same seeds. Tables have the mean ± one standard deviation of the trials, and \
         smallest to largest below. <em>ideal</em> is a link of the same rate that is never idle and loses nothing: \
         the rest of a number is the controller's share. Curves over time are of each controller's first trial; lines \
         that leave a panel at the top are cut off.</p>\n\
         <p class=\"note\">playrate {}</p>\n</section>\n</main>\n</body>\n</html>\n",
        escape(&results.programs.join(", "))
    );
    page
}

/// The beginning of a page up to its content.
pub(crate) fn begin(title: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n",
        escape(title)
    )
}

fn contents(page: &mut String, results: &Results, claims: bool) {
    page.push_str("<nav aria-label=\"Contents\">\n");
    if claims {
        page.push_str("<p><a href=\"#claims\">Claims</a></p>\n");
    }
    for paper in papers() {
        let mine: Vec<_> = results
            .experiments
            .iter()
            .filter(|experiment| paper.holds(&experiment.name))
            .map(|experiment| format!("<a href=\"#{0}\">{0}</a>", escape(&experiment.name)))
            .collect();
        if !mine.is_empty() {
            let _ = writeln!(page, "<p><b>{}</b> {}</p>", paper.short, mine.join(" · "));
        }
    }
    page.push_str("</nav>\n");
}

fn section(page: &mut String, experiment: &Experiment, drawn: &[Drawn]) {
    let _ = writeln!(
        page,
        "<article id=\"{0}\">\n<h3>{0}</h3>",
        escape(&experiment.name)
    );
    if let Some(source) = &experiment.source {
        let _ = writeln!(page, "<p class=\"note\">{}</p>", escape(source));
    }
    if !experiment.about.is_empty() {
        let _ = writeln!(page, "<p>{}</p>", escape(&experiment.about));
    }
    if let Some(problem) = &experiment.problem {
        let _ = writeln!(page, "<p class=\"warning\">{}</p>", escape(problem));
    }
    if let Some(diagram) = experiment.cases.first().and_then(|case| case.scenario.as_ref()) {
        let _ = writeln!(page, "<figure>\n{}</figure>", diagram.diagram_svg());
    }
    if let Some(words) = &experiment.words {
        let _ = writeln!(
            page,
            "<details><summary>The scenario in words</summary>\n<pre>{}</pre></details>",
            escape(words)
        );
    }
    let many = experiment.cases.len() > 3;
    if many {
        page.push_str("<details><summary>Tables of all cases</summary>\n");
    }
    for case in &experiment.cases {
        table(page, case);
    }
    if many {
        page.push_str("</details>\n");
    }
    for figure in drawn {
        let _ = write!(page, "<figure>\n{}", figure.svg);
        if !figure.caption.is_empty() {
            let _ = writeln!(page, "<figcaption>{}</figcaption>", escape(&figure.caption));
        }
        page.push_str("</figure>\n");
    }
    page.push_str("</article>\n");
}

/// The papers' claims with their outcomes.
fn claims_table(page: &mut String, claims: &ClaimsReport) {
    page.push_str(
        "<section id=\"claims\">\n<h2 class=\"paper\">Claims of the papers</h2>\n<p>A claim holds only if the \
         confidence intervals of all its checks say so, fails if one says the opposite, and is undecided otherwise.\
         </p>\n<div class=\"wide\"><table>\n<thead><tr><th>claim</th><th>outcome</th><th>the paper's statement</th>\
         </tr></thead>\n<tbody>\n",
    );
    for row in &claims.rows {
        let outcome = row.verdict.name();
        let _ = writeln!(
            page,
            "<tr><th scope=\"row\">{}</th><td class=\"{}\">{outcome}</td><td>{}</td></tr>",
            escape(row.row.id),
            outcome.replace(' ', "-"),
            escape(row.row.says)
        );
    }
    let _ = write!(
        page,
        "</tbody>\n</table></div>\n<details><summary>Every check with its numbers</summary>\n<pre>{}</pre></details>\n\
         </section>\n",
        escape(&to_text(claims))
    );
}

/// The metrics of [`TABLE`] that some row of the case has.
fn columns(case: &CaseResults) -> Vec<&'static Metric> {
    let known = TABLE.iter().filter_map(|name| Metric::find(name));
    known
        .filter(|metric| case.rows().any(|row| metric.value(row).is_some()))
        .collect()
}

fn table(page: &mut String, case: &CaseResults) {
    let columns = columns(case);
    if !case.name.is_empty() {
        let about = case
            .scenario
            .as_ref()
            .and_then(|scenario| scenario.case_about.clone());
        let about = about.map(|about| format!(" <span class=\"meaning\">{}</span>", escape(&about)));
        let _ = writeln!(
            page,
            "<h4>{}{}</h4>",
            escape(&case.name),
            about.unwrap_or_default()
        );
    }
    page.push_str(
        "<div class=\"wide\"><table>\n<thead><tr><th>controller</th><th class=\"value\">trials</th>",
    );
    for metric in &columns {
        let _ = write!(
            page,
            "<th class=\"value\" title=\"{}\">{}</th>",
            escape(metric.about),
            escape(metric.label)
        );
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    if !case.ideal.is_empty() {
        page.push_str("<tr class=\"ideal\"><th scope=\"row\">ideal</th><td class=\"value\"></td>");
        for metric in &columns {
            let values: Vec<f64> = case.ideal.iter().filter_map(|row| metric.value(row)).collect();
            let text = if values.is_empty() {
                String::new()
            } else {
                cell(&values, metric.unit)
            };
            let _ = write!(page, "<td class=\"value\">{text}</td>");
        }
        page.push_str("</tr>\n");
    }
    for one in &case.controllers {
        let _ = write!(
            page,
            "<tr><th scope=\"row\" title=\"{}\"><span class=\"swatch\" style=\"background:{}\"></span>{}</th>\
             <td class=\"value\">{}</td>",
            escape(&one.spec),
            one.style.colour,
            escape(&one.name),
            one.trials.len()
        );
        for metric in &columns {
            let values = one.values(Measure::from(*metric), Flows::VIEWERS, &case.ideal);
            let _ = write!(page, "<td class=\"value\">{}</td>", cell(&values, metric.unit));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n</table></div>\n");
}

/// Mean ± standard deviation, and smallest to largest below.
fn cell(values: &[f64], unit: Unit) -> String {
    let Some(spread) = Spread::of(values.iter().copied()) else {
        return "–".to_owned();
    };
    if spread.max <= spread.min {
        return unit.text(spread.mean);
    }
    format!(
        "{} ± {}<br><span class=\"range\">{} to {}</span>",
        unit.text(spread.mean),
        unit.text(spread.sd),
        unit.text(spread.min),
        unit.text(spread.max)
    )
}
