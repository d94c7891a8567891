//! Responses with different priorities (RFC 9218) on one connection over a slow path: `docs/operating/delivery.md`
//! shows what a client has received of each by time.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use http::HeaderMap;
use playrate_media::MemorySource;
use playrate_netsim::{PathConfig, Seed};
use playrate_units::Bitrate;
use video_server::library::Library;
use video_server::serve::Settings;

use crate::rig::Rig;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
/// Time of each request, its priority, and its bytes.
const REQUESTS: [(Duration, &str, usize); 4] = [
    (Duration::ZERO, "u=6", 1_000_000),
    (Duration::from_millis(500), "u=3, i", 1_000_000),
    (Duration::from_millis(500), "u=3, i", 1_000_000),
    (Duration::from_millis(1_500), "u=1", 500_000),
];
/// Time between two rows of the table.
const STEP: Duration = Duration::from_millis(500);
/// Largest difference between the table in the page and a run, in kB. The lengths of the handshake's signatures vary.
const TOLERANCE: usize = 10;

/// Kilobytes of each response that the client has received by the multiples of [`STEP`].
fn received() -> Vec<[usize; 4]> {
    let path = PathConfig::of_rate(Bitrate::from_mbps(10), Duration::from_millis(40));
    let rig = Rig::new(Seed::new(1), &path);
    let title = MemorySource::open(format!("{ROOT}/assets/title-720p.mp4").as_ref()).unwrap();
    let library = Library::new().with_source("title.mp4", Arc::new(title)).unwrap();
    let videos = rig.start(library, Settings::new("video".parse().unwrap()), |_| {});
    let (client, target) = rig.client("client", |_| {});
    let chunks = RefCell::new(Vec::new());
    rig.run(async {
        let connection = client.connect(&target).await.unwrap();
        let began = rig.sim.now();
        let fetch = async |number: usize| {
            let (at, priority, bytes) = REQUESTS[number];
            playrate_transport::time::sleep(&*rig.runtime, at).await;
            let headers = [
                ("priority", priority.to_owned()),
                ("range", format!("bytes=0-{}", bytes - 1)),
            ];
            let headers = headers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            let (_, mut body) = connection
                .get("/title.mp4", HeaderMap::from_iter(headers))
                .await
                .unwrap();
            while let Some(chunk) = body.chunk().await.unwrap() {
                chunks
                    .borrow_mut()
                    .push((rig.sim.now().since(began), number, chunk.len()));
            }
            assert_eq!(body.received(), bytes as u64);
        };
        join_all((0..REQUESTS.len()).map(fetch)).await;
        connection.close();
        videos.shutdown(Duration::from_secs(3)).await;
    });
    let chunks = chunks.into_inner();
    let by = |until: Duration, number: usize| -> usize {
        let before = chunks.iter().filter(|(at, of, _)| *at <= until && *of == number);
        before.map(|(_, _, bytes)| bytes).sum::<usize>() / 1_000
    };
    let last = chunks.iter().map(|(at, _, _)| *at).max().unwrap();
    (1..=u32::try_from(last.as_nanos().div_ceil(STEP.as_nanos())).unwrap())
        .map(|step| std::array::from_fn(|number| by(STEP * step, number)))
        .collect()
}

/// An urgent response soon takes the path from the others; the incremental ones share what it leaves, and the
/// background comes last.
#[test]
fn the_page_shows_what_arrived_of_each_response() {
    let received = received();
    let page = fs::read_to_string(format!("{ROOT}/docs/operating/delivery.md")).unwrap();
    let rows = page
        .lines()
        .skip_while(|line| !line.starts_with("| ms | background `u=6`"));
    let rows: Vec<Vec<usize>> = rows
        .skip(2)
        .map_while(|line| line.strip_prefix("| ")?.strip_suffix(" |"))
        .map(|cells| {
            cells
                .split(" | ")
                .map(|cell| cell.replace(',', "").parse().unwrap())
                .collect()
        })
        .collect();
    let mut table = String::new();
    for (step, row) in received.iter().enumerate() {
        let cells = row.map(|kilobytes| kilobytes.to_string()).join(" | ");
        writeln!(table, "| {} | {cells} |", STEP.as_millis() * (step as u128 + 1)).unwrap();
    }
    let agrees = |(row, received): (&Vec<usize>, &[usize; 4])| {
        row.len() == 5
            && row[1..]
                .iter()
                .zip(received)
                .all(|(a, b)| a.abs_diff(*b) <= TOLERANCE)
    };
    assert_eq!(rows.len(), received.len(), "the page should have:\n{table}");
    assert!(
        rows.iter().zip(&received).all(agrees),
        "the page should have:\n{table}"
    );
}
