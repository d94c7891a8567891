//! HTTP clients of other projects receive exactly the requested bytes from the built server: quic-go, aioquic
//! and ngtcp2 over HTTP/3, curl over TCP. Except ngtcp2, each verifies the server's certificate with a certificate
//! authority generated for the test.
//!
//! `tests/interop/README.md` describes their installation and configuration.

use std::fmt::Write as _;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use libtest_mimic::Trial;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::support::{self, Certified, json_within, output_within};
use playrate_test_support::{ServerProcess, TITLE, films, fixture, root, title};

/// Time limit for a client with all its requests.
const LIMIT: Duration = Duration::from_secs(120);

/// A second title, of 47 kB.
const SHORT: &str = "short.mp4";

/// Programs that `tests/interop/install` installs, below `target/interop`.
const QUIC_GO: &str = "quic-go/fetch";
pub(crate) const AIOQUIC: &str = "aioquic/bin/python";

pub(crate) fn tests() -> Vec<Trial> {
    let curl = support::on_the_path(&[("curl", "--version")]);
    let quic_go = tests![&missing(QUIC_GO), quic_go_gets_every_byte_it_asks_for_over_http_3];
    let aioquic = tests![
        &missing(AIOQUIC),
        aioquic_gets_every_byte_it_asks_for_over_http_3,
        aioquic_gets_responses_in_the_order_of_its_priorities,
    ];
    let curl = tests![
        &curl,
        curl_gets_every_byte_it_asks_for_over_tcp_and_is_told_of_http_3
    ];
    let ngtcp2 = support::on_the_path(&[("gtlsclient", "--help")]);
    let ngtcp2 = tests![&ngtcp2, ngtcp2_gets_every_byte_of_two_titles_over_http_3];
    [quic_go, aioquic, ngtcp2, curl].into_iter().flatten().collect()
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
#[derive(Deserialize)]
struct Answer {
    status: u16,
    protocol: String,
    content_length: String,
    content_range: String,
    bytes: u64,
    sha256: String,
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(bytes) {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Compares an answer with the required result.
fn check(client: &str, protocol: &str, case: &Case, answer: &Answer, title: &[u8]) {
    let what = format!("{client}, {protocol}, {}", case.what());
    let found = (answer.status, answer.protocol.as_str());
    assert_eq!(found, (case.status, protocol), "{what}");
    if let Some(bytes) = case.body.clone() {
        let body = &title[bytes.clone()];
        assert_eq!(answer.bytes, body.len() as u64, "{what}");
        assert_eq!(answer.sha256, hex(body), "{what}");
        let is_head = case.method == "HEAD";
        let length = if is_head { title.len() } else { body.len() };
        assert_eq!(answer.content_length, length.to_string(), "{what}");
        if case.status == 206 {
            let range = format!("bytes {}-{}/{}", bytes.start, bytes.end - 1, title.len());
            assert_eq!(answer.content_range, range, "{what}");
        }
    }
    println!("{what}: {} bytes, as required", answer.bytes);
}

/// A served title, and the certificate authority to trust.
struct Site {
    server: ServerProcess,
    title: Vec<u8>,
    authority: PathBuf,
    directory: tempfile::TempDir,
    films: tempfile::TempDir,
}

impl Site {
    fn start() -> Self {
        let films = films();
        fs::copy(fixture("progressive-moov-first.mp4"), films.path().join(SHORT))
            .expect("a file can be copied");
        let directory = tempfile::tempdir().expect("a temporary directory");
        let certified = Certified::new(directory.path());
        let server = support::serve(films.path(), &certified.options());
        Self {
            server,
            title: fs::read(title()).expect("the title is there"),
            authority: certified.authority,
            directory,
            films,
        }
    }

    fn origin(&self) -> String {
        format!("https://{}", self.server.address())
    }

    /// Makes a client run all cases on one HTTP/3 connection, except those with methods that it does not know.
    fn hold(self, command: &mut Command, unknown: &[&str]) {
        let mut groups = cases(self.title.len());
        groups.retain(|group| group.iter().all(|case| !unknown.contains(&case.method)));
        let request = |case: &Case| json!({ "method": case.method, "path": case.path, "range": case.range });
        let requests: Vec<Vec<_>> = groups
            .iter()
            .map(|group| group.iter().map(request).collect())
            .collect();
        let job = json!({ "origin": self.origin(), "ca": self.authority, "groups": requests });
        let report = json_within(LIMIT, command, &job);
        let client = report["client"].as_str().expect("a name");
        let answers = report["answers"].as_array().expect("groups of answers");
        assert_eq!(answers.len(), groups.len());
        for (group, answers) in groups.iter().zip(answers) {
            let answers = answers.as_array().expect("answers");
            assert_eq!(answers.len(), group.len());
            for (case, answer) in group.iter().zip(answers) {
                let answer = Answer::deserialize(answer).expect("an answer");
                check(client, "HTTP/3.0", case, &answer, &self.title);
            }
        }
        self.was_one_session(groups.iter().flatten().count());
    }

    /// Stops the server, which must have had one connection with `requests`.
    fn was_one_session(self, requests: usize) {
        let log = support::stopped(self.server);
        let sessions: Vec<_> = log
            .iter()
            .filter(|line| line["message"] == "session finished")
            .collect();
        assert_eq!(sessions.len(), 1, "{log:?}");
        assert_eq!(sessions[0]["requests"], requests, "{sessions:?}");
        assert_eq!(sessions[0]["end"], "in good order", "{sessions:?}");
    }
}

/// Path of an installed program.
pub(crate) fn installed(path: &str) -> PathBuf {
    root().join("target/interop").join(path)
}

/// Says how to install a program that is not there.
pub(crate) fn missing(path: &str) -> Result<(), String> {
    let client = path.split('/').next().unwrap_or(path);
    let text = format!("run `tests/interop/install {client}` first");
    support::required(installed(path).exists(), &text)
}

fn quic_go_gets_every_byte_it_asks_for_over_http_3() {
    Site::start().hold(&mut Command::new(installed(QUIC_GO)), &[]);
}

fn aioquic_gets_every_byte_it_asks_for_over_http_3() {
    let script = root().join("tests/interop/aioquic/fetch.py");
    // It compares the answer to a HEAD request with its Content-Length as if it had a body.
    Site::start().hold(Command::new(installed(AIOQUIC)).arg(script), &["HEAD"]);
}

/// RFC 9218, with the field `Priority` or a `PRIORITY_UPDATE` for the last of four concurrent requests: it ends first,
/// then the incremental ones side by side, at last the first of all.
fn aioquic_gets_responses_in_the_order_of_its_priorities() {
    const BODY: u64 = 2_000_000;
    for (stated, update) in [("u=1", ""), ("u=7", "u=1")] {
        let site = Site::start();
        let priorities = [("u=6", ""), ("u=3, i", ""), ("u=3, i", ""), (stated, update)];
        let requests = priorities.map(|(priority, update)| {
            let (path, range) = (format!("/{TITLE}"), format!("bytes=0-{}", BODY - 1));
            json!({ "method": "GET", "path": path, "range": range, "priority": priority, "priority_update": update })
        });
        // The server waits for the client, so that its socket does not hold whole responses.
        let job =
            json!({ "origin": site.origin(), "ca": site.authority, "window": 50_000, "groups": [requests] });
        let mut client = Command::new(installed(AIOQUIC));
        let report = json_within(
            LIMIT,
            client.arg(root().join("tests/interop/aioquic/fetch.py")),
            &job,
        );
        // Bytes of each response when one ended.
        let at_end = |number: usize| {
            let bytes = &report["answers"][0][number]["at_end"];
            <[u64; 4]>::deserialize(bytes).unwrap_or_else(|error| panic!("{error}: {report}"))
        };
        let [background, left, right, _] = at_end(3);
        println!("urgent response at its end: {:?}", at_end(3));
        assert!(background + left + right < BODY / 2, "{report}");
        let first = if at_end(1)[2] < BODY { 1 } else { 2 };
        println!("incremental response at its end: {:?}", at_end(first));
        let [background, left, right, _] = at_end(first);
        assert!(left.min(right) > BODY / 2 && background < BODY / 2, "{report}");
        assert_eq!(at_end(0), [BODY; 4]);
        site.was_one_session(4);
    }
}

/// It makes only whole requests, and does not verify the certificate.
fn ngtcp2_gets_every_byte_of_two_titles_over_http_3() {
    let site = Site::start();
    let address = site.server.address();
    let mut client = Command::new("gtlsclient");
    client.args(["--quiet", "--exit-on-all-streams-close", "--download"]);
    client.arg(site.directory.path());
    client.args([address.ip().to_string(), address.port().to_string()]);
    client.args([TITLE, SHORT].map(|title| format!("{}/{title}", site.origin())));
    output_within(LIMIT, &mut client, "");
    for title in [TITLE, SHORT] {
        let [received, served] = [site.directory.path(), site.films.path()]
            .map(|directory| fs::read(directory.join(title)).expect("the title"));
        assert_eq!(hex(&received), hex(&served), "{title}");
    }
    site.was_one_session(2);
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
    let fields: Vec<_> = head.lines().filter_map(|line| line.split_once(':')).collect();
    let field = |name: &str| {
        let found = fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value.trim()).to_owned()
    };
    let http_3 = format!("h3=\":{}\"", site.server.address().port());
    let is_told = field("alt-svc").starts_with(&http_3);
    assert!(is_told, "{option} {}: {head}", case.what());
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
