//! The server's web page plays titles in a real browser, over HTTP/2 and HTTP/3, and its curves move.

use std::process::Command;
use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::browser::{self, SITE, kept, modules};
use crate::support::{self, json_within};
use playrate_test_support::{ServerProcess, TITLE, films, root};

pub(crate) fn tests() -> Vec<Trial> {
    let missing = browser::missing();
    tests![
        &missing,
        an_mp4_plays_over_http_3_beside_curves_of_its_connection_that_move,
        an_mp4_plays_over_http_2_and_the_page_says_how_to_get_http_3,
        manifests_of_one_title_play_with_the_players_of_a_directory_and_with_captions
    ]
}

/// Result of playing `title` from the page at the server's address.
pub(crate) fn play(server: &ServerProcess, title: &str, quic: bool, more: &Value) -> Value {
    let port = server.address().port();
    let mut job = json!({
        "origin": format!("https://localhost:{port}"),
        "pin": server.announced("Pin"),
        "quic": quic,
        "title": title,
        "screenshots": kept("screenshots"),
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        job[key] = value.clone();
    }
    let mut script = Command::new("node");
    script.arg(root().join("tests/browser/page.mjs"));
    let report = json_within(Duration::from_secs(300), &mut script, &job);
    assert_eq!(report["complaints"], json!([]), "{report}");
    assert_eq!(report["after"]["problem"], "", "{report}");
    report
}

/// The same with the packaged title, and with the players of a directory.
pub(crate) fn play_packaged(manifest: &str, quic: bool, more: &Value) -> Value {
    let scripts = modules();
    let scripts = scripts.to_str().expect("a path in UTF-8");
    let server = support::serve(&SITE, &["--player-scripts", scripts]);
    play(&server, &format!("film/{manifest}"), quic, more)
}

/// Checks the protocol that the page shows, and whether it says how to get HTTP/3.
fn check_protocol(report: &Value, protocol: &str, advice: bool) {
    let after = &report["after"];
    assert_eq!(after["protocol"], json!(protocol));
    assert_eq!(after["advice"], json!(advice));
}

/// Checks that a page over HTTP/2 played, with the curve of the player's buffer and advice on how to get HTTP/3.
pub(crate) fn check_http_2(report: &Value) {
    // Nothing is known about the connection except what the player itself knows.
    assert_eq!(report["moved"], json!([null, null, null, true]), "{report}");
    check_protocol(report, "HTTP/2", true);
}

/// Checks that a page played over HTTP/3 alone, with curves of its connection.
pub(crate) fn check_http_3(report: &Value) {
    assert_eq!(report["moved"], json!([true, true, true, true]), "{report}");
    check_protocol(report, "HTTP/3", false);
    let about = report["after"]["about"].as_str().expect("a text");
    assert!(about.starts_with("video · "), "{about}");
    for request in report["requests"].as_array().expect("requests") {
        assert_eq!(request[1], "h3", "{report}");
    }
}

/// Checks that the page's commands name the server's pin.
pub(crate) fn names_the_pin(report: &Value, server: &ServerProcess) {
    let pin = server.announced("Pin");
    for command in report["after"]["commands"].as_array().expect("two commands") {
        assert!(
            command.as_str().is_some_and(|text| text.contains(pin)),
            "{command}"
        );
    }
}

fn an_mp4_plays_over_http_3_beside_curves_of_its_connection_that_move() {
    let films = films();
    let server = support::serve(films.path(), &[]);
    let play = |more: &Value| play(&server, TITLE, true, more);
    let report = play(&json!({ "name": "page-light", "posters": 1 }));
    check_http_3(&report);
    assert_eq!(report["before"]["posters"], 1, "{report}");
    let legends = report["after"]["legends"].to_string();
    assert!(!legends.contains('–'), "a curve has no value: {legends}");
    names_the_pin(&report, &server);
    // In dark mode, and on a narrow screen without horizontal scrolling.
    play(&json!({ "name": "page-dark", "dark": true }));
    let report = play(&json!({ "name": "page-narrow", "width": 360 }));
    assert_eq!(report["after"]["wide"], 360, "{report}");
}

fn an_mp4_plays_over_http_2_and_the_page_says_how_to_get_http_3() {
    let films = films();
    let server = support::serve(films.path(), &[]);
    let report = play(&server, TITLE, false, &json!({ "name": "page-http2" }));
    check_http_2(&report);
    names_the_pin(&report, &server);
}

fn manifests_of_one_title_play_with_the_players_of_a_directory_and_with_captions() {
    for (title, name) in [("manifest.mpd", "page-dash"), ("master.m3u8", "page-hls")] {
        let more = json!({ "name": name, "posters": 1, "captions": true });
        let report = play_packaged(title, true, &more);
        assert_eq!(report["moved"], json!([true, true, true, true]), "{report}");
        assert_eq!(report["before"]["titles"], 1, "{report}");
        assert_eq!(report["after"]["captions"], json!(["A caption"]), "{report}");
    }
}
