//! Names and values of metrics, of one flow and of several.

use std::collections::BTreeSet;

use super::*;
use crate::samples::row;

#[test]
fn names_are_unique_and_found() {
    let names: BTreeSet<_> = METRICS.iter().map(|metric| metric.name).collect();
    assert_eq!(names.len(), METRICS.len());
    for metric in METRICS {
        assert_eq!(Measure::find(metric.name).unwrap().name(), metric.name);
        let excess = Measure::find(&format!("excess_{}", metric.name)).unwrap();
        assert!(excess.over_ideal && excess.metric.name == metric.name);
    }
    assert!(Measure::find("excess_").is_none() && Measure::find("discards").is_none());
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
fn the_ideal_rows_value_is_subtracted_for_an_excess() {
    let (mut one, mut ideal) = (row("reno", 1), row("ideal", 1));
    (one.playback.frames_discarded, ideal.playback.frames_discarded) = (30, 232);
    let excess = Measure::find("excess_frames_discarded").unwrap();
    assert_eq!(excess.pooled([&one], &[&ideal]), Some(-202.0));
    assert_eq!(excess.pooled([&one], &[] as &[Row]), None);
    assert_eq!(Metric::find("frames_discarded").unwrap().value(&one), Some(30.0));
}

#[test]
fn an_excess_is_over_the_ideal_row_of_the_same_trial() {
    let excess = Measure::find("excess_frames_discarded").unwrap();
    let discarding = |controller: &str, trial, frames| {
        let mut row = row(controller, trial);
        row.playback.frames_discarded = frames;
        row.varied = true;
        row
    };
    let ideal = [discarding("ideal", 1, 10), discarding("ideal", 2, 20)];
    let runs = [1, 2, 3].map(|trial| discarding("reno", trial, 30));
    let values = runs.each_ref().map(|run| excess.pooled([run], &ideal));
    assert_eq!(values, [Some(20.0), Some(10.0), None]);
    // One for all seeds, as in results whose trials do not vary.
    let mut shared = row("ideal", 1);
    shared.playback.frames_discarded = 10;
    assert_eq!(excess.pooled([&runs[2]], &[shared]), Some(20.0));
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
fn windows_are_counted_apart_and_flows_that_were_not_there_left_out() {
    let mut flows = [row("reno", 1), row("reno", 1)];
    flows[1].windows.clear();
    let metric = |name| Metric::find(name).unwrap();
    assert_eq!(metric("throughput_bps").pooled_in(0, &flows), Some(2_000_000.0));
    assert_eq!(metric("loss_ratio").pooled_in(0, &flows), Some(0.01));
    assert_eq!(metric("throughput_bps").pooled_in(1, &flows), None);
    assert!(!metric("frozen_s").has_windows() && metric("frozen_s").pooled_in(0, &flows).is_none());
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
