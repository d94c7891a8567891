//! Players of other projects play a packaged title to its end, from the built server, over HTTP/3 and through
//! the relay, in a real browser. `tests/browser/README.md` lists the requirements.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use libtest_mimic::Trial;
use playrate_netsim::{PathConfig, QueueLimit, Relay, RelayConfig};
use playrate_units::{Bitrate, Probability};
use serde_json::{Value, json};

use crate::support::{self, json_within, output_within};
use playrate_test_support::root;

/// Lines of the best representation.
const BEST: u32 = 720;
const SECONDS: f64 = 18.0;
/// Path of the server that receives reports of events.
const EVENT_PATH: &str = "/events";
/// Of 3 s each.
const SEGMENTS: usize = 6;
/// Seconds of media ahead below which a waiting player has run out of media, and is not just waiting for its decoder.
const EMPTY: f64 = 0.5;

pub(crate) fn tests() -> Vec<Trial> {
    let missing = missing();
    tests![
        &missing,
        dash_js_plays_to_the_end_over_http_3_and_the_controller_learns_of_it,
        hls_js_plays_to_the_end_over_http_3_and_the_controller_learns_of_it,
        dash_js_reports_in_version_2_of_cmcd,
        hls_js_reports_in_version_2_of_cmcd,
        shaka_reports_in_version_2_of_cmcd,
        dash_js_at_double_speed_does_not_stall_under_video
    ]
}

/// Returns what these tests need and this machine lacks.
pub(crate) fn missing() -> Result<(), String> {
    support::on_the_path(&[
        ("chromium", "--version"),
        ("node", "--version"),
        ("ffmpeg", "-version"),
    ])?;
    let text = "the players are not there; run `npm ci --ignore-scripts` in tests/browser";
    support::required(modules().exists(), text)
}

pub(crate) fn modules() -> PathBuf {
    root().join("tests/browser/node_modules")
}

/// A directory under `target` for files to inspect.
pub(crate) fn kept(name: &str) -> PathBuf {
    root().join("target/browser").join(name)
}

/// The output of `tests/browser/make-site`, made once for all tests.
pub(crate) static SITE: LazyLock<PathBuf> = LazyLock::new(|| site("site", SECONDS));

/// The same with a title of this many seconds.
fn site(name: &str, seconds: f64) -> PathBuf {
    let site = kept(name);
    let mut make = Command::new(root().join("tests/browser/make-site"));
    make.arg(&site).arg(seconds.to_string());
    output_within(Duration::from_secs(180), &mut make, "");
    site
}

/// A viewing through a relay, as the page and the server saw it.
struct Viewing {
    report: Value,
    log: Vec<Value>,
}

impl Viewing {
    /// Plays the title over 20 Mbit/s and 40 ms, without loss.
    fn of(player: &str, manifest: &str, cmcd: &str) -> Self {
        let query = json!({ "player": player, "manifest": manifest, "cmcd": cmcd });
        Self::from(&SITE, "cubic+start=video-ssthresh", player, &query)
    }

    /// As [`of`](Self::of), with this site and controller. `query` is the page's, and `name` names the kept files.
    fn from(site: &Path, controller: &str, name: &str, query: &Value) -> Self {
        let arguments = [
            "--no-tcp",
            "--controller",
            controller,
            "--cmcd-events",
            EVENT_PATH,
        ];
        let server = support::serve(site, &arguments);
        let path = PathConfig::bottleneck(
            Bitrate::from_mbps(20),
            Duration::from_millis(40),
            QueueLimit::ONE_BDP,
            Probability::ZERO,
        );
        let address = server.address();
        let relay = Relay::start(&RelayConfig::new(address, path)).expect("the relay starts");
        let job = json!({
            "origin": format!("https://localhost:{}", relay.local_addr().port()),
            "query": query,
            "pin": server.announced("Pin"),
            "screenshots": kept("screenshots"),
            "name": name,
        });
        let script = root().join("tests/browser/play.mjs");
        let report = json_within(Duration::from_secs(300), Command::new("node").arg(script), &job);
        let log = support::stopped(server);
        println!("{}", relay.stop().expect("the relay ran"));
        let viewing = Self { report, log };
        viewing.keep(name);
        viewing
    }

    /// Stores the report and the server's log in the directory of the screenshots.
    fn keep(&self, name: &str) {
        let log: Vec<_> = self.log.iter().map(Value::to_string).collect();
        fs::write(kept(&format!("{name}-server.jsonl")), log.join("\n")).expect("a file can be written");
        fs::write(kept(&format!("{name}.json")), format!("{:#}\n", self.report))
            .expect("a file can be written");
    }

    fn said(&self, message: &str) -> impl Iterator<Item = &Value> {
        self.log.iter().filter(move |line| line["message"] == message)
    }

    /// Requirements on every player over a good path.
    fn check(&self, seconds: f64) {
        let facts = &self.report["facts"];
        assert_eq!(facts["errors"], json!([]), "{}", self.report);
        assert_eq!(facts["ended"], true, "{facts}");
        let position = facts["position"].as_f64().expect("a number");
        assert!((position - seconds).abs() < 0.3, "{facts}");
        let mut stalls = facts["stalls"].as_array().expect("stalls").iter();
        let is_empty = |stall: &Value| stall["ahead"].as_f64().expect("seconds") < EMPTY;
        assert!(!stalls.any(is_empty), "{facts}");
        // At 20 Mbit/s, a player that measures well ends with the best representation.
        let representations = facts["representations"].as_array().expect("representations");
        assert_eq!(representations.last().expect("video")["height"], BEST, "{facts}");

        let requests = self.report["requests"].as_array().expect("requests");
        // Video and audio, with an initialisation segment each.
        assert!(self.requests_with(".m4s") >= 2 * SEGMENTS, "{requests:?}");
        let others: Vec<_> = requests
            .iter()
            .filter(|request| request["protocol"] != "h3")
            .collect();
        assert!(others.is_empty(), "not over HTTP/3: {others:?}");
    }

