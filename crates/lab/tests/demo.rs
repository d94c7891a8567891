//! The demo from end to end: servers, relays and clients on loopback UDP, over a path so fast that it takes seconds.

use clap::Parser;
use lab::demo::{self, DemoArgs};
use lab::record::{Comparison, Outcome};
use playrate_units::Bytes;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    demo: DemoArgs,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_controllers_play_the_title_side_by_side() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let line = "demo --controllers reno,quinn-cubic --rate 40Mbit/s --rtt 20ms --queue 1bdp --json --out";
    let words = line.split(' ').chain(out.to_str());
    let args = Line::parse_from(words).demo;
    let mut printed = Vec::new();
    let comparison = demo::run(&args, &mut printed).await.unwrap();

    assert!(demo::succeeded(&comparison));
    let specs: Vec<&str> = comparison.runs.iter().map(|run| run.spec.as_str()).collect();
    assert_eq!(specs, ["reno", "quinn-cubic"]);
    for run in &comparison.runs {
        assert_eq!(run.viewer.outcome, Outcome::Played);
        assert_eq!(run.viewer.delivered, comparison.title.size);
        assert_eq!(run.viewer.pictures, comparison.title.pictures);
        assert!(run.viewer.startup.is_some());
        assert!(
            run.viewer.throughput() <= comparison.path.rate,
            "{}",
            run.viewer.throughput()
        );
        assert!(run.sender.packets > comparison.title.size.as_u64() / 1_452);
        assert!(run.link.forwarded > comparison.title.size.as_u64() / 1_452);
        assert!(!run.transport.is_empty() && !run.playout.is_empty() && !run.queue.is_empty());
        assert!(
            run.transport
                .iter()
                .all(|sample| sample.window >= Bytes::new(2_400))
        );
        assert!(
            run.transport
                .iter()
                .all(|sample| sample.rtt.is_none_or(|rtt| rtt >= comparison.path.rtt))
        );
        let full = run
            .queue
            .iter()
            .map(|sample| sample.queued)
            .max()
            .unwrap_or_default();
        assert!(full <= comparison.path.queue, "{full}");
    }

    let json: serde_json::Value = serde_json::from_slice(&printed).unwrap();
    assert_eq!(json["runs"][1]["spec"], "quinn-cubic");
    let records = std::fs::read_to_string(out.join("demo.json")).unwrap();
    assert_eq!(
        serde_json::from_str::<Comparison>(&records).unwrap().runs.len(),
        2
    );
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("quinn-cubic") && page.contains("Congestion window"));
}
