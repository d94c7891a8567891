//! The program while it serves, and how it ends.

use std::fs;
use std::time::Duration;

use crate::cli::process::{assert_fields, run, start};
use crate::http3::common::headers;
use http::HeaderMap;
use playrate_test_support::{Media, assert_contains, fetch, fixture, sleep, text};
use rstest::rstest;
use serde_json::json;

fn media() -> Media {
    let media = Media::new();
    media.copy("progressive-moov-first.mp4", "my film.mp4");
    media.put("long.bin", vec![7; 64 << 20]);
    media
}

#[test]
fn it_says_what_it_serves_and_how_to_watch_it_and_stops_in_good_order() {
    let media = media();
    for signal in ["INT", "TERM"] {
        let serving = start(media.root(), &["--controller", "cubic( on )+start=hystartpp"]);
        let port = serving.address().port();
        let url = format!("https://127.0.0.1:{port}/my%20film.mp4");
        let parts = ["1 title and 1 other file", &url, "avc1.", "Mbit/s on average"];
        assert_contains(serving.announcement(), &parts);
        assert_eq!(serving.announced("Controller"), "cubic+start=hystartpp");
        serving.signal(signal);
        let pin = serving.announced("Pin").to_owned();
        let (code, output, log) = serving.end();
        assert_eq!(code, Some(0), "{log}");
        assert_contains(&output, &[&format!("video-client play {url} --pin {pin}")]);
        let received = format!("signal=\"SIG{signal}\"");
        assert_contains(&log, &[&received, "drained=true"]);
    }
}

#[test]
fn a_title_that_cannot_be_played_is_left_out_and_named_once_in_the_log() {
    let media = media();
    let good = fs::read(fixture("progressive-moov-first.mp4")).unwrap();
    media.put("cut.mp4", &good[..good.len() - 1_000]);
    let serving = start(media.root(), &[]);
    let announced = serving.announcement().to_owned();
    assert_contains(&announced, &["1 title and 1 other file", "my%20film.mp4"]);
    assert_contains(
        serving.announced("Unplayable"),
        &["1 title, ", "the log says why"],
    );
    assert!(!announced.contains("cut.mp4"), "{announced}");
    let log = serving.stop();
    assert_eq!(log.matches("cut.mp4").count(), 1, "{log}");
    assert_contains(&log, &["cannot be played", "cut.mp4: mdat box at offset"]);
}

