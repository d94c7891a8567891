//! A plain QUIC client controlled by its input: requests that are complete, cut and malformed, control frames, resets,
//! closes, and waiting.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use playrate_test_support::wire::{prefixed, var_int};
use playrate_test_support::{certificate, h3_config};
use playrate_transport::{Identity, time};
use quinn::{Connection, Endpoint, RecvStream, Runtime, SendStream, VarInt};

/// Maximum number of operations of one input.
const OPERATIONS: usize = 80;
/// Maximum number of streams of each kind kept open for later operations.
const STREAMS: usize = 24;
/// Maximum number of consecutive connections.
const CONNECTIONS: usize = 4;
/// Virtual time that an operation may take: a write may be blocked, and a response may never come.
const OPERATION: Duration = Duration::from_millis(400);

/// Arbitrary bytes, taken from the front. Zeros follow after the last one.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> u8 {
        let (&first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        first
    }

    fn bytes(&mut self, count: u8) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(usize::from(count).min(self.0.len()));
        self.0 = rest;
        taken
    }
}

/// A client with its streams.
pub(super) struct Attacker {
    endpoint: Endpoint,
    config: quinn::ClientConfig,
    address: SocketAddr,
    runtime: Arc<dyn Runtime>,
    connection: Option<Connection>,
    connections: usize,
    requests: Vec<(SendStream, RecvStream)>,
    others: Vec<SendStream>,
}

impl Attacker {
    /// A client of the server at `address` with `identity`.
    pub(super) fn new(
        endpoint: Endpoint,
        identity: &Identity,
        address: SocketAddr,
        runtime: Arc<dyn Runtime>,
    ) -> Self {
        Self {
            endpoint,
            config: h3_config(&certificate(&identity.certificate_pem())),
            address,
            runtime,
            connection: None,
            connections: 0,
            requests: Vec::new(),
            others: Vec::new(),
        }
    }

    /// Performs all operations in `bytes`.
    pub(super) async fn attack(&mut self, bytes: &[u8]) {
        let mut input = Input(bytes);
        self.connect(input.byte()).await;
        for _ in 0..OPERATIONS {
            if input.0.is_empty() {
                break;
            }
            self.operate(&mut input).await;
        }
    }

    /// Closes all connections, either with an HTTP/3 error code or as quinn does when the last handle is dropped.
    pub(super) async fn leave(self, with_code: bool) {
        if with_code {
            self.endpoint.close(VarInt::from_u32(0x100), b"");
        }
        drop((self.connection, self.requests, self.others));
        self.endpoint.wait_idle().await;
    }

    /// Connects again, with windows chosen by `choice`, and with a control stream if its first bit is set.
    async fn connect(&mut self, choice: u8) {
        if self.connections == CONNECTIONS {
            return;
        }
        self.connections += 1;
        let window = [1, 1_000, 65_536, 16 << 20][usize::from(choice >> 1 & 3)];
        let mut transport = quinn::TransportConfig::default();
        transport
            .stream_receive_window(VarInt::from_u32(window))
            .receive_window(VarInt::from_u32(window.max(4_096)))
            .max_concurrent_uni_streams(VarInt::from_u32([3, 0, 1, 100][usize::from(choice >> 3 & 3)]));
        let mut config = self.config.clone();
        config.transport_config(Arc::new(transport));
        let Ok(connecting) = self.endpoint.connect_with(config, self.address, "localhost") else {
            return;
        };
        // A server may refuse a client, but it must answer.
        let connected = time::timeout(&*self.runtime, Duration::from_secs(20), connecting);
        self.connection = connected.await.expect("the server answers").ok();
        self.requests.clear();
        self.others.clear();
        if choice & 1 == 1 {
            // The control stream with an empty SETTINGS frame (RFC 9114 §6.2.1, §7.2.4).
            self.open_other(&[0, 4, 0]).await;
        }
    }

