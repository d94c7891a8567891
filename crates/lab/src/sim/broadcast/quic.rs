//! [`Link`]: the QUIC connection of a broadcast. Only this file uses quinn's connections and streams.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use playrate_cc::Estimate;
use playrate_transport::{ConnectionController, TransportOptions, time};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::rustls;
use quinn::{ConnectionStats, Endpoint, Runtime, VarInt};
use tokio::sync::mpsc::UnboundedReceiver;

use super::super::SimError;
use super::super::session::{FlowEnds, SERVER_NAME};
use super::encoder::PathRates;

/// Streams that a sender may have open: more groups than are on time at once.
const MOST_GROUPS: u32 = 1_000;
/// Bytes before each frame on its stream: its number and its size.
const HEADER: usize = 8;
/// Payload of one write.
static PAYLOAD: [u8; 64 << 10] = [0; 64 << 10];

/// Error that ended a broadcast.
pub(super) type LinkError = Box<dyn std::error::Error + Send + Sync>;

/// A group of frames to be sent.
#[derive(Debug)]
pub(super) struct OutgoingGroup {
    /// Groups of a higher number are sent first.
    pub(super) priority: i32,
    /// Numbers and sizes of the group's frames, as they are made.
    pub(super) frames: UnboundedReceiver<(u32, u32)>,
    /// Time until the group is reset.
    pub(super) limit: Duration,
}

/// Both endpoints of a broadcast, and its connection from the handshake on.
#[derive(Debug)]
pub(super) struct Link {
    runtime: Arc<dyn Runtime>,
    server: Endpoint,
    client: Endpoint,
    address: SocketAddr,
    connection: OnceLock<quinn::Connection>,
}

impl Link {
    /// Endpoints whose sender is controlled by `control`.
    pub(super) fn new(ends: &FlowEnds<'_>, control: &ConnectionController) -> Result<Self, SimError> {
        let failed = |error: &dyn ToString| SimError::setup("the broadcast's endpoints", &error.to_string());
        let endpoints = ends.endpoints;
        let provider = endpoints.crypto_provider.clone();
        let provider = provider.unwrap_or_else(|| Arc::new(rustls::crypto::ring::default_provider()));
        let (server_tls, client_tls) =
            playrate_netsim::tls(ends.seed, SERVER_NAME, &provider).map_err(|error| failed(&error))?;
        let tls = QuicServerConfig::try_from(server_tls).map_err(|error| failed(&error))?;
        let mut options = TransportOptions::server();
        options.send_window = ends.setup.send_window();
        ends.fix(&mut options, "server");
        let mut transport = options.to_quinn().map_err(|error| failed(&error))?;
        control.install(&mut transport);
        let mut config = quinn::ServerConfig::with_crypto(Arc::new(tls));
        config.transport_config(Arc::new(transport));
        let server = Endpoint::new_with_abstract_socket(
            options.to_endpoint().map_err(|error| failed(&error))?,
            Some(config),
            Arc::clone(&endpoints.server),
            Arc::clone(&endpoints.runtime),
        );

        let tls = QuicClientConfig::try_from(client_tls).map_err(|error| failed(&error))?;
        let mut options = TransportOptions::client();
        options.stream_receive_window = ends.setup.wide_receive_window();
        options.receive_window = options.stream_receive_window;
        ends.fix(&mut options, "client");
        let mut transport = options.to_quinn().map_err(|error| failed(&error))?;
        transport.max_concurrent_uni_streams(MOST_GROUPS.into());
        let mut config = quinn::ClientConfig::new(Arc::new(tls));
        config.transport_config(Arc::new(transport));
        let client = Endpoint::new_with_abstract_socket(
            options.to_endpoint().map_err(|error| failed(&error))?,
            None,
            Arc::clone(&endpoints.client),
            Arc::clone(&endpoints.runtime),
        );
        let mut client = client.map_err(|error| failed(&error))?;
        client.set_default_client_config(config);
        Ok(Self {
            runtime: Arc::clone(&endpoints.runtime),
            server: server.map_err(|error| failed(&error))?,
            client,
            address: endpoints.address,
            connection: OnceLock::new(),
        })
    }

