//! noq's own endpoints over loopback, in real time.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use noq::{Endpoint, PathId};
use playrate_units::{Bitrate, Bytes};

use super::configs::configs;
use super::monitored;
use crate::{ConnectionController, EndpointFactory, NoqController};

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const SENT: usize = 2_000_000;

/// Transfers `SENT` bytes from a server under `control` to `client`, and returns the server's connection.
async fn transfer(server: &Endpoint, client: &Endpoint, config: noq::ClientConfig) -> noq::Connection {
    let connecting = client
        .connect_with(config, server.local_addr().unwrap(), "localhost")
        .unwrap();
    let accepting = async { server.accept().await.unwrap().await.unwrap() };
    let (at_client, at_server) = tokio::join!(connecting, accepting);
    let at_client = at_client.unwrap();
    let mut stream = at_server.open_uni().await.unwrap();
    let writing = async {
        stream.write_all(&vec![7; SENT]).await.unwrap();
        stream.finish().unwrap();
    };
    let reading = async {
        let mut stream = at_client.accept_uni().await.unwrap();
        stream.read_to_end(SENT).await.unwrap().len()
    };
    let ((), received) = tokio::join!(writing, reading);
    assert_eq!(received, SENT);
    at_server
}

async fn within_a_minute(test: impl Future<Output = ()>) {
    tokio::time::timeout(Duration::from_secs(60), test).await.unwrap();
}

#[tokio::test]
async fn a_transfer_under_each_kind_of_controller() {
    within_a_minute(async {
        for name in ["video", "bbr", "cubic", "noq-bbr3"] {
            let control = ConnectionController::new(name.parse().unwrap());
            control.knowledge().set_average_rate(Some(Bitrate::from_mbps(5)));
            let (server, client_config) = configs(&control);
            let server = Endpoint::server(server, LOOPBACK).unwrap();
            let client = Endpoint::client(LOOPBACK).unwrap();
            let connection = transfer(&server, &client, client_config).await;
            let sample = control.monitor().latest().unwrap();
            // The last sample is up to 20 ms old.
            assert!(sample.delivered >= Bytes::from(SENT / 4), "{name}: {sample:?}");
            let found = NoqController::of(connection.congestion_state(PathId::ZERO).unwrap());
            assert_eq!(found.is_some(), !name.starts_with("noq"), "{name}");
            if let Some(found) = found {
                assert!(Arc::ptr_eq(found.control().knowledge(), control.knowledge()));
            }
        }
    })
    .await;
}

/// One configuration for a whole endpoint: two connections, each with its own controller.
#[tokio::test]
async fn connections_of_an_endpoint_have_controllers_of_their_own() {
    within_a_minute(async {
        let control = ConnectionController::new("video".parse().unwrap());
        let (mut server, client_config) = configs(&control);
        let mut transport = noq::TransportConfig::default();
        let factory = EndpointFactory::with(|| monitored("video").0);
        transport.congestion_controller_factory(Arc::new(factory));
        server.transport_config(Arc::new(transport));
        let server = Endpoint::server(server, LOOPBACK).unwrap();
        let client = Endpoint::client(LOOPBACK).unwrap();
        let mut found = Vec::new();
        for _ in 0..2 {
            let connection = transfer(&server, &client, client_config.clone()).await;
            let state = connection.congestion_state(PathId::ZERO).unwrap();
            found.push(NoqController::of(state).unwrap().control().clone());
        }
        assert!(!Arc::ptr_eq(found[0].knowledge(), found[1].knowledge()));
        for control in found {
            let sample = control.monitor().latest().unwrap();
            assert!(sample.delivered >= Bytes::from(SENT / 4), "{sample:?}");
        }
    })
    .await;
}
