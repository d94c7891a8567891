//! `video-client` plays titles over HTTP/3 from servers of other projects: quic-go, aioquic, Caddy and ngtcp2. It
//! verifies their certificate with a certificate authority generated for the test.
//!
//! `tests/interop/README.md` describes their installation. The DASH and HLS titles are made with `ffmpeg`.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use libtest_mimic::Trial;
use playrate_test_support::{Running, TITLE, films, program, root, text};
use tempfile::TempDir;

use crate::interop::{AIOQUIC, hex, installed, missing};
use crate::support::{self, Certified, free_address, output_within, until};

/// Time limit for `ffmpeg`, which copies the title without decoding it.
const LIMIT: Duration = Duration::from_secs(60);
/// Rounds of three sessions with a server that stops reading each request with `H3_NO_ERROR` (RFC 9114 §4.1).
const ROUNDS: usize = 10;

const QUIC_GO: &str = "quic-go/serve";
const CADDY: &str = "caddy/caddy";

/// Directories with the title as DASH and HLS: a file for each segment, and one file that is requested in ranges.
const SEGMENTS: &str = "segments";
const RANGES: &str = "ranges";

pub(crate) fn tests() -> Vec<Trial> {
    let ffmpeg = support::on_the_path(&[("ffmpeg", "-version")]);
    let and_ffmpeg = |server: Result<(), String>| server.and(ffmpeg.clone());
    let quic_go = tests![
        &and_ffmpeg(missing(QUIC_GO)),
        quic_go_serves_every_byte_of_each_title,
        quic_go_serves_many_sessions_in_a_row,
    ];
    let aioquic = tests![
        &and_ffmpeg(missing(AIOQUIC)),
        aioquic_serves_every_byte_of_each_title
    ];
    let caddy = tests![&and_ffmpeg(missing(CADDY)), caddy_serves_every_byte_of_each_title];
    let ngtcp2 = support::on_the_path(&[("gtlsserver", "--help")]);
    let ngtcp2 = tests![&and_ffmpeg(ngtcp2), ngtcp2_serves_every_byte_of_each_title];
    [quic_go, aioquic, caddy, ngtcp2].into_iter().flatten().collect()
}

/// A directory of titles, served by a program of another project.
struct Site {
    titles: TempDir,
    /// Other files: the certificate, and what the program and the client write.
    directory: TempDir,
    certified: Certified,
    address: SocketAddr,
}

impl Site {
    /// Runs the server `command` of this site, and waits until it listens.
    fn serve(command: impl FnOnce(&Self) -> Command) -> (Self, Running) {
        let (titles, directory) = (films(), tempfile::tempdir().expect("a temporary directory"));
        package(titles.path());
        let site = Self {
            certified: Certified::new(directory.path()),
            titles,
            directory,
            address: free_address(),
        };
        let mut command = command(&site);
        let server = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let server = server.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        // Binding the port to find out could take it away from the server.
        let port = format!(":{:04X} 00000000:0000 ", site.address.port());
        let sockets = || fs::read_to_string("/proc/net/udp").unwrap_or_default();
        until("the server listens", || sockets().contains(&port));
        (site, Running(server))
    }

    /// Plays the title at `path` in one connection, and compares its bytes with those of `files`.
    fn plays(&self, path: &str, files: &[&str]) {
        let output = self.directory.path().join("output");
        let client = Command::new(program("video-client"))
            .env("RUST_LOG", "warn")
            .args(["play", "--json", "--reconnect-limit", "0s", "--ca"])
            .arg(&self.certified.authority)
            .arg("--output")
            .arg(&output)
            .arg(format!("https://{}/{path}", self.address))
            .output()
            .expect("video-client runs");
        let (report, log) = (text(&client.stdout), text(&client.stderr));
        assert!(client.status.success() && log.is_empty(), "{path}: {log}{report}");
        let report: serde_json::Value = serde_json::from_str(&report).expect("a report");
        assert_eq!(report["outcome"], "complete", "{report}");
        let read = |file: &&str| fs::read(self.titles.path().join(file)).expect("a file of the title");
        let expected: Vec<u8> = files.iter().flat_map(read).collect();
        let received = fs::read(output).expect("the title's bytes");
        assert_eq!(received.len(), expected.len(), "{path}");
        assert_eq!(hex(&received), hex(&expected), "{path}");
    }

