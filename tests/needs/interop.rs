//! HTTP clients of other projects receive exactly the requested bytes from the built server: quic-go and
//! aioquic over HTTP/3, curl over TCP. Each verifies the server's certificate with a certificate authority
//! generated for the test.
//!
//! `tests/interop/README.md` describes their installation and configuration.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use libtest_mimic::Trial;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::{self, output_within};
use playrate_test_support::{ServerProcess, TITLE, films, root, title};

/// Time limit for a client with all its requests.
const LIMIT: Duration = Duration::from_secs(120);

/// Programs that `tests/interop/install` installs, below `target/interop`.
const QUIC_GO: &str = "quic-go/fetch";
const AIOQUIC: &str = "aioquic/bin/python";

pub(crate) fn tests() -> Vec<Trial> {
    let curl = support::on_the_path(&[("curl", "--version")]);
    let mut tests = tests![&missing(QUIC_GO), quic_go_gets_every_byte_it_asks_for_over_http_3];
    tests.extend(tests![
        &missing(AIOQUIC),
        aioquic_gets_every_byte_it_asks_for_over_http_3
    ]);
    tests.extend(tests![
        &curl,
        curl_gets_every_byte_it_asks_for_over_tcp_and_is_told_of_http_3
    ]);
    tests
}

/// A request and the required result.
struct Case {
    method: &'static str,
    path: String,
    range: String,
    status: u16,
    /// Bytes of the title that the body must have; `None` if the body is a message.
    body: Option<Range<usize>>,
}

impl Case {
    fn get(range: &str, status: u16, body: Option<Range<usize>>) -> Self {
        Self {
            method: "GET",
            path: format!("/{TITLE}"),
            range: range.to_owned(),
            status,
            body,
        }
    }

    fn what(&self) -> String {
        let range = if self.range.is_empty() { "" } else { " " };
        format!("{} {}{range}{}", self.method, self.path, self.range)
    }
}

/// Groups of requests; those of one group are concurrent.
fn cases(size: usize) -> Vec<Vec<Case>> {
    let eighth = size / 8;
    let at_once = (0..8)
        .map(|part| part * eighth..(part + 1) * eighth)
        .map(|bytes| {
            let range = format!("bytes={}-{}", bytes.start, bytes.end - 1);
            Case::get(&range, 206, Some(bytes))
        })
        .collect();
    let missing = Case {
        path: "/no-such-film.mp4".to_owned(),
        ..Case::get("", 404, None)
    };
    let head = Case {
        method: "HEAD",
        ..Case::get("", 200, Some(0..0))
    };
    let one_by_one = [
        Case::get("", 200, Some(0..size)),
        Case::get("bytes=0-99", 206, Some(0..100)),
        Case::get("bytes=1000000-2999999", 206, Some(1_000_000..3_000_000)),
        Case::get("bytes=-1000", 206, Some(size - 1000..size)),
        Case::get("bytes=9000000-", 206, Some(9_000_000..size)),
        Case::get(&format!("bytes={size}-"), 416, None),
        head,
        missing,
    ];
    one_by_one
        .into_iter()
        .map(|case| vec![case])
        .chain([at_once])
        .collect()
}

/// Response that a client received.
struct Answer {
    status: u64,
    protocol: String,
    content_length: String,
    content_range: String,
    bytes: u64,
    sha256: String,
}

