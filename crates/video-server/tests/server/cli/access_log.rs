//! The access log: its lines over every version of HTTP, its rotation, and destinations that fail.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use http::{HeaderMap, Method, Version};
use http_body_util::BodyExt as _;
use playrate_transport::Target;
use rstest::rstest;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};

use crate::cli::process::{assert_fields, checked, program, refused, start_with_metrics};
use crate::cli::tcp::Site;
use crate::http3::common::headers;
use playrate_test_support::{Media, ServerProcess, assert_contains, client, eventually, fetch, until};

const LOST: &str = "playrate_lost_access_log_lines_total";
const AGENT: &str = "Player \"1\"";

/// Lines of a file; empty if there is none.
fn lines(file: &Path) -> Vec<String> {
    let content = fs::read_to_string(file).unwrap_or_default();
    content.lines().map(str::to_owned).collect()
}

/// Requests `path` over this version, and reads the response, or only its first bytes.
#[expect(
    clippy::too_many_arguments,
    reason = "all parts of a request, for each version of HTTP"
)]
async fn request(site: &Site, serving: &ServerProcess, version: Version, path: &str, is_whole: bool) {
    let fields = [
        ("range", "bytes=5-"),
        ("user-agent", AGENT),
        ("referer", "https://player.example/"),
        ("cmcd-session", "sid=\"s 1\""),
        ("cmcd-status", "bs"),
    ];
    if version == Version::HTTP_3 {
        let connection = serving.connect().await;
        let (_, mut body) = connection.get(path, headers(&fields)).await.unwrap();
        while body.chunk().await.unwrap().is_some() && is_whole {}
        return;
    }
    let mut client = site.connect(serving.address(), version).await;
    if is_whole {
        client.get(path, &fields).await;
    } else {
        let mut response = client.start(Method::GET, path, &fields).await;
        response.body_mut().frame().await.unwrap().unwrap();
    }
}

