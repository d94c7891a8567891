//! quinn's own server and client in virtual time, on a path of constant delay with faults on demand.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::future::join;
use playrate_netsim::{HostConfig, LinkConfig, PathConfig, Rate, Seed, Simulation, VirtualSocket};
use quinn::udp::{EcnCodepoint, RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, Endpoint, Runtime, UdpPoller, VarInt};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tokio::sync::mpsc;

use crate::ConnectionController;

/// An arbitrary origin for instants.
#[expect(
    clippy::disallowed_methods,
    reason = "only differences between instants matter here"
)]
pub(super) fn origin() -> Instant {
    Instant::now()
}

/// Faults of the path.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// Nothing gets through, either way.
    pub(super) cut: AtomicBool,
    /// Nothing that the client sends arrives.
    pub(super) mute_client: AtomicBool,
    /// Every datagram of the server is marked ECN-CE.
    pub(super) mark_ce: AtomicBool,
    /// Every n-th datagram of the server is dropped; 0 for none.
    pub(super) drop_every: AtomicU64,
    sent: AtomicU64,
}

/// A socket behind the faults.
#[derive(Debug)]
struct FaultySocket {
    inner: Arc<VirtualSocket>,
    faults: Arc<Faults>,
    is_server: bool,
}

impl AsyncUdpSocket for FaultySocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Arc::clone(&self.inner).create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let faults = &self.faults;
        let mut ecn = transmit.ecn;
        if self.is_server {
            let number = faults.sent.fetch_add(1, Relaxed) + 1;
            let every = faults.drop_every.load(Relaxed);
            if every > 0 && number.is_multiple_of(every) {
                return Ok(());
            }
            if faults.mark_ce.load(Relaxed) {
                ecn = Some(EcnCodepoint::Ce);
            }
        }
        if faults.cut.load(Relaxed) || !self.is_server && faults.mute_client.load(Relaxed) {
            return Ok(());
        }
        self.inner.try_send(&Transmit {
            destination: transmit.destination,
            ecn,
            contents: transmit.contents,
            segment_size: transmit.segment_size,
            src_ip: transmit.src_ip,
        })
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.inner.poll_recv(cx, buffers, metas)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}

/// A client, a server that sends with the controller under test, and the path between them.
pub(super) struct Wire {
    simulation: Simulation,
    pub(super) faults: Arc<Faults>,
    pub(super) server: quinn::Connection,
    pub(super) client: quinn::Connection,
    writer: mpsc::UnboundedSender<usize>,
    received: Arc<AtomicUsize>,
}

impl Wire {
    /// A connected pair after the handshake; `delay` is that of one direction.
    pub(super) fn new(control: &ConnectionController, delay: Duration) -> Self {
        let simulation = Simulation::new(Seed::new(7));
        let link = || LinkConfig::new(Rate::Unlimited, delay);
        let path = PathConfig::new(link(), link());
        let path = simulation.add_path(path.build(Seed::new(7)).unwrap());
        // Datagrams of one burst are received together, so one ACK frame acknowledges them.
        let host = HostConfig::default().with_interrupt_interval(Duration::from_micros(100));
        let hosts = [(); 2].map(|()| simulation.add_host(host));
        simulation.connect(hosts[0], hosts[1], &[path]);
        let faults = Arc::<Faults>::default();
        let runtime = simulation.runtime();
        let (server_config, client_config) = configs(control);
        let endpoint = |is_server: bool, config| {
            let inner = simulation.bind(hosts[usize::from(!is_server)], 0).unwrap();
            let name = if is_server { "server" } else { "client" };
            let socket = Arc::new(FaultySocket {
                inner,
                faults: Arc::clone(&faults),
                is_server,
            });
            let endpoint_config = simulation.endpoint_config(name);
            Endpoint::new_with_abstract_socket(endpoint_config, config, socket, runtime.clone()).unwrap()
        };
        let (server, client) = (endpoint(true, Some(server_config)), endpoint(false, None));
        let connecting = client
            .connect_with(client_config, server.local_addr().unwrap(), "localhost")
            .unwrap();
        let accepting = async { server.accept().await.unwrap().await.unwrap() };
        let (client, server) = simulation
            .run(Simulation::DAY, join(connecting, accepting))
            .unwrap();
        let (writer, mut lengths) = mpsc::unbounded_channel();
        runtime.spawn(Box::pin({
            let server = server.clone();
            async move {
                let mut stream = server.open_uni().await.unwrap();
                while let Some(length) = lengths.recv().await {
                    if stream.write_all(&vec![0; length]).await.is_err() {
                        return;
                    }
                }
            }
        }));
        let (received, client) = (Arc::<AtomicUsize>::default(), client.unwrap());
        runtime.spawn(Box::pin({
            let (received, client) = (Arc::clone(&received), client.clone());
            async move {
                let mut stream = client.accept_uni().await.unwrap();
                while let Ok(Some(chunk)) = stream.read_chunk(usize::MAX, true).await {
                    received.fetch_add(chunk.bytes.len(), Relaxed);
                }
            }
        }));
        Self {
            simulation,
            faults,
            server,
            client,
            writer,
            received,
        }
    }

    /// Makes the server's application write `bytes` more.
    pub(super) fn server_sends(&mut self, bytes: usize) {
        self.writer.send(bytes).unwrap();
    }

    pub(super) fn server_window(&self) -> u64 {
        self.server.congestion_state().window()
    }

    pub(super) fn server_mtu(&self) -> u16 {
        self.server.stats().path.current_mtu
    }

    /// Bytes that the client has received on the stream.
    pub(super) fn received(&self) -> usize {
        self.received.load(Relaxed)
    }

    /// Runs both ends and the path for `time`.
    pub(super) fn run_for(&mut self, time: Duration) {
        let sleep = self.simulation.runtime().sleep(time);
        self.simulation.run(Simulation::DAY, sleep).unwrap();
    }
}

fn configs(control: &ConnectionController) -> (quinn::ServerConfig, quinn::ClientConfig) {
    let identity = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = CertificateDer::from(identity.cert);
    let key = PrivatePkcs8KeyDer::from(identity.signing_key.serialize_der());
    let mut server = quinn::ServerConfig::with_single_cert(vec![certificate.clone()], key.into()).unwrap();
    let mut transport = quinn::TransportConfig::default();
    transport.max_idle_timeout(None);
    control.install(&mut transport);
    server.transport_config(Arc::new(transport));
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let mut client = quinn::ClientConfig::with_root_certificates(Arc::new(roots)).unwrap();
    let mut transport = quinn::TransportConfig::default();
    transport
        .max_idle_timeout(None)
        .stream_receive_window(VarInt::from_u32(1 << 24));
    client.transport_config(Arc::new(transport));
    (server, client)
}
