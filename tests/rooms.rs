//! Holds the workspace to the map in `docs/architecture.md`: who may use whom.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// `(crate directory, workspace crates it may depend on, outside crates it must not depend on)`.
const ROOMS: &[(&str, &[&str], &[&str])] = &[
    ("units", &[], &["quinn", "tokio"]),
    (
        "cc",
        &["playrate-units"],
        &["quinn", "quinn-proto", "tokio", "rand", "rand_core"],
    ),
    ("media", &["playrate-units"], &["quinn", "tokio"]),
    ("netsim", &["playrate-units"], &["h3", "tokio"]),
    ("transport", &["playrate-units", "playrate-cc"], &[]),
    (
        "video-server",
        &[
            "playrate-units",
            "playrate-cc",
            "playrate-media",
            "playrate-transport",
        ],
        &["h3"],
    ),
    (
        "video-client",
        &[
            "playrate-units",
            "playrate-cc",
            "playrate-media",
            "playrate-transport",
        ],
        &["h3"],
    ),
];

fn manifest(room: &str) -> toml::Table {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("crates")
        .join(room)
        .join("Cargo.toml");
    fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        .parse()
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn dependencies(room: &str) -> BTreeSet<String> {
    let manifest = manifest(room);
    manifest["dependencies"]
        .as_table()
        .map(|table| table.keys().cloned().collect())
        .unwrap_or_default()
}

#[test]
fn each_room_uses_only_the_rooms_below_it() {
    for (room, allowed, _) in ROOMS {
        let ours: BTreeSet<_> = dependencies(room)
            .into_iter()
            .filter(|name| name.starts_with("playrate") || name.starts_with("video-") || name == "lab")
            .collect();
        let allowed: BTreeSet<_> = allowed.iter().map(ToString::to_string).collect();
        let extra: Vec<_> = ours.difference(&allowed).collect();
        assert!(
            extra.is_empty(),
            "crates/{room} must not use {extra:?}; see docs/architecture.md"
        );
    }
}

#[test]
fn each_room_keeps_out_what_does_not_belong_in_it() {
    for (room, _, banned) in ROOMS {
        let uses = dependencies(room);
        let found: Vec<_> = banned.iter().filter(|name| uses.contains(**name)).collect();
        assert!(
            found.is_empty(),
            "crates/{room} must not use {found:?}; see docs/architecture.md"
        );
    }
}
