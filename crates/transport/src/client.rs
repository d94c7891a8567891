//! The HTTP/3 client side: an endpoint, its connections, and their requests.

use std::fmt;
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures_util::stream::{FuturesUnordered, StreamExt};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use quinn::{AsyncUdpSocket, Runtime};
use rustls::crypto::CryptoProvider;

use crate::autotuning::{Autotuning, WindowUpdate};
use crate::endpoint::{BindError, udp_socket};
use crate::error::{ConnectError, ConnectionLost, EndpointError, ExchangeError, H3_NO_ERROR};
use crate::options::TransportOptions;
use crate::quic;
use crate::time;
use crate::tls::{require_registered_suites, ring_provider};
use crate::trust::{Trust, client_config};

/// Time without an answer from one address before the next one is also tried (RFC 8305 §5).
const CONNECTION_ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Maximum number of bytes accepted in a response's header section.
const HEADER_LIMIT: u64 = 64 << 10;

/// Maximum number of interim responses (RFC 9110 §15.2) that are skipped before a final one.
const INTERIM_RESPONSES: usize = 32;

/// Options of a client's connections.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientOptions {
    /// Servers that the client trusts.
    pub trust: Trust,
    /// Cryptography of its connections, ring's by default. [`Client::bind`] refuses cipher suites that are not
    /// registered; [`Client::new`] takes any, for simulations.
    pub crypto_provider: Arc<CryptoProvider>,
    /// Transport parameters of its connections.
    pub transport: TransportOptions,
    /// Longest wait for an answer from one address.
    pub connect_timeout: Duration,
    /// Largest receive window of a connection whose window follows the application's reads, like Linux's for TCP; it
    /// begins with `transport.receive_window`. `None` keeps that window.
    pub receive_autotuning: Option<playrate_units::Bytes>,
}

impl ClientOptions {
    /// The defaults, with `trust`.
    pub fn new(trust: Trust) -> Self {
        Self {
            trust,
            crypto_provider: ring_provider(),
            transport: TransportOptions::client(),
            connect_timeout: Duration::from_secs(5),
            receive_autotuning: None,
        }
    }
}

/// Name and addresses of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Target {
    /// The name that the server's certificate must match: a host name or an IP address, without brackets.
    pub host: String,
    /// UDP port of the server.
    pub port: u16,
    /// Addresses to try, the preferred ones first.
    pub addresses: Vec<SocketAddr>,
}

impl Target {
    /// `host` and `port` at a known address.
    pub fn at(host: &str, address: SocketAddr) -> Self {
        Self {
            host: host.to_owned(),
            port: address.port(),
            addresses: vec![address],
        }
    }

    /// Resolves `host`. This blocks on the system's resolver, so use it neither in virtual time nor on a busy task.
    pub fn resolve(host: &str, port: u16) -> Result<Self, ConnectError> {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let failed = |reason: String| ConnectError::Name {
            host: host.to_owned(),
            reason,
        };
        let addresses = (host, port).to_socket_addrs();
        let addresses: Vec<_> = addresses.map_err(|error| failed(error.to_string()))?.collect();
        if addresses.is_empty() {
            return Err(failed("the name has no address".to_owned()));
        }
        Ok(Self {
            host: host.to_owned(),
            port,
            addresses,
        })
    }

    /// The `:authority` of requests.
    fn authority(&self) -> String {
        match self.host.parse::<IpAddr>() {
            Ok(IpAddr::V6(address)) => format!("[{address}]:{}", self.port),
            _ => format!("{}:{}", self.host, self.port),
        }
    }
}

/// An HTTP/3 client's endpoint. Clones are the same endpoint.
#[derive(Clone, Debug)]
pub struct Client {
    endpoint: quinn::Endpoint,
    runtime: Arc<dyn Runtime>,
    options: Arc<ClientOptions>,
}

fn any(ip: impl Into<IpAddr>) -> SocketAddr {
    SocketAddr::new(ip.into(), 0)
}

