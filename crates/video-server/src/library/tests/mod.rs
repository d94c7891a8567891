//! Libraries over real directories and the project's own titles.

use super::*;
use std::fs;
use std::task::Waker;

use playrate_test_support::{Media, assert_contains, fixture};
use quinn::{Runtime as _, TokioRuntime};
use rstest::rstest;

mod cache;
mod changes;
mod faults;
mod packaged;
mod settling;

/// A directory with one title and one page.
fn directory() -> Media {
    let directory = Media::film();
    directory.put("pages/index.html", "<p>Films</p>");
    directory
}

fn scan(directory: &Media) -> Library {
    Library::scan(directory.root()).unwrap()
}

/// The error of a directory that is refused.
fn refused(directory: &Media) -> LibraryError {
    Library::scan(directory.root()).unwrap_err()
}

fn titles(library: &Library) -> Vec<&str> {
    library.titles().map(|(name, _)| name.as_str()).collect()
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
    let library = scan(&directory);
    let file = fs::read(directory.path("film.mp4")).unwrap();
    assert_eq!(titles(&library), ["film.mp4"]);
    let (title, summary) = library.titles().next().unwrap();
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
    let library = scan(&directory);
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
    let library = scan(&directory);
    assert!(library.open(&name(asked)).unwrap().is_none());
}

#[test]
fn a_link_is_followed_within_the_directory_and_not_out_of_it() {
    use std::os::unix::fs::symlink;
    let directory = directory();
    let outside = Media::new();
    outside.put("secret.txt", "secret");
    let link = |target: &Path, at: &str| symlink(target, directory.path(at)).unwrap();
    link(&outside.path("secret.txt"), "out.txt");
    link(outside.root(), "elsewhere");
    link(Path::new("../"), "pages/up");
    link(Path::new("loop"), "loop");
    link(Path::new("film.mp4"), "same.mp4");
    let library = scan(&directory);
    for asked in ["out.txt", "elsewhere/secret.txt", "loop"] {
        assert!(library.open(&name(asked)).unwrap().is_none(), "{asked}");
    }
    for asked in ["same.mp4", "pages/up/film.mp4"] {
        assert!(library.open(&name(asked)).unwrap().is_some(), "{asked}");
    }
    assert_eq!(titles(&library), ["film.mp4", "same.mp4"]);
}

#[test]
fn a_socket_in_the_directory_is_not_opened() {
    let directory = directory();
    let _socket = std::os::unix::net::UnixListener::bind(directory.path("pipe.mp4")).unwrap();
    let library = scan(&directory);
    assert!(library.open(&name("pipe.mp4")).unwrap().is_none());
}

#[test]
fn hidden_files_are_neither_indexed_nor_served() {
    let directory = directory();
    directory.put(".half.mp4", "not done");
    let library = scan(&directory);
    assert_eq!(library.titles().count(), 1);
}

#[test]
fn a_directory_that_is_none_is_refused_by_name() {
    let directory = directory();
    let file = directory.path("film.mp4");
    assert!(matches!(
        Library::scan(&file),
        Err(LibraryError::NotADirectory(path)) if path == file
    ));
    let missing = directory.path("none");
    let error = Library::scan(&missing).unwrap_err();
    assert!(error.to_string().contains("none"), "{error}");
    assert!(matches!(error, LibraryError::Unreadable { .. }));
}

#[test]
fn directories_nested_beyond_reason_are_refused() {
    let directory = directory();
    let deep = (0..20).fold(directory.root().to_owned(), |path, _| path.join("d"));
    fs::create_dir_all(deep).unwrap();
    assert!(matches!(refused(&directory), LibraryError::TooLarge { .. }));
}

#[test]
fn a_file_that_comes_later_is_served_and_a_title_that_changed_has_no_rate() {
    let directory = directory();
    let library = scan(&directory);
    directory.copy("fragmented.mp4", "later.mp4");
    let later = open(&library, "later.mp4");
    assert_eq!(later.average_rate, None);

    let mut before = open(&library, "film.mp4");
    directory.copy("fragmented.mp4", "new");
    fs::rename(directory.path("new"), directory.path("film.mp4")).unwrap();
    let after = open(&library, "film.mp4");
    assert_eq!(after.average_rate, None);
    assert_ne!(after.info.validators.etag, before.info.validators.etag);
    // What was opened before stays unchanged.
    let old = fs::read(fixture("progressive-moov-first.mp4")).unwrap();
    assert_eq!(whole(&mut before), old);
}

