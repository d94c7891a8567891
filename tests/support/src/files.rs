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

/// A directory of media for one test.
#[derive(Debug)]
pub struct Media(TempDir);

impl Default for Media {
    fn default() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
}

impl Media {
    /// A directory that contains nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A directory with the title `film.mp4`.
    pub fn film() -> Self {
        let media = Self::new();
        media.copy("progressive-moov-first.mp4", "film.mp4");
        media
    }

    /// Path of the directory.
    pub fn root(&self) -> &Path {
        self.0.path()
    }

    /// Path of the file `name` in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// Path of the file `name` in it as an argument of a program.
    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Writes the file `name`, and the directory that contains it.
    pub fn put(&self, name: &str, contents: impl AsRef<[u8]>) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), contents).unwrap();
    }

    /// Creates the file `name` of `length` zero bytes.
    pub fn large(&self, name: &str, length: u64) {
        self.put(name, "");
        let file = fs::OpenOptions::new().write(true).open(self.path(name));
        file.unwrap().set_len(length).unwrap();
    }

    /// Puts a copy of the fixture `from` at `name`.
    pub fn copy(&self, from: &str, name: &str) {
        self.put(name, fs::read(fixture(from)).unwrap());
    }
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