    /// Connects both ends. The sender may send from then on; the streams are those that the receiver gets.
    pub(super) async fn connect(&self) -> Result<IncomingGroups, LinkError> {
        let accepting = async {
            let incoming = self
                .server
                .accept()
                .await
                .ok_or("the sender's endpoint is closed")?;
            Ok::<_, LinkError>(incoming.await?)
        };
        let connecting = self.client.connect(self.address, SERVER_NAME)?;
        let (sender, receiver) = tokio::join!(accepting, connecting);
        let _ = self.connection.set(sender?);
        Ok(IncomingGroups(receiver?))
    }

    /// Smoothed RTT, zero before the handshake, and the rates that follow from the connection's state and its estimate.
    pub(super) fn path(&self, estimate: Option<Estimate>) -> (Duration, PathRates) {
        let Some(connection) = self.connection.get() else {
            return (Duration::ZERO, PathRates::default());
        };
        let path = connection.stats().path;
        let window = playrate_units::Bytes::new(path.cwnd).per(path.rtt);
        (path.rtt, PathRates { window, estimate })
    }

    /// Totals of the sender; `None` before the handshake.
    pub(super) fn totals(&self) -> Option<ConnectionStats> {
        self.connection.get().map(quinn::Connection::stats)
    }

    /// Sends the frames of a group on a stream of its own, and resets the stream if the receiver does not have all of
    /// them within the group's limit.
    pub(super) async fn send(&self, group: OutgoingGroup) {
        let Some(connection) = self.connection.get() else {
            return;
        };
        let mut stream = None;
        let sending = async {
            let stream = stream.insert(connection.open_uni().await?);
            stream.set_priority(group.priority)?;
            send_frames(stream, group.frames).await
        };
        let sent = time::timeout(&*self.runtime, group.limit, sending).await;
        // On an error the connection has ended, and with it the stream.
        if let (Err(_), Some(stream)) = (sent, &mut stream) {
            let _ = stream.reset(VarInt::from_u32(0));
        }
    }

    /// Reason for which the connection has ended; `None` before the handshake and while the connection lives.
    pub(super) fn failure(&self) -> Option<quinn::ConnectionError> {
        self.connection.get().and_then(quinn::Connection::close_reason)
    }

    /// Closes the connection and waits until both ends have.
    pub(super) async fn close(&self) {
        self.client.close(VarInt::from_u32(0), b"the broadcast has ended");
        self.client.wait_idle().await;
        self.server.close(VarInt::from_u32(0), b"the broadcast has ended");
        self.server.wait_idle().await;
    }
}

/// Writes frames as they are made, and waits until the receiver has acknowledged all of them.
async fn send_frames(
    stream: &mut quinn::SendStream,
    mut frames: UnboundedReceiver<(u32, u32)>,
) -> Result<(), LinkError> {
    while let Some((number, size)) = frames.recv().await {
        let mut header = [0; HEADER];
        let (first, second) = header.split_at_mut(4);
        first.copy_from_slice(&number.to_be_bytes());
        second.copy_from_slice(&size.to_be_bytes());
        stream.write_all(&header).await?;
        let mut left = usize::try_from(size)?;
        while left > 0 {
            let chunk = Bytes::from_static(&PAYLOAD).slice(..left.min(PAYLOAD.len()));
            left -= chunk.len();
            stream.write_chunk(chunk).await?;
        }
    }
    stream.finish()?;
    stream.stopped().await?;
    Ok(())
}

/// The groups that reach the receiver.
#[derive(Debug)]
pub(super) struct IncomingGroups(quinn::Connection);

impl IncomingGroups {
    /// The next group; `None` at the end of the connection.
    pub(super) async fn next(&self) -> Option<IncomingGroup> {
        self.0.accept_uni().await.ok().map(IncomingGroup)
    }
}

/// A group of frames that is arriving.
#[derive(Debug)]
pub(super) struct IncomingGroup(quinn::RecvStream);

impl IncomingGroup {
    /// Calls `arrived` with the number of each frame when its last byte has arrived, up to the end of the group or its
    /// reset.
    pub(super) async fn read(mut self, mut arrived: impl FnMut(u32)) {
        let mut header = [0; HEADER];
        while self.0.read_exact(&mut header).await.is_ok() {
            let [a, b, c, d, sizes @ ..] = header;
            let mut left = usize::try_from(u32::from_be_bytes(sizes)).unwrap_or(usize::MAX);
            while left > 0 {
                match self.0.read_chunk(left, true).await {
                    Ok(Some(chunk)) => left -= chunk.bytes.len(),
                    Ok(None) | Err(_) => return,
                }
            }
            arrived(u32::from_be_bytes([a, b, c, d]));
        }
    }
}
