//! Certificates from a real authority: Pebble, Let's Encrypt's ACME server for tests, with the bad nonces that it sends
//! on purpose. `tests/interop/install pebble` installs it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use playrate_transport::{Pin, Target, Trust};
use rustls::pki_types::ServerName;
use serde_json::json;

use crate::interop::{installed, missing};
use crate::support::{Certified, free_address, until};
use playrate_test_support::{Media, Running, ServerProcess, certificate, client, program, tls_config};

const PEBBLE: &str = "pebble/pebble";
const DOMAINS: [&str; 2] = ["films.example", "www.films.example"];
/// The server tries again after at most 75 s.
const RETRIED: Duration = Duration::from_secs(150);

pub(crate) fn tests() -> Vec<Trial> {
    tests![
        &missing(PEBBLE),
        a_certificate_is_obtained_for_every_protocol_and_kept_across_a_restart_without_the_authority,
        a_certificate_is_renewed_before_it_expires_and_open_connections_go_on,
        an_authority_that_is_down_is_asked_again_and_one_that_forgot_the_account_gets_a_new_one,
        a_domain_that_leads_elsewhere_is_reported_and_not_tried_again_at_once,
    ]
}

/// Pebble, the DNS server that it asks, and the directory of a server that gets its certificate there.
struct Authority {
    directory: Media,
    certified: Certified,
    acme: SocketAddr,
    management: SocketAddr,
    dns: SocketAddr,
    /// Address of the server, whose port it validates.
    server: SocketAddr,
    _dns: Running,
    pebble: Option<Running>,
}

impl Authority {
    /// Prepares an authority whose certificates are valid for `validity`, and does not start it yet.
    fn new(validity: Duration) -> Self {
        let directory = Media::new();
        fs::create_dir(directory.path("state")).expect("a directory can be created");
        directory.put("media/file.bin", [7; 10_000]);
        let [acme, management, dns, dns_management, server] = [(); 5].map(|()| free_address());
        let certified = Certified::new(directory.root());
        let config = json!({ "pebble": {
            "listenAddress": acme,
            "managementListenAddress": management,
            "certificate": certified.certificate,
            "privateKey": certified.key,
            "httpPort": 1,
            "tlsPort": server.port(),
            "retryAfter": { "authz": 1, "order": 1 },
            "profiles": { "default": { "description": "the only one", "validityPeriod": validity.as_secs() } },
        }});
        directory.put("pebble.json", config.to_string());
        let mut command = Command::new(installed("pebble/pebble-challtestsrv"));
        command.args([
            "-dnsserver",
            &dns.to_string(),
            "-management",
            &dns_management.to_string(),
        ]);
        command.args([
            "-http01",
            "",
            "-https01",
            "",
            "-tlsalpn01",
            "",
            "-doh",
            "",
            "-defaultIPv6",
            "",
        ]);
        Self {
            _dns: run(&mut command),
            directory,
            certified,
            acme,
            management,
            dns,
            server,
            pebble: None,
        }
    }

    /// Starts Pebble, which forgets everything when it is stopped.
    fn start(&mut self) {
        let mut command = Command::new(installed(PEBBLE));
        command.arg("-config").arg(self.directory.path("pebble.json"));
        command.args(["-dnsserver", &self.dns.to_string()]);
        // No pause of up to 15 s before each validation.
        command.env("PEBBLE_VA_NOSLEEP", "1");
        self.pebble = Some(run(&mut command));
        until("the authority answers", || TcpStream::connect(self.acme).is_ok());
        until("it is managed", || TcpStream::connect(self.management).is_ok());
        self.directory.put("root.pem", self.root());
    }

