//! Endpoints without packet protection send the same packets as with it, and detect the same errors.

use std::sync::Arc;

use playrate_units::Probability;
use quinn::congestion::{ControllerFactory, CubicConfig, NewRenoConfig};
use quinn::{
    Connection, ConnectionError, ConnectionId, ConnectionIdGenerator, Incoming, Runtime, TransportConfig,
};

use super::*;
use crate::{LinkFault, LinkFaultKind};

/// Bytes to send, all the same.
static BLOCK: [u8; 50_000] = [0x5A; 50_000];
const LIMIT: Duration = Duration::from_secs(60);

/// Sends a client ten blocks, with new keys after each.
async fn send_blocks(incoming: Incoming) {
    let connection = incoming.await.unwrap();
    let mut stream = connection.open_uni().await.unwrap();
    for _ in 0..10 {
        stream.write_all(&BLOCK).await.unwrap();
        connection.force_key_update();
    }
    stream.finish().unwrap();
    connection.closed().await;
}

/// Reads ten blocks, with new keys after the first bytes, and checks them.
async fn read_blocks(connection: &Connection) {
    let mut stream = connection.accept_uni().await.unwrap();
    let mut read = 0;
    while let Some(chunk) = stream.read_chunk(usize::MAX, true).await.unwrap() {
        if read == 0 {
            connection.force_key_update();
        }
        read += chunk.bytes.len();
        assert!(chunk.bytes.iter().all(|&byte| byte == BLOCK[0]));
    }
    assert_eq!(read, 10 * BLOCK.len());
}

/// Downloads ten blocks after a Retry. Returns the digest, and true if packets in flight contained parts of blocks in
/// clear text.
fn download(
    path: &PathConfig,
    controller: Arc<dyn ControllerFactory + Send + Sync>,
    protects: [bool; 2],
) -> (u64, bool) {
    let (sim, server, client, _) = pair(Seed::new(1), path);
    let provider = |protects| if protects { ring() } else { sim.crypto_provider() };
    let (mut server_config, client_config) = configs(provider(protects[0]), provider(protects[1]));
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(controller);
    server_config.transport_config(Arc::new(transport));
    let listening = endpoint(&sim, server, sim.endpoint_config("server"), Some(server_config));
    let address = listening.local_addr().unwrap();
    sim.runtime().spawn(Box::pin(async move {
        listening.accept().await.unwrap().retry().unwrap();
        let incoming = listening.accept().await.unwrap();
        assert!(incoming.remote_address_validated());
        send_blocks(incoming).await;
    }));
    let calling = endpoint(&sim, client, sim.endpoint_config("client"), None);
    let connection = sim.run(LIMIT, connect(&calling, address, client_config)).unwrap();
    let reader = connection.clone();
    sim.runtime().spawn(Box::pin(async move {
        read_blocks(&reader).await;
        reader.close(0_u32.into(), b"");
    }));
    let is_clear = sim.run(LIMIT, async {
        sim.runtime().sleep(Duration::from_millis(500)).await;
        let clear = [BLOCK[0]; 100];
        let is_clear = lock(&sim.shared.network)
            .contents()
            .any(|packet| packet.windows(clear.len()).any(|part| part == clear));
        connection.closed().await;
        is_clear
    });
    (sim.digest(), is_clear.unwrap())
}

fn lossy(parts_per_billion: u32) -> PathConfig {
    let mut path = twenty_mbps();
    let loss = Probability::from_parts_per_billion(parts_per_billion);
    path.forward = path.forward.with_loss(loss);
    path.backward = path.backward.with_loss(loss);
    path
}

#[test]
fn the_packets_are_the_same_with_and_without_protection() {
    for loss in [0, 20_000_000] {
        let controllers: [Arc<dyn ControllerFactory + Send + Sync>; 2] = [
            Arc::new(CubicConfig::default()),
            Arc::new(NewRenoConfig::default()),
        ];
        for controller in controllers {
            let path = lossy(loss);
            let (protected, is_clear) = download(&path, Arc::clone(&controller), [true; 2]);
            assert!(!is_clear);
            let (unprotected, is_clear) = download(&path, controller, [false; 2]);
            assert!(is_clear, "nothing was switched off");
            assert_eq!(unprotected, protected, "loss {loss}");
        }
    }
}

#[test]
fn one_endpoint_of_a_real_network_is_enough_for_protection() {
    for protects in [[true, false], [false, true]] {
        let cubic = Arc::new(CubicConfig::default());
        assert!(!download(&twenty_mbps(), cubic, protects).1, "{protects:?}");
    }
}

#[test]
fn links_that_damage_packets_get_real_protection() {
    let mut path = twenty_mbps();
    let share = Probability::from_parts_per_billion(20_000_000);
    let damage = LinkFaultKind::Corruption(share);
    path.forward.faults = vec![LinkFault::new(Duration::ZERO, Duration::MAX, damage)];
    // The download would fail if damaged bytes were accepted.
    let (_, is_clear) = download(&path, Arc::new(CubicConfig::default()), [false; 2]);
    assert!(!is_clear);
}

/// Connection IDs that every endpoint accepts as its own.
struct CountedIds(u64);

impl ConnectionIdGenerator for CountedIds {
    fn generate_cid(&mut self) -> ConnectionId {
        self.0 += 1;
        ConnectionId::new(&self.0.to_be_bytes())
    }

    fn cid_len(&self) -> usize {
        8
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

#[test]
fn a_stateless_reset_is_recognised_without_protection() {
    let (sim, server, client, _) = pair(Seed::new(1), &twenty_mbps());
    let (server_config, client_config) = configs(sim.crypto_provider(), sim.crypto_provider());
    // Another endpoint with the same key for resets.
    let mut config = sim.endpoint_config("server");
    config.cid_generator(|| Box::new(CountedIds(0)));
    let listening = endpoint(&sim, server, config.clone(), Some(server_config.clone()));
    let address = listening.local_addr().unwrap();
    sim.runtime_on(server).spawn(Box::pin(async move {
        let connection = listening.accept().await.unwrap().await.unwrap();
        connection.closed().await;
    }));
    let calling = endpoint(&sim, client, sim.endpoint_config("client"), None);
    let connection = sim.run(LIMIT, connect(&calling, address, client_config)).unwrap();
    sim.crash(server);
    let _again = endpoint(&sim, server, config, Some(server_config));
    let lost = sim.run(LIMIT, async {
        let mut stream = connection.open_uni().await.unwrap();
        stream.write_all(&BLOCK).await.unwrap();
        connection.closed().await
    });
    assert!(matches!(lost, Ok(ConnectionError::Reset)), "{lost:?}");
    assert!(sim.now().elapsed() < Duration::from_secs(1), "{}", sim.now());
}
