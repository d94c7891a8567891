//! The demo on a terminal: an announcement, a table, the explanation; or one JSON object.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};
use playrate_units::Bytes;
use playrate_units::rounded::{percent, rate, size, time};
use serde_json::{Value, json};

use super::explain::Explanation;
use super::{DemoArgs, DemoReport, DemoRun};
use crate::controllers::short_name;
use crate::live::{ControllerComparison, MetricComparison};
use crate::metric::{Better, Metric};
use crate::scenario::Scenario;
use crate::sim::Span;
use crate::words::{self, WIDTH};

/// The sections of the table with their metrics.
const TABLE: [(&str, &str); 2] = [
    (
        "THE VIEWER",
        "impaired_share startup_delay_s underflow_events frozen_s frames_discarded ended_s",
    ),
    (
        "THE NETWORK",
        "throughput_bps window_mean_bytes rtt_p50_s mean_queue_delay_s queue_drops random_losses loss_ratio \
         congestion_events",
    ),
];

/// Announces the sessions on stderr.
pub(super) fn announce(scenario: &Scenario, args: &DemoArgs, queue: Bytes) {
    let loss = percent(args.loss.as_f64());
    let title = scenario.viewer.title.source().title();
    let name = scenario.viewer.title.name();
    let (average, playing) = (rate(title.average_rate()), time(title.duration()));
    let (link, rtt, queue) = (rate(args.rate), time(args.rtt), size(queue));
    let specs = scenario.controllers.iter();
    let specs: Vec<String> = specs.map(|choice| short_name(&choice.to_string())).collect();
    // A closed stderr is not an error.
    let _ = writeln!(
        io::stderr(),
        "{name} ({average} on average, {playing})\nover UDP through {link}, {rtt} RTT, a queue of {queue}, \
         {loss} random loss, {} up:\n{}\n",
        args.uplink,
        specs.join(", ")
    );
}

/// Prints the table and the explanation.
pub(super) fn print(report: &DemoReport, explanation: &Explanation, out: &mut impl Write) -> io::Result<()> {
    for line in table(&report.runs).to_string().lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    let text = explanation.text(WIDTH);
    write!(out, "\n* the better value, where they differ\n\n{text}")
}

fn table(runs: &[DemoRun]) -> Table {
    let mut table = words::table(presets::NOTHING);
    let specs = runs.iter().map(DemoRun::spec);
    table.set_header(std::iter::once(String::new()).chain(specs));
    for (section, metrics) in TABLE {
        table.add_row([""]);
        table.add_row([section]);
        if section == TABLE[0].0 {
            table.add_row(std::iter::once("Outcome").chain(runs.iter().map(DemoRun::outcome)));
        }
        for metric in metrics.split(' ').filter_map(Metric::find) {
            table.add_row(std::iter::once(metric.label.to_owned()).chain(values(metric, runs)));
        }
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// The values of a metric as text, with the best ones marked if the texts differ.
fn values(metric: &Metric, runs: &[DemoRun]) -> Vec<String> {
    let numbers: Vec<Option<f64>> = runs.iter().map(|run| metric.value(&run.row)).collect();
    let text = |value: &Option<f64>| value.map_or_else(|| "none".to_owned(), |value| metric.unit.text(value));
    let texts: Vec<String> = numbers.iter().map(text).collect();
    let known = numbers.iter().flatten().copied();
    let best = match metric.better {
        Better::Lower => known.reduce(f64::min),
        Better::Higher => known.reduce(f64::max),
        Better::Neither => None,
    };
    let differ = texts.iter().any(|text| Some(text) != texts.first());
    let mark = |number: Option<f64>| {
        if differ && number.is_some() && number == best {
            "* "
        } else {
            ""
        }
    };
    let marked = numbers.into_iter().zip(&texts);
    marked
        .map(|(number, text)| format!("{}{text}", mark(number)))
        .collect()
}

/// Prints the results as one JSON object, without time series. Times are in seconds, sizes in bytes, rates in bit/s;
/// the loss is in parts per billion. A stall is an array of its beginning and its end.
pub(super) fn print_json(
    report: &DemoReport,
    explanation: &Explanation,
    page: &Path,
    out: &mut impl Write,
) -> io::Result<()> {
    let (scenario, args) = (&report.scenario, &report.args);
    let title = scenario.viewer.title.source().title();
    let runs: Vec<Value> = report
        .runs
        .iter()
        .enumerate()
        .map(|(index, run)| {
            let download = report.downloads.get(index).and_then(Option::as_ref);
            run_json(run, report.comparisons.get(index), download)
        })
        .collect::<io::Result<_>>()?;
    let summary = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "title": {
            "name": scenario.viewer.title.name(),
            "size": title.file_size(),
            "duration": title.duration().as_secs_f64(),
            "average_rate": title.average_rate(),
            "frames": title.frames().len(),
        },
        "path": {
            "rate": args.rate,
            "rtt": args.rtt.as_secs_f64(),
            "queue": report.queue,
            "loss": args.loss,
            "uplink": args.uplink.to_string(),
            "seed": args.seed,
        },
        "playout_buffer": scenario.viewer.playout.playout_buffer,
        "headline": explanation.headline,
        "reasons": explanation.reasons,
        "verdict": explanation.verdict,
        "warning": explanation.warning,
        "runs": runs,
        "report": page.display().to_string(),
    });
    writeln!(out, "{}", serde_json::to_string_pretty(&summary)?)
}

/// One run: its row of `runs.jsonl`, times of the viewer that no row has, and the results of its virtual runs.
fn run_json(
    run: &DemoRun,
    compared: Option<&ControllerComparison>,
    download: Option<&MetricComparison>,
) -> io::Result<Value> {
    let spans = run.run.viewers.first().map(|viewer| &viewer.spans);
    let stalls = spans.map_or(&[][..], |spans| &spans.stalls);
    let discarded = spans.map_or(&[][..], |spans| &spans.discard_times);
    let ends = |stall: &Span| [stall.from.as_secs_f64(), stall.to.as_secs_f64()];
    Ok(json!({
        "row": serde_json::to_value(&run.row)?,
        "stalls": stalls.iter().map(ends).collect::<Vec<_>>(),
        "discard_times": discarded.iter().map(Duration::as_secs_f64).collect::<Vec<_>>(),
        "lateness": run.attempt.lateness_max_s,
        "flaws": run.attempt.flaws,
        "virtual": compared.map(|compared| &compared.measures),
        "download_bps": download,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::explain::tests::{impaired, smooth};
    use super::*;

    #[test]
    fn the_table_has_a_column_for_each_run_and_marks_the_better_value() {
        let text = table(&[impaired("reno", 0.5), smooth("cubic", 0.8)]).to_string();
        let head = text.lines().next().unwrap();
        assert!(head.contains("reno") && head.contains("cubic"), "{text}");
        let underflows = text.lines().find(|line| line.contains("Underflows")).unwrap();
        assert!(underflows.contains('2') && underflows.contains("* 0"), "{text}");
    }
}