#[rstest]
#[case(Version::HTTP_3, "HTTP/3.0")]
#[case(Version::HTTP_2, "HTTP/2.0")]
#[case(Version::HTTP_11, "HTTP/1.1")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_version_leaves_one_line_for_each_response(#[case] version: Version, #[case] name: &str) {
    let site = Site::new();
    let log = site.text("access.log");
    let length = fs::metadata(site.path("media/film.mp4")).unwrap().len();
    let serving = site.serve(&["--access-log", &log, "--controller", "cubic"]);
    for (number, (path, is_whole)) in [
        ("/film.mp4?a=%22b", true),
        ("/none.mp4", true),
        ("/long.bin", false),
    ]
    .into_iter()
    .enumerate()
    {
        request(&site, &serving, version, path, is_whole).await;
        until("the line is there", async || lines(log.as_ref()).len() > number).await;
    }
    let is_quic = version == Version::HTTP_3;
    serving.stop();
    let found: Vec<Value> = lines(log.as_ref())
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(found.len(), 3, "{found:?}");
    let controller = is_quic.then_some("cubic");
    let common = json!({
        "peer_address": "127.0.0.1", "method": "GET", "range": "bytes=5-", "protocol": name, "user_agent": AGENT,
        "referer": "https://player.example/", "controller": controller, "arm": null, "cmcd_sid": "s 1",
    });
    for line in &found {
        assert_fields(line, &common);
        let time = line["time"].as_str().unwrap();
        assert!(time.len() == 24 && time.ends_with('Z'), "{time}");
        let [first, duration] = ["first_byte_ms", "duration_ms"].map(|name| line[name].as_f64().unwrap());
        assert!(first <= duration && duration > 0.0, "{line}");
        assert!(line["peer_port"].as_u64() > Some(0), "{line}");
    }
    let complete = json!({
        "path": "/film.mp4?a=%22b", "status": 206, "content_bytes": length - 5, "sent_bytes": length - 5,
        "aborted": false,
    });
    assert_fields(&found[0], &complete);
    assert_eq!(found[0]["stalls"].is_u64(), is_quic);
    assert_fields(
        &found[1],
        &json!({ "path": "/none.mp4", "status": 404, "aborted": false }),
    );
    assert_fields(
        &found[2],
        &json!({ "path": "/long.bin", "status": 206, "aborted": true }),
    );
    let [sent, whole] = ["sent_bytes", "content_bytes"].map(|name| found[2][name].as_u64().unwrap());
    assert!(
        sent > 0 && sent < whole && whole == (64 << 20) - 5,
        "{sent} of {whole}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_combined_format_is_that_of_nginx() {
    let site = Site::new();
    let log = site.text("access.log");
    let serving = site.serve(&["--access-log", &log, "--access-log-format", "combined"]);
    request(&site, &serving, Version::HTTP_3, "/film.mp4?a=b", true).await;
    let found = eventually("the line is there", async || lines(log.as_ref()).pop()).await;
    let (address, rest) = found.split_once(" - - [").unwrap();
    let (time, rest) = rest.split_once("] ").unwrap();
    assert_eq!(address, "127.0.0.1");
    assert!(time.len() == 26 && time.ends_with(" +0000"), "{time}");
    let length = fs::metadata(site.path("media/film.mp4")).unwrap().len() - 5;
    let expected =
        format!(r#""GET /film.mp4?a=b HTTP/3.0" 206 {length} "https://player.example/" "Player \x221\x22""#);
    assert_eq!(rest, expected);
    serving.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotation_loses_no_line_and_later_lines_are_in_the_new_file() {
    let (media, directory) = (Media::film(), Media::new());
    let [log, old, kept] = ["access.log", "access.log.1", "kept"].map(|name| directory.path(name));
    let serving = start_with_metrics(&media, &["--access-log", log.to_str().unwrap()]);
    let connection = serving.connect().await;
    let mut count = 0;
    let mut get = async || {
        count += 1;
        fetch(&connection, &format!("/none?{count}"), HeaderMap::new()).await;
        count
    };
    for _ in 0..50 {
        get().await;
    }
    fs::rename(&log, &old).unwrap();
    let moved = get().await;
    until("the open file has the line", async || lines(&old).len() == moved).await;
    serving.signal("HUP");
    while !log.exists() {
        get().await;
    }
    let first = get().await;

    // A file that cannot be opened: the open one stays in use.
    fs::rename(&log, &kept).unwrap();
    fs::create_dir(&log).unwrap();
    serving.signal("HUP");
    serving.logs("cannot open a log again", 1).await;
    let last = get().await;
    serving.stop();
    let number = |line: &String| -> usize {
        let line: Value = serde_json::from_str(line).unwrap();
        let (_, number) = line["path"].as_str().unwrap().split_once('?').unwrap();
        number.parse().unwrap()
    };
    let [old, kept] = [&old, &kept].map(|file| lines(file).iter().map(number).collect::<Vec<_>>());
    assert!(kept.contains(&first) && kept.contains(&last), "{kept:?}");
    let mut all = [old, kept].concat();
    all.sort_unstable();
    assert!(all.into_iter().eq(1..=last), "each line once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stdout_has_lines_of_the_access_log_only_and_may_stay_unread() {
    let media = Media::film();
    let mut command = program();
    command.args(["serve", "--no-tcp", "--listen", "127.0.0.1:0", "--media"]);
    command
        .arg(media.root())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let process = Mutex::new(command.spawn().unwrap());
    let stderr = process.lock().unwrap().stderr.take().unwrap();
    let mut announced = BufReader::new(stderr).lines().map(Result::unwrap);
    let mut value = |name: &str| {
        let found = announced.find_map(|line| line.strip_prefix(name).map(str::to_owned));
        let found = found.unwrap();
        found.split_whitespace().next().unwrap().to_owned()
    };
    let address: SocketAddr = value("Listening on ").parse().unwrap();
    let client = client(value("Pin ").parse().unwrap(), |_| {});
    let target = Target::at("localhost", address);
    let connection = client.connect(&target).await.unwrap();
    // More than a pipe and the queue of lines take.
    for number in 0..1_000 {
        let path = format!("/{number}?{}", "x".repeat(3_000));
        fetch(&connection, &path, HeaderMap::new()).await;
    }
    drop(connection);
    let id = process.lock().unwrap().id().to_string();
    assert!(Command::new("kill").arg(&id).status().unwrap().success());
    let ended = eventually("it ends", async || process.lock().unwrap().try_wait().unwrap()).await;
    assert!(ended.success());
    let output = process.lock().unwrap().stdout.take().unwrap();
    let first = BufReader::new(output).lines().next().unwrap().unwrap();
    let first = serde_json::from_str(&first).unwrap();
    assert_fields(&first, &json!({ "status": 404, "method": "GET" }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_that_cannot_be_written_are_counted_and_one_error_is_logged() {
    let serving = start_with_metrics(&Media::film(), &["--access-log", "/dev/full"]);
    let connection = serving.connect().await;
    for _ in 0..5 {
        fetch(&connection, "/none", HeaderMap::new()).await;
    }
    until("they are counted", async || serving.metric(LOST) == 5).await;
    let log = serving.stop();
    assert_eq!(log.matches("cannot write lines of a log").count(), 1, "{log}");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_a_full_disk_cut_ends_before_the_next_one() {
    let (media, directory) = (Media::film(), Media::new());
    let log = directory.path("access.log");
    let mut command = Command::new("sh");
    // Writes beyond the limit fail, as on a full disk, and do not end the process.
    command
        .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
        .arg(program().get_program());
    let options = ["--metrics", "127.0.0.1:0", "--access-log", log.to_str().unwrap()];
    let serving = ServerProcess::start(command, "127.0.0.1:0", media.root(), &options);
    let limit = |bytes| {
        let process = Pid::from_raw(i32::try_from(serving.id()).unwrap());
        let limit = Rlimit {
            current: bytes,
            maximum: None,
        };
        prlimit(process, Resource::Fsize, limit).unwrap();
    };
    let connection = serving.connect().await;
    let get = async |number| {
        fetch(&connection, &format!("/none?{number}"), HeaderMap::new()).await;
    };
    get(0).await;
    until("a line is there", async || lines(&log).len() == 1).await;
    let whole = fs::metadata(&log).unwrap().len();
    // Room for half of the second line.
    limit(Some(whole + whole / 2));
    get(1).await;
    until("one is lost", async || serving.metric(LOST) == 1).await;
    get(2).await;
    until("two are lost", async || serving.metric(LOST) == 2).await;
    limit(None);
    get(3).await;
    until("the last line is there", async || lines(&log).len() == 3).await;
    assert_eq!(serving.metric(LOST), 2);
    let found = lines(&log);
    let is_whole = |line: &String| serde_json::from_str::<Value>(line).is_ok();
    let whole: Vec<_> = found.iter().map(is_whole).collect();
    assert_eq!(whole, [true, false, true], "{found:?}");
    assert_contains(&found[2], &["/none?3"]);
    serving.stop();
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fifo_without_a_reader_delays_neither_the_check_nor_the_start() {
    let (media, directory) = (Media::film(), Media::new());
    let [fifo, file] = ["fifo", "server.toml"].map(|name| directory.text(name));
    let films = media.text("");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    directory.put(
        "server.toml",
        format!("media = {films:?}\naccess-log = {fifo:?}\n"),
    );
    checked(&file);
    let serving = start_with_metrics(&media, &["--access-log", &fifo]);
    let connection = serving.connect().await;
    fetch(&connection, "/none", HeaderMap::new()).await;
    let mut reader = BufReader::new(fs::File::open(&fifo).unwrap()).lines();
    assert_contains(&reader.next().unwrap().unwrap(), &["\"/none\""]);
    serving.stop();
}

#[test]
fn a_file_that_cannot_be_opened_is_an_error_at_the_start() {
    let (media, config) = (Media::film(), Media::new());
    let (films, missing) = (media.text(""), media.text("none/access.log"));
    let parts = ["--access-log", &missing, "No such file or directory"];
    let complaint = refused(&["serve", "--media", &films, "--access-log", &missing]);
    assert_contains(&complaint, &parts);
    let [file, log] = ["server.toml", "access.log"].map(|name| config.text(name));
    config.put(
        "server.toml",
        format!("media = {films:?}\naccess-log = {missing:?}\n"),
    );
    let parts = ["server.toml:2", "--access-log", "No such file or directory"];
    assert_contains(&refused(&["check", &file]), &parts);
    config.put(
        "server.toml",
        format!("media = {films:?}\naccess-log = {log:?}\n"),
    );
    checked(&file);
    assert!(!config.path("access.log").exists());
}

#[test]
fn the_log_says_where_it_serves_if_all_its_lines_are_json() {
    let media = Media::film();
    let mut command = program();
    command.args([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--log-format",
        "json",
        "--media",
    ]);
    command
        .arg(media.root())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let lines = BufReader::new(process.stderr.take().unwrap()).lines();
    let lines = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let mut messages = lines.map(|line| line["message"].as_str().unwrap().to_owned());
    let announcement = messages.find(|message| message.starts_with("Serving 1 title"));
    assert_contains(&announcement.unwrap(), &["\nListening on 127.0.0.1:", "\nPin "]);
    process.kill().unwrap();
    process.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_of_the_log_are_quoted_and_rounded() {
    let serving = start_with_metrics(&Media::film(), &[]);
    let connection = serving.connect().await;
    fetch(&connection, "/film.mp4", HeaderMap::new()).await;
    drop(connection);
    serving.logs("session finished", 1).await;
    let log = serving.stop();
    let line = log
        .lines()
        .find(|line| line.contains("session finished"))
        .unwrap();
    assert_contains(line, &[" end=\"in good order\""]);
    for name in [" seconds=", " smoothed_rtt_ms="] {
        let (_, rest) = line.split_once(name).unwrap();
        let number = rest.split(' ').next().unwrap();
        let digits = number.split_once('.').map_or("", |(_, digits)| digits);
        assert!(digits.len() <= 3, "{line}");
    }
}