    /// Number of requests with `part` in their URL.
    fn requests_with(&self, part: &str) -> usize {
        let requests = self.report["requests"].as_array().expect("requests").iter();
        let urls = requests.filter_map(|request| request["url"].as_str());
        urls.filter(|url| url.contains(part)).count()
    }

    /// Checks that the player sent CMCD, in the URL or in header fields, and that its changes reached the
    /// controller.
    fn check_knowledge(&self, in_the_url: bool) {
        assert_eq!(self.requests_with("CMCD=") > 0, in_the_url, "{}", self.report);

        let known: Vec<_> = self.said("the controller knows").collect();
        assert!(known.len() >= 2 * SEGMENTS, "{known:?}");
        let levels = known.iter().filter_map(|line| line["buffered_ms"].as_f64());
        let levels: BTreeSet<_> = levels.map(f64::to_bits).collect();
        assert!(levels.len() >= 4, "the buffer's level hardly changed: {known:?}");
        let playback: Vec<_> = known
            .iter()
            .filter_map(|line| line["playback"].as_str())
            .collect();
        assert_eq!(playback.first(), Some(&"Starting"), "{playback:?}");
        assert_eq!(playback.last(), Some(&"Playing"), "{playback:?}");
        let rate = known.last().and_then(|line| line["rate_bps"].as_u64());
        assert!(rate > Some(0), "{known:?}");

        let is_player = |session: &&Value| session["player_requests"].as_u64().is_some();
        let sessions: Vec<_> = self.said("session finished").filter(is_player).collect();
        let [session] = &sessions[..] else {
            panic!("{} sessions said something: {sessions:?}", sessions.len())
        };
        println!("{session}");
        let requests = session["player_requests"].as_u64();
        assert!(requests >= Some(2 * SEGMENTS as u64), "{session}");
        assert_eq!(session["player_viewings"], 1, "{session}");
        assert_eq!(session["player_starvations"], 0, "{session}");
    }
}

fn dash_js_plays_to_the_end_over_http_3_and_the_controller_learns_of_it() {
    let viewing = Viewing::of("dash", "film/manifest.mpd", "header");
    viewing.check(SECONDS);
    viewing.check_knowledge(false);
}

fn hls_js_plays_to_the_end_over_http_3_and_the_controller_learns_of_it() {
    let viewing = Viewing::of("hls", "film/master.m3u8", "query");
    viewing.check(SECONDS);
    viewing.check_knowledge(true);
}

/// Plays with requests and reports of events in version 2 of CMCD. The server must understand what counts in them.
fn version_2(player: &str, manifest: &str, cmcd: &str) {
    let query = json!({
        "player": player, "manifest": manifest, "cmcd": cmcd, "version": "2", "events": EVENT_PATH,
    });
    let viewing = Viewing::from(
        &SITE,
        "cubic+start=video-ssthresh",
        &format!("{player}-v2"),
        &query,
    );
    viewing.check(SECONDS);
    viewing.check_knowledge(cmcd == "query");
    let sent = viewing.report["cmcd"].as_array().expect("what was sent");
    assert!(sent.iter().any(|it| it.to_string().contains("v=2")), "{sent:?}");
    let is_player = |session: &&Value| session["player_requests"].as_u64().is_some();
    let session = viewing
        .said("session finished")
        .find(is_player)
        .expect("a session");
    let mut understood = vec!["player_mean_bitrate", "player_mean_buffer_ms"];
    // Shaka Player 5.2.12 sends neither its throughput nor its state.
    let is_complete = player != "shaka";
    understood.extend(is_complete.then_some("player_measured_throughput"));
    for read in understood {
        assert!(session[read].as_f64() > Some(0.0), "{read}: {session}");
    }
    let events: Vec<_> = viewing.said("a player reported an event").collect();
    let lines = |it: &Value| it["report"].as_str().map_or(0, |text| text.lines().count());
    let reported: usize = sent.iter().map(lines).sum();
    // The last reports may not have arrived when the page is closed.
    assert!(!events.is_empty() && events.len() <= reported, "{events:?}");
    let is_playing = |event: &Value| event["event"] == "ps" && event["state"] == "p";
    assert_eq!(
        events.iter().any(|event| is_playing(event)),
        is_complete,
        "{events:?}"
    );
    let unknown = events.iter().filter(|event| event["event"] == "other");
    assert_eq!(unknown.count(), 0, "{events:?}");
}

fn dash_js_reports_in_version_2_of_cmcd() {
    version_2("dash", "film/manifest.mpd", "header");
}

fn hls_js_reports_in_version_2_of_cmcd() {
    version_2("hls", "film/master.m3u8", "query");
}

fn shaka_reports_in_version_2_of_cmcd() {
    version_2("shaka", "film/manifest.mpd", "header");
}

/// The path carries four times what the player needs at double speed, so only the controller can make it stall or
/// choose a lower representation.
fn dash_js_at_double_speed_does_not_stall_under_video() {
    // Longer than what dash.js buffers ahead.
    let seconds = 60.0;
    let site = site("long-site", seconds);
    let query = json!({ "player": "dash", "manifest": "film/manifest.mpd", "cmcd": "header", "rate": "2" });
    let viewing = Viewing::from(&site, "video", "dash-double-speed", &query);
    viewing.check(seconds);
}