/// A UDP socket for IPv6, and for IPv4 as well if the system supports it.
fn any_socket() -> Result<UdpSocket, BindError> {
    udp_socket(any(Ipv6Addr::UNSPECIFIED)).or_else(|_| udp_socket(any(Ipv4Addr::UNSPECIFIED)))
}

impl Client {
    /// A client on `socket`: a UDP socket, or one in a simulation.
    pub fn new(
        runtime: Arc<dyn Runtime>,
        socket: Arc<dyn AsyncUdpSocket>,
        options: ClientOptions,
    ) -> Result<Self, EndpointError> {
        // Reports invalid options before the first connection.
        options.transport.to_quinn()?;
        let endpoint = quinn::Endpoint::new_with_abstract_socket(
            options.transport.to_endpoint()?,
            None,
            socket,
            Arc::clone(&runtime),
        )?;
        Ok(Self {
            endpoint,
            runtime,
            options: Arc::new(options),
        })
    }

    /// A client on its own UDP socket for IPv6, and for IPv4 as well if the system supports it.
    pub fn bind(runtime: Arc<dyn Runtime>, options: ClientOptions) -> Result<Self, EndpointError> {
        require_registered_suites(&options.crypto_provider)?;
        let socket = runtime
            .wrap_udp_socket(any_socket()?)
            .map_err(|source| BindError::Other {
                address: any(Ipv6Addr::UNSPECIFIED),
                source,
            })?;
        Self::new(runtime, socket, options)
    }

    /// Continues with a new UDP socket, and thus from another port, as after a change of the network (RFC 9000 §9).
    ///
    /// # Errors
    /// If the system provides no socket. The client then keeps its current one.
    pub fn rebind(&self) -> Result<(), EndpointError> {
        Ok(self.endpoint.rebind(any_socket()?)?)
    }

    /// Connects to `target`. If an address does not answer for a moment, the next one is also tried, and the first to
    /// answer is used (RFC 8305 §5). A certificate that is not trusted fails immediately.
    pub async fn connect(&self, target: &Target) -> Result<Connection, ConnectError> {
        let mut waiting = target.addresses.iter();
        let mut attempts = FuturesUnordered::new();
        let mut failure = ConnectError::Name {
            host: target.host.clone(),
            reason: "the name has no address".to_owned(),
        };
        loop {
            if let Some(&address) = waiting.next() {
                attempts.push(self.connect_to(target, address));
            }
            let attempt = if waiting.len() == 0 {
                attempts.next().await
            } else if let Ok(attempt) =
                time::timeout(&*self.runtime, CONNECTION_ATTEMPT_DELAY, attempts.next()).await
            {
                attempt
            } else {
                continue;
            };
            match attempt {
                Some(Err(error @ (ConnectError::NoAnswer { .. } | ConnectError::Refused(_)))) => {
                    failure = error;
                }
                Some(decided) => return decided,
                None => return Err(failure),
            }
        }
    }

    async fn connect_to(&self, target: &Target, address: SocketAddr) -> Result<Connection, ConnectError> {
        let setup = |error: EndpointError| ConnectError::Setup(Arc::new(error));
        let (crypto, wrong_pin) =
            client_config(&self.options.trust, Arc::clone(&self.options.crypto_provider))
                .map_err(|error| setup(error.into()))?;
        let mut config = quinn::ClientConfig::new(crypto);
        let transport = self.options.transport.to_quinn();
        config.transport_config(Arc::new(transport.map_err(|error| setup(error.into()))?));
        let connecting = self.endpoint.connect_with(config, address, &target.host)?;
        let limit = self.options.connect_timeout;
        let no_answer = ConnectError::NoAnswer {
            address,
            waited: limit,
        };
        let established = async {
            let quinn = connecting.await;
            let quinn = quinn.map_err(|error| ConnectError::in_handshake(error, wrong_pin.get()))?;
            Connection::new(quinn, target, Arc::clone(&self.runtime), &self.options).await
        };
        match time::timeout(&*self.runtime, limit, established).await {
            Ok(Err(ConnectError::Lost(ConnectionLost::TimedOut))) | Err(time::Elapsed) => Err(no_answer),
            Ok(done) => done,
        }
    }

