//! Bad input: exit code 2, the offending value, a correction, nothing on stdout.

use std::fs;

use crate::cli::process::{refused, run};
use playrate_test_support::{Media, assert_contains, certify, fixture, text};
use rstest::rstest;

/// Runs `serve` on a good directory with further `arguments` and returns its complaint.
fn complaint(arguments: &[&str]) -> String {
    let media = Media::new();
    refused(&[&["serve", "--media", &media.text("")], arguments].concat())
}

#[rstest]
#[case::unknown_controller(&["--controller", "qubic"], &["`qubic`", "did you mean `cubic`"])]
#[case::unknown_part(&["--controller", "cubic+start=fast"], &["`start=fast`", "standard"])]
#[case::bad_parameter(&["--controller", "cubic(fast_convergence=maybe)"], &["maybe", "on or off"])]
#[case::baseline_with_parts(&["--controller", "quinn-cubic+start=standard"], &["quinn-cubic"])]
#[case::size_without_unit(&["--playout-buffer", "656"], &["`656`", "656kB"])]
#[case::time_without_unit(&["--drain-timeout", "10"], &["`10`", "100ms"])]
#[case::no_address(&["--listen", "localhost"], &["localhost", "--listen"])]
#[case::foreign_address(&["--listen", "192.0.2.1:4433"], &["192.0.2.1:4433", "not an address of this machine"])]
#[case::tiny_window(&["--send-window", "1B"], &["1B", "between"])]
#[case::no_packet_to_acknowledge(&["--ack-packets", "0"], &["--ack-packets", "1..=64"])]
#[case::share_above_one(&["--max-cpu", "150%"], &["`150%`", "--max-cpu"])]
#[case::rate_without_unit(&["--capacity", "4000"], &["`4000`", "--capacity"])]
#[case::cert_without_key(&["--cert", "cert.pem"], &["--key"])]
#[case::missing_cert(&["--cert", "/no/cert.pem", "--key", "/no/key.pem"], &["/no/cert.pem"])]
#[case::cert_without_its_key(
    &["--cert", "a.pem", "--key", "a.key", "--cert", "b.pem"],
    &["--cert: expected one --key for each certificate", "2 and 1"]
)]
#[case::acme_without_consent(&["--acme-domain", "a.example", "--state", "/tmp"], &["--acme-agree"])]
#[case::acme_without_state(&["--acme-domain", "a.example", "--acme-agree"], &["--state <DIR>"])]
#[case::acme_with_wildcard(&["--acme-domain", "*.a.example"], &["--acme-domain", "without a wildcard"])]
#[case::acme_without_tls(&["--acme-directory", "http://ca.example/"], &["--acme-directory", "expected a URL such as https://"])]
#[case::acme_twice(&["--acme-domain", "a.example", "--acme-staging", "--acme-directory", "https://a/"], &["--acme-directory", "cannot be used with"])]
#[case::acme_without_tcp(&["--acme-domain", "a.example", "--no-tcp"], &["--no-tcp", "cannot be used with"])]
#[case::arm_without_a_way(&["--arm", "a=cubic"], &["--choose-by"])]
#[case::way_without_arms(&["--choose-by", "path"], &["--arm"])]
#[case::arm_twice(&["--choose-by", "path", "--arm", "a=cubic", "--arm", "a=reno"], &["--arm", "`a`"])]
#[case::bad_arm(&["--choose-by", "path", "--arm", "a=qubic"], &["--arm", "did you mean `cubic`"])]
#[case::bad_way(&["--choose-by", "luck", "--arm", "a=cubic"], &["'luck'", "representation"])]
#[case::no_connection_at_all(&["--qlog", "/tmp", "--qlog-sample", "0"], &["--qlog-sample"])]
#[case::sample_of_nothing(&["--qlog-sample", "10"], &["--qlog <DIR>"])]
#[case::qlog_into_a_file(&["--qlog", "/dev/null", "--listen", "127.0.0.1:0"], &["--qlog /dev/null"])]
#[case::no_idle_time(&["--idle-limit", "0s"], &["--idle-limit", "0s", "above zero", "`none`"])]
#[case::idle_time_without_unit(&["--idle-limit", "60"], &["`60`", "100ms", "`none`"])]
#[case::no_connection_at_all(&["--max-connections", "0"], &["--max-connections", "zero"])]
#[case::no_client_at_all(&["--max-connections-per-address", "0"], &["--max-connections-per-address", "zero"])]
#[case::listen_without_port(&["--listen", "10.0.0.1"], &["`10.0.0.1`", "10.0.0.1:4433"])]
#[case::listen_without_address(&["--listen", "8443"], &["`8443`", "127.0.0.1:8443"])]
#[case::listen_by_name(&["--listen", "localhost:8443"], &["`localhost:8443`", "such as 127.0.0.1:4433"])]
#[case::no_worker(&["--workers", "0"], &["--workers", "expected a number from 1 to 128"])]
#[case::too_many_workers(&["--workers", "129"], &["--workers", "expected a number from 1 to 128"])]
#[case::workers_in_words(&["--workers", "all"], &["--workers", "expected a number from 1 to 128"])]
#[case::no_origin(&["--cors", "player.example"], &["player.example", "not an origin"])]
#[case::no_path(&["--cmcd-events", "cmcd"], &["--cmcd-events", "cmcd", "expected a path such as /cmcd"])]
#[case::path_with_query(&["--cmcd-events", "/cmcd?a"], &["--cmcd-events", "expected a path such as /cmcd"])]
#[case::no_players(&["--player-scripts", "src"], &["--player-scripts", "src", "dash.all.min.js", "hls.min.js"])]
#[case::missing_state(&["--state", "/no/such/state"], &["--state", "/no/such/state"])]
#[case::unknown_flag(&["--metricks", "127.0.0.1:9000"], &["--metricks", "--metrics"])]
#[case::foreign_metrics(&["--metrics", "192.0.2.1:9433", "--listen", "127.0.0.1:0"], &["--metrics", "192.0.2.1:9433"])]
fn a_bad_argument_is_named_with_what_would_do(#[case] arguments: &[&str], #[case] parts: &[&str]) {
    let complaint = complaint(arguments);
    assert_contains(&complaint, parts);
    let errors = complaint.lines().filter(|line| line.starts_with("error:"));
    assert_eq!(errors.count(), 1, "{complaint}");
}

