//! Prometheus' own checker finds no fault with the metrics and the alert rules.
//!
//! Needs `promtool`, of Debian's package `prometheus`, on the PATH.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use libtest_mimic::Trial;

use crate::support::{self, Server, films, output_within, root};

const LIMIT: Duration = Duration::from_secs(30);

pub(crate) fn tests() -> Vec<Trial> {
    let missing = support::on_the_path(&[("promtool", "--version")]);
    let test = |name, run| support::test(name, &missing, run);
    vec![
        test(
            "prometheus::promtool_finds_no_fault_with_the_metrics",
            promtool_finds_no_fault_with_the_metrics,
        ),
        test(
            "prometheus::promtool_finds_no_fault_with_the_alert_rules",
            promtool_finds_no_fault_with_the_alert_rules,
        ),
    ]
}

fn promtool_finds_no_fault_with_the_metrics() {
    let films = films();
    let server = Server::start(films.path(), &["--metrics", "127.0.0.1:0"]);
    let address = server
        .said("Metrics")
        .trim_start_matches("http://")
        .trim_end_matches('/');
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: metrics\r\nConnection: close\r\n\r\n")
        .expect("the server reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the server answers");
    let (_, metrics) = answer
        .split_once("\r\n\r\n")
        .expect("a head ends with an empty line");
    assert!(metrics.contains("playrate_connections"), "{metrics}");
    // It exits with 3 where it has something to say.
    output_within(
        LIMIT,
        Command::new("promtool").args(["check", "metrics"]),
        metrics,
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