#[cfg(target_os = "linux")]
#[test]
fn resources_of_one_version_of_a_file_share_a_descriptor_until_the_last_is_gone() {
    let directory = directory();
    // Links in /proc point to the file's real location, with all links resolved.
    let film = directory.path("film.mp4").canonicalize().unwrap();
    let descriptors = || {
        let all = fs::read_dir("/proc/self/fd").unwrap();
        let targets = all.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        targets
            .filter(|target| target.to_string_lossy().starts_with(&*film.to_string_lossy()))
            .count()
    };
    let library = scan(&directory);
    assert_eq!(descriptors(), 0);
    let mut many: Vec<_> = (0..100).map(|_| open(&library, "film.mp4")).collect();
    assert_eq!(descriptors(), 1);
    directory.copy("fragmented.mp4", "new");
    fs::rename(directory.path("new"), directory.path("film.mp4")).unwrap();
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
    let directory = Media::new();
    let files = OpenFiles::default();
    let kept = directory.path("kept");
    fs::write(&kept, "x").unwrap();
    let kept_open = files.open(&kept).unwrap().unwrap();
    for number in 0..1_000 {
        let path = directory.root().join(number.to_string());
        fs::write(&path, "x").unwrap();
        files.open(&path).unwrap().unwrap();
    }
    // The next size of the hash table, which it may take because of removed entries.
    assert!(files.len() <= 113, "{}", files.len());
    let again = files.open(&kept).unwrap().unwrap();
    assert!(Arc::ptr_eq(&kept_open, &again));
}

#[test]
fn a_file_that_is_cut_while_it_is_read_gives_an_error() {
    let directory = directory();
    let library = scan(&directory);
    let mut resource = open(&library, "film.mp4");
    assert!(resource.read_at(0, 1_000).is_ok());
    let file = fs::OpenOptions::new()
        .write(true)
        .open(directory.path("film.mp4"))
        .unwrap();
    file.set_len(500).unwrap();
    assert!(resource.read_at(0, 1_000).is_err());
}

#[test]
fn a_title_from_memory_stands_beside_the_directory() {
    let directory = directory();
    let bytes = fs::read(fixture("fragmented.mp4")).unwrap();
    let source = Arc::new(playrate_media::MemorySource::new(bytes.clone()).unwrap());
    let library = scan(&directory).with_source("built/in.mp4", source.clone());
    let library = library.unwrap();
    let mut resource = open(&library, "built/in.mp4");
    assert_eq!(whole(&mut resource), bytes);
    assert_eq!(resource.average_rate, Some(source.title().average_rate()));
    assert_eq!(resource.info.validators.last_modified(None), None);
    assert!(library.open(&name("film.mp4")).unwrap().is_some());
    for bad in ["", "../x.mp4", "/x.mp4", ".x.mp4"] {
        assert!(Library::new().with_source(bad, source.clone()).is_err(), "{bad}");
    }
}

#[rstest]
#[case::first("progressive-moov-first.mp4", "progressive_moov_first", 192)]
#[case::last("progressive-moov-last.mp4", "progressive_moov_last", 192)]
#[case::fragmented("fragmented.mp4", "fragmented", 192)]
fn a_layout_has_a_stable_name_in_json(#[case] file: &str, #[case] layout: &str, #[case] width: u32) {
    let summary = TitleSummary::of(&Title::open(fixture(file)).unwrap());
    let json = serde_json::to_value(summary).unwrap();
    assert_eq!((&json["layout"], &json["width"]), (&layout.into(), &width.into()));
}

#[test]
fn an_unknown_width_is_null_in_json() {
    let trace = "0.000,9000,K_\n0.040,500,__\n".parse().unwrap();
    let source = playrate_media::TraceSource::new(&trace);
    let json = serde_json::to_value(TitleSummary::of(source.title())).unwrap();
    let null = serde_json::Value::Null;
    assert_eq!(
        (&json["layout"], &json["width"], &json["height"]),
        (&"trace".into(), &null, &null)
    );
}

/// A picture that stands for 1,000 s after 9 s of sound: the average says little about the rate of the sound.
#[test]
fn a_controller_receives_more_than_the_average_of_a_slide_show() {
    let mut bytes = fs::read(fixture("progressive-moov-first.mp4")).unwrap();
    let edit = bytes.windows(4).position(|name| name == b"elst").unwrap() + 12;
    bytes[edit..edit + 4].copy_from_slice(&1_000_000_u32.to_be_bytes());
    bytes[edit + 8..edit + 12].fill(0);
    let directory = Media::new();
    directory.put("slides.mp4", &bytes);
    let library = scan(&directory);
    let (title, summary) = library.titles().next().unwrap();
    let read = Title::open(directory.path("slides.mp4")).unwrap();
    assert_eq!(summary.average_rate, read.average_rate());
    assert_eq!(summary.sending_rate, read.sending_rate());
    assert!(summary.sending_rate > summary.average_rate);
    let resource = library.open(title).unwrap().unwrap();
    assert_eq!(resource.average_rate, Some(summary.sending_rate));
    let source: Arc<dyn MediaSource> = Arc::new(playrate_media::MemorySource::new(bytes).unwrap());
    let library = Library::new().with_representations([("slides.mp4".to_owned(), source)]);
    let rate = open(&library.unwrap(), "slides.mp4").highest_rate;
    assert_eq!(rate, Some(summary.sending_rate));
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
