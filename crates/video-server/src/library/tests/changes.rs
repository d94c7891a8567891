//! Differences between two readings of a directory.

use playrate_media::MemorySource;

use super::*;

/// Rescans the directory until everything in it is settled.
fn again(library: &Library) -> Library {
    let found = rescan(library, now());
    match found.next_look() {
        None => found,
        Some(next) => rescan(&found, next),
    }
}

fn counts(changes: &LibraryChanges<'_>) -> [usize; 6] {
    let of = |kind| changes.faults.iter().filter(|fault| fault.kind == kind).count();
    let (titles, manifests) = (of(FaultKind::Title), of(FaultKind::Manifest));
    let LibraryChanges {
        added,
        changed,
        removed,
        repaired,
        ..
    } = *changes;
    [added, changed, removed, titles, manifests, repaired]
}

#[test]
fn a_title_that_has_not_changed_is_not_read_again() {
    let directory = directory();
    let path = directory.path("film.mp4");
    let library = scan(&directory);
    // The same version, judging by its metadata.
    let metadata = fs::metadata(&path).unwrap();
    fs::write(&path, vec![0; usize::try_from(metadata.len()).unwrap()]).unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(metadata.modified().unwrap()).unwrap();
    let same = again(&library);
    assert!(same.changes_since(&library).is_empty());
    assert_eq!(same.title_count(), 1);
    // The present contents show as soon as the file looks new.
    fs::write(&path, "x").unwrap();
    let read = again(&same);
    assert_eq!(counts(&read.changes_since(&same)), [0, 0, 1, 1, 0, 0]);
}

#[test]
fn every_kind_of_change_is_counted_once() {
    let directory = directory();
    let path = |name: &str| directory.path(name);
    directory.put("bad.mp4", "x");
    directory.put("bad.m3u8", "x");
    let first = scan(&directory);
    fs::rename(path("film.mp4"), path("renamed.mp4")).unwrap();
    let second = again(&first);
    assert_eq!(counts(&second.changes_since(&first)), [1, 0, 1, 0, 0, 0]);
    fs::remove_file(path("bad.m3u8")).unwrap();
    directory.copy("fragmented.mp4", "bad.mp4");
    let third = again(&second);
    assert_eq!(counts(&third.changes_since(&second)), [1, 0, 0, 0, 0, 2]);
    directory.copy("fragmented.mp4", "new");
    fs::rename(path("new"), path("bad.mp4")).unwrap();
    directory.put("worse.mp4", "x");
    directory.put("worse.mpd", "x");
    let fourth = again(&third);
    assert_eq!(counts(&fourth.changes_since(&third)), [0, 1, 0, 1, 1, 0]);
    assert!(fourth.strictly().is_err());
}

#[test]
fn a_packaged_title_changes_with_its_segments() {
    let directory = directory();
    let playlist = "#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXTINF:3,\na.m4s\n#EXTINF:3,\nb.m4s\n#EXT-X-ENDLIST\n";
    directory.put("list.m3u8", playlist);
    directory.put("a.m4s", [0; 1_000]);
    let before = scan(&directory);
    directory.put("b.m4s", [0; 5_000]);
    let after = again(&before);
    assert_eq!(counts(&after.changes_since(&before)), [0, 1, 0, 0, 0, 0]);
    assert_eq!(after.packaged()[0].representations[0].missing, 0);
}

fn source(file: &str) -> Arc<MemorySource> {
    Arc::new(MemorySource::new(fs::read(fixture(file)).unwrap()).unwrap())
}

