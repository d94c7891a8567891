//! A download over two paths of a noq connection in real time: UDP sockets, each path through a relay of its own.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use noq::{Endpoint, FourTuple, PathStatus};
use playrate_netsim::{PathConfig, Relay, RelayConfig, RelayReport};

use crate::ConnectionController;
use crate::configs::configs;

/// Received bytes and lost packets after the warm-up.
#[derive(Debug)]
pub(crate) struct LiveOutcome {
    /// Bytes of the stream per second, in Mbit/s.
    pub(crate) mbps: f64,
    /// Packets that left each link.
    pub(crate) delivered: [u64; 2],
    /// Packets that the links dropped.
    pub(crate) dropped: u64,
    /// Reasons why the machine, not the links, may have determined the result.
    pub(crate) flaws: Vec<String>,
}

/// Downloads under the named controller for `warm_up` and then for `measured` over these two links. The relays listen
/// at 127.0.0.1 and 127.0.0.2, so the client's paths lead to two addresses of the server.
pub(crate) async fn download(
    controller: &str,
    links: &[PathConfig; 2],
    (warm_up, measured): (Duration, Duration),
) -> LiveOutcome {
    let local = |last| SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)), 0);
    let (server_config, client_config) = configs(&ConnectionController::new(controller.parse().unwrap()));
    let server = Endpoint::server(server_config, local(1)).unwrap();
    let client = Endpoint::client(local(1)).unwrap();
    let relays = [0, 1].map(|number: usize| {
        let config = RelayConfig::new(server.local_addr().unwrap(), links[number].clone());
        let listen = local(if number == 0 { 1 } else { 2 });
        Relay::start(&config.with_listen(listen)).unwrap()
    });
    let connecting = client
        .connect_with(client_config, relays[0].local_addr(), "localhost")
        .unwrap();
    let accepting = async { server.accept().await.unwrap().await.unwrap() };
    let (at_client, at_server) = tokio::join!(connecting, accepting);
    let at_client = at_client.unwrap();
    // Connection IDs for further paths arrive a round trip after the handshake.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let second = FourTuple::new(relays[1].local_addr(), None);
    let path = at_client.open_path(second, PathStatus::Available).await.unwrap();
    let writing = tokio::spawn(async move {
        let mut stream = at_server.open_uni().await.unwrap();
        while stream.write_all(&[7; 10_000]).await.is_ok() {}
    });
    let mut stream = at_client.accept_uni().await.unwrap();
    let mut received = 0;
    let mut read_for = async |time| {
        let reading = async {
            while let Ok(Some(chunk)) = stream.read_chunk(usize::MAX).await {
                received += chunk.len();
            }
        };
        let _ = tokio::time::timeout(time, reading).await;
        let links = relays.each_ref().map(|relay| relay.snapshot().forward.link);
        let dropped: u64 = links.iter().map(|link| link.dropped.total().packets).sum();
        (received, dropped, links.map(|link| link.delivered.packets))
    };
    let before = read_for(warm_up).await;
    let after = read_for(measured).await;
    drop(path);
    at_client.close(0_u8.into(), &[]);
    writing.await.unwrap();
    let reports = relays.map(|relay| relay.stop().unwrap());
    LiveOutcome {
        mbps: (after.0 - before.0) as f64 * 8e-6 / measured.as_secs_f64(),
        delivered: [0, 1].map(|link: usize| after.2[link] - before.2[link]),
        dropped: after.1 - before.1,
        flaws: reports
            .iter()
            .flat_map(RelayReport::flaws)
            .map(|flaw| flaw.to_string())
            .collect(),
    }
}