    /// The runtime that drives its connections, with their clock.
    pub fn runtime(&self) -> &Arc<dyn Runtime> {
        &self.runtime
    }

    /// Waits until all connections are gone and their closing frames have been sent.
    pub async fn wait_idle(&self) {
        self.endpoint.wait_idle().await;
    }
}

type RequestSender = h3::client::SendRequest<quic::Connection, Bytes>;
type RequestStream = h3::client::RequestStream<quic::BidiStream, Bytes>;

/// A connection to a server. Clones are the same connection; it closes when the last of them and of its bodies is
/// dropped.
#[derive(Clone)]
pub struct Connection {
    sender: RequestSender,
    quinn: quinn::Connection,
    authority: Arc<str>,
    autotuning: Option<Arc<Autotuning>>,
    runtime: Arc<dyn Runtime>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("authority", &self.authority)
            .finish_non_exhaustive()
    }
}

impl Connection {
    async fn new(
        quinn: quinn::Connection,
        target: &Target,
        runtime: Arc<dyn Runtime>,
        options: &ClientOptions,
    ) -> Result<Self, ConnectError> {
        // This client reads at most a header's worth of each stream that a server opens.
        let adapter = quic::Connection::new(quinn.clone(), HEADER_LIMIT, None, None);
        let (mut driver, sender) = h3::client::builder()
            .max_field_section_size(HEADER_LIMIT)
            .send_grease(options.transport.seed.is_none())
            .build(adapter)
            .await
            .map_err(|error| ConnectionLost::of(&quinn, &error))?;
        runtime.spawn(Box::pin(async move {
            let ended = driver.wait_idle().await;
            tracing::debug!(%ended, "connection ended");
        }));
        let window = options.transport.receive_window;
        let autotuning = options
            .receive_autotuning
            .map(|largest| Arc::new(Autotuning::new(window, largest, runtime.now())));
        Ok(Self {
            sender,
            quinn,
            authority: target.authority().into(),
            autotuning,
            runtime,
        })
    }

    /// Widens the receive window, or announces room in it, if it follows the application's reads.
    fn on_read(&self, bytes: usize) {
        let Some(autotuning) = &self.autotuning else {
            return;
        };
        let bytes = playrate_units::Bytes::from(bytes);
        let set = |window: u64| {
            if let Ok(window) = quinn::VarInt::from_u64(window) {
                self.quinn.set_receive_window(window);
            }
        };
        match autotuning.on_read(self.runtime.now(), self.quinn.rtt(), bytes) {
            WindowUpdate::None => {}
            WindowUpdate::Widen(window) => set(window.as_u64()),
            // quinn announces a wider window immediately, but room in the same window only when an eighth of it is
            // free.
            WindowUpdate::Announce(window) => {
                set(window.as_u64().saturating_sub(1));
                set(window.as_u64());
            }
        }
    }

    /// Fetches `path` (with its query): the response's header, and its body to pull.
    pub async fn get(&self, path: &str, headers: HeaderMap) -> Result<(Response<()>, Body), ExchangeError> {
        self.request(Method::GET, path, headers).await
    }

