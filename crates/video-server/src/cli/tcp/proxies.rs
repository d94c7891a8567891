//! [`Proxies`]: the proxies in front of a server, which report their clients' addresses.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use http::header::FORWARDED;
use http::{HeaderMap, HeaderName};
use ipnet::IpNet;
use parking_lot::Mutex;
use playrate_transport::{LogLimit, time};
use proxy_header::{ParseConfig, ProxyHeader};
use quinn::{Runtime as _, TokioRuntime};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

/// Maximum time for the PROXY protocol's header, which proxies send at once.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// First bytes of version 2.
const VERSION_2: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Maximum length of a header of version 1.
const MAX_V1: usize = 107;
/// Maximum length of what follows the first 16 bytes of version 2. Proxies add a few hundred bytes to the addresses.
const MAX_V2_PAYLOAD: u16 = 4096;

/// Networks of proxies, and how they report the address of a client. Other peers are not believed.
#[derive(Debug, Default)]
pub(crate) struct Proxies {
    pub(crate) trusted: Vec<IpNet>,
    /// True if each of their connections begins with a header of the PROXY protocol.
    pub(crate) protocol: bool,
    /// Field with the addresses of clients: `Forwarded` or `X-Forwarded-For`.
    pub(crate) field: Option<HeaderName>,
    /// Number of connections without a valid header, and the limit on their log lines.
    pub(crate) failures: Mutex<LogLimit>,
}

impl Proxies {
    /// Returns true if `address` is that of a proxy.
    pub(crate) fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.trusted.iter().any(|network| network.contains(&address))
    }

    /// Returns true if connections from `address` begin with a header.
    pub(crate) fn expects_header(&self, address: IpAddr) -> bool {
        self.protocol && self.trusts(address)
    }

    /// Reads the header of a connection from `proxy`, and returns the connection with the address of its client: the
    /// proxy's own if the header names none, as for a health check. `None` if no valid header arrives in time.
    pub(crate) async fn client_of(
        &self,
        mut stream: TcpStream,
        proxy: SocketAddr,
    ) -> Option<(TcpStream, SocketAddr)> {
        let read = time::timeout(&TokioRuntime, HEADER_TIMEOUT, header(&mut stream)).await;
        let error = match read {
            Ok(Ok(client)) => return Some((stream, client.unwrap_or(proxy))),
            Ok(Err(error)) => error,
            Err(time::Elapsed) => io::ErrorKind::TimedOut.into(),
        };
        let failed = self.failures.lock().count(TokioRuntime.now());
        if let Some(failed) = failed {
            tracing::warn!(%proxy, %error, failed, "closed connections of a proxy without a valid PROXY header");
        }
        None
    }

    /// Address of the client of a request from `peer`: the last one in the field that is not a proxy's, with port 0.
    /// Everything in front of it may be forged, and need not be text.
    pub(crate) fn client(&self, peer: SocketAddr, fields: &HeaderMap) -> SocketAddr {
        let mut client = peer;
        let Some(name) = &self.field else { return client };
        let values = fields.get_all(name).iter().rev();
        let values: Vec<_> = values
            .map(|value| String::from_utf8_lossy(value.as_bytes()))
            .collect();
        let mut elements = values.iter().flat_map(|value| split_from_end(value, b','));
        while self.trusts(client.ip())
            && let Some(next) = elements.next().and_then(|element| node(name, element))
        {
            client = SocketAddr::new(next, 0);
        }
        client
    }
}

/// Reads a header; `None` if it names no client.
async fn header(stream: &mut TcpStream) -> io::Result<Option<SocketAddr>> {
    let mut header = vec![0; VERSION_2.len()];
    stream.read_exact(&mut header).await?;
    if header == VERSION_2 {
        let (kind, length) = (stream.read_u16().await?, stream.read_u16().await?);
        // A health check (LOCAL) names no client, whatever its address family says (§2.2).
        let kind = if kind >> 8 == 0x20 { 0x2000 } else { kind };
        header.extend([kind.to_be_bytes(), length.to_be_bytes()].concat());
        // A longer one is then incomplete.
        header.resize(header.len() + usize::from(length.min(MAX_V2_PAYLOAD)), 0);
        stream.read_exact(&mut header[VERSION_2.len() + 4..]).await?;
    }
    // Byte by byte, as TLS follows.
    while header.starts_with(b"PROXY ") && !header.ends_with(b"\n") && header.len() < MAX_V1 {
        header.push(stream.read_u8().await?);
    }
    let (parsed, _) = ProxyHeader::parse(&header, ParseConfig::default())
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(parsed.proxied_address().map(|addresses| addresses.source))
}

/// The parts of `text` between separators outside of quoted strings, the last part first. Read from that end, a quote
/// without its counterpart, in what a client wrote in front, cannot hide what a proxy has added.
fn split_from_end(text: &str, separator: u8) -> Vec<&str> {
    let (bytes, mut parts) = (text.as_bytes(), Vec::new());
    let (mut end, mut is_quoted) = (text.len(), false);
    for (at, &byte) in bytes.iter().enumerate().rev() {
        let escapes = bytes[..at].iter().rev().take_while(|&&before| before == b'\\');
        if byte == b'"' && escapes.count() % 2 == 0 {
            is_quoted = !is_quoted;
        } else if byte == separator && !is_quoted {
            parts.push(&text[at + 1..end]);
            end = at;
        }
    }
    parts.push(&text[..end]);
    parts
}

/// The address in an element of the field `name` (RFC 7239 §4), if there is one.
fn node(name: &HeaderName, element: &str) -> Option<IpAddr> {
    let node = if *name == FORWARDED {
        let pairs = split_from_end(element, b';').into_iter();
        let pairs = pairs.filter_map(|pair| pair.trim().split_once('='));
        let named: Vec<_> = pairs
            .filter(|(name, _)| name.eq_ignore_ascii_case("for"))
            .collect();
        // A parameter occurs once.
        let [(_, node)] = named[..] else { return None };
        node.trim_matches('"')
    } else {
        element.trim()
    };
    // The port need not be a number (§6.3). An IPv6 address without brackets has none.
    let (address, _port) = match node.strip_prefix('[') {
        Some(bracketed) => bracketed.split_once(']')?,
        None if node.matches(':').count() == 1 => node.split_once(':')?,
        None => (node, ""),
    };
    address.parse().ok()
}

#[cfg(test)]
#[path = "proxies_tests.rs"]
mod tests;
