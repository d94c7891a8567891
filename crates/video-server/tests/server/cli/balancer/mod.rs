//! Servers behind a load balancer that reads their numbers from connection IDs.

mod relay;

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use playrate_transport::{QuicLbConfig, time};
use quinn::TokioRuntime;
use rstest::rstest;

use crate::cli::metrics::request;
use crate::cli::process::{checked, refused, start_on};
use crate::viewer::{Session, Viewer};
use playrate_test_support::{Media, PATIENCE, ServerProcess, assert_contains, certify, sleep, until};
use relay::Balancer;
use rustls::pki_types::CertificateDer;

const KEY: &str = "8f95f09245765f80256934e50c66207f";
/// Long enough that no client chooses one of them by chance.
const LENGTH: u64 = 3;

/// Films, a certificate and keys, the same for all servers.
struct Site {
    directory: Media,
    certificate: CertificateDer<'static>,
    viewer: Viewer,
    key: Option<&'static str>,
}

impl Site {
    /// Creates a site with server IDs encrypted by `key`.
    fn new(key: Option<&'static str>) -> Self {
        let directory = Media::new();
        let certificate = certify(directory.root());
        directory.put("media/film.bin", film());
        directory.put("media/small.bin", b"small");
        directory.put("endpoint-key", [7; 32]);
        directory.put("other-key", [8; 32]);
        let mut text = format!("config-id = 1\nserver-id-length = {LENGTH}\n");
        if let Some(key) = key {
            writeln!(text, "cid-key = \"{key}\"").unwrap();
        }
        directory.put("quic-lb.toml", text);
        Self {
            directory,
            viewer: Viewer::trusting(&certificate),
            certificate,
            key,
        }
    }

    fn config(&self) -> QuicLbConfig {
        let key = self.key.map(|key| {
            let byte = |at| u8::from_str_radix(&key[at..at + 2], 16).unwrap();
            std::array::from_fn(|at| byte(2 * at))
        });
        QuicLbConfig::new(1, LENGTH, None, key).unwrap()
    }

    fn path(&self, name: &str) -> String {
        self.directory.text(name)
    }

    /// Server `number` at `listen`.
    fn start(&self, listen: &str, number: u64, more: &[&str]) -> ServerProcess {
        self.start_with_key("endpoint-key", (listen, number), more)
    }

    /// The server of the given address and number, with another key.
    fn start_with_key(&self, key: &str, (listen, number): (&str, u64), more: &[&str]) -> ServerProcess {
        let (cert, private) = (self.path("cert.pem"), self.path("key.pem"));
        let (lb, key, number) = (self.path("quic-lb.toml"), self.path(key), number.to_string());
        let mut arguments = vec!["--cert", &cert, "--key", &private, "--no-tcp"];
        arguments.extend(["--quic-lb", &lb, "--server-id", &number, "--endpoint-key", &key]);
        arguments.extend(["--metrics", "127.0.0.1:0"]);
        arguments.extend(more);
        start_on(listen, Path::new(&self.path("media")), &arguments)
    }

    /// A further viewer, without tokens.
    fn another_viewer(&self) -> Viewer {
        Viewer::trusting(&self.certificate)
    }

    /// A balancer in front of server 1 alone, and a session through it.
    async fn front(&self, serving: &ServerProcess) -> (Balancer, Session) {
        let balancer = self.balance(&[(1, serving.address())]).await;
        let session = self.viewer.connect(balancer.address).await.unwrap();
        (balancer, session)
    }

    async fn balance(&self, servers: &[(u64, SocketAddr)]) -> Balancer {
        Balancer::start(self.config(), servers).await
    }
}

/// 12 MB without repetition.
fn film() -> Vec<u8> {
    (0..3_000_000_u32)
        .flat_map(|number| number.wrapping_mul(2_654_435_761).to_be_bytes())
        .collect()
}

fn is_ready(serving: &ServerProcess) -> bool {
    request(serving, "GET /readyz").0.starts_with("HTTP/1.1 200")
}

