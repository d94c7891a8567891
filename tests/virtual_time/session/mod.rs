//! The product's server and client in virtual time: TLS, HTTP/3 and a real title over a modelled path, in a moment.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use playrate_media::MemorySource;
use playrate_netsim::{PathConfig, QueueLimit, Reordering, Seed, Simulation};
use playrate_transport::{Client, ClientOptions, Identity, Server, ServerOptions, Trust};
use playrate_units::{Bitrate, Bytes, Probability};
use video_client::playout::{CatchUp, Clock, PlayoutConfig};
use video_client::report::QualityReport;
use video_client::{Discard, PlayOptions, Session};
use video_server::library::Library;
use video_server::serve::Settings;

use crate::rig::Rig;

mod interruptions;
mod throughput;

/// Plays the embedded title once; returns what the viewer saw and the digest of everything on the wire.
fn play(controller: &str, seed: Seed, path: &PathConfig) -> (QualityReport, u64) {
    let rig = Rig::new(seed, path);
    let title =
        MemorySource::open(concat!(env!("CARGO_MANIFEST_DIR"), "/assets/title-720p.mp4").as_ref()).unwrap();
    let library = Library::new().with_source("title.mp4", Arc::new(title)).unwrap();
    let videos = rig.start(library, Settings::new(controller.parse().unwrap()), |_| {});
    let (client, target) = rig.client("client", |_| {});
    let mut options = PlayOptions::default();
    options.playout = PlayoutConfig::new(Bytes::from_kb(656), Clock::CatchUp(CatchUp::default()));
    let session = Session::new(client.clone(), target, "/title.mp4", options);
    let played = rig.run(async {
        let played = session
            .play(&mut Discard, &mut (), std::future::pending())
            .await
            .unwrap();
        client.wait_idle().await;
        videos.shutdown(Duration::from_secs(3)).await;
        played
    });
    played.result.unwrap();
    assert!(rig.sim.link_stats(rig.path.forward).is_conserved());
    (played.report, rig.sim.digest())
}

fn path(loss: Probability) -> PathConfig {
    let (rate, rtt) = (Bitrate::from_mbps(20), Duration::from_millis(100));
    PathConfig::bottleneck(rate, rtt, QueueLimit::ONE_BDP, loss)
}

#[test]
fn a_session_repeats_to_the_packet_for_the_same_seed_only() {
    let path = path("0.1%".parse().unwrap());
    let (report, digest) = play("cubic", Seed::new(3), &path);
    assert_eq!(report.network.received, report.network.promised.unwrap());
    assert!(
        report.network.connected.unwrap() >= Duration::from_millis(100),
        "no faster than light"
    );
    assert_eq!(play("cubic", Seed::new(3), &path).1, digest);
    assert_ne!(play("cubic", Seed::new(4), &path).1, digest);
    assert_ne!(play("reno", Seed::new(3), &path).1, digest);
}

#[test]
fn reordered_packets_do_not_count_as_lost() {
    let path = path(Probability::ZERO);
    let mut reordering = path.clone();
    // One packet in twenty is overtaken by about 17 others.
    let share = "5%".parse().unwrap();
    reordering.forward.reordering = Some(Reordering::new(share, Duration::from_millis(10)));
    let mean = |path: &PathConfig| {
        let (report, _) = play("cubic", Seed::new(1), path);
        report.network.throughput.mean.unwrap().as_bits_per_second() as f64
    };
    let (in_order, reordered) = (mean(&path), mean(&reordering));
    assert!(reordered > 0.9 * in_order, "{reordered} against {in_order} bit/s");
}

/// Packets of a simulation may go without encryption; a real socket refuses that.
#[test]
fn real_sockets_refuse_the_cryptography_of_a_simulation() {
    let sim = Simulation::new(Seed::new(1));
    let runtime = || Arc::new(quinn::TokioRuntime);
    let identity = Identity::development(&[]).unwrap();
    let any = || SocketAddr::from(([127, 0, 0, 1], 0));
    let mut server = ServerOptions::new(identity.clone());
    server.crypto_provider = sim.crypto_provider();
    let mut client = ClientOptions::new(Trust::Pin(identity.pin()));
    client.crypto_provider = sim.crypto_provider();
    for refused in [
        Server::bind(any(), runtime(), server.clone()).map(drop),
        Server::on_sockets(vec![(UdpSocket::bind(any()).unwrap(), runtime() as _)], server).map(drop),
        Client::bind(runtime(), client).map(drop),
    ] {
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("0xff51 is not registered"), "{error}");
    }
}
