//! Names and values of metrics, for one flow and for several.

use std::collections::BTreeSet;

use super::*;
use crate::tests::row;

#[test]
fn names_are_unique_and_found() {
    let names: BTreeSet<_> = METRICS.iter().map(|metric| metric.name).collect();
    assert_eq!(names.len(), METRICS.len());
    assert!(METRICS.iter().all(|metric| Metric::find(metric.name).is_some()));
    assert!(Metric::find("discards").is_none());
}

#[test]
fn a_metric_of_a_fields_name_is_that_field() {
    let row = row("reno", 1);
    let json = serde_json::to_value(&row).unwrap();
    for metric in METRICS {
        if let Some(field) = json.get(metric.name).and_then(serde_json::Value::as_f64) {
            assert_eq!(metric.value(&row), Some(field), "{}", metric.name);
        }
    }
}

#[test]
fn every_number_of_a_row_is_a_metric() {
    let about_the_run = ["version", "trial", "seed", "viewer", "joined_s"];
    let json = serde_json::to_value(row("reno", 1)).unwrap();
    for (name, value) in json.as_object().unwrap() {
        if value.is_number() && !about_the_run.contains(&name.as_str()) {
            assert!(Metric::find(name).is_some(), "{name} is not a metric");
        }
    }
}

#[test]
fn slow_start_doubles_the_window_in_a_round_trip() {
    let growth = Metric::find("window_growth")
        .unwrap()
        .value(&row("reno", 1))
        .unwrap();
    assert!((growth - 2.0).abs() < 1e-12, "{growth}");
}

#[test]
fn flows_are_pooled_by_their_packets_and_not_by_their_ratios() {
    let mut flows = [row("reno", 1), row("reno", 1)];
    for (flow, (sent, lost)) in flows.iter_mut().zip([(1_000, 10), (9_000, 0)]) {
        let sender = flow.sender.as_mut().unwrap();
        (sender.sent_packets, sender.lost_packets) = (sent, lost);
    }
    let pooled = |name| Metric::find(name).unwrap().pooled(&flows);
    assert_eq!(pooled("loss_ratio"), Some(0.001));
    assert_eq!(pooled("lost_packets"), Some(5.0));
    assert_eq!(Metric::find("loss_ratio").unwrap().pooled([]), None);
}

#[test]
fn a_value_that_one_flow_lacks_is_missing_for_all_flows_together() {
    let mut flows = [row("reno", 1), row("reno", 1)];
    flows[1].playback.startup_delay = None;
    assert_eq!(Metric::find("startup_delay_s").unwrap().pooled(&flows), None);
}

#[test]
fn docs_runs_names_every_field_and_every_metric() {
    let page = include_str!("../../../../docs/runs.md");
    let row = serde_json::to_value(row("reno", 1)).unwrap();
    let window = &row["windows"][0];
    let fields = row
        .as_object()
        .unwrap()
        .keys()
        .chain(window.as_object().unwrap().keys());
    let names = fields
        .map(String::as_str)
        .chain(METRICS.iter().map(|metric| metric.name));
    let missing: BTreeSet<&str> = names
        .filter(|name| !page.contains(&format!("`{name}`")))
        .collect();
    assert!(missing.is_empty(), "docs/runs.md does not name {missing:?}");
}