#[test]
fn an_arm_that_is_a_directory_too_is_refused() {
    let media = Media::new();
    media.put("b/page.html", "");
    let arm = ["--choose-by", "path", "--arm", "b=cubic"];
    let complaint = refused(&[&["serve", "--media", &media.text("")], &arm[..]].concat());
    assert_contains(&complaint, &["--arm b", "another name"]);
}

#[test]
fn a_missing_directory_is_named_once() {
    let complaint = refused(&["serve", "--media", "/no/such/media"]);
    assert!(complaint.contains("/no/such/media"), "{complaint}");
    assert_eq!(complaint.matches("No such file").count(), 1, "{complaint}");
}

#[test]
fn a_file_in_place_of_a_directory_is_refused() {
    let file = fixture("fragmented.mp4");
    let complaint = refused(&["serve", "--media", file.to_str().unwrap()]);
    assert!(complaint.contains("not a directory"), "{complaint}");
}

/// The complaints of a strict server and of a check about `media`.
fn strict_complaints(media: &Media) -> [String; 2] {
    let (path, config) = (media.text(""), media.text(".server.toml"));
    media.put(".server.toml", format!("media = \"{path}\"\n"));
    [&["serve", "--strict", "--media", &path][..], &["check", &config]].map(refused)
}

#[test]
fn bad_titles_are_refused_with_file_box_and_offset_if_requested() {
    let media = Media::new();
    let good = fs::read(fixture("progressive-moov-first.mp4")).unwrap();
    media.put("good.mp4", &good);
    media.put("cut.mp4", &good[..good.len() - 1_000]);
    media.put("text.mp4", "just a text\n");
    let noise = (0..50_000_u32).flat_map(|word| word.wrapping_mul(0x9e37_79b9).to_le_bytes());
    media.put("noise.mp4", noise.collect::<Vec<u8>>());
    let parts = ["cut.mp4: mdat box at offset", "text.mp4: ", "noise.mp4: "];
    for complaint in strict_complaints(&media) {
        assert_contains(&complaint, &parts);
        assert!(!complaint.contains("good.mp4"), "{complaint}");
    }
    fs::remove_file(media.path("good.mp4")).unwrap();
    assert_contains(&refused(&["serve", "--media", &media.text("")]), &parts);
}

#[test]
fn bad_manifests_beside_a_good_title_are_refused_if_requested() {
    let media = Media::film();
    media.put("bad.mpd", "<MPD/>");
    for complaint in strict_complaints(&media) {
        assert_contains(&complaint, &["bad.mpd: line 1: ", "no Representation"]);
        assert!(!complaint.contains("film.mp4"), "{complaint}");
    }
}

#[test]
fn a_port_in_use_is_named() {
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let complaint = complaint(&["--listen", &address]);
    assert_contains(&complaint, &[&address, "in use"]);
}

#[test]
fn a_key_of_another_certificate_and_a_file_that_is_none_are_refused() {
    let directory = Media::new();
    for name in ["one", "other"] {
        fs::create_dir(directory.path(name)).unwrap();
        certify(&directory.path(name));
    }
    directory.put("words.pem", "no certificate at all\n");
    let names = ["one/cert.pem", "one/key.pem", "other/cert.pem", "words.pem"];
    let [one, key_of_one, other, words] = names.map(|name| directory.text(name));
    // The error is about the address, which shows that the two do belong together.
    let complaint_of = |certificate: &str, key: &str| {
        complaint(&["--cert", certificate, "--key", key, "--listen", "192.0.2.1:1"])
    };
    assert!(complaint_of(&one, &key_of_one).contains("not an address"));
    for (certificate, key) in [(&other, &key_of_one), (&words, &key_of_one), (&one, &words)] {
        let complaint = complaint_of(certificate, key);
        assert!(complaint.contains("--cert"), "{complaint}");
        assert!(!complaint.contains("not an address"), "{complaint}");
    }
}

#[test]
fn no_command_says_in_a_few_lines_what_to_do_first() {
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert_contains(&said, &["serve --media films", "serve --help", "lab title films"]);
    assert!(said.lines().count() <= 12, "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 80), "{said}");
}

#[test]
fn without_media_the_error_says_where_a_film_comes_from() {
    assert_contains(&refused(&["serve"]), &["--media <DIR|URL>", "lab title films"]);
    let other = complaint(&["--cert", "cert.pem"]);
    assert!(!other.contains("lab title"), "{other}");
}