    /// Plays the title as an MP4, and as DASH and HLS in the directory `adaptive`.
    fn plays_everything(&self, adaptive: &str) {
        self.plays(TITLE, &[TITLE]);
        let directory = fs::read_dir(self.titles.path().join(adaptive)).expect("a directory");
        let names = directory.map(|entry| entry.expect("an entry").file_name().into_string());
        let mut files: Vec<_> = names.map(|name| name.expect("ASCII")).collect();
        // `init` follows `chunk` in the alphabet.
        files.retain(|name| name.contains("stream0"));
        files.sort_by_key(|name| (!name.starts_with("init"), name.clone()));
        let files: Vec<_> = files.iter().map(|name| format!("{adaptive}/{name}")).collect();
        let files: Vec<_> = files.iter().map(String::as_str).collect();
        for manifest in ["manifest.mpd", "master.m3u8"] {
            self.plays(&format!("{adaptive}/{manifest}"), &files);
        }
    }
}

/// Packages the title's video in `directory` as DASH and HLS, in both forms.
fn package(directory: &Path) {
    for (form, single_file) in [(SEGMENTS, "0"), (RANGES, "1")] {
        let form = directory.join(form);
        fs::create_dir(&form).expect("a directory");
        let mut ffmpeg = Command::new("ffmpeg");
        ffmpeg.args(["-v", "error", "-i"]).arg(directory.join(TITLE));
        ffmpeg.args("-map 0:v -c copy -f dash -seg_duration 3 -hls_playlist 1 -single_file".split(' '));
        output_within(LIMIT, ffmpeg.arg(single_file).arg(form.join("manifest.mpd")), "");
    }
}

fn quic_go(site: &Site) -> Command {
    let mut command = Command::new(installed(QUIC_GO));
    command.arg(site.address.to_string());
    command.args([&site.certified.certificate, &site.certified.key]);
    command.arg(site.titles.path());
    command
}

fn quic_go_serves_every_byte_of_each_title() {
    let (site, _server) = Site::serve(quic_go);
    for adaptive in [SEGMENTS, RANGES] {
        site.plays_everything(adaptive);
    }
}

fn quic_go_serves_many_sessions_in_a_row() {
    let (site, _server) = Site::serve(quic_go);
    for _ in 0..ROUNDS {
        site.plays_everything(SEGMENTS);
    }
}

fn aioquic_serves_every_byte_of_each_title() {
    let (site, _server) = Site::serve(|site| {
        let mut command = Command::new(installed(AIOQUIC));
        command.arg(root().join("tests/interop/aioquic/serve.py"));
        command.args([site.address.ip().to_string(), site.address.port().to_string()]);
        command.args([&site.certified.certificate, &site.certified.key]);
        command.arg(site.titles.path());
        command
    });
    for adaptive in [SEGMENTS, RANGES] {
        site.plays_everything(adaptive);
    }
}

fn caddy_serves_every_byte_of_each_title() {
    let (site, _server) = Site::serve(|site| {
        let config = site.directory.path().join("Caddyfile");
        let text = format!(
            "{{\n admin off\n auto_https off\n persist_config off\n storage file_system {storage}\n \
             servers {{\n  protocols h3\n }}\n}}\n\
             https://{address} {{\n bind {ip}\n tls {chain} {key}\n root {titles}\n file_server\n}}\n",
            storage = site.directory.path().join("storage").display(),
            address = site.address,
            ip = site.address.ip(),
            chain = site.certified.certificate,
            key = site.certified.key,
            titles = site.titles.path().display(),
        );
        fs::write(&config, text).expect("a file can be written");
        let mut command = Command::new(installed(CADDY));
        command
            .args(["run", "--adapter", "caddyfile", "--config"])
            .arg(config);
        command
    });
    for adaptive in [SEGMENTS, RANGES] {
        site.plays_everything(adaptive);
    }
}

/// It does not know ranges.
fn ngtcp2_serves_every_byte_of_each_title() {
    let (site, _server) = Site::serve(|site| {
        let mut command = Command::new("gtlsserver");
        command.arg("--quiet").arg("--htdocs").arg(site.titles.path());
        command.args([site.address.ip().to_string(), site.address.port().to_string()]);
        command.args([&site.certified.key, &site.certified.certificate]);
        command
    });
    site.plays_everything(SEGMENTS);
}
