//! Checks the crates' dependencies against the map in `docs/architecture.md`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
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
        &["quinn", "quinn-proto", "h3", "http", "rustls"],
    ),
    (
        "quinn",
        &["playrate-units", "playrate-cc", "playrate-adapter"],
        &["h3", "http", "rustls"],
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

fn manifest(name: &str) -> toml::Table {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("crates")
        .join(name)
        .join("Cargo.toml");
    fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        .parse()
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn dependencies(name: &str) -> BTreeSet<String> {
    let manifest = manifest(name);
    manifest["dependencies"]
        .as_table()
        .map(|table| table.keys().cloned().collect())
        .unwrap_or_default()
}

#[test]
fn each_crate_uses_only_the_crates_below_it() {
    for (name, allowed, _) in CRATES {
        let ours: BTreeSet<_> = dependencies(name)
            .into_iter()
            .filter(|used| used.starts_with("playrate") || used.starts_with("video-") || used == "lab")
            .collect();
        let allowed: BTreeSet<_> = allowed.iter().map(ToString::to_string).collect();
        let extra: Vec<_> = ours.difference(&allowed).collect();
        assert!(
            extra.is_empty(),
            "crates/{name} must not use {extra:?}; see docs/architecture.md"
        );
    }
}

#[test]
fn each_crate_excludes_dependencies_that_do_not_belong_in_it() {
    for (name, _, banned) in CRATES {
        let uses = dependencies(name);
        let found: Vec<_> = banned.iter().filter(|used| uses.contains(**used)).collect();
        assert!(
            found.is_empty(),
            "crates/{name} must not use {found:?}; see docs/architecture.md"
        );
    }
}

/// Names of the crates that a program builds for `package`.
fn built_for(arguments: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--locked",
            "--offline",
            "--edges",
            "normal",
            "--prefix",
            "none",
        ])
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let (tree, error) = (String::from_utf8(output.stdout), String::from_utf8(output.stderr));
    assert!(output.status.success(), "{error:?}");
    let tree = tree.expect("names are UTF-8");
    tree.lines()
        .filter_map(|line| line.split(' ').next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn controllers_alone_bring_a_quinn_program_one_crate_of_others() {
    let quinn = built_for(&["--package", "quinn"]);
    let ours = built_for(&["--package", "playrate", "--no-default-features"]);
    let more: Vec<_> = ours.difference(&quinn).map(String::as_str).collect();
    assert_eq!(
        more,
        [
            "playrate",
            "playrate-adapter",
            "playrate-cc",
            "playrate-quinn",
            "playrate-units",
            "strsim"
        ]
    );
    // A tool of the workspace requires it, and so adds it to quinn's dependencies, too.
    // The provider of TLS is the program's choice.
    for left_out in ["tracing-attributes", "ring", "rustls", "fastbloom"] {
        assert!(!ours.contains(left_out), "{left_out} is in {ours:?}");
    }
}