    /// The root certificate of the authority that runs now.
    fn root(&self) -> String {
        let trust = trust(&fs::read_to_string(&self.certified.authority).expect("a file"));
        let name = ServerName::try_from("localhost").expect("a name");
        let connection = rustls::ClientConnection::new(Arc::new(trust), name).expect("a connection");
        let stream = TcpStream::connect(self.management).expect("it listens");
        let mut stream = rustls::StreamOwned::new(connection, stream);
        stream
            .write_all(b"GET /roots/0 HTTP/1.0\r\n\r\n")
            .expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer.split_once("\r\n\r\n").expect("a head").1.to_owned()
    }

    fn root_file(&self) -> PathBuf {
        self.directory.path("root.pem")
    }

    /// Starts a server that obtains its certificate here.
    fn serve(&self, listen: SocketAddr) -> ServerProcess {
        let (state, url) = (self.directory.text("state"), format!("https://{}/dir", self.acme));
        let mut options = vec!["--acme-agree", "--acme-directory", &url, "--state", &state];
        // A connection is open, without requests, while certificates are renewed.
        options.extend(["--metrics", "127.0.0.1:0", "--idle-limit", "none"]);
        options.extend(DOMAINS.iter().flat_map(|domain| ["--acme-domain", domain]));
        let mut command = Command::new(program("video-server"));
        command.env("SSL_CERT_FILE", &self.certified.authority);
        command.env("RUST_LOG", "info,video_server=debug");
        ServerProcess::start(
            command,
            &listen.to_string(),
            &self.directory.path("media"),
            &options,
        )
    }

    /// Pin of the certificate that a client of `domain` gets over TCP, if this authority issued it and it is valid.
    fn issued(&self, domain: &str) -> Option<Pin> {
        let trust = trust(&fs::read_to_string(self.root_file()).expect("a file"));
        let name = ServerName::try_from(domain.to_owned()).expect("a name");
        let mut connection = rustls::ClientConnection::new(Arc::new(trust), name).expect("a connection");
        let mut stream = TcpStream::connect(self.server).expect("it listens");
        connection.complete_io(&mut stream).ok()?;
        let certificates = connection.peer_certificates().expect("certificates");
        Some(Pin::of(&certificates[0]).expect("a certificate"))
    }

    /// Waits for a certificate of this authority.
    fn is_issued(&self, domain: &str) -> Pin {
        let began = Instant::now();
        loop {
            if let Some(pin) = self.issued(domain) {
                return pin;
            }
            assert!(began.elapsed() < RETRIED, "no certificate for {domain}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Connects over HTTP/3, which verifies the certificate, runs `meanwhile`, and gets a file.
    fn over_http_3(&self, meanwhile: impl FnOnce()) {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let any = playrate_transport::Identity::development(&[])
                .expect("an identity")
                .pin();
            let client = client(any, |options| options.trust = Trust::CaFile(self.root_file()));
            let target = Target::at(DOMAINS[0], self.server);
            let connection = client.connect(&target).await.expect("it is trusted");
            tokio::task::block_in_place(meanwhile);
            let length = playrate_test_support::fetch(&connection, "/file.bin", http::HeaderMap::new()).await;
            assert_eq!(length, 10_000);
            // Or else the server waits for the client when it stops.
            connection.close();
            client.wait_idle().await;
        });
    }
}

/// TLS of a client over TCP that trusts the authority with this certificate.
fn trust(pem: &str) -> rustls::ClientConfig {
    tls_config(&certificate(pem), b"http/1.1")
}

fn run(command: &mut Command) -> Running {
    let started = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    Running(started.unwrap_or_else(|error| panic!("{command:?}: {error}")))
}

fn failures(server: &ServerProcess) -> u64 {
    server.metric("playrate_certificate_renewal_failures_total")
}

fn a_certificate_is_obtained_for_every_protocol_and_kept_across_a_restart_without_the_authority() {
    let mut authority = Authority::new(Duration::from_secs(90 * 24 * 3600));
    authority.start();
    let server = authority.serve(authority.server);
    let pin = authority.is_issued(DOMAINS[0]);
    assert_eq!(authority.issued(DOMAINS[1]), Some(pin));
    assert_eq!(authority.issued("other.example"), None);
    authority.over_http_3(|| ());
    let expiry = "playrate_certificate_expiry_timestamp_seconds{name=\"films.example\"}";
    let expiry = server.metric(expiry);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let days = (expiry - now.expect("a date").as_secs()) / (24 * 3600);
    assert!((89..=90).contains(&days), "{days}");
    assert_eq!(failures(&server), 0);
    let log = server.stop();
    assert!(
        log.contains("clients get a self-signed certificate until"),
        "{log}"
    );
    let files = fs::read_dir(authority.directory.path("state")).expect("a directory");
    let files: Vec<_> = files.map(|file| file.expect("a file")).collect();
    let of_acme = files
        .iter()
        .filter(|file| file.file_name().to_string_lossy().starts_with("acme-"));
    for file in of_acme.clone() {
        let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().expect("metadata").permissions());
        assert_eq!(mode & 0o777, 0o600, "{file:?}");
    }
    assert_eq!(of_acme.count(), 2, "{files:?}");

