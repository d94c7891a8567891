//! Servers and clients of quinn over loopback, with controllers for a connection and for an endpoint.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use playrate_cc::{Bitrate, Bytes};
use quinn::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig};
use rustls::RootCertStore;
use rustls::pki_types::PrivatePkcs8KeyDer;

use crate::telemetry::Monitor;
use crate::{ConnectionController, EndpointFactory, controller_of};

/// Bytes of a transfer that fills many windows.
const BULK: usize = 3_000_000;

fn configs() -> (ServerConfig, ClientConfig) {
    let identity = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, mut roots) = (identity.cert.der().clone(), RootCertStore::empty());
    roots.add(certificate.clone()).unwrap();
    let key = PrivatePkcs8KeyDer::from(identity.signing_key.serialize_der());
    let server = ServerConfig::with_single_cert(vec![certificate], key.into()).unwrap();
    (
        server,
        ClientConfig::with_root_certificates(Arc::new(roots)).unwrap(),
    )
}

/// Endpoints of a server and a client.
struct Endpoints {
    server: Endpoint,
    client: Endpoint,
}

impl Endpoints {
    fn new(server: ServerConfig) -> Self {
        let any = (Ipv4Addr::LOCALHOST, 0).into();
        Self {
            server: Endpoint::server(server, any).unwrap(),
            client: Endpoint::client(any).unwrap(),
        }
    }

    /// A connection, as the client and as the server have it.
    async fn connect(&self, config: ClientConfig) -> (Connection, Connection) {
        let to = self.server.local_addr().unwrap();
        let connecting = self.client.connect_with(config, to, "localhost").unwrap();
        let accepting = async { self.server.accept().await.unwrap().await.unwrap() };
        let (client, server) = tokio::join!(connecting, accepting);
        (client.unwrap(), server)
    }
}

/// Sends `bytes` over a stream, and returns once the other end has all of them.
async fn transfer(from: &Connection, to: &Connection, bytes: usize) {
    let sending = async {
        let mut stream = from.open_uni().await.unwrap();
        stream.write_all(&vec![7; bytes]).await.unwrap();
        stream.finish().unwrap();
        stream.stopped().await.unwrap();
    };
    let receiving = async {
        let mut stream = to.accept_uni().await.unwrap();
        stream.read_to_end(bytes).await.unwrap().len()
    };
    let both = async { tokio::join!(sending, receiving).1 };
    let received = tokio::time::timeout(Duration::from_secs(20), both).await;
    assert_eq!(received, Ok(bytes));
}

/// A controller that takes a sample for each ACK frame.
fn monitored(name: &str) -> ConnectionController {
    let control = ConnectionController::new(name.parse().unwrap());
    control.with_monitor(Arc::new(Monitor::new(Duration::ZERO)))
}

fn delivered(control: &ConnectionController) -> Bytes {
    let latest = control.monitor().latest();
    latest.map_or(Bytes::ZERO, |sample| sample.delivered)
}

fn transport(factory: EndpointFactory) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(factory));
    Arc::new(transport)
}

#[tokio::test]
async fn connections_of_one_endpoint_have_separate_controllers() {
    let (mut server, client) = configs();
    server.transport_config(transport(EndpointFactory::with(|| monitored("cubic"))));
    let endpoints = Endpoints::new(server);
    let (busy_client, busy) = endpoints.connect(client.clone()).await;
    let (idle_client, idle) = endpoints.connect(client).await;
    let [busy_control, idle_control] = [&busy, &idle].map(|connection| controller_of(connection).unwrap());
    let rate = Some(Bitrate::from_mbps(5));
    busy_control.knowledge().set_average_rate(rate);
    assert_eq!(controller_of(&busy).unwrap().knowledge().average_rate(), rate);
    assert_eq!(idle_control.knowledge().average_rate(), None);

    let window = idle.congestion_state().window();
    transfer(&busy, &busy_client, BULK).await;
    assert!(delivered(&busy_control) >= Bytes::new(BULK as u64));
    assert!(delivered(&idle_control) < Bytes::from_kb(50));
    assert!(busy.congestion_state().window() > window);
    assert_eq!(idle.congestion_state().window(), window);
    drop(idle_client);
}

#[tokio::test]
async fn reading_a_controller_takes_no_sample() {
    let rarely = || {
        let control = ConnectionController::new("cubic".parse().unwrap());
        control.with_monitor(Arc::new(Monitor::new(Duration::from_secs(3_600))))
    };
    let (mut server, client) = configs();
    server.transport_config(transport(EndpointFactory::with(rarely)));
    let (receiver, sender) = Endpoints::new(server).connect(client).await;
    let control = controller_of(&sender).unwrap();
    transfer(&sender, &receiver, BULK).await;
    let sampled = control.monitor().latest().unwrap();
    assert!(controller_of(&sender).is_some());
    assert_eq!(control.monitor().latest(), Some(sampled));
}

#[tokio::test]
async fn a_client_sends_under_a_controller_of_its_own() {
    let (server, client) = configs();
    let endpoints = Endpoints::new(server);
    let control = monitored("video");
    let for_endpoint = transport(EndpointFactory::with(|| monitored("video")));
    for transport in [control.transport(|_| {}), for_endpoint] {
        let mut client = client.clone();
        client.transport_config(transport);
        let (sender, receiver) = endpoints.connect(client).await;
        let control = controller_of(&sender).unwrap();
        assert_eq!(control.to_string(), "video");
        control.knowledge().set_average_rate(Some(Bitrate::from_mbps(5)));
        transfer(&sender, &receiver, BULK).await;
        assert!(delivered(&control) >= Bytes::new(BULK as u64));
    }
    assert!(
        delivered(&control) >= Bytes::new(BULK as u64),
        "the program's own handle has the samples"
    );
}

#[tokio::test]
async fn a_controller_of_quinn_or_of_others_is_none_of_ours() {
    let (mut server, client) = configs();
    server.transport_config(transport(EndpointFactory::new("quinn-cubic".parse().unwrap())));
    let (client, server) = Endpoints::new(server).connect(client).await;
    assert!(controller_of(&client).is_none());
    assert!(controller_of(&server).is_none());
}
