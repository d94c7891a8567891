//! Files of the repository, and directories of media.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Name of a title in `assets`: 27 s of H.264 at 2.8 Mbit/s.
pub const TITLE: &str = "title-720p.mp4";

/// A scenario of `lab` that takes four seconds of virtual time.
pub const SCENARIO: &str = r#"
about = "A few seconds."
controllers = ["reno", "cubic"]
trials = 2
[title]
trace = "film-1080p"
rate = "2Mbit/s"
duration = "4s"
[path]
rate = "3Mbit/s"
rtt = "40ms"
loss = "0.5%"
"#;

/// Root of the repository.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Path of the file `name` in `assets`.
pub fn asset(name: &str) -> PathBuf {
    root().join("assets").join(name)
}

/// Path of the file `name` in `assets/fixtures`.
pub fn fixture(name: &str) -> PathBuf {
    asset("fixtures").join(name)
}

/// Path of [`TITLE`] in the repository.
pub fn title() -> PathBuf {
    asset(TITLE)
}

/// A directory that contains only [`TITLE`].
pub fn films() -> TempDir {
    let films = tempfile::tempdir().unwrap();
    fs::copy(title(), films.path().join(TITLE)).unwrap();
    films
}
