//! Libraries over real directories and the project's own titles.

use super::*;
use std::fs;

use rstest::rstest;
use tempfile::TempDir;

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

fn whole(resource: &Resource) -> Vec<u8> {
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
    let resource = library.open(title).unwrap().unwrap();
    assert_eq!(resource.average_rate, Some(summary.average_rate));
    assert_eq!(resource.info.content_type, "video/mp4");
    assert_eq!(whole(&resource), file);
    assert!(resource.read_at(file.len() as u64, 10).unwrap().is_empty());
}

#[test]
fn other_files_are_served_with_their_type_and_no_rate() {
    let directory = directory();
    let library = Library::scan(directory.path()).unwrap();
    assert_eq!(library.other_files(), 1);
    let page = open(&library, "pages/index.html");
    assert_eq!(page.average_rate, None);
    assert_eq!(page.info.content_type, "text/html; charset=utf-8");
    assert_eq!(whole(&page), b"<p>Films</p>");
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

/// Two titles that cannot be played.
fn put_bad_titles(directory: &Path) {
    let good = fs::read(fixture("progressive-moov-first.mp4")).unwrap();
    fs::write(directory.join("cut.mp4"), &good[..good.len() / 2]).unwrap();
    fs::write(directory.join("empty.mp4"), "").unwrap();
}

fn assert_names_the_bad_titles(error: LibraryError) {
    let text = error.to_string();
    let LibraryError::BadTitles { titles, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(titles.len(), 2);
    for part in ["cut.mp4", "offset", "empty.mp4", "the file is empty"] {
        assert!(text.contains(part), "{part} is missing in: {text}");
    }
}

#[test]
fn a_title_that_cannot_be_played_does_not_keep_the_others_from_being_served() {
    let directory = directory();
    put_bad_titles(directory.path());
    let library = Library::scan(directory.path()).unwrap();
    let titles: Vec<_> = library.titles().map(|(name, _)| name.as_str()).collect();
    assert_eq!(titles, ["film.mp4"]);
    assert_eq!(library.bad_titles().len(), 2);
    let cut = open(&library, "cut.mp4");
    assert_eq!(cut.average_rate, None);
    assert_eq!(whole(&cut), fs::read(directory.path().join("cut.mp4")).unwrap());
    assert_names_the_bad_titles(Library::scan_strictly(directory.path()).unwrap_err());
}

#[test]
fn a_manifest_is_enough_to_serve_beside_a_title_that_cannot_be_played() {
    let directory = packaged();
    put_bad_titles(directory.path());
    let library = Library::scan(directory.path()).unwrap();
    assert_eq!((library.packaged().len(), library.bad_titles().len()), (2, 2));
}

#[test]
fn titles_of_which_none_can_be_played_are_refused_with_box_and_offset() {
    let directory = directory();
    fs::remove_file(directory.path().join("film.mp4")).unwrap();
    put_bad_titles(directory.path());
    assert_names_the_bad_titles(Library::scan(directory.path()).unwrap_err());
}

#[test]
fn a_long_list_of_bad_titles_is_cut() {
    let directory = tempfile::tempdir().unwrap();
    for number in 0..25 {
        fs::write(directory.path().join(format!("{number}.mp4")), "x").unwrap();
    }
    let text = Library::scan(directory.path()).unwrap_err().to_string();
    assert_eq!(text.lines().count(), 11);
    assert!(
        text.ends_with("and 15 more titles that cannot be played"),
        "{text}"
    );
}

#[test]
fn a_film_without_h264_is_bad_alone_and_a_part_beside_a_manifest() {
    let directory = tempfile::tempdir().unwrap();
    fs::copy(fixture("not-h264.mov"), directory.path().join("sound.mp4")).unwrap();
    assert!(matches!(
        Library::scan(directory.path()),
        Err(LibraryError::BadTitles { .. })
    ));
    fs::write(directory.path().join("manifest.mpd"), mpd("sound.mp4", "PT10S")).unwrap();
    let library = Library::scan(directory.path()).unwrap();
    assert_eq!((library.titles().count(), library.other_files()), (0, 2));
    let part = open(&library, "sound.mp4");
    let size = part.info.length;
    assert_eq!(
        part.average_rate,
        Some(Bitrate::from_bits_per_second(size * 8 / 10))
    );
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

    let before = open(&library, "film.mp4");
    let replacement = directory.path().join("new");
    fs::copy(fixture("fragmented.mp4"), &replacement).unwrap();
    fs::rename(&replacement, directory.path().join("film.mp4")).unwrap();
    let after = open(&library, "film.mp4");
    assert_eq!(after.average_rate, None);
    assert_ne!(after.info.validators.etag, before.info.validators.etag);
    // What was opened before goes on as it was.
    assert_eq!(
        whole(&before),
        fs::read(fixture("progressive-moov-first.mp4")).unwrap()
    );
}

#[cfg(target_os = "linux")]
#[test]
fn resources_of_one_version_of_a_file_share_a_descriptor_until_the_last_is_gone() {
    let directory = directory();
    // Links in /proc lead to where the file is, with all links resolved.
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
    let many: Vec<_> = (0..100).map(|_| open(&library, "film.mp4")).collect();
    assert_eq!(descriptors(), 1);
    let replacement = directory.path().join("new");
    fs::copy(fixture("fragmented.mp4"), &replacement).unwrap();
    fs::rename(&replacement, directory.path().join("film.mp4")).unwrap();
    let newer: Vec<_> = (0..100).map(|_| open(&library, "film.mp4")).collect();
    assert_eq!(descriptors(), 2);
    for (resource, file) in [
        (&many[99], "progressive-moov-first.mp4"),
        (&newer[99], "fragmented.mp4"),
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
    let resource = open(&library, "film.mp4");
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
    let resource = open(&library, "built/in.mp4");
    assert_eq!(whole(&resource), bytes);
    assert_eq!(resource.average_rate, Some(source.title().average_rate()));
    assert_eq!(resource.info.validators.last_modified(None), None);
    assert!(library.open(&name("film.mp4")).unwrap().is_some());
    for bad in ["", "../x.mp4", "/x.mp4", ".x.mp4"] {
        assert!(Library::new().with_source(bad, source.clone()).is_err(), "{bad}");
    }
}

/// DASH and HLS of the same segments: two renditions of 3 segments each, 3 s, 3 s and 1.5 s long.
fn packaged() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let film = directory.path().join("film");
    fs::create_dir(&film).unwrap();
    let mut representations = String::new();
    let mut main = String::from("#EXTM3U\n");
    for (id, size) in [("low", 30_000), ("high", 300_000)] {
        for (number, share) in [(1, 2), (2, 2), (3, 1)] {
            fs::write(film.join(format!("{id}-{number}.m4s")), vec![0; size * share / 2]).unwrap();
        }
        representations.extend([format!(
            "<Representation id=\"{id}\" bandwidth=\"7\"><SegmentTemplate \
            media=\"$RepresentationID$-$Number$.m4s\" timescale=\"2\">\
             <SegmentTimeline><S d=\"6\" r=\"1\"/><S d=\"3\"/></SegmentTimeline></SegmentTemplate></Representation>"
        )]);
        main.extend([format!("#EXT-X-STREAM-INF:BANDWIDTH=7\n{id}.m3u8\n")]);
        let playlist = format!(
            "#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXTINF:3,\n{id}-1.m4s\n#EXTINF:3,\n{id}-2.m4s\n\
            #EXTINF:1.5,\n{id}-3.m4s\n#EXT-X-ENDLIST\n"
        );
        fs::write(film.join(format!("{id}.m3u8")), playlist).unwrap();
    }
    let mpd = format!(
        "<MPD><Period><AdaptationSet mimeType=\"video/mp4\">{representations}</AdaptationSet></Period></MPD>"
    );
    fs::write(film.join("manifest.mpd"), mpd).unwrap();
    fs::write(film.join("master.m3u8"), main).unwrap();
    directory
}

#[rstest]
#[case::both("")]
#[case::dash_alone("m3u8")]
#[case::hls_alone("mpd")]
fn every_segment_has_the_measured_rate_of_its_representation_and_its_duration(#[case] without: &str) {
    let directory = packaged();
    for file in fs::read_dir(directory.path().join("film")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().unwrap() == without {
            fs::remove_file(path).unwrap();
        }
    }
    let library = Library::scan(directory.path()).unwrap();
    let titles: Vec<_> = library
        .packaged()
        .iter()
        .map(|title| title.manifest.as_str())
        .collect();
    let all = ["film/manifest.mpd", "film/master.m3u8"];
    assert_eq!(
        titles,
        all.into_iter()
            .filter(|name| without.is_empty() || !name.ends_with(without))
            .collect::<Vec<_>>()
    );
    // 75 kB and 750 kB in 7.5 s.
    for (id, kbps) in [("low", 80), ("high", 800)] {
        for (number, seconds) in [(1, 3.0), (2, 3.0), (3, 1.5)] {
            let segment = open(&library, &format!("film/{id}-{number}.m4s"));
            assert_eq!(segment.average_rate, Some(Bitrate::from_kbps(kbps)));
            let all = 0..segment.info.length;
            assert_eq!(segment.duration_of(&all), Some(Duration::from_secs_f64(seconds)));
            let summary = segment.representation().unwrap();
            assert_eq!(
                (summary.segments, summary.missing, summary.longest_segment),
                (3, 0, Duration::from_secs(3))
            );
        }
    }
    let set = |file| open(&library, file).representation().unwrap().set;
    assert_eq!(set("film/low-1.m4s"), set("film/high-1.m4s"));
}

#[test]
fn the_segments_of_a_single_file_are_its_fragments() {
    let directory = tempfile::tempdir().unwrap();
    fs::copy(fixture("fragmented.mp4"), directory.path().join("film.mp4")).unwrap();
    fs::write(directory.path().join("film.mpd"), mpd("film.mp4", "PT10S")).unwrap();
    let library = Library::scan(directory.path()).unwrap();
    let segments = Title::open(fixture("fragmented.mp4")).unwrap().segments();
    let film = open(&library, "film.mp4");
    assert_eq!(film.representation().unwrap().segments, segments.len());
    for segment in &segments {
        assert_eq!(film.duration_of(&segment.bytes), Some(segment.duration));
    }
    assert_eq!(film.duration_of(&(0..100)), None);
}

#[test]
fn a_manifest_cannot_multiply_the_segments_of_a_file() {
    let directory = tempfile::tempdir().unwrap();
    fs::copy(fixture("fragmented.mp4"), directory.path().join("film.mp4")).unwrap();
    let whole_files = "<SegmentURL/>".repeat(300_000);
    let text = format!(
        "<MPD><Period><AdaptationSet><Representation id=\"v\" bandwidth=\"1000\"><BaseURL>film.mp4</BaseURL>\
         <SegmentList duration=\"1\">{whole_files}</SegmentList></Representation></AdaptationSet></Period></MPD>"
    );
    fs::write(directory.path().join("film.mpd"), text).unwrap();
    let library = Library::scan(directory.path()).unwrap();
    assert!(library.packaged().is_empty());
    let [why] = library.bad_manifests() else {
        panic!("{:?}", library.bad_manifests())
    };
    assert!(
        why.contains("film.mpd") && why.contains("at most 500000"),
        "{why}"
    );
}

#[test]
fn a_bad_manifest_is_named_and_its_files_are_served_beside_the_others() {
    let directory = packaged();
    let bad = directory.path().join("film/bad.mpd");
    fs::write(&bad, "<MPD>\n<Period></MPD>").unwrap();
    fs::write(directory.path().join("gone.mpd"), mpd("gone.mp4", "PT1S")).unwrap();
    let library = Library::scan(directory.path()).unwrap();
    let complaints = library.bad_manifests();
    assert_eq!(complaints.len(), 2, "{complaints:?}");
    let all = complaints.join("\n");
    for part in [
        "film/bad.mpd: line 2",
        "not well-formed",
        "gone.mpd: none of the 1 segments",
    ] {
        assert!(all.contains(part), "{part} is missing in: {all}");
    }
    assert!(library.open(&name("film/bad.mpd")).unwrap().is_some());
    assert!(open(&library, "film/low-1.m4s").average_rate.is_some());
    let refused = Library::scan_strictly(directory.path()).unwrap_err().to_string();
    assert_eq!(refused, all);
}

#[test]
fn main_playlists_are_bounded_as_other_manifests() {
    let directory = tempfile::tempdir().unwrap();
    fs::copy(fixture("fragmented.mp4"), directory.path().join("film.mp4")).unwrap();
    let whole_files = "#EXTINF:1,\nfilm.mp4\n".repeat(300_000);
    let text = format!("#EXTM3U\n#EXT-X-TARGETDURATION:1\n{whole_files}#EXT-X-ENDLIST\n");
    fs::write(directory.path().join("list.m3u8"), text).unwrap();
    let mains = 3;
    for number in 0..mains {
        let main = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=9\nlist.m3u8\n";
        fs::write(directory.path().join(format!("main-{number}.m3u8")), main).unwrap();
    }
    let library = Library::scan(directory.path()).unwrap();
    assert!(library.packaged().is_empty());
    let bad = library.bad_manifests();
    assert_eq!(bad.len(), mains);
    assert!(bad.iter().all(|why| why.contains("at most 500000")), "{bad:?}");
}

#[test]
fn a_directory_of_bad_manifests_alone_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("film.m3u8"), "film").unwrap();
    let error = Library::scan(directory.path()).unwrap_err().to_string();
    for part in ["film.m3u8", "line 1", "#EXTM3U"] {
        assert!(error.contains(part), "{part} is missing in: {error}");
    }
}