#[rstest]
#[case::in_the_open(None)]
#[case::encrypted(Some(KEY))]
#[tokio::test]
async fn a_client_that_changes_its_port_stays_with_its_server(#[case] key: Option<&'static str>) {
    let site = Site::new(key);
    let servers = [0x01_0203, 9].map(|number| (number, site.start("127.0.0.1:0", number, &[])));
    let addresses = servers
        .each_ref()
        .map(|(number, server)| (*number, server.address()));
    let balancer = site.balance(&addresses).await;
    for (number, server) in &servers {
        balancer.choose(*number);
        let before = balancer.counts();
        let mut session = site.viewer.connect(balancer.address).await.unwrap();
        // Where a packet without a server number would go now.
        balancer.choose(addresses.iter().find(|other| other.0 != *number).unwrap().0);
        let mut response = session.request("/film.bin").await;
        for megabyte in [1, 3, 5] {
            response.read_to(megabyte * 1_000_000).await;
            site.viewer.change_port();
        }
        response.read_to(usize::MAX).await;
        assert!(response.body == film());
        let counts = balancer.counts();
        assert!(counts.clients >= before.clients + 3, "{counts:?}");
        let to = |counts: &relay::Counts| counts.named.get(number).copied().unwrap_or_default();
        assert!(to(&counts) > to(&before) + 100, "{counts:?}");
        let elsewhere = |counts: &relay::Counts| counts.named.values().sum::<usize>() - to(counts);
        assert_eq!(elsewhere(&counts), elsewhere(&before), "{counts:?}");
        assert_eq!(server.metric("playrate_connections"), 1);
        // Keeps the closing packets apart from those of the next session.
        drop((response, session));
        site.viewer.idle().await;
    }
}

/// A server with another server's number would reset that one's connection, which shows that packets reach it.
#[rstest]
#[case::its_own_number(2, true)]
#[case::the_number_of_the_other(1, false)]
#[tokio::test]
async fn a_server_resets_no_connection_of_another_one(#[case] number: u64, #[case] survives: bool) {
    let site = Site::new(Some(KEY));
    let first = site.start("127.0.0.1:0", 1, &[]);
    let second = site.start("127.0.0.1:0", number, &[]);
    let balancer = site.balance(&[(1, first.address())]).await;
    let mut session = site.viewer.connect(balancer.address).await.unwrap();
    let mut response = session.request("/film.bin").await;
    response.read_to(1_000_000).await;
    // The balancer misroutes for a while.
    balancer.route(1, second.address());
    let before = balancer.counts().named[&1];
    let quinn = session.quinn.clone();
    let misrouted = async {
        if survives {
            until("packets went to the wrong server", async || {
                balancer.counts().named[&1] >= before + 5
            })
            .await;
            // Time for an answer.
            sleep(Duration::from_millis(200)).await;
        } else {
            let reset = time::timeout(&TokioRuntime, PATIENCE, quinn.closed()).await;
            assert!(reset.is_ok(), "never reset");
        }
    };
    tokio::select! {
        () = misrouted => {}
        // Received data is read, so that the client sends more.
        _ = response.try_read_to(usize::MAX) => {}
    }
    if survives {
        balancer.route(1, first.address());
        response.read_to(usize::MAX).await;
        assert!(response.body == film());
    } else {
        let ended = quinn.close_reason();
        assert!(matches!(ended, Some(quinn::ConnectionError::Reset)), "{ended:?}");
    }
}

#[tokio::test]
async fn a_server_that_was_killed_resets_its_connections_through_the_balancer() {
    let site = Site::new(Some(KEY));
    let first = site.start("127.0.0.1:0", 1, &[]);
    let second = site.start("127.0.0.1:0", 2, &[]);
    let address = first.address();
    let balancer = site.balance(&[(1, address), (2, second.address())]).await;
    let mut session = site.viewer.connect(balancer.address).await.unwrap();
    assert_eq!(session.fetch("/small.bin").await, b"small");
    drop(first);
    let _restarted = site.start(&address.to_string(), 1, &[]);
    // Something to send.
    drop(session.quinn.open_uni().await.unwrap());
    let ended = session.quinn.closed().await;
    assert!(matches!(ended, quinn::ConnectionError::Reset), "{ended}");
}