    /// Runs `work` for at most [`OPERATION`]. An error is an answer like any other.
    async fn briefly<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        time::timeout(&*self.runtime, OPERATION, work).await.ok()
    }

    async fn open_request(&mut self, bytes: &[u8]) -> Option<()> {
        let connection = self.connection.as_ref()?;
        let (mut send, receive) = self.briefly(connection.open_bi()).await?.ok()?;
        let _ = self.briefly(send.write_all(bytes)).await;
        if self.requests.len() == STREAMS {
            self.requests.remove(0);
        }
        self.requests.push((send, receive));
        Some(())
    }

    async fn open_other(&mut self, bytes: &[u8]) -> Option<()> {
        let connection = self.connection.as_ref()?;
        let mut send = self.briefly(connection.open_uni()).await?.ok()?;
        let _ = self.briefly(send.write_all(bytes)).await;
        if self.others.len() == STREAMS {
            self.others.remove(0);
        }
        self.others.push(send);
        Some(())
    }

    async fn write(&mut self, stream: u8, bytes: &[u8]) {
        let runtime = Arc::clone(&self.runtime);
        if let Some((send, _)) = self.request(stream) {
            let _ = time::timeout(&*runtime, OPERATION, send.write_all(bytes)).await;
        }
    }

    async fn write_other(&mut self, stream: u8, bytes: &[u8]) {
        let count = self.others.len().max(1);
        let runtime = Arc::clone(&self.runtime);
        if let Some(send) = self.others.get_mut(usize::from(stream) % count) {
            let _ = time::timeout(&*runtime, OPERATION, send.write_all(bytes)).await;
        }
    }

    fn request(&mut self, stream: u8) -> Option<&mut (SendStream, RecvStream)> {
        let count = self.requests.len().max(1);
        self.requests.get_mut(usize::from(stream) % count)
    }

    /// Reads up to `most` bytes of a response.
    async fn read(&mut self, stream: u8, most: usize) {
        let runtime = Arc::clone(&self.runtime);
        let Some((_, receive)) = self.request(stream) else {
            return;
        };
        let reading = async {
            let mut left = most;
            while left > 0
                && let Ok(Some(chunk)) = receive.read_chunk(left, true).await
            {
                left -= chunk.bytes.len();
            }
        };
        let _ = time::timeout(&*runtime, OPERATION, reading).await;
    }

    async fn operate(&mut self, input: &mut Input<'_>) {
        let (code, a, b) = (input.byte(), input.byte(), input.byte());
        let error = VarInt::from_u32(0x100 + u32::from(b % 0x12));
        match code % 24 {
            0..=3 => {
                let _ = self.open_request(&request(a, &[])).await;
                if b % 4 != 0
                    && let Some((send, _)) = self.requests.last_mut()
                {
                    let _ = send.finish();
                }
            }
            4 => {
                let whole = request(a, &[]);
                let _ = self.open_request(&whole[..usize::from(b).min(whole.len())]).await;
            }
            5 => {
                // A header section with fields from the input.
                let (name, value) = (input.bytes(a % 24), input.bytes(b % 64));
                let _ = self.open_request(&request(a, &[(name, value)])).await;
            }
            6 => self.write(a, input.bytes(b % 64)).await,
            7 | 8 => {
                let content = input.bytes(b % 32);
                self.write(b, &frame(a, content)).await;
            }
            9 => {
                if let Some((send, _)) = self.request(a) {
                    let _ = send.finish();
                }
            }
            10 => {
                if let Some((send, _)) = self.request(a) {
                    let _ = send.reset(error);
                }
            }
            11 => {
                if let Some((_, receive)) = self.request(a) {
                    let _ = receive.stop(error);
                }
            }
            12 | 13 => self.read(a, usize::from(b) * 64).await,
            14 => self.read(a, 256 << 10).await,
            15 => {
                // Control, push, the two of QPACK, reserved, and WebTransport's.
                let kind = [0, 1, 2, 3, 0x21, 0x54][usize::from(a % 6)];
                let content = input.bytes(b % 32);
                let _ = self.open_other(&[&var_int(kind), content].concat()).await;
            }
            16 => self.write_other(a, input.bytes(b % 64)).await,
            17 => {
                let content = input.bytes(b % 16);
                self.write_other(b, &frame(a, content)).await;
            }
            18 => {
                let count = self.others.len().max(1);
                if let Some(send) = self.others.get_mut(usize::from(a) % count) {
                    let _ = if b % 2 == 0 {
                        send.reset(error)
                    } else {
                        send.finish()
                    };
                }
            }
            19 => {
                if let Some(connection) = &self.connection {
                    // The server offers no datagrams.
                    assert!(connection.send_datagram(vec![a; 8].into()).is_err());
                    connection.set_receive_window(VarInt::from_u32(u32::from(b) << 10));
                }
            }
            20 => {
                if let Some(connection) = self.connection.take() {
                    connection.close(error, &[a; 4]);
                }
            }
            21 => self.connect(a).await,
            22 => time::sleep(&*self.runtime, Duration::from_millis(4 * u64::from(b))).await,
            _ => time::sleep(&*self.runtime, Duration::from_millis(64 * u64::from(b))).await,
        }
    }
}

