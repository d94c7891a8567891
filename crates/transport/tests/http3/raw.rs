//! Bytes on the wire, seen by a client of plain quinn.

use std::sync::Arc;
use std::time::Duration;

use playrate_transport::time;

use crate::common::{Rig, ok_rig};
use playrate_test_support::{PATIENCE, certificate, h3_config};

/// A HEADERS frame (RFC 9114 §7.2.2) with `GET https://localhost/`, in QPACK's static table (RFC 9204 appendix A).
pub(crate) const REQUEST: &[u8] = b"\x01\x10\x00\x00\xd1\xd7\xc1\x50\x09localhost";
const DATA_FRAME: u8 = 0;
const HEADERS_FRAME: u8 = 1;

/// A client that trusts the server of `rig` and keeps its tokens.
pub(crate) fn endpoint(rig: &Rig) -> quinn::Endpoint {
    let mut endpoint = quinn::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    endpoint.set_default_client_config(config(rig));
    endpoint
}

fn config(rig: &Rig) -> quinn::ClientConfig {
    h3_config(&certificate(&rig.identity.certificate_pem()))
}

pub(crate) async fn connect(endpoint: &quinn::Endpoint, rig: &Rig) -> quinn::Connection {
    let address = rig.server.local_addr().unwrap();
    endpoint.connect(address, "localhost").unwrap().await.unwrap()
}

/// The bytes of the response to a GET.
pub(crate) async fn response(connection: &quinn::Connection) -> Vec<u8> {
    let (mut send, mut receive) = connection.open_bi().await.unwrap();
    send.write_all(REQUEST).await.unwrap();
    send.finish().unwrap();
    receive.read_to_end(10_000).await.unwrap()
}

/// Types and payloads of the frames, all shorter than 64 bytes.
fn frames(mut bytes: &[u8]) -> Vec<(u8, &[u8])> {
    let mut frames = Vec::new();
    while let [kind, length, rest @ ..] = bytes {
        let (payload, next) = rest.split_at((*length).into());
        frames.push((*kind, payload));
        bytes = next;
    }
    frames
}

/// Older versions of aioquic miss the end of a response if a frame of a reserved type arrives with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_ends_with_its_last_data_frame() {
    let rig = ok_rig(|_| {});
    let connection = connect(&endpoint(&rig), &rig).await;
    for request in 0..2 {
        let response = response(&connection).await;
        let frames = frames(&response);
        assert!(
            matches!(frames[..], [(HEADERS_FRAME, _), (DATA_FRAME, b"ok")]),
            "{request}: {frames:?}"
        );
    }
}

/// The server's control stream is blocked in the middle of its SETTINGS, or right before a GOAWAY.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_without_room_for_a_goaway_does_not_keep_its_connection() {
    let rig = ok_rig(|options| options.idle_limit = Some(Duration::from_millis(300)));
    let endpoint = endpoint(&rig);
    let mut connections = Vec::new();
    for window in 1..64_u32 {
        let mut transport = quinn::TransportConfig::default();
        transport
            .stream_receive_window(window.into())
            .keep_alive_interval(Some(Duration::from_millis(500)));
        let mut config = config(&rig);
        config.transport_config(Arc::new(transport));
        let address = rig.server.local_addr().unwrap();
        let connecting = endpoint.connect_with(config, address, "localhost").unwrap();
        connections.push((window, connecting.await.unwrap()));
    }
    for (window, connection) in connections {
        let closed = time::timeout(&quinn::TokioRuntime, PATIENCE, connection.closed());
        assert!(closed.await.is_ok(), "{window} B of control stream");
    }
}
