//! Files that `--qlog` writes.

use std::fs;
use std::path::{Path, PathBuf};

use http::HeaderMap;
use serde_json::{Value, json};

use crate::cli::process::{assert_fields, start};
use playrate_test_support::{Media, assert_contains, fetch};

/// Runs `clients` clients one after another that fetch 8 MiB each; returns the server's log and its qlog files.
async fn recorded(clients: usize, arguments: &[&str]) -> (String, Vec<Vec<Value>>) {
    let directory = Media::new();
    directory.put("media/file.bin", vec![7; 8 << 20]);
    let logs = directory.text("a/qlogs");
    let serving = start(
        &directory.path("media"),
        &[&["--qlog", &logs], arguments].concat(),
    );
    for number in 1..=clients {
        let connection = serving.connect().await;
        fetch(&connection, "/file.bin", HeaderMap::new()).await;
        connection.close();
        serving.logs("session finished", number).await;
    }
    (serving.stop(), files(logs.as_ref()))
}

/// The records of each file, the files in the order of their names.
fn files(directory: &Path) -> Vec<Vec<Value>> {
    let entries = fs::read_dir(directory).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        assert_eq!(path.extension().unwrap(), "sqlog");
        let text = fs::read_to_string(path).unwrap();
        let records = text.split('\u{1e}').skip(1);
        records
            .map(|record| serde_json::from_str(record).unwrap())
            .collect()
    };
    paths.into_iter().map(read).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_s_congestion_control_is_there_from_beginning_to_end() {
    let (log, files) = recorded(1, &["--controller", "reno"]).await;
    assert_eq!(files.len(), 1, "{log}");
    let (header, events) = files[0].split_first().unwrap();
    assert_fields(
        header,
        &json!({ "qlog_version": "0.3", "qlog_format": "JSON-SEQ" }),
    );
    assert_eq!(header["trace"]["vantage_point"]["type"], "server");
    assert!(header["description"].as_str().unwrap().contains("reno"));
    let reference_time = &header["trace"]["common_fields"]["reference_time"];
    assert!(reference_time.as_f64().unwrap() > 1.6e12, "ms since 1970");
    let times = events.iter().map(|event| event["time"].as_f64().unwrap());
    let times: Vec<_> = times.collect();
    assert!(times.is_sorted(), "{times:?}");
    let of = |name: &str| -> Vec<&Value> {
        let named = events.iter().filter(|event| event["name"] == name);
        named.map(|event| &event["data"]).collect()
    };
    assert_eq!(of("recovery:congestion_state_updated")[0]["new"], "slow_start");
    let metrics = of("recovery:metrics_updated");
    assert!(metrics[0]["congestion_window"].as_u64().unwrap() > 10_000);
    // Loopback takes microseconds; in seconds it would be less than 0.001, in µs more than 1000.
    let rtts = metrics.iter().filter_map(|data| data["smoothed_rtt"].as_f64());
    let rtts: Vec<_> = rtts.collect();
    let is_in_ms = |rtt| (0.001..1_000.0).contains(rtt);
    assert!(!rtts.is_empty() && rtts.iter().all(is_in_ms), "{rtts:?}");
    let mut delivered = metrics
        .iter()
        .filter_map(|data| data["playrate_delivered"].as_u64());
    assert!(
        delivered.next_back().unwrap() > 8 << 20,
        "the last sample is there"
    );
    let said = of("loglevel:info")[0]["message"].as_str().unwrap();
    assert_contains(said, &["controller reno", "1 requests", "in good order"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_sample_the_others_leave_no_file() {
    let (log, files) = recorded(5, &["--qlog-sample", "2"]).await;
    let number = |file: &Vec<Value>| file[0]["trace"]["common_fields"]["group_id"].clone();
    let numbers: Vec<_> = files.iter().map(number).collect();
    assert_eq!(numbers, ["0", "2", "4"], "{log}");
}
