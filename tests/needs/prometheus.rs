//! Prometheus' own checker finds no fault with the metrics and the alert rules.
//!
//! Needs `promtool`, of Debian's package `prometheus`, on the PATH.

use std::process::Command;
use std::time::Duration;

use libtest_mimic::Trial;

use crate::support::{self, output_within};
use playrate_test_support::{films, root};

const LIMIT: Duration = Duration::from_secs(30);

pub(crate) fn tests() -> Vec<Trial> {
    let missing = support::on_the_path(&[("promtool", "--version")]);
    tests![
        &missing,
        promtool_finds_no_fault_with_the_metrics,
        promtool_finds_no_fault_with_the_alert_rules
    ]
}

fn promtool_finds_no_fault_with_the_metrics() {
    let films = films();
    let server = support::serve(films.path(), &["--metrics", "127.0.0.1:0"]);
    let (_, metrics) = server.ask("GET /metrics", "Accept: */*");
    assert!(metrics.contains("playrate_connections"), "{metrics}");
    // It exits with 3 if it has a complaint.
    output_within(
        LIMIT,
        Command::new("promtool").args(["check", "metrics"]),
        &metrics,
    );
}

fn promtool_finds_no_fault_with_the_alert_rules() {
    let rules = root().join("packaging/prometheus/video-server.rules.yml");
    let checked = output_within(
        LIMIT,
        Command::new("promtool").args(["check", "rules"]).arg(rules),
        "",
    );
    assert!(checked.contains("rules found"), "{checked}");
}
