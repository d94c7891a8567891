//! noq's own server and client in virtual time.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::future::join;
use noq::udp::{EcnCodepoint, RecvMeta, Transmit};
use noq::{Endpoint, PathId, VarInt};
use playrate_netsim::{
    DelaySchedule, HostConfig, LinkConfig, PathConfig, Rate, Seed, Simulation, VirtualRuntime, VirtualSocket,
};
use quinn::{AsyncUdpSocket as _, Runtime as _};
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

/// A path without a limit of its rate, whose delay in each direction follows the schedule `delay`.
pub(super) fn path(delay: &str) -> PathConfig {
    let delay: DelaySchedule = delay.parse().unwrap();
    let link = LinkConfig::new(Rate::Unlimited, delay);
    PathConfig::new(link.clone(), link)
}

/// The simulation's runtime, which implements quinn's trait, for noq.
#[derive(Debug)]
struct NoqRuntime(Arc<VirtualRuntime>);

#[derive(Debug)]
struct Timer(Pin<Box<dyn quinn::AsyncTimer>>);

/// A simulated socket for noq.
#[derive(Clone, Debug)]
struct Socket(Arc<VirtualSocket>);

impl noq::Runtime for NoqRuntime {
    fn new_timer(&self, at: Instant) -> Pin<Box<dyn noq::AsyncTimer>> {
        Box::pin(Timer(self.0.new_timer(at)))
    }
    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.0.spawn(future);
    }
    fn wrap_udp_socket(&self, _: std::net::UdpSocket) -> io::Result<Box<dyn noq::AsyncUdpSocket>> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn now(&self) -> Instant {
        self.0.now()
    }
}

impl noq::AsyncTimer for Timer {
    fn reset(mut self: Pin<&mut Self>, at: Instant) {
        self.0.as_mut().reset(at);
    }
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

impl noq::AsyncUdpSocket for Socket {
    fn create_sender(&self) -> Pin<Box<dyn noq::UdpSender>> {
        Box::pin(self.clone())
    }
    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut received = vec![quinn::udp::RecvMeta::default(); metas.len()];
        let count = std::task::ready!(self.0.poll_recv(cx, buffers, &mut received))?;
        for (meta, received) in metas.iter_mut().zip(&received[..count]) {
            meta.addr = received.addr;
            meta.len = received.len;
            meta.stride = received.stride;
            meta.ecn = received.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8));
            meta.dst_ip = received.dst_ip;
        }
        Poll::Ready(Ok(count))
    }
    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
    fn may_fragment(&self) -> bool {
        false
    }
}

impl noq::UdpSender for Socket {
    fn poll_send(self: Pin<&mut Self>, transmit: &Transmit<'_>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ecn = |ecn| quinn::udp::EcnCodepoint::from_bits(ecn as u8);
        Poll::Ready(self.0.try_send(&quinn::udp::Transmit {
            destination: transmit.destination,
            ecn: transmit.ecn.and_then(ecn),
            contents: transmit.contents,
            segment_size: transmit.segment_size,
            src_ip: transmit.src_ip,
        }))
    }
    fn max_transmit_segments(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.0.max_transmit_segments()).unwrap()
    }
}

/// A client, a server that sends with the controller under test, and the paths between them.
pub(super) struct Wire {
    simulation: Simulation,
    pub(super) server: noq::Connection,
    pub(super) client: noq::Connection,
    writer: mpsc::UnboundedSender<usize>,
    received: Arc<AtomicUsize>,
}

impl Wire {
    /// A connected pair on `path` after the handshake.
    pub(super) fn new(control: &ConnectionController, path: &PathConfig) -> Self {
        let simulation = Simulation::new(Seed::new(7));
        let path = simulation.add_path(path.build(Seed::new(7)).unwrap());
        // Datagrams of one burst are received together, so one ACK frame acknowledges them.
        let host = HostConfig::default().with_interrupt_interval(Duration::from_micros(100));
        let hosts = [(); 2].map(|()| simulation.add_host(host));
        simulation.connect(hosts[0], hosts[1], &[path]);
        let runtime = simulation.runtime();
        let (server_config, client_config) = configs(control);
        let endpoint = |seed, host, config| {
            let socket = Box::new(Socket(simulation.bind(host, 0).unwrap()));
            let mut endpoint = noq::EndpointConfig::default();
            endpoint.rng_seed(Some([seed; 32]));
            let runtime = Arc::new(NoqRuntime(runtime.clone()));
            Endpoint::new_with_abstract_socket(endpoint, config, socket, runtime).unwrap()
        };
        let server = endpoint(1, hosts[0], Some(server_config));
        let client = endpoint(2, hosts[1], None);
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
                while let Ok(Some(chunk)) = stream.read_chunk(usize::MAX).await {
                    received.fetch_add(chunk.len(), Relaxed);
                }
            }
        }));
        Self {
            simulation,
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
        self.server.congestion_state(PathId::ZERO).unwrap().window()
    }

    /// noq's statistics of the server's path.
    pub(super) fn server_stats(&self) -> noq::PathStats {
        self.server.path_stats(PathId::ZERO).unwrap()
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

/// Configurations of a server under `control` and of its client.
pub(super) fn configs(control: &ConnectionController) -> (noq::ServerConfig, noq::ClientConfig) {
    let identity = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = CertificateDer::from(identity.cert);
    let key = PrivatePkcs8KeyDer::from(identity.signing_key.serialize_der());
    let mut server = noq::ServerConfig::with_single_cert(vec![certificate.clone()], key.into()).unwrap();
    let mut transport = noq::TransportConfig::default();
    transport.max_idle_timeout(None).max_concurrent_multipath_paths(4);
    control.install(&mut transport);
    control.request_acks(&mut transport);
    server.transport_config(Arc::new(transport));
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let mut client = noq::ClientConfig::with_root_certificates(Arc::new(roots)).unwrap();
    let mut transport = noq::TransportConfig::default();
    transport
        .max_idle_timeout(None)
        .max_concurrent_multipath_paths(4)
        .stream_receive_window(VarInt::from_u32(1 << 24));
    client.transport_config(Arc::new(transport));
    (server, client)
}