/// If a server has no room, it asks clients without a token to validate their address.
#[rstest]
#[case::the_same_key("endpoint-key", 0)]
#[case::another_key("other-key", 1)]
#[tokio::test]
async fn a_token_is_good_for_all_servers_with_the_same_key(#[case] key: &str, #[case] retries: u64) {
    let site = Site::new(Some(KEY));
    let first = site.start("127.0.0.1:0", 1, &[]);
    let second = site.start_with_key(key, ("127.0.0.1:0", 2), &["--max-connections", "1"]);
    let balancer = site.balance(&[(1, first.address()), (2, second.address())]).await;
    let mut session = site.viewer.connect(balancer.address).await.unwrap();
    // Tokens arrive with the response at the latest.
    assert_eq!(session.fetch("/small.bin").await, b"small");
    let stranger = site.another_viewer();
    balancer.choose(2);
    let mut occupant = stranger.connect(balancer.address).await.unwrap();
    let response = occupant.request("/film.bin").await;
    assert_eq!(second.metric("playrate_retried_handshakes_total"), 0);
    assert!(site.viewer.connect(balancer.address).await.is_err(), "no room");
    assert_eq!(second.metric("playrate_retried_handshakes_total"), retries);
    drop(response);
}

#[tokio::test]
async fn a_retry_of_a_server_that_leaves_is_honoured_by_another_one() {
    let site = Site::new(Some(KEY));
    let first = site.start("127.0.0.1:0", 1, &["--max-connections", "1"]);
    let second = site.start("127.0.0.1:0", 2, &[]);
    let balancer = site.balance(&[(1, first.address()), (2, second.address())]).await;
    let mut occupant = site.viewer.connect(balancer.address).await.unwrap();
    let response = occupant.request("/film.bin").await;
    balancer.leave_after_retry(first.address(), 2);
    // The client compares the ID of its first packet with the server's ID from the token.
    let stranger = site.another_viewer();
    let mut session = stranger.connect(balancer.address).await.unwrap();
    assert_eq!(session.fetch("/small.bin").await, b"small");
    assert_eq!(balancer.counts().retries, 1);
    assert_eq!(second.metric("playrate_connections"), 1);
    drop(response);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_draining_server_is_not_ready_at_once_and_goes_on_until_the_balancer_has_noticed() {
    let site = Site::new(None);
    let serving = site.start(
        "127.0.0.1:0",
        1,
        &["--drain-delay", "10min", "--drain-timeout", "1min"],
    );
    let (balancer, mut session) = site.front(&serving).await;
    let mut response = session.request("/film.bin").await;
    assert!(is_ready(&serving));
    serving.signal("TERM");
    until("it is not ready", async || !is_ready(&serving)).await;
    assert!(request(&serving, "GET /healthz").0.starts_with("HTTP/1.1 200"));
    // A client that the balancer still sends here.
    let mut late = site.another_viewer().connect(balancer.address).await.unwrap();
    assert_eq!(late.fetch("/small.bin").await, b"small");
    response.read_to(usize::MAX).await;
    assert!(response.body == film());
    until("the responses have ended", async || {
        serving.metric("playrate_responses_total") == 2
    })
    .await;
    serving.signal("TERM");
    assert_contains(&serving.exits(0), &["delay=600s", "shutting down at once"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_the_delay_new_clients_are_refused_and_responses_end() {
    let site = Site::new(None);
    let serving = site.start(
        "127.0.0.1:0",
        1,
        &["--drain-delay", "100ms", "--drain-timeout", "1min"],
    );
    let (balancer, mut session) = site.front(&serving).await;
    let mut response = session.request("/film.bin").await;
    serving.signal("TERM");
    until("it is not ready", async || !is_ready(&serving)).await;
    until("new clients are refused", async || {
        site.another_viewer().connect(balancer.address).await.is_err()
    })
    .await;
    assert!(!is_ready(&serving));
    response.read_to(usize::MAX).await;
    assert!(response.body == film());
    serving.exits(0);
}

#[tokio::test]
async fn bad_options_of_a_balancer_are_refused_with_their_place() {
    let site = Site::new(None);
    let media = site.path("media");
    let lb = site.path("quic-lb.toml");
    let complaint = |arguments: &[&str]| refused(&[&["serve", "--media", &media][..], arguments].concat());
    let short = site.path("short");
    fs::write(&short, [1; 31]).unwrap();
    for (arguments, parts) in [
        (
            &["--quic-lb", "/no/such.toml"][..],
            &["--quic-lb /no/such.toml"][..],
        ),
        (&["--quic-lb", &lb], &["server-id", "--server-id"]),
        (
            &["--quic-lb", &lb, "--server-id", "0x1000000"],
            &[":2:", "16777215", "of 3"],
        ),
        (&["--server-id", "1"], &["--quic-lb"]),
        (&["--endpoint-key", &short], &["--quic-lb"]),
        (
            &["--quic-lb", &lb, "--server-id", "1", "--endpoint-key", &short],
            &["--endpoint-key", "32 bytes"],
        ),
    ] {
        assert_contains(&complaint(arguments), parts);
    }
}

#[tokio::test]
async fn checking_a_file_reads_the_configuration_of_the_balancer() {
    let site = Site::new(Some(KEY));
    let file = site.path("server.toml");
    let (media, lb) = (site.path("media"), site.path("quic-lb.toml"));
    let text_of = |id: u64| format!("media = \"{media}\"\nquic-lb = \"{lb}\"\nserver-id = {id}\n");
    fs::write(&file, text_of(7)).unwrap();
    let parts = [
        "server 7 of QUIC-LB",
        "3 bytes of server ID and 13 of nonce, encrypted",
    ];
    assert_contains(&checked(&file), &parts);
    fs::write(&file, text_of(1 << 24)).unwrap();
    assert_contains(
        &refused(&["check", &file]),
        &["server.toml:2:", "quic-lb.toml:2:"],
    );
}

#[cfg(target_os = "linux")]
#[rstest]
#[case::in_the_open(None)]
#[case::encrypted(Some(KEY))]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_takes_over_from_one_with_the_same_number_alone(#[case] key: Option<&'static str>) {
    let site = Site::new(key);
    fs::create_dir(site.path("state")).unwrap();
    let state = site.path("state");
    let old = site.start("127.0.0.1:0", 1, &["--state", &state]);
    let address = old.address();
    let (balancer, mut session) = site.front(&old).await;
    let mut response = session.request("/film.bin").await;
    response.read_to(1_000_000).await;
    let (lb, shared) = (site.path("quic-lb.toml"), site.path("endpoint-key"));
    let (media, listen) = (site.path("media"), address.to_string());
    let mut other = vec![
        "serve", "--media", &media, "--listen", &listen, "--no-tcp", "--state", &state,
    ];
    other.extend(["--quic-lb", &lb, "--endpoint-key", &shared, "--server-id", "2"]);
    let parts = ["its QUIC-LB configuration differs", "stop it first"];
    assert_contains(&refused(&other), &parts);

    let new = site.start(&listen, 1, &["--state", &state]);
    let mut late = site.another_viewer().connect(balancer.address).await.unwrap();
    assert_eq!(late.fetch("/small.bin").await, b"small");
    response.read_to(usize::MAX).await;
    assert!(response.body == film());
    assert_eq!(new.metric("playrate_connections"), 1);
}

/// The lines of the file called `name` in the Kubernetes manifest.
fn manifest_file(manifest: &str, name: &str) -> String {
    let (_, rest) = manifest.split_once(&format!("  {name}: |\n")).unwrap();
    let lines: Vec<_> = rest.lines().map_while(|line| line.strip_prefix("    ")).collect();
    lines.join("\n")
}

/// Seconds in the value after `name`.
fn seconds(text: &str, name: &str) -> u64 {
    let (_, rest) = text.split_once(name).unwrap();
    let digits = rest.trim_start_matches([':', ' ', '=', '"']);
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap();
    digits[..end].parse().unwrap()
}

#[tokio::test]
async fn the_packaged_manifest_has_a_good_configuration_and_leaves_time_to_drain() {
    let site = Site::new(Some(KEY));
    let manifest = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../packaging/kubernetes/video-server.yaml"
    );
    let manifest = fs::read_to_string(manifest).unwrap();
    let file = manifest_file(&manifest, "server.toml");
    let drain = seconds(&file, "drain-delay") + seconds(&file, "drain-timeout");
    assert!(seconds(&manifest, "terminationGracePeriodSeconds") > drain);
    assert!(manifest.contains("--server-id, $(POD_INDEX)"));
    let local = [
        ("\"/media\"", "media"),
        ("\"/etc/video-server/tls/tls.crt\"", "cert.pem"),
        ("\"/etc/video-server/tls/tls.key\"", "key.pem"),
        ("\"/etc/video-server/quic/quic-lb.toml\"", "quic-lb.toml"),
        ("\"/etc/video-server/quic/endpoint-key\"", "endpoint-key"),
    ];
    let mut file = format!("server-id = 2\n{file}");
    for (there, here) in local {
        assert!(file.contains(there), "{there} is missing in {file}");
        file = file.replace(there, &format!("\"{}\"", site.path(here)));
    }
    fs::write(site.path("server.toml"), file).unwrap();
    assert_contains(&checked(&site.path("server.toml")), &["server 2 of QUIC-LB"]);
}