/// Both formats of the log, and what is printed.
#[rstest]
#[case::text(&[])]
#[case::json(&["--log-format", "json"])]
fn a_line_break_in_a_file_name_forges_no_line(#[case] arguments: &[&str]) {
    let media = media();
    let forged = "FORGED INFO session finished";
    media.put(&format!("bad\n{forged}.mp4"), "no MP4");
    media.put(&format!("bad\r{forged}.mpd"), "<MPD/>");
    let serving = start(media.root(), arguments);
    let announcement = serving.announcement().to_owned();
    let log = serving.stop();
    assert_eq!(log.matches(forged).count(), 2, "both are named: {log}");
    let begins = |line: &str| line.trim_start().starts_with(forged);
    assert!(!log.split(['\n', '\r']).any(begins), "{log}");
    assert!(!announcement.split(['\n', '\r']).any(begins), "{announcement}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_are_asked_for_as_many_acknowledgements_as_the_controller_or_the_option_says() {
    let media = media();
    let cubic = ["--controller", "cubic", "--ack-packets", "10"];
    for (arguments, requests) in [(&[][..], true), (&cubic[..2], false), (&cubic, true)] {
        let serving = start(media.root(), arguments);
        let connection = serving.connect().await;
        fetch(&connection, "/long.bin", HeaderMap::new()).await;
        let received = connection.quinn().stats().frame_rx.ack_frequency;
        assert_eq!(received > 0, requests, "{arguments:?}: {received}");
        serving.stop();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_leaves_one_line_of_json_with_what_it_was() {
    let media = media();
    let serving = start(media.root(), &["--log-format", "json", "--controller", "reno"]);
    let connection = serving.connect().await;
    let (response, mut body) = connection.get("/my%20film.mp4", HeaderMap::new()).await.unwrap();
    assert!(response.headers().contains_key("date"));
    let mut length = 0;
    while let Some(chunk) = body.chunk().await.unwrap() {
        length += chunk.len();
    }
    for (at, level) in [("su,bl=0", 0), ("bl=4000", 1), ("bs,bl=2000", 2)] {
        let fields = [
            ("cmcd-session", "sid=\"a\\\"b\""),
            ("cmcd-object", "br=800,ot=v,d=3000"),
            ("cmcd-request", at),
        ];
        let fields = headers(&fields);
        let range = connection.get_range("/my%20film.mp4", level, Some(level), fields);
        let (_, mut body) = range.await.unwrap();
        while body.chunk().await.unwrap().is_some() {}
    }
    connection.close();
    serving.logs("session finished", 1).await;
    let log = serving.stop();
    let lines = log.lines().map(|line| serde_json::from_str(line).unwrap());
    let mut sessions = lines.filter(|line: &serde_json::Value| line["message"] == "session finished");
    let (session, None) = (sessions.next().unwrap(), sessions.next()) else {
        panic!("{log}")
    };
    let expected = json!({
        "controller": "reno", "bytes": length + 3, "requests": 4, "responses": 4, "aborted": 0,
        "player_sessions": "a\"b", "player_starvations": 1, "player_mean_buffer_ms": 3_000.0,
        "player_mean_bitrate": 800_000, "end": "in good order",
    });
    assert_fields(&session, &expected);
    for (name, least) in [
        ("sent_bytes", length as f64),
        ("seconds", 0.0),
        ("smoothed_rtt_ms", 0.0),
    ] {
        assert!(session[name].as_f64().unwrap() > least, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_signal_ends_it_at_once_with_what_was_cut() {
    let media = media();
    let serving = start(media.root(), &["--drain-timeout", "10min"]);
    let connection = serving.connect().await;
    let (_, mut body) = connection.get("/long.bin", HeaderMap::new()).await.unwrap();
    body.chunk().await.unwrap();
    serving.signal("INT");
    serving.logs("a second signal ends it at once", 1).await;
    serving.signal("TERM");
    assert_contains(&serving.exits(1), &["aborted 1 response", "--drain-timeout"]);
}

#[test]
fn the_help_fits_80_columns_and_has_every_option_under_a_heading() {
    let help = text(&run(&["serve", "--help"]).stdout);
    let wide: Vec<_> = help.lines().filter(|line| line.chars().count() > 80).collect();
    assert_eq!(wide, [""; 0]);
    let general = help.split("\n\n").find(|part| part.contains("--config")).unwrap();
    assert!(!general.contains("--media"), "{general}");
    let headings = [
        "Media:",
        "Object store",
        "Congestion control:",
        "Limits:",
        "Restarts and multiple servers:",
        "Metrics and logs:",
    ];
    assert_contains(&help, &headings);
}

#[test]
fn completions_and_man_pages_name_the_options() {
    let completions = run(&["completions", "zsh"]);
    assert_contains(
        &text(&completions.stdout),
        &["#compdef video-server", "--max-sessions"],
    );
    let directory = tempfile::tempdir().unwrap();
    let made = run(&["man", directory.path().to_str().unwrap()]);
    assert_eq!(made.status.code(), Some(0));
    let page = fs::read_to_string(directory.path().join("video-server-serve.1")).unwrap();
    assert_contains(&page, &["max\\-sessions"]);
}

#[test]
fn the_controllers_are_listed_as_tables_and_as_json() {
    let tables = run(&["controllers"]);
    assert_eq!(tables.status.code(), Some(0));
    let json = run(&["controllers", "--json"]);
    let value: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    for controller in value["controllers"].as_array().unwrap() {
        let name = controller["name"].as_str().unwrap();
        assert!(text(&tables.stdout).contains(name), "{name}");
        assert!(
            controller["source"]
                .as_str()
                .is_some_and(|source| !source.is_empty())
        );
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn many_requests_leave_nothing_behind() {
    let media = media();
    let serving = start(media.root(), &[]);
    let round = async |requests: u64| {
        let connection = serving.connect().await;
        for number in 0..requests {
            let first = number * 50_000;
            let range = connection.get_range("/long.bin", first, Some(first + 49_999), HeaderMap::new());
            let (_, mut body) = range.await.unwrap();
            while body.chunk().await.unwrap().is_some() {}
            assert_eq!(body.received(), 50_000);
        }
        connection.close();
    };
    for _ in 0..5 {
        round(100).await;
    }
    let before = (serving.resident(), serving.descriptors());
    for _ in 0..20 {
        round(100).await;
    }
    // 2,000 requests of 50 kB are 100 MB; if four kilobytes of each were kept, that would be 8 MB.
    let grown = serving.resident().saturating_sub(before.0);
    assert!(grown < 8 << 20, "{grown} bytes more resident");
    serving.settles_at(before.1).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn clients_that_leave_mid_stream_give_their_memory_back() {
    const CLIENTS: usize = 8;
    let media = media();
    let serving = start(media.root(), &[]);
    let (fresh, descriptors) = (serving.resident(), serving.descriptors());
    // The clients do not read, so each open response costs a send window (4 MiB) and little else. If it were kept, five
    // more rounds would add 160 MiB.
    let most = fresh + CLIENTS * (8 << 20);
    for _ in 0..6 {
        let mut bodies = Vec::new();
        for _ in 0..CLIENTS {
            let connection = serving.connect().await;
            let (_, mut body) = connection.get("/long.bin", HeaderMap::new()).await.unwrap();
            body.chunk().await.unwrap();
            bodies.push(body);
        }
        // Time to fill the windows.
        sleep(Duration::from_millis(500)).await;
        let busy = serving.resident();
        assert!(busy < most, "{fresh} at first, {busy} during");
        drop(bodies);
        serving.settles_at(descriptors).await;
    }
    let last = serving.resident();
    assert!(last < most, "{fresh} at first, {last} at last");
}
