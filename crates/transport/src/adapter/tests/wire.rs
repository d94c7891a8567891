//! Two quinn-proto endpoints and a wire of constant delay between them, on a clock of its own.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, ConnectionStats, DatagramEvent, Dir, EcnCodepoint, Endpoint,
    EndpointConfig, Event, ServerConfig, StreamEvent, StreamId, TransportConfig, VarInt,
};

use crate::ConnectionController;
use crate::tls::{Identity, Trust, client_config};

/// An arbitrary origin for instants.
#[expect(
    clippy::disallowed_methods,
    reason = "only differences between instants matter here"
)]
pub(super) fn origin() -> Instant {
    Instant::now()
}

struct Side {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    address: SocketAddr,
    /// Datagrams on their way here, in order of arrival.
    inbox: VecDeque<(Instant, Option<EcnCodepoint>, BytesMut)>,
}

/// A client, a server that sends with the controller under test, and the path between them.
pub(super) struct Wire {
    now: Instant,
    delay: Duration,
    server: Side,
    client: Side,
    stream: Option<StreamId>,
    queued: usize,
    sent_datagrams: u64,
    /// Bytes that the client has received on the stream.
    pub(super) received: usize,
    /// Nothing gets through, either way.
    pub(super) cut: bool,
    /// Every datagram of the server is marked ECN-CE.
    pub(super) mark_ce: bool,
    /// Every so many-th datagram of the server is dropped.
    pub(super) drop_every: Option<u64>,
}

impl Wire {
    /// A connected pair, the handshake done.
    pub(super) fn new(control: &ConnectionController, delay: Duration) -> Self {
        let now = origin();
        let mut transport = TransportConfig::default();
        transport.max_idle_timeout(None);
        control.install(&mut transport);
        let identity = Identity::development(&[]).unwrap();
        let mut server_config = ServerConfig::with_crypto(identity.server_config().unwrap());
        server_config.transport_config(Arc::new(transport));
        let config = || {
            let mut config = EndpointConfig::default();
            config.rng_seed(Some([7; 32]));
            Arc::new(config)
        };
        let side = |port: u16, server: Option<ServerConfig>| Side {
            endpoint: Endpoint::new(config(), server.map(Arc::new), true, None),
            connection: None,
            address: SocketAddr::from(([127, 0, 0, 1], port)),
            inbox: VecDeque::new(),
        };
        let mut wire = Self {
            now,
            delay,
            server: side(1, Some(server_config)),
            client: side(2, None),
            stream: None,
            queued: 0,
            sent_datagrams: 0,
            received: 0,
            cut: false,
            mark_ce: false,
            drop_every: None,
        };
        let (crypto, _) = client_config(&Trust::Pin(identity.pin())).unwrap();
        let mut config = ClientConfig::new(crypto);
        let mut transport = TransportConfig::default();
        transport
            .max_idle_timeout(None)
            .stream_receive_window(VarInt::from_u32(1 << 24));
        config.transport_config(Arc::new(transport));
        let connected = wire
            .client
            .endpoint
            .connect(now, config, wire.server.address, "localhost");
        wire.client.connection = Some(connected.unwrap());
        wire.run_until(Duration::from_secs(5), |wire| {
            let up = |side: &Side| side.connection.as_ref().is_some_and(|(_, c)| !c.is_handshaking());
            up(&wire.server) && up(&wire.client)
        });
        wire
    }

    /// The server's application writes `bytes` more.
    pub(super) fn server_sends(&mut self, bytes: usize) {
        self.queued += bytes;
        self.write();
    }

    pub(super) fn server_window(&self) -> u64 {
        self.server().congestion_state().window()
    }

    pub(super) fn server_mtu(&self) -> u16 {
        self.server().stats().path.current_mtu
    }

    pub(super) fn server_stats(&self) -> ConnectionStats {
        self.server().stats()
    }

    fn server(&self) -> &Connection {
        &self.server.connection.as_ref().unwrap().1
    }

