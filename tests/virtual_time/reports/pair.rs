//! [`Pair`]: two clients of one server behind one bottleneck.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use http::HeaderMap;
use playrate::cc::ControllerSpec;
use playrate_media::{FrameTrace, TraceSource};
use playrate_netsim::{Loss, PathConfig, QueueLimit, Seed};
use playrate_transport::{Client, Target, time};
use playrate_units::Bitrate;
use video_server::library::Library;
use video_server::serve::Settings;

use super::lies::Lie;
use crate::rig::Rig;

const LINK: Bitrate = Bitrate::from_mbps(8);
/// Duration of both downloads.
const TIME: Duration = Duration::from_secs(12);
/// Bytes of one request.
const SEGMENT: u64 = 500_000;
/// Maximum that one client can fetch in this time: `LINK · TIME`.
const LENGTH: u64 = 12_000_000;

/// Two clients that download as fast as they can over one link, and the controller for both.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair<'a> {
    pub(crate) controller: &'a ControllerSpec,
    /// Rate of the titles.
    pub(crate) rate: Bitrate,
    pub(crate) round_trip: Duration,
}

/// Throughput of both, in Mbit/s.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub(crate) client: f64,
    pub(crate) other: f64,
}

impl Pair<'_> {
    /// The throughput of a client with these requests, and of a concurrent one that sends no CMCD.
    pub(crate) fn run(self, lie: &Lie) -> Share {
        let path = PathConfig::bottleneck(LINK, self.round_trip, QueueLimit::ONE_BDP, Loss::None);
        let rig = Rig::new(Seed::new(1), &path);
        let directory = tempfile::tempdir().unwrap();
        let unknown = std::fs::File::create(directory.path().join("unknown.bin")).unwrap();
        unknown.set_len(LENGTH).unwrap();
        let library = Library::scan(directory.path()).unwrap();
        let library = library.with_source("film", title(self.rate)).unwrap();
        let library = library.with_source("other", title(self.rate)).unwrap();
        let videos = rig.start(library, Settings::new(self.controller.clone().into()), |_| {});
        let [(first, target), (second, _)] = ["first", "second"].map(|name| rig.client(name, |_| {}));
        let received = [AtomicU64::new(0), AtomicU64::new(0)];
        rig.run(async {
            let none = Lie::none();
            let downloads = async {
                tokio::join!(
                    biased;
                    Box::pin(download(&first, &target, lie, &received[0])),
                    Box::pin(download(&second, &target, &none, &received[1])),
                )
            };
            // They go on until their time is over.
            assert!(time::timeout(&*rig.runtime, TIME, downloads).await.is_err());
            videos.shutdown(Duration::ZERO).await;
        });
        let mbps = |bytes: &AtomicU64| bytes.load(Relaxed) as f64 * 8e-6 / TIME.as_secs_f64();
        let [client, other] = [&received[0], &received[1]].map(mbps);
        Share { client, other }
    }
}

/// A title of this rate and of [`LENGTH`] bytes.
fn title(rate: Bitrate) -> Arc<TraceSource> {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/traces/film-1080p.csv");
    let trace = FrameTrace::open(trace).unwrap();
    let playing = rate.time_for(playrate_units::Bytes::new(LENGTH)).unwrap();
    let trace = trace.repeat_to(playing).unwrap().scale_to_rate(rate).unwrap();
    Arc::new(TraceSource::new(&trace))
}

/// Downloads segments endlessly, two at a time, and counts the bytes.
async fn download(client: &Client, target: &Target, lie: &Lie, received: &AtomicU64) {
    let connection = client.connect(target).await.unwrap();
    let requests = AtomicU64::new(0);
    let download = || async {
        loop {
            let number = requests.fetch_add(1, Relaxed);
            let mut headers = HeaderMap::new();
            if let Some(report) = lie.report(number) {
                headers.insert("cmcd-request", report.parse().unwrap());
            }
            let first = number * SEGMENT % LENGTH;
            let (path, last) = (lie.path(number), first + SEGMENT - 1);
            let (_, mut body) = connection
                .get_range(path, first, Some(last), headers)
                .await
                .unwrap();
            while let Some(chunk) = body.chunk().await.unwrap() {
                received.fetch_add(chunk.len() as u64, Relaxed);
            }
        }
    };
    tokio::join!(biased; download(), download());
}
