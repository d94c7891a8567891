//! A server that was killed and started again, and one whose socket another process takes over.

use std::net::{SocketAddr, UdpSocket};

use bytes::Bytes;
use http::HeaderMap;
use playrate_transport::{
    Client, ClientOptions, ConnectionLost, EndpointKey, Exchange, ExchangeError, Identity, ServerOptions,
    Succession, Trust, udp_socket,
};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::common::{Handling, Rig, fetch, payload, rest, rig_at, rig_on, runtime, stream, with_length};

/// A server on a runtime of its own, with which all of it is gone at once.
fn start(address: SocketAddr, identity: &Identity, key: &EndpointKey) -> (Runtime, Rig) {
    let server_runtime = Runtime::new().unwrap();
    let rig = server_runtime.block_on(async {
        rig_at(
            (address, identity.clone()),
            &["cubic"],
            |options| options.endpoint_key = Some(key.clone()),
            |exchange| Box::pin(exchange.respond(with_length(2), "ok".into())),
        )
    });
    (server_runtime, rig)
}

#[test]
fn a_server_restarted_with_the_same_key_resets_the_connections_that_it_lost() {
    let (identity, key) = (
        Identity::development(&[]).unwrap(),
        EndpointKey::generate().unwrap(),
    );
    let (server_runtime, rig) = start("127.0.0.1:0".parse().unwrap(), &identity, &key);
    let target = rig.target();
    let client_runtime = Runtime::new().unwrap();
    let connection = client_runtime.block_on(async {
        let client = Client::bind(runtime(), ClientOptions::new(Trust::Pin(identity.pin()))).unwrap();
        let connection = client.connect(&target).await.unwrap();
        assert_eq!(fetch(&connection, "/").await.unwrap(), b"ok");
        connection
    });
    let address = rig.server.local_addr().unwrap();
    drop(server_runtime);
    drop(rig);
    let (_server_runtime, _rig) = start(address, &identity, &key);
    let error = client_runtime.block_on(fetch(&connection, "/")).unwrap_err();
    assert!(
        matches!(error, ExchangeError::Connection(ConnectionLost::Reset)),
        "{error}"
    );
}

/// A process of a server that answers with `body`.
fn process(
    socket: UdpSocket,
    (identity, key): (&Identity, &EndpointKey),
    succession: Succession,
    body: &Bytes,
) -> Rig {
    let change = |options: &mut ServerOptions| {
        options.endpoint_key = Some(key.clone());
        options.succession = succession;
    };
    let body = body.clone();
    let handle = move |exchange: Exchange| -> Handling { Box::pin(stream(exchange, body.clone())) };
    rig_on(socket, identity.clone(), &["cubic"], (change, handle))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_stay_with_their_process_when_others_take_over_the_socket() {
    let secrets = (
        Identity::development(&[]).unwrap(),
        EndpointKey::generate().unwrap(),
    );
    let secrets = (&secrets.0, &secrets.1);
    let socket = udp_socket("127.0.0.1:0".parse().unwrap()).unwrap();
    let bodies: [Bytes; 3] = [2_000_000, 100, 50].map(payload);
    let first = process(
        socket.try_clone().unwrap(),
        secrets,
        Succession::default(),
        &bodies[0],
    );
    let oldest = first.connect_narrow().await;
    let (_, mut body) = oldest.get("/", HeaderMap::new()).await.unwrap();
    let mut got = body.chunk().await.unwrap().unwrap().to_vec();

    let take_over = |from: &Rig, number: u8| {
        let (forward, forwarded) = mpsc::channel(1_000);
        from.server.router().unwrap().receive_from(forwarded);
        let mut succession = Succession::default();
        (succession.process, succession.older) = (number, Some(forward));
        let body = &bodies[usize::from(number)];
        process(socket.try_clone().unwrap(), secrets, succession, body)
    };
    let second = take_over(&first, 1);
    let newer = second.connect().await;
    assert!(fetch(&newer, "/").await.unwrap() == bodies[1]);
    let third = take_over(&second, 2);
    let newest = third.connect().await;
    assert!(fetch(&newest, "/").await.unwrap() == bodies[2]);
    got.extend(rest(&mut body).await.unwrap());
    assert!(got == bodies[0]);
    for (connection, body) in [&oldest, &newer, &newest].into_iter().zip(&bodies) {
        assert!(fetch(connection, "/").await.unwrap() == *body);
    }
    let open = [&first, &second, &third].map(|rig| rig.server.open_connections());
    assert_eq!(open, [1, 1, 1]);
}
