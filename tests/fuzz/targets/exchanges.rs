//! Complete HTTP/3 exchanges in virtual time: whatever a client does to the server, others must be served.

use std::cell::Cell;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use http::HeaderMap;
use playrate_media::{FrameTrace, MediaSource, MemorySource, TraceSource};
use playrate_netsim::{HostConfig, PathConfig, QueueLimit, Seed, Simulation};
use playrate_transport::{
    Client, ClientOptions, Connection, Identity, Server, ServerOptions, Target, Trust, time,
};
use playrate_units::{Bitrate, Probability};
use quinn::Runtime;
use video_server::library::Library;
use video_server::serve::{Settings, VideoServer};

use super::attacker::Attacker;

/// Memory of a run: two honest clients and a server with their windows, and the attacker's connections. Each of these
/// may cost the server 17.5 MiB (docs/flow-control.md) but uses less in practice.
const MEMORY: u64 = 40_000_000;
/// Memory that remains after a run: caches of the thread, and the session tickets of TLS.
const REMAINS: i64 = 300_000;
/// Virtual time for two downloads of a small title and for the end of abandoned connections.
const PATIENCE: Duration = Duration::from_secs(60);

/// Maximum number of downloads by the honest client while the attacker is active.
const DOWNLOADS: usize = 4;

/// Identity and titles shared by all runs, so that a run does not depend on the randomness of a key.
struct Shared {
    identity: Identity,
    film: Arc<MemorySource>,
    large: Arc<TraceSource>,
}

static SHARED: LazyLock<Shared> = LazyLock::new(|| {
    let film = include_bytes!("../../../assets/fixtures/fragmented-dash.mp4");
    let trace: FrameTrace = "0.0,60000,K\n1.0,9000,_\n2.0,90000,_\n".parse().expect("a trace");
    let large = trace.repeat_to(Duration::from_secs(120)).expect("a longer trace");
    let large = TraceSource::new(&large);
    // Its payload is made when it is first read, and kept.
    large.read_at(0, 1).expect("generated payload");
    Shared {
        identity: Identity::development(&[]).expect("an identity"),
        film: Arc::new(MemorySource::new(film.as_slice()).expect("a title")),
        large: Arc::new(large),
    }
});

/// Reads a client's operations from the input and runs them alongside an honest client. Meanwhile that client, and
/// afterwards it and a new one, must receive the right bytes in time, and no connection may leave anything on the
/// server.
pub(super) fn check(bytes: &[u8]) {
    LazyLock::force(&SHARED);
    let used = allocation_counter::measure(|| {
        run(bytes);
    });
    assert!(used.bytes_max <= MEMORY, "{} bytes of memory", used.bytes_max);
    assert!(
        used.bytes_current <= REMAINS,
        "{} bytes are left",
        used.bytes_current
    );
}

