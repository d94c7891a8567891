//! [`Link`]: the QUIC connection of a broadcast over one stack. `over_quinn` and `over_noq` compile this file with the
//! types of their stack; what differs between the stacks is in those two.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use playrate_netsim::VirtualRuntime;
use playrate_transport::{TransportOptions, time};
use quinn::rustls::crypto::ring;
use quinn::{ConnectionStats, Runtime};
use tokio::sync::mpsc::UnboundedReceiver;

use super::super::encoder::PathRates;
use super::super::{BroadcastEnds, LinkError, OutgoingGroup};
use super::stack::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use super::stack::{
    ClientConfig, Connection, ConnectionError, Endpoint, RecvStream, SendStream, ServerConfig, VarInt,
};
use super::{ConnectionController, capacity, endpoint_config, read, socket, statistics, transport_config};
use crate::sim::SimError;
use crate::sim::session::SERVER_NAME;

/// Streams that a sender may have open: more groups than are on time at once.
const MOST_GROUPS: u32 = 1_000;
/// Bytes before each frame on its stream: its number and its size.
const HEADER: usize = 8;
/// Payload of one write.
static PAYLOAD: [u8; 64 << 10] = [0; 64 << 10];

/// Both endpoints of a broadcast, and its connection from the handshake on.
#[derive(Debug)]
pub(in super::super) struct Link {
    runtime: Arc<VirtualRuntime>,
    control: ConnectionController,
    server: Endpoint,
    client: Endpoint,
    /// Configuration of the receiver.
    receiver: ClientConfig,
    address: SocketAddr,
    connection: OnceLock<Connection>,
}

impl Link {
    /// Endpoints whose sender is controlled by `control`.
    pub(in super::super) fn new(
        ends: &BroadcastEnds<'_>,
        control: ConnectionController,
    ) -> Result<Self, SimError> {
        let failed = |error: &dyn ToString| SimError::setup("the broadcast's endpoints", &error.to_string());
        let endpoints = ends.endpoints;
        let provider = endpoints.crypto_provider.clone();
        let provider = provider.unwrap_or_else(|| Arc::new(ring::default_provider()));
        let (server_tls, client_tls) =
            playrate_netsim::tls(ends.seed, SERVER_NAME, &provider).map_err(|error| failed(&error))?;
        let tls = QuicServerConfig::try_from(server_tls).map_err(|error| failed(&error))?;
        let mut options = TransportOptions::server();
        options.send_window = ends.setup.send_window();
        ends.fix(&mut options, "server");
        let mut transport = transport_config(&options).map_err(|error| failed(&error))?;
        control.install(&mut transport);
        let mut config = ServerConfig::with_crypto(Arc::new(tls));
        config.transport_config(Arc::new(transport));
        let server = Endpoint::new_with_abstract_socket(
            endpoint_config(&options).map_err(|error| failed(&error))?,
            Some(config),
            socket(&endpoints.server),
            endpoints.runtime.clone(),
        );

        let tls = QuicClientConfig::try_from(client_tls).map_err(|error| failed(&error))?;
        let mut options = TransportOptions::client();
        options.stream_receive_window = ends.setup.wide_receive_window();
        options.receive_window = options.stream_receive_window;
        ends.fix(&mut options, "client");
        let mut transport = transport_config(&options).map_err(|error| failed(&error))?;
        transport.max_concurrent_uni_streams(MOST_GROUPS.into());
        let mut receiver = ClientConfig::new(Arc::new(tls));
        receiver.transport_config(Arc::new(transport));
        let client = Endpoint::new_with_abstract_socket(
            endpoint_config(&options).map_err(|error| failed(&error))?,
            None,
            socket(&endpoints.client),
            endpoints.runtime.clone(),
        );
        Ok(Self {
            runtime: Arc::clone(&endpoints.runtime),
            control,
            server: server.map_err(|error| failed(&error))?,
            client: client.map_err(|error| failed(&error))?,
            receiver,
            address: endpoints.address,
            connection: OnceLock::new(),
        })
    }

    /// Connects both ends. The sender may send from then on; the receiver reads all groups, and `arrived` is called
    /// with the number of each frame when its last byte has arrived.
    pub(in super::super) async fn connect(
        &self,
        arrived: impl Fn(u32) + Clone + Send + 'static,
    ) -> Result<(), LinkError> {
        let accepting = async {
            let incoming = self
                .server
                .accept()
                .await
                .ok_or("the sender's endpoint is closed")?;
            Ok::<_, LinkError>(incoming.await?)
        };
        let connecting = self
            .client
            .connect_with(self.receiver.clone(), self.address, SERVER_NAME)?;
        let (sender, receiver) = tokio::join!(accepting, connecting);
        let _ = self.connection.set(sender?);
        let (receiver, runtime) = (receiver?, Arc::clone(&self.runtime));
        self.runtime.spawn(Box::pin(async move {
            while let Ok(group) = receiver.accept_uni().await {
                runtime.spawn(Box::pin(receive_frames(group, arrived.clone())));
            }
        }));
        Ok(())
    }

    /// Smoothed RTT, zero before the handshake, and the rates that follow from the state of the connection.
    pub(in super::super) fn path(&self) -> (Duration, PathRates) {
        let Some(connection) = self.connection.get() else {
            return (Duration::ZERO, PathRates::default());
        };
        let path = statistics(connection, &self.control).path;
        let rates = PathRates {
            window: playrate_units::Bytes::new(path.cwnd).per(path.rtt),
            estimate: self.control.estimate(self.runtime.now()),
            capacity: capacity(connection, &self.control),
        };
        (path.rtt, rates)
    }

    /// Totals of the sender; `None` before the handshake.
    pub(in super::super) fn totals(&self) -> Option<ConnectionStats> {
        let connection = self.connection.get()?;
        Some(statistics(connection, &self.control))
    }

    /// Sends the frames of a group on a stream of its own, and resets the stream if the receiver does not have all of
    /// them within the group's limit.
    pub(in super::super) async fn send(&self, group: OutgoingGroup) {
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
    pub(in super::super) fn failure(&self) -> Option<ConnectionError> {
        self.connection.get().and_then(Connection::close_reason)
    }

    /// Closes the connection and waits until both ends have.
    pub(in super::super) async fn close(&self) {
        self.client.close(VarInt::from_u32(0), b"the broadcast has ended");
        self.client.wait_idle().await;
        self.server.close(VarInt::from_u32(0), b"the broadcast has ended");
        self.server.wait_idle().await;
    }
}

/// Writes frames as they are made, and waits until the receiver has acknowledged all of them.
async fn send_frames(
    stream: &mut SendStream,
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

/// Reads the frames of a group up to its end or its reset.
async fn receive_frames(mut group: RecvStream, arrived: impl Fn(u32)) {
    let mut header = [0; HEADER];
    while group.read_exact(&mut header).await.is_ok() {
        let [a, b, c, d, sizes @ ..] = header;
        let mut left = usize::try_from(u32::from_be_bytes(sizes)).unwrap_or(usize::MAX);
        while left > 0 {
            match read(&mut group, left).await {
                Some(length) => left -= length,
                None => return,
            }
        }
        arrived(u32::from_be_bytes([a, b, c, d]));
    }
}