/// A HEADERS frame with one of several requests, and with the additional fields `more`.
fn request(choice: u8, more: &[(&[u8], &[u8])]) -> Vec<u8> {
    let (method, path): (&[u8], &[u8]) = match choice % 8 {
        0 | 1 => (b"GET", b"/large.bin"),
        2 => (b"GET", b"/film.mp4"),
        3 => (b"HEAD", b"/film.mp4"),
        4 => (b"OPTIONS", b"*"),
        5 => (b"POST", b"/film.mp4"),
        6 => (b"CONNECT", b"/%2e%2e/"),
        _ => (
            b"GET",
            b"/film.mp4?CMCD=br%3D3200%2Cbl%3D4000%2Cot%3Dv%2Csid%3D%22a%22%2Csu",
        ),
    };
    let mut fields: Vec<(&[u8], &[u8])> = vec![
        (b":method", method),
        (b":scheme", b"https"),
        (b":authority", b"localhost"),
        (b":path", path),
    ];
    match choice >> 3 & 7 {
        1 => fields.push((b"range", b"bytes=100-70000")),
        2 => fields.push((b"range", b"bytes=-1")),
        3 => fields.push((b"content-length", b"18446744073709551616")),
        4 => fields.extend(
            [(
                b"cmcd-request".as_slice(),
                b"bl=100,dl=50,su,nrr=\"0-5\"".as_slice(),
            ); 3],
        ),
        5 => fields.swap(0, 3),
        6 => drop(fields.remove(usize::from(choice >> 6))),
        _ => {}
    }
    fields.extend(more);
    let mut section = vec![0, 0];
    for (name, value) in fields {
        // A literal field line with a literal name, without Huffman codes (RFC 9204 §4.5.6).
        prefixed(&mut section, 0x20, 3, name.len());
        section.extend_from_slice(name);
        prefixed(&mut section, 0, 7, value.len());
        section.extend_from_slice(value);
    }
    [&var_int(1), &var_int(section.len() as u64), section.as_slice()].concat()
}

/// A frame with this content; its header may claim more than that.
fn frame(choice: u8, content: &[u8]) -> Vec<u8> {
    // DATA, HEADERS, HTTP/2's PRIORITY, CANCEL_PUSH, SETTINGS, PUSH_PROMISE, GOAWAY, MAX_PUSH_ID, reserved,
    // PRIORITY_UPDATE of RFC 9218, an unknown one.
    let kinds = [0, 1, 2, 3, 4, 5, 7, 0xd, 0x21, 0xf_0700, 0x3fff_ffff];
    let kind = kinds[usize::from(choice) % kinds.len()];
    let length = content.len() as u64;
    let claimed = [
        length,
        length,
        length,
        0,
        length + 9,
        1 << 14,
        1 << 30,
        (1 << 62) - 1,
    ];
    let claimed = claimed[usize::from(choice) / kinds.len() % claimed.len()];
    [&var_int(kind), &var_int(claimed), content].concat()
}
