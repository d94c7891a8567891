//! Libraries over real directories and the project's own titles.

use super::*;
use std::fs;
use std::task::Waker;

use quinn::{Runtime as _, TokioRuntime};
use rstest::rstest;
use tempfile::TempDir;

mod cache;
mod faults;
mod packaged;
mod settling;

const ASSETS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets");

fn fixture(name: &str) -> PathBuf {
    Path::new(ASSETS).join("fixtures").join(name)
}

/// A directory with one title and one page.
fn directory() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::copy(
        fixture("progressive-moov-first.mp4"),
        directory.path().join("film.mp4"),
    )
    .unwrap();
    fs::create_dir(directory.path().join("pages")).unwrap();
    fs::write(directory.path().join("pages/index.html"), "<p>Films</p>").unwrap();
    directory
}

fn now() -> Instant {
    TokioRuntime.now()
}

/// The directory of `library` as it is at the time `at`.
fn rescan(library: &Library, at: Instant) -> Library {
    library.rescan(at, &mut |_| ()).unwrap().unwrap()
}

fn name(text: &str) -> ResourceName {
    ResourceName::from_relative(Path::new(text)).unwrap()
}

fn open(library: &Library, file: &str) -> Resource {
    library.open(&name(file)).unwrap().unwrap()
}

/// A manifest of one representation that is one file.
fn mpd(file: &str, duration: &str) -> String {
    format!(
        "<MPD mediaPresentationDuration=\"{duration}\"><Period><AdaptationSet contentType=\"video\">\
         <Representation id=\"v\" bandwidth=\"1000\"><BaseURL>{file}</BaseURL></Representation>\
         </AdaptationSet></Period></MPD>"
    )
}

impl Resource {
    /// Reads from a file or a source, which is never waited for.
    fn read_at(&mut self, offset: u64, max: usize) -> io::Result<Bytes> {
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(read) = self.poll_read(&mut context, offset..u64::MAX, max) else {
            panic!("{self:?} is waited for")
        };
        read
    }
}

fn whole(resource: &mut Resource) -> Vec<u8> {
    let length = usize::try_from(resource.info.length).unwrap();
    let mut bytes = Vec::new();
    while bytes.len() < length {
        let chunk = resource.read_at(bytes.len() as u64, 1_000).unwrap();
        assert!(!chunk.is_empty() && chunk.len() <= 1_000);
        bytes.extend_from_slice(&chunk);
    }
    bytes
}

#[test]
fn a_title_is_indexed_and_served_byte_for_byte() {
    let directory = directory();
    let library = Library::scan(directory.path()).unwrap();
    let file = fs::read(directory.path().join("film.mp4")).unwrap();
    let titles: Vec<_> = library.titles().collect();
    assert_eq!(titles.len(), 1);
    let (title, summary) = titles[0];
    assert_eq!(title.as_str(), "film.mp4");
    let read = Title::open(fixture("progressive-moov-first.mp4")).unwrap();
    assert_eq!(summary.average_rate, read.average_rate());
    assert!(summary.average_rate > Bitrate::ZERO && summary.peak_rate >= summary.average_rate);
    assert_eq!(summary.size.as_usize(), file.len());
    let mut resource = library.open(title).unwrap().unwrap();
    assert_eq!(resource.average_rate, Some(summary.average_rate));
    assert_eq!(resource.info.content_type, "video/mp4");
    assert_eq!(whole(&mut resource), file);
    assert!(resource.read_at(file.len() as u64, 10).unwrap().is_empty());
}

#[test]
fn other_files_are_served_with_their_type_and_no_rate() {
    let directory = directory();
    let library = Library::scan(directory.path()).unwrap();
    assert_eq!(library.other_files(), 1);
    let mut page = open(&library, "pages/index.html");
    assert_eq!(page.average_rate, None);
    assert_eq!(page.info.content_type, "text/html; charset=utf-8");
    assert_eq!(whole(&mut page), b"<p>Films</p>");
}

#[rstest]
#[case::missing("none.mp4")]
#[case::directory("pages")]
#[case::below_a_file("film.mp4/x")]
#[case::name_too_long(&"n".repeat(300))]
fn what_is_no_file_is_not_there(#[case] asked: &str) {
    let directory = directory();
    let library = Library::scan(directory.path()).unwrap();
    assert!(library.open(&name(asked)).unwrap().is_none());
}

