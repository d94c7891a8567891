//! A server whose socket another process takes over.

use std::net::UdpSocket;

use bytes::Bytes;
use playrate_transport::{EndpointKey, Identity, Server, ServerOptions, Succession, udp_socket};
use tokio::sync::mpsc;

use crate::common::{Rig, begin, fetch, payload, rest, rig_of, runtime, stream};

/// A server's process that answers with `body`.
fn process(
    socket: UdpSocket,
    (identity, key): (&Identity, &EndpointKey),
    succession: Succession,
    body: &Bytes,
) -> Rig {
    let mut options = ServerOptions::new(identity.clone());
    (options.endpoint_key, options.succession) = (Some(key.clone()), succession);
    let server = Server::on_sockets(vec![(socket, runtime())], options).unwrap();
    let body = body.clone();
    rig_of(server, identity.clone(), &["cubic"], move |exchange| {
        Box::pin(stream(exchange, body.clone()))
    })
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
    let (mut body, mut got) = begin(&oldest, "/").await;

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