impl Answer {
    fn from_json(value: &Value) -> Self {
        let text = |key: &str| value[key].as_str().expect("a string").to_owned();
        Self {
            status: value["status"].as_u64().expect("a status"),
            protocol: text("protocol"),
            content_length: text("content_length"),
            content_range: text("content_range"),
            bytes: value["bytes"].as_u64().expect("a count"),
            sha256: text("sha256"),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for byte in Sha256::digest(bytes) {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Compares an answer with the required result, and prints a row of the table.
fn check(client: &str, protocol: &str, case: &Case, answer: &Answer, title: &[u8]) {
    let what = format!("{client}, {}", case.what());
    assert_eq!(answer.status, u64::from(case.status), "{what}");
    assert_eq!(answer.protocol, protocol, "{what}");
    let mut result = "refused as it should be".to_owned();
    if let Some(bytes) = case.body.clone() {
        let body = &title[bytes.clone()];
        assert_eq!(answer.bytes, body.len() as u64, "{what}");
        assert_eq!(answer.sha256, hex(body), "{what}");
        result = format!("sha256 {}… equal", &answer.sha256[..12]);
        let length = if case.method == "HEAD" {
            title.len()
        } else {
            body.len()
        };
        assert_eq!(answer.content_length, length.to_string(), "{what}");
        if case.method == "HEAD" {
            result = format!("Content-Length: {length}");
        }
        if case.status == 206 {
            let range = format!("bytes {}-{}/{}", bytes.start, bytes.end - 1, title.len());
            assert_eq!(answer.content_range, range, "{what}");
        }
    }
    println!(
        "| {client} | {protocol} | {} | {} | {} | {result} |",
        case.what(),
        answer.status,
        answer.bytes
    );
}

/// A served title, and the certificate authority to trust.
struct Site {
    server: ServerProcess,
    title: Vec<u8>,
    authority: PathBuf,
    directory: tempfile::TempDir,
    _films: tempfile::TempDir,
}

impl Site {
    fn start() -> Self {
        let films = films();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (authority, certificate, key) = identity(directory.path());
        let file = |path: &Path| path.to_str().expect("a path in UTF-8").to_owned();
        let server = support::serve(
            films.path(),
            &["--cert", &file(&certificate), "--key", &file(&key)],
        );
        Self {
            server,
            title: fs::read(title()).expect("the title is there"),
            authority,
            directory,
            _films: films,
        }
    }

    fn origin(&self) -> String {
        format!("https://{}", self.server.address())
    }

    /// Makes a client do all cases on one HTTP/3 connection, except methods that it does not know.
    fn hold(self, command: &mut Command, unknown: &[&str]) {
        let mut groups = cases(self.title.len());
        groups.retain(|group| group.iter().all(|case| !unknown.contains(&case.method)));
        let request = |case: &Case| json!({ "method": case.method, "path": case.path, "range": case.range });
        let requests: Vec<Vec<_>> = groups
            .iter()
            .map(|group| group.iter().map(request).collect())
            .collect();
        let job = json!({ "origin": self.origin(), "ca": self.authority, "groups": requests });
        let report = output_within(LIMIT, command, &job.to_string());
        let report: Value = serde_json::from_str(&report).unwrap_or_else(|error| panic!("{error}: {report}"));
        let client = report["client"].as_str().expect("a name");
        let answers = report["answers"].as_array().expect("groups of answers");
        assert_eq!(answers.len(), groups.len());
        for (group, answers) in groups.iter().zip(answers) {
            let answers = answers.as_array().expect("answers");
            assert_eq!(answers.len(), group.len());
            for (case, answer) in group.iter().zip(answers) {
                check(client, "HTTP/3.0", case, &Answer::from_json(answer), &self.title);
            }
        }
        let log = support::stopped(self.server);
        let sessions: Vec<_> = log
            .iter()
            .filter(|line| line["message"] == "session finished")
            .collect();
        assert_eq!(sessions.len(), 1, "{log:?}");
        let requests = groups.iter().flatten().count();
        assert_eq!(sessions[0]["requests"], requests, "{sessions:?}");
        assert_eq!(sessions[0]["end"], "in good order", "{sessions:?}");
    }
}

/// An authority and a certificate of it for 127.0.0.1, as files: the authority, the certificate, its key.
fn identity(directory: &Path) -> (PathBuf, PathBuf, PathBuf) {
    let write = |name: &str, text: String| {
        let path = directory.join(name);
        fs::write(&path, text).expect("a file can be written");
        path
    };
    let mut authority = CertificateParams::new(Vec::new()).expect("no names");
    // A name different from the leaf's, which would otherwise be mistaken for self-signed.
    authority
        .distinguished_name
        .push(DnType::CommonName, "authority of a test");
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().expect("a key");
    let authority_certificate = authority.self_signed(&authority_key).expect("a certificate");
    let issuer = Issuer::new(authority, authority_key);
    let names = ["127.0.0.1", "localhost"].map(str::to_owned);
    let mut leaf = CertificateParams::new(names).expect("names");
    leaf.use_authority_key_identifier_extension = true;
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate().expect("a key");
    let certificate = leaf.signed_by(&key, &issuer).expect("a certificate");
    (
        write("ca.pem", authority_certificate.pem()),
        write("cert.pem", certificate.pem()),
        write("key.pem", key.serialize_pem()),
    )
}

/// Path of an installed program.
fn installed(path: &str) -> PathBuf {
    root().join("target/interop").join(path)
}

/// Says how to install a program that is not there.
fn missing(path: &str) -> Result<(), String> {
    let client = path.split('/').next().unwrap_or(path);
    if installed(path).exists() {
        Ok(())
    } else {
        Err(format!("run `tests/interop/install {client}` first"))
    }
}

fn quic_go_gets_every_byte_it_asks_for_over_http_3() {
    Site::start().hold(&mut Command::new(installed(QUIC_GO)), &[]);
}

fn aioquic_gets_every_byte_it_asks_for_over_http_3() {
    let script = root().join("tests/interop/aioquic/fetch.py");
    // It compares the answer to a HEAD request with its Content-Length as if it had a body.
    Site::start().hold(Command::new(installed(AIOQUIC)).arg(script), &["HEAD"]);
}

fn curl_gets_every_byte_it_asks_for_over_tcp_and_is_told_of_http_3() {
    let version = output_within(LIMIT, Command::new("curl").arg("--version"), "");
    let client: Vec<_> = version.split_whitespace().take(2).collect();
    let client = client.join(" ");
    let site = Site::start();
    for (option, protocol) in [("--http1.1", "HTTP/1.1"), ("--http2", "HTTP/2")] {
        for case in cases(site.title.len()).iter().flatten() {
            let answer = curl(&site, option, case);
            check(&client, protocol, case, &answer, &site.title);
        }
    }
}

/// Makes one request with curl, and checks that the answer says where HTTP/3 is.
fn curl(site: &Site, option: &str, case: &Case) -> Answer {
    let body = site.directory.path().join("body");
    // A response without a body leaves no file.
    fs::write(&body, "").expect("a file can be written");
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--max-time", "60", option, "--cacert"]);
    command.arg(&site.authority).arg("--output").arg(&body);
    command.args(["--dump-header", "-"]);
    if case.method == "HEAD" {
        command.arg("--head");
    }
    if !case.range.is_empty() {
        command.args(["--header", &format!("Range: {}", case.range)]);
    }
    command.arg(format!("{}{}", site.origin(), case.path));
    let head = output_within(LIMIT, &mut command, "");
    let mut lines = head.lines();
    let mut status = lines.next().expect("a status line").split(' ');
    let protocol = status.next().expect("a version").to_owned();
    let code = status.next().and_then(|code| code.parse().ok());
    let field = |name: &str| {
        let found = head.lines().filter_map(|line| line.split_once(':'));
        found
            .filter(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim().to_owned())
            .next()
            .unwrap_or_default()
    };
    let port = site.server.address().port();
    assert!(
        field("alt-svc").starts_with(&format!("h3=\":{port}\"")),
        "{option} {}: {head}",
        case.what()
    );
    // With --head, curl writes the head to the output.
    let body = if case.method == "HEAD" {
        Vec::new()
    } else {
        fs::read(&body).expect("a body")
    };
    Answer {
        status: code.expect("a status"),
        protocol,
        content_length: field("content-length"),
        content_range: field("content-range"),
        bytes: body.len() as u64,
        sha256: hex(&body),
    }
}
