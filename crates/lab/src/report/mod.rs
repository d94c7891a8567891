//! `report.html`: a comparison as one page that needs nothing but itself.

use std::fmt::Write as _;

mod charts;
pub mod results;

use charts::{Figure, curves, overview, run_colours};

use crate::experience::{Group, Row, rows};
use crate::explain::Explanation;
use crate::figure::{Colour, FigureError, escape};
use crate::record::Comparison;
use crate::words::{percent, rate, size, time};

const STYLE: &str = include_str!("style.css");

/// The page. The same records give the same bytes.
pub fn html(comparison: &Comparison) -> Result<String, FigureError> {
    let explanation = Explanation::of(comparison);
    let specs: Vec<&str> = comparison.runs.iter().map(|run| run.spec.as_str()).collect();
    let colours = run_colours(comparison);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>playrate: {}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n",
        escape(&specs.join(" and ")),
    );
    head(&mut page, comparison, &explanation);
    for shown in overview(comparison)? {
        figure(&mut page, &shown);
    }
    table(&mut page, comparison, &colours);
    why(&mut page, &explanation);
    page.push_str("<section>\n<h2>Over time</h2>\n");
    for shown in curves(comparison)? {
        figure(&mut page, &shown);
    }
    page.push_str("</section>\n");
    method(&mut page, comparison);
    page.push_str("</main>\n</body>\n</html>\n");
    Ok(page)
}

/// The figures alone, for papers and slides: `(file name, SVG)`.
pub fn figures(comparison: &Comparison) -> Result<Vec<(String, String)>, FigureError> {
    let figures = overview(comparison)?.into_iter().chain(curves(comparison)?);
    Ok(figures
        .map(|figure| (format!("{}.svg", figure.name), figure.svg))
        .collect())
}

fn head(page: &mut String, comparison: &Comparison, explanation: &Explanation) {
    let (title, path) = (&comparison.title, &comparison.path);
    let loss = match path.loss.as_f64() {
        0.0 => "no random loss".to_owned(),
        loss => format!("{} random loss", percent(loss)),
    };
    let _ = write!(
        page,
        "<header>\n<p class=\"kicker\">playrate · one title, one path, {} congestion {}</p>\n<h1>{}</h1>\n\
         <p class=\"lead\">{} ({}, {} on average, {}) was streamed over QUIC and HTTP/3 through a real UDP \
         path of {}, {} RTT, a {} queue and {loss}. The player held {} of playout buffer.</p>\n",
        comparison.runs.len(),
        if comparison.runs.len() == 1 {
            "controller"
        } else {
            "controllers"
        },
        escape(&explanation.headline),
        escape(&title.name),
        escape(&title.format),
        rate(title.average_rate),
        time(title.duration),
        rate(path.rate),
        time(path.rtt),
        size(path.queue),
        size(comparison.playout_buffer),
    );
    if let Some(warning) = &explanation.warning {
        let _ = writeln!(page, "<p class=\"warning\">{}</p>", escape(warning));
    }
    page.push_str("</header>\n");
}

fn figure(page: &mut String, shown: &Figure) {
    let _ = write!(page, "<figure>\n{}", shown.svg);
    if !shown.caption.is_empty() {
        let _ = writeln!(page, "<figcaption>{}</figcaption>", escape(shown.caption));
    }
    page.push_str("</figure>\n");
}

fn table(page: &mut String, comparison: &Comparison, colours: &[Colour]) {
    page.push_str("<section>\n<h2>The viewers' experience</h2>\n<table>\n<thead><tr><th></th>");
    for (run, colour) in comparison.runs.iter().zip(colours) {
        let _ = write!(
            page,
            "<th class=\"value\"><span class=\"swatch\" style=\"background:{colour}\"></span>{}</th>",
            escape(&run.spec)
        );
    }
    page.push_str("</tr></thead>\n");
    let rows = rows(comparison);
    for group in [Group::Viewer, Group::Transport] {
        let _ = writeln!(
            page,
            "<tbody><tr class=\"group\"><th colspan=\"{}\">{}</th></tr>",
            comparison.runs.len() + 1,
            group.title()
        );
        for row in rows.iter().filter(|row| row.group == group) {
            table_row(page, row);
        }
        page.push_str("</tbody>\n");
    }
    page.push_str("</table>\n");
    if rows.iter().any(|row| row.best.contains(&true)) {
        page.push_str("<p class=\"note\">● marks the better value where the two differ.</p>\n");
    }
    page.push_str("</section>\n");
}