    /// Fetches bytes `first..=last` of `path`, to the end if there is no `last` (RFC 9110 §14.2). The server may still
    /// answer with the whole (200).
    #[expect(
        clippy::too_many_arguments,
        reason = "path, both ends of the range and header fields"
    )]
    pub async fn get_range(
        &self,
        path: &str,
        first: u64,
        last: Option<u64>,
        mut headers: HeaderMap,
    ) -> Result<(Response<()>, Body), ExchangeError> {
        let last = last.map(|last| last.to_string()).unwrap_or_default();
        let range = HeaderValue::try_from(format!("bytes={first}-{last}"));
        let range = range.map_err(|error| ExchangeError::BadRequest(error.to_string()))?;
        headers.insert(header::RANGE, range);
        self.request(Method::GET, path, headers).await
    }

    /// Fetches only the header of `path`.
    pub async fn head(&self, path: &str, headers: HeaderMap) -> Result<Response<()>, ExchangeError> {
        let (response, mut body) = self.request(Method::HEAD, path, headers).await?;
        while body.chunk().await?.is_some() {}
        Ok(response)
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        headers: HeaderMap,
    ) -> Result<(Response<()>, Body), ExchangeError> {
        let uri = Uri::builder()
            .scheme("https")
            .authority(&*self.authority)
            .path_and_query(path)
            .build()
            .map_err(|error| ExchangeError::BadRequest(format!("`{path}`: {error}")))?;
        let mut request = Request::new(());
        *request.method_mut() = method.clone();
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        let failed = |error| ExchangeError::of(&self.quinn, error);
        let mut stream = self.sender.clone().send_request(request).await.map_err(failed)?;
        stream.finish().await.map_err(failed)?;
        let mut response = stream.recv_response().await.map_err(failed)?;
        for _ in 0..INTERIM_RESPONSES {
            if !response.status().is_informational() {
                break;
            }
            response = stream.recv_response().await.map_err(failed)?;
        }
        if response.status().is_informational() {
            let problem = format!("more than {INTERIM_RESPONSES} interim responses");
            return Err(ExchangeError::TooLarge(problem));
        }
        let bodiless = method == Method::HEAD || response.status() == StatusCode::NOT_MODIFIED;
        let promised = response
            .headers()
            .get(header::CONTENT_LENGTH)
            .filter(|_| !bodiless)
            .and_then(|value| value.to_str().ok()?.parse().ok());
        let body = Body {
            stream,
            connection: self.clone(),
            promised,
            received: 0,
        };
        Ok((response, body))
    }

    /// The QUIC connection underneath.
    pub fn quinn(&self) -> &quinn::Connection {
        &self.quinn
    }

    /// Closes the connection now. Data in flight is lost.
    pub fn close(&self) {
        self.quinn.close(quic::var_int(H3_NO_ERROR), b"");
    }
}

/// A response's body. It takes only the bytes that are pulled from the transport, so the server waits once the receive
/// window is full. Dropping it before the end cancels the rest.
pub struct Body {
    stream: RequestStream,
    connection: Connection,
    promised: Option<u64>,
    received: u64,
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body")
            .field("promised", &self.promised)
            .field("received", &self.received)
            .finish_non_exhaustive()
    }
}

impl Body {
    /// The next bytes, as they arrived; `None` at the end. Dropping the future loses nothing.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ExchangeError> {
        let chunk = poll_fn(|cx| quic::poll_buffered_first(|| self.stream.poll_recv_data(cx)))
            .await
            .map_err(|error| ExchangeError::of(&self.connection.quinn, error))?
            .map(|mut data| data.copy_to_bytes(data.remaining()));
        if let Some(chunk) = &chunk {
            self.received = self.received.saturating_add(chunk.len() as u64);
            self.connection.on_read(chunk.len());
        }
        match self.promised {
            Some(promised) if self.received > promised || (chunk.is_none() && self.received < promised) => {
                Err(ExchangeError::Truncated {
                    received: self.received,
                    promised,
                })
            }
            _ => Ok(chunk),
        }
    }

    /// `Content-Length`, if the server gave one and the response has a body.
    pub fn promised(&self) -> Option<u64> {
        self.promised
    }

    /// Bytes pulled so far.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The connection that the body arrives on.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authority_brackets_ipv6_and_names_the_port() {
        for (host, authority) in [
            ("localhost", "localhost:4433"),
            ("127.0.0.1", "127.0.0.1:4433"),
            ("[::1]", "[::1]:4433"),
            ("::1", "[::1]:4433"),
        ] {
            let target = Target::resolve(host, 4433).unwrap();
            assert_eq!(target.authority(), authority);
            assert_eq!(target.addresses[0].port(), 4433);
        }
    }
}
