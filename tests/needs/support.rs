//! Helpers of these tests: a server, and the handling of missing tools.

use std::env;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use playrate_test_support::{PATIENCE, Running, ServerProcess, program};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

/// Test `name` of something that not every machine has: if it is `missing`, the test is ignored, or fails if
/// `PLAYRATE_REQUIRE_TOOLS` is set.
pub(crate) fn test(name: &str, missing: &Result<(), String>, run: impl FnOnce() + Send + 'static) -> Trial {
    let Err(missing) = missing.clone() else {
        return Trial::test(name, move || {
            run();
            Ok(())
        });
    };
    let required = env::var_os("PLAYRATE_REQUIRE_TOOLS").is_some();
    Trial::test(name, {
        let missing = missing.clone();
        move || Err(missing.into())
    })
    .with_kind(missing)
    .with_ignored_flag(!required)
}

/// Returns which of `tools` cannot be run; each is given with an option that prints its version.
pub(crate) fn on_the_path(tools: &[(&str, &str)]) -> Result<(), String> {
    let is_missing = |(tool, version): &&(&str, &str)| Command::new(tool).arg(version).output().is_err();
    let missing: Vec<_> = tools.iter().filter(is_missing).map(|(tool, _)| *tool).collect();
    let text = format!("{} not found on the PATH", missing.join(" and "));
    required(missing.is_empty(), &text)
}

/// A TCP address of loopback for a program that cannot choose a free port itself.
///
/// Its port is below the range that Linux uses for connections and for port 0: another program might take a port of
/// that range before this one has bound it.
pub(crate) fn free_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    const PORTS: RangeInclusive<u16> = 20_000..=31_999;
    let port = || {
        // Two runs of these tests start at different ports.
        let next = process::id()
            .wrapping_mul(64)
            .wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        PORTS.start() + u16::try_from(next % u32::from(PORTS.end() - PORTS.start())).expect("it is small")
    };
    let addresses = PORTS.map(|_| SocketAddr::from((Ipv4Addr::LOCALHOST, port())));
    let mut free = addresses.filter(|address| TcpListener::bind(address).is_ok());
    free.next().expect("one of these ports is free")
}

/// A server for a directory on a free port of 127.0.0.1. Its log is JSON.
pub(crate) fn serve(media: &Path, arguments: &[&str]) -> ServerProcess {
    let mut command = Command::new(program("video-server"));
    command.env("RUST_LOG", "info,video_server=debug");
    serve_with(command, media, arguments)
}

/// The same with `command` and its own environment.
pub(crate) fn serve_with(command: Command, media: &Path, arguments: &[&str]) -> ServerProcess {
    let arguments = [&["--log-format", "json"], arguments].concat();
    ServerProcess::start(command, "127.0.0.1:0", media, &arguments)
}

/// `Ok` if `exists`; otherwise an error that says what to do.
pub(crate) fn required(exists: bool, otherwise: &str) -> Result<(), String> {
    exists.then_some(()).ok_or_else(|| otherwise.to_owned())
}

/// Waits until `done` returns true, at most for [`PATIENCE`].
pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Stops a server as an operator would, and returns its log.
pub(crate) fn stopped(server: ServerProcess) -> Vec<serde_json::Value> {
    let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    server.stop().lines().map(parse).collect()
}

/// Runs `command` as [`output_within`] and reads its output as JSON.
pub(crate) fn json_within(
    limit: Duration,
    command: &mut Command,
    input: &serde_json::Value,
) -> serde_json::Value {
    let output = output_within(limit, command, &input.to_string());
    serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {output}"))
}

/// An authority and a certificate of it for 127.0.0.1 and `localhost`, as files in a directory.
pub(crate) struct Certified {
    pub(crate) authority: PathBuf,
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Certified {
    pub(crate) fn new(directory: &Path) -> Self {
        let write = |name: &str, text: String| {
            let path = directory.join(name);
            fs::write(&path, text).expect("a file can be written");
            path
        };
        let mut authority = CertificateParams::default();
        // A name different from the leaf's, which would otherwise be mistaken for self-signed.
        authority
            .distinguished_name
            .push(DnType::CommonName, "authority of a test");
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = || KeyPair::generate().expect("a key");
        let authority = CertifiedIssuer::self_signed(authority, key()).expect("a certificate");
        let names = ["127.0.0.1", "localhost"].map(str::to_owned);
        let mut leaf = CertificateParams::new(names).expect("names");
        leaf.use_authority_key_identifier_extension = true;
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = key();
        let certificate = leaf.signed_by(&key, &authority).expect("a certificate");
        let text = |path: PathBuf| path.to_str().expect("a path in UTF-8").to_owned();
        Self {
            authority: write("ca.pem", authority.pem()),
            certificate: text(write("cert.pem", certificate.pem() + &authority.pem())),
            key: {
                let path = directory.join("key.pem");
                playrate_test_support::put_private(&path, &key.serialize_pem());
                text(path)
            },
        }
    }

    /// Options of a server with this certificate.
    pub(crate) fn options(&self) -> [&str; 4] {
        ["--cert", &self.certificate, "--key", &self.key]
    }
}

/// Runs `command` with `input` for at most `limit`, and returns its output once it has succeeded.
pub(crate) fn output_within(limit: Duration, command: &mut Command, input: &str) -> String {
    let file = || tempfile::tempfile().expect("a temporary file");
    let (mut stdin, stdout, stderr) = (file(), file(), file());
    stdin.write_all(input.as_bytes()).expect("a file can be written");
    stdin.seek(SeekFrom::Start(0)).expect("a file can be read");
    let clone = |file: &File| file.try_clone().expect("a file can be cloned");
    let child = command
        .stdin(stdin)
        .stdout(clone(&stdout))
        .stderr(clone(&stderr))
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let status = Running(child).wait(limit);
    let text = |mut file: File| {
        file.seek(SeekFrom::Start(0)).expect("a file can be read");
        std::io::read_to_string(file).expect("it is text")
    };
    let (stdout, stderr) = (text(stdout), text(stderr));
    assert!(
        status.is_some_and(|status| status.success()),
        "{command:?} ended with {status:?}:\n{stdout}\n{stderr}"
    );
    stdout
}