fn table_row(page: &mut String, row: &Row) {
    let _ = write!(
        page,
        "<tr><th scope=\"row\">{} <span class=\"meaning\">{}</span></th>",
        row.label,
        escape(&row.meaning)
    );
    for (i, value) in row.values.iter().enumerate() {
        let best = row.best.get(i).copied().unwrap_or(false);
        let (class, mark) = if best {
            (" best", "<span class=\"mark\">●</span> ")
        } else {
            ("", "")
        };
        let _ = write!(page, "<td class=\"value{class}\">{mark}{}</td>", escape(value));
    }
    page.push_str("</tr>\n");
}

fn why(page: &mut String, explanation: &Explanation) {
    page.push_str("<section>\n<h2>Why</h2>\n<ul class=\"why\">\n");
    for reason in &explanation.reasons {
        let _ = writeln!(page, "<li>{}</li>", escape(reason));
    }
    page.push_str(
        "</ul>\n<p class=\"note\">Every number here is computed from this run's records.</p>\n</section>\n",
    );
}

fn method(page: &mut String, comparison: &Comparison) {
    let path = &comparison.path;
    let lateness: Vec<String> = comparison
        .runs
        .iter()
        .map(|run| format!("{} {}", run.spec, time(run.link.lateness)))
        .collect();
    let specs: Vec<&str> = comparison.runs.iter().map(|run| run.spec.as_str()).collect();
    let _ = write!(
        page,
        "<section class=\"method\">\n<h2>How this was measured</h2>\n<p>Each run is the real <code>video-server</code> \
         and the real <code>video-client</code> as separate QUIC endpoints on loopback UDP. A relay between their \
         sockets holds every datagram for as long as the modelled path would and drops what it would drop; 28 bytes \
         of IP and UDP header count. The runs went side by side, each on a path of its own. Worst lateness of a \
         packet against the model: {}.</p>\n<p>The player keeps its clock: when a picture is not there in time it \
         freezes, then catches up at up to twice the speed, and discards pictures that are more than 200 ms late.</p>\n\
         <pre>lab demo --controllers '{}' --rate {} --rtt {} --queue {} --loss {} --playout-buffer {} --seed {}</pre>\n\
         <p class=\"note\">playrate {}</p>\n</section>\n",
        escape(&lateness.join(", ")),
        escape(&specs.join(",")),
        path.rate,
        playrate_units::duration::display(path.rtt),
        path.queue,
        path.loss,
        comparison.playout_buffer,
        path.seed,
        escape(&comparison.version),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::comparison;

    #[test]
    fn the_page_needs_nothing_but_itself() {
        let page = html(&comparison()).unwrap();
        for outside in ["<script", "<link", "src=", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
        let namespaces = page.matches("http://www.w3.org/2000/svg").count();
        assert_eq!(page.matches("http").count(), namespaces);
    }

    #[test]
    fn both_runs_stand_in_it_with_their_numbers() {
        let page = html(&comparison()).unwrap();
        for words in [
            "reno",
            "cubic",
            "12 of 1,200",
            "0 of 1,200",
            "5.50 s",
            "2.00 Mbit/s",
            "2.40 Mbit/s",
        ] {
            assert!(page.contains(words), "{words} is missing");
        }
        assert_eq!(page.matches("<svg").count(), 7);
    }

    #[test]
    fn the_same_records_give_the_same_page() {
        assert_eq!(html(&comparison()).unwrap(), html(&comparison()).unwrap());
    }

    #[test]
    fn a_spec_cannot_inject_markup() {
        let mut sly = comparison();
        sly.runs[0].spec = "<img onerror=x>".into();
        sly.title.name = "<b>".into();
        let page = html(&sly).unwrap();
        assert!(!page.contains("<img") && !page.contains("<b>"));
    }

    #[test]
    fn what_was_not_sampled_has_no_chart() {
        let mut bare = comparison();
        for run in &mut bare.runs {
            run.queue.clear();
        }
        assert!(!html(&bare).unwrap().contains("Bottleneck queue"));
    }

    #[test]
    fn figures_also_come_as_files_with_their_own_names() {
        let files = figures(&comparison()).unwrap();
        let names: Vec<&str> = files.iter().map(|file| file.0.as_str()).collect();
        assert_eq!(
            names,
            [
                "path.svg",
                "viewers.svg",
                "playout-buffer.svg",
                "throughput.svg",
                "congestion-window.svg",
                "rtt.svg",
                "bottleneck-queue.svg"
            ]
        );
    }
}
