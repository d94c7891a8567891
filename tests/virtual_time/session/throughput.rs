//! CMSD `etp`, the throughput that a server reports to its players, against links with known rates.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use playrate_media::cmsd::CmsdDynamic;
use playrate_media::{MediaSource, MemorySource};
use playrate_netsim::{LinkConfig, PathConfig, QueueLimit, Rate, Seed};
use playrate_transport::Connection;
use playrate_units::{Bitrate, Bytes};
use video_server::library::Library;
use video_server::serve::Settings;

use crate::rig::Rig;

const SEGMENT: u64 = 1_500_000;

/// Fetches a segment with CMCD; returns its `etp`, measured over the segments before.
async fn etp(connection: &Connection, segment: u64) -> Option<Bitrate> {
    let mut headers = HeaderMap::new();
    headers.insert("cmcd-request", HeaderValue::from_static("bl=4000"));
    let first = segment % 6 * SEGMENT;
    let range = format!("bytes={first}-{}", first + SEGMENT - 1);
    headers.insert("range", range.parse().unwrap());
    let (response, mut body) = connection.get("/title.mp4", headers).await.unwrap();
    while body.chunk().await.unwrap().is_some() {}
    CmsdDynamic::read(response.headers())?.throughput
}

/// The link falls from 20 to 5 Mbit/s at 10 s. A player fetches a segment of 12 Mbit every two seconds, or as soon as
/// it has the last one.
#[test]
fn etp_is_the_links_rate_one_segment_after_it_fell() {
    for controller in ["cubic", "video", "bbr", "quinn-cubic"] {
        let delay = Duration::from_millis(20);
        let forward = LinkConfig::new("20Mbit/s,5Mbit/s@10s".parse::<Rate>().unwrap(), delay)
            .with_queue(QueueLimit::Bytes(Bytes::from_kb(100)));
        let path = PathConfig::new(forward, LinkConfig::new(Rate::Unlimited, delay));
        let rig = Rig::new(Seed::new(3), &path);
        let title = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/title-720p.mp4");
        let title = MemorySource::open(title.as_ref()).unwrap();
        assert!(title.len() >= 6 * SEGMENT);
        let library = Library::new().with_source("title.mp4", Arc::new(title)).unwrap();
        let videos = rig.start(library, Settings::new(controller.parse().unwrap()), |_| {});
        let (client, target) = rig.client("client", |_| {});
        let reported = rig.run(async {
            let connection = client.connect(&target).await.unwrap();
            let mut reported = Vec::new();
            for segment in 0..10 {
                let began = rig.sim.now();
                let etp = etp(&connection, segment).await;
                let ended = rig.sim.now();
                reported.push((etp, ended));
                let pause = Duration::from_secs(2).saturating_sub(ended.since(began));
                playrate_transport::time::sleep(&*rig.runtime, pause).await;
            }
            connection.close();
            videos.shutdown(Duration::from_secs(3)).await;
            reported
        });
        assert_eq!(reported[0].0, None, "{controller}: nothing was measured");
        // The first segment contains slow start. The second and later ones were measured until they had arrived.
        let mut slow = 0;
        for (&(_, measured), (etp, _)) in reported[1..].iter().zip(&reported[2..]) {
            let has_fallen = measured.as_secs_f64() >= 10.0;
            slow += u32::from(has_fallen);
            let link = if has_fallen { 5_000 } else { 20_000 };
            // Without UDP and IP headers.
            let carried = Bitrate::from_kbps(link).scaled(1_452, 1_480);
            let bounds = carried.scaled(85, 100)..=carried.scaled(102, 100);
            let etp = etp.unwrap();
            assert!(
                bounds.contains(&etp),
                "{controller} at {measured:?}: {etp} on a link of {carried}; {reported:?}"
            );
        }
        assert!(slow >= 2, "{controller}: {reported:?}");
    }
}
