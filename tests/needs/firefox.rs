//! The server's web page in Firefox: over HTTP/2 with the development certificate, and over HTTP/3 with a certificate
//! from an authority that the browser trusts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use libtest_mimic::Trial;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::{Value, json};

use crate::browser::{self, SITE, modules};
use crate::page::{names_the_pin, play};
use crate::support::{self, output_within};
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

/// Checks that a page over HTTP/2 played, with the curve of the player's buffer and advice on how to get HTTP/3.
fn check_http_2(report: &Value) {
    let browser = report["browser"].as_str().expect("a name");
    assert!(browser.starts_with("Firefox "), "{browser}");
    assert_eq!(report["moved"], json!([null, null, null, true]), "{report}");
    assert_eq!(
        (&report["after"]["protocol"], &report["after"]["advice"]),
        (&json!("HTTP/2"), &json!(true))
    );
}

fn an_mp4_plays_with_the_development_certificate_over_http_2() {
    let films = films();
    let server = support::serve(films.path(), &[]);
    let job = json!({ "name": "firefox-http2", "firefox": {}, "posters": 1 });
    let report = play(&server, TITLE, false, &job);
    check_http_2(&report);
    assert_eq!(report["before"]["posters"], 1, "{report}");
    names_the_pin(&report, &server);
}

fn manifests_play_with_the_players_of_a_directory() {
    let scripts = modules();
    let scripts = scripts.to_str().expect("a path in UTF-8");
    let server = support::serve(&SITE, &["--player-scripts", scripts]);
    for (title, name) in [
        ("film/manifest.mpd", "firefox-dash"),
        ("film/master.m3u8", "firefox-hls"),
    ] {
        check_http_2(&play(
            &server,
            title,
            false,
            &json!({ "name": name, "firefox": {} }),
        ));
    }
}

/// Files of an authority of this test: a certificate for `localhost` with its key, and a profile of Firefox that trusts
/// the authority.
struct Trusted {
    certificate: PathBuf,
    key: PathBuf,
    profile: PathBuf,
}

impl Trusted {
    fn new(directory: &Path) -> Self {
        let key = || KeyPair::generate().expect("a key pair");
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(authority, key()).expect("a certificate");
        let server = key();
        let certificate = CertificateParams::new(["localhost".to_owned()])
            .and_then(|params| params.signed_by(&server, &authority))
            .expect("a certificate");
        let files = Self {
            certificate: directory.join("fullchain.pem"),
            key: directory.join("privkey.pem"),
            profile: directory.join("profile"),
        };
        let root = directory.join("authority.pem");
        fs::write(&root, authority.pem()).expect("a file can be written");
        fs::write(&files.certificate, certificate.pem() + &authority.pem()).expect("a file can be written");
        fs::write(&files.key, server.serialize_pem()).expect("a file can be written");
        fs::create_dir(&files.profile).expect("a directory can be made");
        for arguments in [
            &["-N", "--empty-password"][..],
            &["-A", "-n", "authority", "-t", "C,,", "-i"],
        ] {
            let mut certutil = Command::new("certutil");
            certutil
                .current_dir(&files.profile)
                .args(["-d", "sql:."])
                .args(arguments);
            if arguments[0] == "-A" {
                certutil.arg(&root);
            }
            output_within(Duration::from_secs(60), &mut certutil, "");
        }
        files
    }
}

fn an_mp4_plays_over_http_3_with_a_certificate_of_a_trusted_authority() {
    let (films, directory) = (films(), tempfile::tempdir().expect("a temporary directory"));
    let trusted = Trusted::new(directory.path());
    let text = |path: &Path| path.to_str().expect("a path in UTF-8").to_owned();
    let (certificate, key) = (text(&trusted.certificate), text(&trusted.key));
    let server = support::serve(films.path(), &["--cert", &certificate, "--key", &key]);
    let port = server.address().port();
    let firefox = json!({
        "profile": trusted.profile,
        "preferences": {
            // As if it had read `Alt-Svc` on an earlier visit.
            "network.http.http3.alt-svc-mapping-for-testing": format!("localhost;h3=:{port}"),
            // By default it avoids QUIC if an authority was added manually, for the sake of proxies that break TLS.
            "network.http.http3.disable_when_third_party_roots_found": false,
        },
    });
    let job = json!({ "name": "firefox-http3", "firefox": firefox, "dark": true });
    let report = play(&server, TITLE, true, &job);
    assert_eq!(report["moved"], json!([true, true, true, true]), "{report}");
    assert_eq!(
        (&report["after"]["protocol"], &report["after"]["advice"]),
        (&json!("HTTP/3"), &json!(false))
    );
    let about = report["after"]["about"].as_str().expect("a text");
    assert!(about.starts_with("video · "), "{about}");
    for request in report["requests"].as_array().expect("requests") {
        assert_eq!(request[1], "h3", "{report}");
    }
}
