//! A server of plain quinn for HTTP/3, which sends any bytes and codes.

use std::net::SocketAddr;
use std::sync::Arc;

use playrate_transport::Pin;
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, RecvStream, SendStream, ServerConfig, TransportConfig, VarInt};
use rustls::pki_types::PrivateKeyDer;

/// HEADERS frame (RFC 9114 §7.2.2) of a response with status 200, in QPACK's static table (RFC 9204 appendix A).
pub const OK: &[u8] = b"\x01\x03\x00\x00\xd9";
/// HEADERS frame of an interim response with status 103.
pub const EARLY_HINTS: &[u8] = b"\x01\x03\x00\x00\xd8";

/// The DATA frame (RFC 9114 §7.2.1) with `payload`, which has less than 2^30 bytes.
pub fn data(payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap() | 1 << 31;
    [&[0], &length.to_be_bytes()[..], payload].concat()
}

/// Starts a server that calls `answer` with the number of each request, from 0, and its stream, before any of it is
/// read. `window` is the number of bytes that it accepts on each stream without reading them.
pub fn raw_server<F: Future<Output = ()> + Send>(
    window: u32,
    answer: impl Fn(usize, SendStream, RecvStream) -> F + Send + Sync + 'static,
) -> (SocketAddr, Pin) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let pin = Pin::of(&certificate).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls).unwrap()));
    let mut transport = TransportConfig::default();
    transport.stream_receive_window(VarInt::from_u32(window));
    config.transport_config(Arc::new(transport));
    let endpoint = Endpoint::server(config, ([127, 0, 0, 1], 0).into()).unwrap();
    let address = endpoint.local_addr().unwrap();
    tokio::spawn(async move {
        let mut number = 0;
        while let Some(incoming) = endpoint.accept().await {
            let Ok(connection) = incoming.await else { continue };
            // The control stream with a SETTINGS frame without settings (RFC 9114 §6.2.1).
            let mut control = connection.open_uni().await.unwrap();
            control.write_all(&[0, 4, 0]).await.unwrap();
            while let Ok((send, receive)) = connection.accept_bi().await {
                answer(number, send, receive).await;
                number += 1;
            }
        }
    });
    (address, pin)
}