/// Runs the input, and returns the digest of all packets.
///
/// # Panics
/// If the server has failed any client.
pub(crate) fn run(bytes: &[u8]) -> u64 {
    let seed = Seed::new(1);
    let sim = Simulation::new(seed);
    let host = || sim.add_host(HostConfig::default());
    let (server_host, attacker_host, honest_host) = (host(), host(), host());
    let rate = Bitrate::from_mbps(50);
    let config = PathConfig::bottleneck(
        rate,
        Duration::from_millis(20),
        QueueLimit::ONE_BDP,
        Probability::default(),
    );
    for client in [attacker_host, honest_host] {
        let path = sim.add_path(config.build(seed.child("path")).expect("a path"));
        sim.connect(server_host, client, &[path]);
    }
    let runtime: Arc<dyn Runtime> = sim.runtime();
    let server = start(
        &sim,
        Arc::clone(&runtime),
        sim.bind(server_host, 443).expect("a socket"),
    );
    let address = server.local_addr().expect("an address");
    let mut options = ClientOptions::new(Trust::Pin(SHARED.identity.pin()));
    options.transport.seed = Some(seed.derive("honest"));
    let socket = sim.bind(honest_host, 0).expect("a socket");
    let honest = Client::new(Arc::clone(&runtime), socket, options).expect("a client");
    let socket = sim.bind(attacker_host, 0).expect("a socket");
    let endpoint = quinn::Endpoint::new_with_abstract_socket(
        sim.endpoint_config("attacker"),
        None,
        socket,
        sim.runtime_on(attacker_host),
    );
    let mut attacker = Attacker::new(
        endpoint.expect("an endpoint"),
        &SHARED.identity,
        address,
        Arc::clone(&runtime),
    );
    let main = async {
        let target = Target::at("localhost", address);
        let before = honest.connect(&target).await.expect("an honest client connects");
        is_served(&before).await;
        let is_over = Cell::new(false);
        let attacking = async {
            attacker.attack(bytes).await;
            is_over.set(true);
        };
        let being_served = async {
            for _ in 0..DOWNLOADS {
                let in_time = time::timeout(&*runtime, PATIENCE, is_served(&before)).await;
                in_time.expect("an honest client is served in time beside the attacker");
                time::sleep(&*runtime, Duration::from_millis(200)).await;
                if is_over.get() {
                    break;
                }
            }
        };
        tokio::join!(being_served, attacking);
        match bytes.len() % 3 {
            // Without notifying the server, which finds out by its timeouts.
            2 => sim.crash(attacker_host),
            choice => attacker.leave(choice == 0).await,
        }
        let in_time = time::timeout(&*runtime, PATIENCE, async {
            is_served(&before).await;
            let after = honest.connect(&target).await.expect("a new client connects");
            is_served(&after).await;
            after.close();
        });
        in_time.await.expect("honest clients are served in time");
        before.close();
        honest.wait_idle().await;
        let left = async {
            while server.transport().open_connections() > 0 || !server.connections().is_empty() {
                time::sleep(&*runtime, Duration::from_millis(100)).await;
            }
        };
        let left = time::timeout(&*runtime, PATIENCE, left).await;
        assert!(
            left.is_ok(),
            "{} connections are left",
            server.transport().open_connections()
        );
        assert_eq!(server.admission().load().sessions, 0);
        let totals = server.totals();
        assert!(totals.sessions >= 2 && totals.responses >= 3, "{totals:?}");
        let report = server.shutdown(Duration::from_secs(3)).await;
        assert!(report.drained && report.cut == 0, "{report:?}");
    };
    sim.run(Duration::from_secs(3_600), main).expect("the run ends");
    sim.digest()
}

fn start(sim: &Simulation, runtime: Arc<dyn Runtime>, socket: Arc<dyn quinn::AsyncUdpSocket>) -> VideoServer {
    let mut options = ServerOptions::new(SHARED.identity.clone());
    options.transport.seed = Some(sim.seed().derive("server"));
    options.transport.idle_timeout = Duration::from_secs(8);
    options.transport.keep_alive = Some(Duration::from_secs(3));
    options.request_timeout = Duration::from_secs(3);
    options.stall_timeout = Duration::from_secs(5);
    let transport = Server::new(Arc::clone(&runtime), socket, options).expect("an endpoint");
    let library = Library::new()
        .with_source("film.mp4", Arc::clone(&SHARED.film) as Arc<dyn MediaSource>)
        .and_then(|library| {
            library.with_source("large.bin", Arc::clone(&SHARED.large) as Arc<dyn MediaSource>)
        })
        .expect("two names");
    VideoServer::start(
        transport,
        runtime,
        library,
        Settings::new("cubic".parse().expect("a controller")),
    )
}

/// Requests the small title and compares every byte.
async fn is_served(connection: &Connection) {
    let (response, mut body) = connection
        .get("/film.mp4", HeaderMap::new())
        .await
        .expect("a response");
    assert_eq!(response.status(), 200);
    let mut at = 0_u64;
    while let Some(chunk) = body.chunk().await.expect("the content goes on") {
        let expected = SHARED.film.read_at(at, chunk.len()).expect("a title in memory");
        assert!(chunk == expected, "other bytes at {at}");
        at += chunk.len() as u64;
    }
    assert_eq!(at, SHARED.film.len());
}
