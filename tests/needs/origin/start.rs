//! Servers that cannot start, and whether a service manager should try again.

use std::collections::BTreeMap;
use std::process::Command;

use super::store::{Fault, Proxy, SECRET, Store, environment};
use super::{LOCATION, serve};
use playrate_test_support::program;

/// Exit code and message of a server that cannot serve `location`.
fn end_of_server(location: &str, settings: &BTreeMap<&'static str, String>) -> (Option<i32>, String) {
    let output = Command::new(program("video-server"))
        .args(["serve", "--listen", "127.0.0.1:0", "--store-timeout", "2s"])
        .args(["--media", location])
        .envs(settings)
        .output()
        .expect("video-server runs");
    let text = String::from_utf8_lossy(&output.stderr);
    (output.status.code(), text.into_owned())
}

pub(super) fn wrong_settings_are_an_error_that_names_them() {
    let store = Store::start();
    store.put("published/a.bin", [7; 1_000]);
    let run = |location: &str, (name, value): (&'static str, &str)| {
        let mut settings: BTreeMap<_, _> = environment(store.address());
        settings.insert(name, value.to_owned());
        end_of_server(location, &settings)
    };
    let (region, other) = (("AWS_REGION", "us-east-1"), "s3://nowhere/films");
    for (location, change, code, words) in [
        (LOCATION, ("AWS_SECRET_ACCESS_KEY", "wrong"), 2, "credentials"),
        (LOCATION, ("AWS_ACCESS_KEY_ID", "stranger"), 2, "access key ID"),
        (other, region, 2, "does not exist"),
        ("ftp://films", region, 2, "expected s3://BUCKET/PREFIX"),
        // It may exist in a moment, so a service manager retries.
        (
            LOCATION,
            ("AWS_ENDPOINT", "http://127.0.0.1:9"),
            1,
            "cannot be read now",
        ),
    ] {
        let (found, text) = run(location, change);
        assert_eq!(found, Some(code), "{location} {change:?}: {text}");
        assert!(text.contains(words), "{location} {change:?}: {text}");
        assert!(text.contains(location), "{location} {change:?}: {text}");
        assert!(!text.contains(SECRET), "{text}");
        println!("{text}");
    }
}

pub(super) fn a_manifest_that_the_store_does_not_deliver_may_be_there_at_the_next_start() {
    let store = Store::start();
    let list = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n0.m4s\n#EXT-X-ENDLIST\n";
    store.put("published/film/list.m3u8", list);
    store.put("published/film/0.m4s", [7; 1_000]);
    let proxy = Proxy::start(store.address());
    proxy.set(Fault::UnavailableObject("list.m3u8"));
    let (code, text) = end_of_server(LOCATION, &environment(proxy.address));
    assert_eq!(code, Some(1), "{text}");
    let object = format!("{LOCATION}/film/list.m3u8");
    assert_eq!(text.matches(&object).count(), 1, "{text}");
    println!("{text}");
    proxy.set(Fault::None);
    serve(&proxy, &[]).stop();
}