    authority.pebble = None;
    let server = authority.serve(authority.server);
    assert_eq!(authority.issued(DOMAINS[0]), Some(pin));
    assert!(!server.announcement().contains("\nPin "));
    assert_eq!(failures(&server), 0);
    let log = server.stop();
    assert!(!log.contains("self-signed"), "{log}");
}

fn a_certificate_is_renewed_before_it_expires_and_open_connections_go_on() {
    let validity = Duration::from_secs(90);
    let mut authority = Authority::new(validity);
    authority.start();
    let server = authority.serve(authority.server);
    authority.is_issued(DOMAINS[0]);
    let (began, mut seen) = (Instant::now(), Vec::new());
    authority.over_http_3(|| {
        while seen.len() < 3 {
            // A client is never offered one that has expired.
            let pin = authority.issued(DOMAINS[0]).expect("a valid certificate");
            if !seen.contains(&pin) {
                seen.push(pin);
            }
            assert!(began.elapsed() < 4 * validity, "not renewed twice: {seen:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    assert_eq!(failures(&server), 0);
    server.stop();
}

fn an_authority_that_is_down_is_asked_again_and_one_that_forgot_the_account_gets_a_new_one() {
    let mut authority = Authority::new(Duration::from_secs(90 * 24 * 3600));
    let server = authority.serve(authority.server);
    until("the first attempt has failed", || failures(&server) == 1);
    authority.start();
    let first = authority.is_issued(DOMAINS[0]);
    assert_eq!(failures(&server), 1);
    let log = server.stop();
    assert!(log.contains("cannot obtain a certificate"), "{log}");

    // It has the account of a Pebble that is no more, and lost the certificate.
    authority.start();
    for file in fs::read_dir(authority.directory.path("state")).expect("a directory") {
        let path = file.expect("a file").path();
        if path.extension().is_some_and(|extension| extension == "pem") {
            fs::remove_file(path).expect("it can be removed");
        }
    }
    let server = authority.serve(authority.server);
    assert_ne!(authority.is_issued(DOMAINS[0]), first);
    assert_eq!(failures(&server), 0);
    assert!(server.stop().contains("no longer knows the account"));
}

fn a_domain_that_leads_elsewhere_is_reported_and_not_tried_again_at_once() {
    let mut authority = Authority::new(Duration::from_secs(90 * 24 * 3600));
    authority.start();
    // At the port that the authority validates, nothing listens.
    let server = authority.serve(free_address());
    until("the first attempt has failed", || failures(&server) == 1);
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(failures(&server), 1);
    let log = server.stop();
    let line = log
        .lines()
        .find(|line| line.contains("cannot obtain a certificate"));
    let line = line.expect("a line");
    assert!(
        line.contains("films.example: ") && line.contains("Failed to connect"),
        "{line}"
    );
}
