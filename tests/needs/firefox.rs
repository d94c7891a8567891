//! The server's web page in Firefox: over HTTP/2 with the development certificate, and over HTTP/3 with a certificate
//! from an authority that the browser trusts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::browser;
use crate::page::{check_http_2, check_http_3, names_the_pin, play, play_packaged};
use crate::support::{self, Certified, output_within};
use playrate_test_support::{TITLE, films};

pub(crate) fn tests() -> Vec<Trial> {
    let missing = browser::missing()
        .and_then(|()| support::on_the_path(&[("firefox-esr", "--version"), ("certutil", "-H")]));
    tests![
        &missing,
        an_mp4_plays_with_the_development_certificate_over_http_2,
        manifests_play_with_the_players_of_a_directory,
        an_mp4_plays_over_http_3_with_a_certificate_of_a_trusted_authority
    ]
}

/// Checks that a page played in Firefox over HTTP/2.
fn check(report: &Value) {
    let browser = report["browser"].as_str().expect("a name");
    assert!(browser.starts_with("Firefox "), "{browser}");
    check_http_2(report);
}

fn an_mp4_plays_with_the_development_certificate_over_http_2() {
    let films = films();
    let server = support::serve(films.path(), &[]);
    let job = json!({ "name": "firefox-http2", "firefox": {}, "posters": 1 });
    let report = play(&server, TITLE, false, &job);
    check(&report);
    assert_eq!(report["before"]["posters"], 1, "{report}");
    names_the_pin(&report, &server);
}

fn manifests_play_with_the_players_of_a_directory() {
    for (title, name) in [("manifest.mpd", "firefox-dash"), ("master.m3u8", "firefox-hls")] {
        check(&play_packaged(
            title,
            false,
            &json!({ "name": name, "firefox": {} }),
        ));
    }
}

/// Makes a profile of Firefox that trusts the certificates of `authority`.
fn profile(directory: &Path, authority: &Path) -> PathBuf {
    let profile = directory.join("profile");
    fs::create_dir(&profile).expect("a directory can be made");
    let authority = authority.to_str().expect("a path in UTF-8");
    for arguments in [
        &["-N", "--empty-password"][..],
        &["-A", "-n", "authority", "-t", "C,,", "-i", authority],
    ] {
        let mut certutil = Command::new("certutil");
        certutil
            .current_dir(&profile)
            .args(["-d", "sql:."])
            .args(arguments);
        output_within(Duration::from_secs(60), &mut certutil, "");
    }
    profile
}

fn an_mp4_plays_over_http_3_with_a_certificate_of_a_trusted_authority() {
    let (films, directory) = (films(), tempfile::tempdir().expect("a temporary directory"));
    let certified = Certified::new(directory.path());
    let server = support::serve(films.path(), &certified.options());
    let port = server.address().port();
    let firefox = json!({
        "profile": profile(directory.path(), &certified.authority),
        "preferences": {
            // As if it had read `Alt-Svc` on an earlier visit.
            "network.http.http3.alt-svc-mapping-for-testing": format!("localhost;h3=:{port}"),
            // By default it avoids QUIC if an authority was added manually, for the sake of proxies that break TLS.
            "network.http.http3.disable_when_third_party_roots_found": false,
        },
    });
    let job = json!({ "name": "firefox-http3", "firefox": firefox, "dark": true });
    check_http_3(&play(&server, TITLE, true, &job));
}