#[test]
fn a_source_with_the_name_of_a_file_keeps_its_rate_whatever_the_file_does() {
    let directory = directory();
    let rate = |library: &Library| open(library, "film.mp4").average_rate;
    let of = |source: &Arc<MemorySource>| Some(source.title().average_rate());
    let first = source("fragmented.mp4");
    let library = scan(&directory).with_source("film.mp4", first.clone()).unwrap();
    assert_eq!(rate(&library), of(&first));
    directory.copy("fragmented-dash.mp4", "film.mp4");
    let after = again(&library);
    assert_eq!(rate(&after), of(&first));
    assert!(after.changes_since(&library).is_empty());
    let second = source("progressive-moov-first.mp4");
    let other = again(&after).with_source("film.mp4", second.clone()).unwrap();
    assert_eq!(rate(&other), of(&second));
    assert_eq!(counts(&other.changes_since(&after)), [0, 1, 0, 0, 0, 0]);
}

#[test]
fn titles_from_memory_stay_and_every_directory_is_visited() {
    let directory = directory();
    fs::create_dir_all(directory.path("a/b")).unwrap();
    let library = scan(&directory);
    let library = library
        .with_source("built-in.mp4", source("fragmented.mp4"))
        .unwrap();
    fs::remove_file(directory.path("film.mp4")).unwrap();
    let mut visited = Vec::new();
    let visit = &mut |directory: &Path| visited.push(directory.to_owned());
    let after = library.rescan(now(), visit).unwrap().unwrap();
    assert_eq!(titles(&after), ["built-in.mp4"]);
    let root = directory.root().canonicalize().unwrap();
    let below = ["a", "a/b", "pages"].map(|name| root.join(name));
    assert_eq!(visited, [&[root][..], &below].concat());
    assert!(after.open(after.titles().next().unwrap().0).unwrap().is_some());
}

#[test]
fn a_fault_is_reported_again_only_after_it_has_changed() {
    let directory = directory();
    let playlist = |segments: &[&str]| {
        let mut text = "#EXTM3U\n#EXT-X-TARGETDURATION:3\n".to_owned();
        text.extend(segments.iter().map(|file| format!("#EXTINF:3,\n{file}\n")));
        directory.put("list.m3u8", text + "#EXT-X-ENDLIST\n");
    };
    playlist(&["a.m4s", "b.m4s", "c.m4s"]);
    directory.put("a.m4s", [0; 1_000]);
    directory.put("main.m3u8", "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=9\nnone.m3u8\n");
    directory.put("bad.mp4", "x");
    std::os::unix::fs::symlink("nowhere", directory.path("link.mp4")).unwrap();
    let not_utf8 = std::os::unix::ffi::OsStrExt::from_bytes(b"\xff.mp4");
    fs::write(directory.root().join::<&std::ffi::OsStr>(not_utf8), "x").unwrap();
    let warnings = |changes: &LibraryChanges<'_>| {
        let faults = changes.faults.iter();
        let warnings = faults.filter(|fault| fault.kind == FaultKind::Warning);
        let texts: Vec<_> = warnings.map(ToString::to_string).collect();
        texts.join("\n")
    };
    let first = scan(&directory);
    let nothing = Library::new();
    let said = warnings(&first.changes_since(&nothing));
    assert_contains(&said, &["2 of the 3 segments", "`none.m3u8`"]);
    if cfg!(unix) {
        assert_contains(&said, &["link.mp4 is not indexed", ".mp4 is not served"]);
    }
    let same = again(&first);
    assert!(same.changes_since(&first).is_empty());
    // Segments of a title that is being copied arrive one by one.
    directory.put("b.m4s", [0; 1_000]);
    directory.put("bad.mp4", "");
    let third = again(&same);
    let changes = third.changes_since(&same);
    assert_eq!(warnings(&changes), "");
    assert_eq!(counts(&changes), [0, 1, 0, 1, 0, 0]);
    // Complete, and then incomplete again.
    directory.put("c.m4s", [0; 1_000]);
    let complete = again(&third);
    fs::remove_file(directory.path("c.m4s")).unwrap();
    let fifth = again(&complete);
    let said = warnings(&fifth.changes_since(&complete));
    assert_contains(&said, &["1 of the 3 segments"]);
}
