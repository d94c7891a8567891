//! quinn's `RttEstimator`, which nothing outside quinn-proto can make: a connection in memory measures, and a
//! controller in it copies the estimator out.

use std::any::Any;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::BytesMut;
use quinn::TransportConfig;
use quinn::congestion::{Controller, ControllerFactory, NewReno, NewRenoConfig};
use quinn_proto::{Connection, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, RttEstimator};

use super::clock::RTT;

type Copied = Arc<Mutex<Option<RttEstimator>>>;

/// quinn's NewReno, which keeps the last estimator that it was shown.
#[derive(Clone)]
struct Copying {
    inner: NewReno,
    copied: Copied,
}

impl ControllerFactory for Copying {
    fn build(self: Arc<Self>, _: Instant, _: u16) -> Box<dyn Controller> {
        Box::new(Self::clone(&self))
    }
}

impl Controller for Copying {
    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        *self.copied.lock().unwrap_or_else(PoisonError::into_inner) = Some(*rtt);
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }
    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, lost: u64) {
        self.inner.on_congestion_event(now, sent, persistent, lost);
    }
    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }
    fn window(&self) -> u64 {
        self.inner.window()
    }
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

struct Side {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    address: SocketAddr,
    inbox: VecDeque<(Instant, BytesMut)>,
}

impl Side {
    fn new(port: u16, server: Option<quinn::ServerConfig>) -> Self {
        Self {
            endpoint: Endpoint::new(
                Arc::new(EndpointConfig::default()),
                server.map(Arc::new),
                true,
                None,
            ),
            connection: None,
            address: SocketAddr::from(([127, 0, 0, 1], port)),
            inbox: VecDeque::new(),
        }
    }

    fn receive(&mut self, now: Instant, from: SocketAddr) -> anyhow::Result<()> {
        while self.inbox.front().is_some_and(|(at, _)| *at <= now) {
            let Some((_, data)) = self.inbox.pop_front() else {
                break;
            };
            match self.endpoint.handle(now, from, None, None, data, &mut Vec::new()) {
                Some(DatagramEvent::ConnectionEvent(_, event)) => {
                    if let Some((_, connection)) = &mut self.connection {
                        connection.handle_event(event);
                    }
                }
                Some(DatagramEvent::NewConnection(incoming)) => {
                    let accepted = self.endpoint.accept(incoming, now, &mut Vec::new(), None);
                    self.connection = Some(accepted.map_err(|error| error.cause)?);
                }
                Some(DatagramEvent::Response(_)) | None => {}
            }
        }
        Ok(())
    }

    fn send(&mut self, now: Instant, peer: &mut VecDeque<(Instant, BytesMut)>) {
        let Some((handle, connection)) = &mut self.connection else {
            return;
        };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while connection.poll().is_some() {}
        let mut buffer = Vec::new();
        while let Some(transmit) = connection.poll_transmit(now, 1, &mut buffer) {
            peer.push_back((now + RTT / 2, buffer[..transmit.size].into()));
            buffer.clear();
        }
    }

    fn wakes(&mut self) -> Option<Instant> {
        let arrival = self.inbox.front().map(|(at, _)| *at);
        let timer = self.connection.as_mut().and_then(|(_, c)| c.poll_timeout());
        arrival.into_iter().chain(timer).min()
    }
}

/// An estimator that has measured [`RTT`] a few times.
pub fn measured() -> anyhow::Result<RttEstimator> {
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let certificate = key.cert.der().clone();
    let private = rustls::pki_types::PrivatePkcs8KeyDer::from(key.signing_key.serialize_der());
    let server = quinn::ServerConfig::with_single_cert(vec![certificate.clone()], private.into())?;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate)?;
    let mut client = quinn::ClientConfig::with_root_certificates(Arc::new(roots))?;
    let copied = Copied::default();
    let mut now = Instant::now();
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(Copying {
        inner: NewReno::new(Arc::new(NewRenoConfig::default()), now, 1_200),
        copied: Arc::clone(&copied),
    }));
    client.transport_config(Arc::new(transport));

    let (mut near, mut far) = (Side::new(1, None), Side::new(2, Some(server)));
    near.connection = Some(near.endpoint.connect(now, client, far.address, "localhost")?);
    for _ in 0..1_000 {
        near.receive(now, far.address)?;
        far.receive(now, near.address)?;
        near.send(now, &mut far.inbox);
        far.send(now, &mut near.inbox);
        let seen = *copied.lock().unwrap_or_else(PoisonError::into_inner);
        // Before the first sample it is quinn's guess of 333 ms.
        if let Some(seen) = seen.filter(|seen| seen.get() < 2 * RTT) {
            return Ok(seen);
        }
        let Some(next) = near.wakes().into_iter().chain(far.wakes()).min() else {
            break;
        };
        now = now.max(next);
        for side in [&mut near, &mut far] {
            if let Some((_, connection)) = &mut side.connection
                && connection.poll_timeout().is_some_and(|at| at <= now)
            {
                connection.handle_timeout(now);
            }
        }
    }
    anyhow::bail!("the connection in memory measured no RTT")
}