#[cfg(unix)]
#[test]
fn a_link_is_followed_within_the_directory_and_not_out_of_it() {
    use std::os::unix::fs::symlink;
    let directory = directory();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret.txt"), "secret").unwrap();
    let link = |target: &Path, at: &str| symlink(target, directory.path().join(at)).unwrap();
    link(&outside.path().join("secret.txt"), "out.txt");
    link(outside.path(), "elsewhere");
    link(Path::new("../"), "pages/up");
    link(Path::new("loop"), "loop");
    link(Path::new("film.mp4"), "same.mp4");
    let library = Library::scan(directory.path()).unwrap();
    for asked in ["out.txt", "elsewhere/secret.txt", "loop"] {
        assert!(library.open(&name(asked)).unwrap().is_none(), "{asked}");
    }
    for asked in ["same.mp4", "pages/up/film.mp4"] {
        assert!(library.open(&name(asked)).unwrap().is_some(), "{asked}");
    }
    let titles: Vec<_> = library.titles().map(|(name, _)| name.as_str()).collect();
    assert_eq!(titles, ["film.mp4", "same.mp4"]);
}

#[cfg(unix)]
#[test]
fn a_socket_in_the_directory_is_not_opened() {
    let directory = directory();
    let _socket = std::os::unix::net::UnixListener::bind(directory.path().join("pipe.mp4")).unwrap();
    let library = Library::scan(directory.path()).unwrap();
    assert!(library.open(&name("pipe.mp4")).unwrap().is_none());
}

#[test]
fn hidden_files_are_neither_indexed_nor_served() {
    let directory = directory();
    fs::write(directory.path().join(".half.mp4"), "not done").unwrap();
    let library = Library::scan(directory.path()).unwrap();
    assert_eq!(library.titles().count(), 1);
}

#[test]
fn a_directory_that_is_none_is_refused_by_name() {
    let directory = directory();
    let file = directory.path().join("film.mp4");
    assert!(matches!(
        Library::scan(&file),
        Err(LibraryError::NotADirectory(path)) if path == file
    ));
    let missing = directory.path().join("none");
    let error = Library::scan(&missing).unwrap_err();
    assert!(error.to_string().contains("none"), "{error}");
    assert!(matches!(error, LibraryError::Unreadable { .. }));
}

#[test]
fn directories_nested_beyond_reason_are_refused() {
    let directory = directory();
    let deep = (0..20).fold(directory.path().to_owned(), |path, _| path.join("d"));
    fs::create_dir_all(deep).unwrap();
    assert!(matches!(
        Library::scan(directory.path()),
        Err(LibraryError::TooLarge { .. })
    ));
}

#[test]
fn a_file_that_comes_later_is_served_and_a_title_that_changed_has_no_rate() {
    let directory = directory();
    let library = Library::scan(directory.path()).unwrap();
    fs::copy(fixture("fragmented.mp4"), directory.path().join("later.mp4")).unwrap();
    let later = open(&library, "later.mp4");
    assert_eq!(later.average_rate, None);

    let mut before = open(&library, "film.mp4");
    let replacement = directory.path().join("new");
    fs::copy(fixture("fragmented.mp4"), &replacement).unwrap();
    fs::rename(&replacement, directory.path().join("film.mp4")).unwrap();
    let after = open(&library, "film.mp4");
    assert_eq!(after.average_rate, None);
    assert_ne!(after.info.validators.etag, before.info.validators.etag);
    // What was opened before stays unchanged.
    assert_eq!(
        whole(&mut before),
        fs::read(fixture("progressive-moov-first.mp4")).unwrap()
    );
}