#[test]
fn a_manifest_cannot_reach_out_of_the_directory_or_at_hidden_files() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join(".hidden.mp4"), "x").unwrap();
    fs::write(
        directory.path().join("a.mpd"),
        mpd("../../../../etc/passwd", "PT1S"),
    )
    .unwrap();
    fs::write(directory.path().join("b.mpd"), mpd(".hidden.mp4", "PT1S")).unwrap();
    fs::write(
        directory.path().join("c.mpd"),
        mpd("https://cdn.example/film.mp4", "PT1S"),
    )
    .unwrap();
    let bad = Library::scan(directory.path()).unwrap_err();
    assert!(
        matches!(&bad, LibraryError::BadTitles { manifests, .. } if manifests.len() == 3),
        "{bad}"
    );
}

#[test]
fn streams_that_differ_in_their_sound_alone_are_one_representation() {
    let directory = packaged();
    let film = directory.path().join("film");
    fs::remove_file(film.join("manifest.mpd")).unwrap();
    let main = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=9,AUDIO=\"a\"\nlow.m3u8\n\
        #EXT-X-STREAM-INF:BANDWIDTH=10,AUDIO=\"b\"\nlow.m3u8\n";
    fs::write(film.join("master.m3u8"), main).unwrap();
    fs::write(
        film.join("lost.m3u8"),
        "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=9\nnone.m3u8\n",
    )
    .unwrap();
    let library = Library::scan(directory.path()).unwrap();
    let titles: Vec<_> = library
        .packaged()
        .iter()
        .map(|title| (title.manifest.as_str(), title.representations.len()))
        .collect();
    assert_eq!(titles, [("film/master.m3u8", 1), ("film/high.m3u8", 1)]);
    let [lost] = library.bad_manifests() else {
        panic!("{:?}", library.bad_manifests())
    };
    assert!(lost.contains("lost.m3u8: none of the playlists"), "{lost}");
}
