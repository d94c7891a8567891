//! Checks the crates' dependencies against the map in `docs/architecture.md`.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

/// `(crate directory, workspace crates it may depend on, other crates it must not depend on)`.
const CRATES: &[(&str, &[&str], &[&str])] = &[
    ("units", &[], &["quinn", "tokio"]),
    (
        "cc",
        &["playrate-units"],
        &["quinn", "quinn-proto", "tokio", "rand", "rand_core"],
    ),
    ("media", &["playrate-units"], &["quinn", "tokio"]),
    (
        "playout",
        &["playrate-units", "playrate-media"],
        &["quinn", "tokio"],
    ),
    ("netsim", &["playrate-units"], &["h3", "tokio"]),
    (
        "adapter",
        &["playrate-units", "playrate-cc"],
        &["quinn", "quinn-proto", "noq", "noq-proto", "h3", "http", "rustls"],
    ),
    (
        "quinn",
        &["playrate-units", "playrate-cc", "playrate-adapter"],
        &["h3", "http", "rustls"],
    ),
    (
        "noq",
        &["playrate-units", "playrate-cc", "playrate-adapter"],
        &["quinn", "h3", "http", "rustls"],
    ),
    ("origin", &["playrate-units"], &["quinn", "h3"]),
    ("quic-lb", &[], &["quinn", "quinn-proto", "ring", "tokio"]),
    (
        "transport",
        &["playrate-units", "playrate-quinn", "playrate-quic-lb"],
        &["aes"],
    ),
    (
        "video-server",
        &[
            "playrate-units",
            "playrate-cc",
            "playrate-media",
            "playrate-origin",
            "playrate-transport",
        ],
        &["h3", "object_store"],
    ),
    (
        "video-client",
        &[
            "playrate-units",
            "playrate-cc",
            "playrate-media",
            "playrate-playout",
            "playrate-transport",
        ],
        &["h3"],
    ),
];

/// Fails if the crate depends on another one that is `wrong`.
fn assert_uses_none(name: &str, wrong: impl Fn(&str) -> bool) {
    let path = format!("{}/crates/{name}/Cargo.toml", env!("CARGO_MANIFEST_DIR"));
    let manifest = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let manifest: toml::Table = manifest.parse().unwrap_or_else(|error| panic!("{path}: {error}"));
    let uses = manifest["dependencies"].as_table().expect("a table").keys();
    let found: Vec<_> = uses.filter(|used| wrong(used)).collect();
    assert!(
        found.is_empty(),
        "crates/{name} must not use {found:?}; see docs/architecture.md"
    );
}

#[test]
fn each_crate_uses_only_the_crates_below_it() {
    let is_ours = |used: &str| used.starts_with("playrate") || used.starts_with("video-") || used == "lab";
    for (name, allowed, _) in CRATES {
        assert_uses_none(name, |used| is_ours(used) && !allowed.contains(&used));
    }
}

#[test]
fn each_crate_excludes_dependencies_that_do_not_belong_in_it() {
    for (name, _, banned) in CRATES {
        assert_uses_none(name, |used| banned.contains(&used));
    }
}

/// Names of the crates that a program builds for `package`.
fn built_for(arguments: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline"])
        .args(["--edges", "normal", "--prefix", "none"])
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let [tree, error] = [output.stdout, output.stderr].map(String::from_utf8);
    assert!(output.status.success(), "{error:?}");
    let tree = tree.expect("names are UTF-8");
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    names.map(str::to_owned).collect()
}

#[test]
fn controllers_alone_bring_a_quinn_program_one_crate_of_others() {
    let quinn = built_for(&["--package", "quinn"]);
    let ours = built_for(&["--package", "playrate", "--no-default-features"]);
    let more: Vec<_> = ours.difference(&quinn).map(String::as_str).collect();
    let expected = [
        "playrate",
        "playrate-adapter",
        "playrate-cc",
        "playrate-quinn",
        "playrate-units",
        "strsim",
    ];
    assert_eq!(more, expected);
    // The comparison misses `tracing-attributes`, because a tool of the workspace adds it to quinn's dependencies, too.
    // The program chooses the TLS provider, and with it the other three.
    for left_out in ["tracing-attributes", "ring", "rustls", "fastbloom"] {
        assert!(!ours.contains(left_out), "{left_out} is in {ours:?}");
    }
}

#[test]
fn servers_and_clients_are_built_without_the_senders_of_papers() {
    let packages = ["--package", "video-server", "--package", "video-client"];
    let built = built_for(&[&packages[..], &["--format", "{lib}/{f}"]].concat());
    let cc: Vec<_> = built
        .iter()
        .filter(|name| name.starts_with("playrate_cc/"))
        .collect();
    assert_eq!(cc, ["playrate_cc/"]);
}