#[cfg(target_os = "linux")]
#[test]
fn resources_of_one_version_of_a_file_share_a_descriptor_until_the_last_is_gone() {
    let directory = directory();
    // Links in /proc point to the file's real location, with all links resolved.
    let film = directory.path().canonicalize().unwrap().join("film.mp4");
    let descriptors = || {
        let all = fs::read_dir("/proc/self/fd").unwrap();
        let targets = all.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        targets
            .filter(|target| target.to_string_lossy().starts_with(&*film.to_string_lossy()))
            .count()
    };
    let library = Library::scan(directory.path()).unwrap();
    assert_eq!(descriptors(), 0);
    let mut many: Vec<_> = (0..100).map(|_| open(&library, "film.mp4")).collect();
    assert_eq!(descriptors(), 1);
    let replacement = directory.path().join("new");
    fs::copy(fixture("fragmented.mp4"), &replacement).unwrap();
    fs::rename(&replacement, directory.path().join("film.mp4")).unwrap();
    let mut newer: Vec<_> = (0..100).map(|_| open(&library, "film.mp4")).collect();
    assert_eq!(descriptors(), 2);
    for (resource, file) in [
        (&mut many[99], "progressive-moov-first.mp4"),
        (&mut newer[99], "fragmented.mp4"),
    ] {
        assert_eq!(whole(resource), fs::read(fixture(file)).unwrap());
    }
    drop(many);
    assert_eq!(descriptors(), 1);
    drop(newer);
    assert_eq!(descriptors(), 0);
}

#[test]
fn files_that_were_closed_are_forgotten() {
    let directory = tempfile::tempdir().unwrap();
    let files = OpenFiles::default();
    let kept = directory.path().join("kept");
    fs::write(&kept, "x").unwrap();
    let kept_open = files.open(&kept).unwrap().unwrap();
    for number in 0..1_000 {
        let path = directory.path().join(number.to_string());
        fs::write(&path, "x").unwrap();
        files.open(&path).unwrap().unwrap();
    }
    assert!(files.len() <= 65, "{}", files.len());
    let again = files.open(&kept).unwrap().unwrap();
    assert!(Arc::ptr_eq(&kept_open, &again));
}

#[test]
fn a_file_that_is_cut_while_it_is_read_gives_an_error() {
    let directory = directory();
    let library = Library::scan(directory.path()).unwrap();
    let mut resource = open(&library, "film.mp4");
    assert!(resource.read_at(0, 1_000).is_ok());
    let file = fs::OpenOptions::new()
        .write(true)
        .open(directory.path().join("film.mp4"))
        .unwrap();
    file.set_len(500).unwrap();
    assert!(resource.read_at(0, 1_000).is_err());
}

#[test]
fn a_title_from_memory_stands_beside_the_directory() {
    let directory = directory();
    let bytes = fs::read(fixture("fragmented.mp4")).unwrap();
    let source = Arc::new(playrate_media::MemorySource::new(bytes.clone()).unwrap());
    let library = Library::scan(directory.path())
        .unwrap()
        .with_source("built/in.mp4", source.clone())
        .unwrap();
    let mut resource = open(&library, "built/in.mp4");
    assert_eq!(whole(&mut resource), bytes);
    assert_eq!(resource.average_rate, Some(source.title().average_rate()));
    assert_eq!(resource.info.validators.last_modified(None), None);
    assert!(library.open(&name("film.mp4")).unwrap().is_some());
    for bad in ["", "../x.mp4", "/x.mp4", ".x.mp4"] {
        assert!(Library::new().with_source(bad, source.clone()).is_err(), "{bad}");
    }
}

#[test]
fn representations_from_memory_know_the_best_rate_among_them() {
    let source = |name| -> Arc<dyn MediaSource> {
        let bytes = fs::read(fixture(name)).unwrap();
        Arc::new(playrate_media::MemorySource::new(bytes).unwrap())
    };
    let all = [
        ("low.mp4", source("fragmented.mp4")),
        ("high.mp4", source("progressive-moov-first.mp4")),
    ];
    let best = all.iter().map(|(_, source)| source.title().average_rate()).max();
    let named = all.into_iter().map(|(name, source)| (name.to_owned(), source));
    let library = Library::new().with_representations(named).unwrap();
    for name in ["low.mp4", "high.mp4"] {
        assert_eq!(open(&library, name).highest_rate, best);
    }
    let bad = [("../x.mp4".to_owned(), source("fragmented.mp4"))];
    assert!(Library::new().with_representations(bad).is_err());
}