    /// Lets `time` pass.
    pub(super) fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while self.step(end) {}
        self.now = end;
    }

    /// Lets time pass until `done`, at most `limit`.
    pub(super) fn run_until(&mut self, limit: Duration, done: impl Fn(&Self) -> bool) {
        let end = self.now + limit;
        while !done(self) {
            assert!(self.step(end), "did not happen within {limit:?}");
        }
    }

    fn write(&mut self) {
        let (_, connection) = self.server.connection.as_mut().unwrap();
        let stream = *self
            .stream
            .get_or_insert_with(|| connection.streams().open(Dir::Uni).unwrap());
        while self.queued > 0 {
            let chunk = vec![0; self.queued.min(16_384)];
            match connection.send_stream(stream).write(&chunk) {
                Ok(written) => self.queued -= written,
                Err(quinn_proto::WriteError::Blocked) => break,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Does everything due now, then moves the clock to the next event before `end`. `false` if there is none.
    fn step(&mut self, end: Instant) -> bool {
        self.deliver();
        self.transmit(true);
        self.transmit(false);
        let mut next: Option<Instant> = None;
        for side in [&mut self.server, &mut self.client] {
            let arrival = side.inbox.front().map(|datagram| datagram.0);
            let timer = side.connection.as_mut().and_then(|(_, c)| c.poll_timeout());
            next = next.into_iter().chain(arrival).chain(timer).min();
        }
        let Some(next) = next.filter(|&next| next <= end) else {
            return false;
        };
        self.now = self.now.max(next);
        for side in [&mut self.server, &mut self.client] {
            if let Some((_, connection)) = &mut side.connection
                && connection.poll_timeout().is_some_and(|at| at <= self.now)
            {
                connection.handle_timeout(self.now);
            }
        }
        true
    }

    fn deliver(&mut self) {
        let (server_address, client_address) = (self.server.address, self.client.address);
        for (side, from) in [
            (&mut self.server, client_address),
            (&mut self.client, server_address),
        ] {
            while side.inbox.front().is_some_and(|datagram| datagram.0 <= self.now) {
                let (_, ecn, data) = side.inbox.pop_front().unwrap();
                let mut buffer = Vec::new();
                match side.endpoint.handle(self.now, from, None, ecn, data, &mut buffer) {
                    Some(DatagramEvent::ConnectionEvent(_, event)) => {
                        side.connection.as_mut().unwrap().1.handle_event(event);
                    }
                    Some(DatagramEvent::NewConnection(incoming)) => {
                        let accepted = side.endpoint.accept(incoming, self.now, &mut buffer, None);
                        side.connection = Some(accepted.unwrap());
                    }
                    Some(DatagramEvent::Response(_)) | None => {}
                }
            }
        }
    }

    /// Carries one side's events and datagrams.
    fn transmit(&mut self, from_server: bool) {
        loop {
            let side = if from_server {
                &mut self.server
            } else {
                &mut self.client
            };
            let Some((handle, connection)) = &mut side.connection else {
                return;
            };
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = side.endpoint.handle_event(*handle, event) {
                    connection.handle_event(event);
                }
            }
            let mut writable = false;
            while let Some(event) = connection.poll() {
                match event {
                    Event::Stream(StreamEvent::Writable { .. }) => writable = true,
                    Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
                        self.stream = connection.streams().accept(Dir::Uni);
                    }
                    _ => {}
                }
            }
            if let Some(stream) = self.stream.filter(|_| !from_server) {
                let mut incoming = connection.recv_stream(stream);
                if let Ok(mut chunks) = incoming.read(true) {
                    while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                        self.received += chunk.bytes.len();
                    }
                    let _ = chunks.finalize();
                }
            }
            if writable {
                self.write();
                continue;
            }
            let mut buffer = Vec::new();
            let Some(transmit) = connection.poll_transmit(self.now, 10, &mut buffer) else {
                return;
            };
            let segment = transmit.segment_size.unwrap_or(transmit.size);
            for datagram in buffer[..transmit.size].chunks(segment) {
                self.carry(from_server, transmit.ecn, datagram);
            }
        }
    }

    fn carry(&mut self, from_server: bool, ecn: Option<EcnCodepoint>, datagram: &[u8]) {
        if from_server {
            self.sent_datagrams += 1;
        }
        let unlucky = self
            .drop_every
            .is_some_and(|every| from_server && self.sent_datagrams.is_multiple_of(every));
        if self.cut || unlucky {
            return;
        }
        let ecn = ecn.map(|ecn| {
            if from_server && self.mark_ce {
                EcnCodepoint::Ce
            } else {
                ecn
            }
        });
        let inbox = if from_server {
            &mut self.client.inbox
        } else {
            &mut self.server.inbox
        };
        inbox.push_back((self.now + self.delay, ecn, datagram.into()));
    }
}
