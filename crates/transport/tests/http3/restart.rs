//! A server that was killed and started again.

use std::net::SocketAddr;

use playrate_transport::{
    Client, ClientOptions, ConnectionLost, EndpointKey, ExchangeError, Identity, Trust,
};
use tokio::runtime::Runtime;

use crate::common::{Rig, fetch, rig_at, runtime, with_length};

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
