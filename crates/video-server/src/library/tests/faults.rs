//! Directories with titles that cannot be played.

use super::packaged::packaged;
use super::*;

/// Two titles that cannot be played.
fn put_bad_titles(directory: &Media) {
    let good = fs::read(fixture("progressive-moov-first.mp4")).unwrap();
    directory.put("cut.mp4", &good[..good.len() / 2]);
    directory.put("empty.mp4", "");
}

/// The error of a directory if every title must be playable.
fn strictly(directory: &Media) -> LibraryError {
    scan(directory).strictly().unwrap_err()
}

fn assert_names_the_bad_titles(error: LibraryError) {
    let text = error.to_string();
    let LibraryError::BadTitles(titles) = error else {
        panic!("{error}")
    };
    assert_eq!(titles.len(), 2);
    assert_contains(&text, &["cut.mp4", "offset", "empty.mp4", "the file is empty"]);
}

#[test]
fn a_title_that_cannot_be_played_does_not_keep_the_others_from_being_served() {
    let directory = directory();
    put_bad_titles(&directory);
    let library = scan(&directory);
    assert_eq!(titles(&library), ["film.mp4"]);
    assert_eq!(library.faults(FaultKind::Title).len(), 2);
    let mut cut = open(&library, "cut.mp4");
    assert_eq!(cut.average_rate, None);
    assert_eq!(whole(&mut cut), fs::read(directory.path("cut.mp4")).unwrap());
    assert_names_the_bad_titles(strictly(&directory));
}

/// 17 warnings about each of these titles, one of them about its codec, are more than the limit of titles.
#[test]
fn warnings_about_titles_do_not_count_as_titles() {
    const COUNT: usize = scan::TITLES / 10;
    let directory = Media::new();
    let film = fs::read(fixture("not-h264.mov")).unwrap();
    let movies = b"\0\0\0\x08moov".repeat(16);
    directory.put("0.mp4", [film, movies].concat());
    for number in 1..COUNT {
        fs::hard_link(directory.path("0.mp4"), directory.path(&format!("{number}.mp4"))).unwrap();
    }
    let library = scan(&directory);
    assert_eq!(library.titles().count(), COUNT);
    assert_eq!(library.faults(FaultKind::Warning).len(), 17 * COUNT);
}

/// Names of the files in `directory` that `run` opens, once for each time.
#[cfg(target_os = "linux")]
fn opened(directory: &Media, run: impl FnOnce()) -> Vec<String> {
    use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};

    let inotify = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
    add_watch(&inotify, directory.root(), WatchFlags::OPEN).unwrap();
    run();
    let mut space = [std::mem::MaybeUninit::uninit(); 4_096];
    let (mut events, mut names) = (Reader::new(&inotify, &mut space), Vec::new());
    while let Ok(event) = events.next() {
        names.extend(event.file_name().map(|name| name.to_str().unwrap().to_owned()));
    }
    names
}

/// Files that a manifest could name as segments. Without a manifest, opening them all would only delay the error.
#[cfg(target_os = "linux")]
#[test]
fn no_more_broken_titles_are_opened_than_the_limit_of_titles() {
    let directory = Media::new();
    directory.put("0.mp4", b"\0\0\0\x08free");
    for number in 1..scan::TITLES * 3 / 2 {
        fs::hard_link(directory.path("0.mp4"), directory.path(&format!("{number}.mp4"))).unwrap();
    }
    let opened = opened(&directory, || {
        let error = refused(&directory);
        assert!(matches!(error, LibraryError::TooLarge { .. }), "{error}");
    });
    assert_eq!(opened.len(), scan::TITLES);
}

#[cfg(target_os = "linux")]
#[rstest]
#[case::alone(&[], 2)]
#[case::beside_a_manifest(&["list.m3u8"], 1)]
fn a_broken_title_that_has_not_changed_is_not_opened_again(#[case] manifests: &[&str], #[case] bad: usize) {
    let directory = directory();
    for name in manifests {
        directory.put(
            name,
            "#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXTINF:3,\na.mp4\n#EXT-X-ENDLIST\n",
        );
    }
    directory.put("a.mp4", b"\0\0\0\x08free");
    directory.put("b.mp4", "x");
    let library = scan(&directory);
    let mut again = None;
    let opened = opened(&directory, || again = Some(rescan(&library, now())));
    let broken = opened
        .iter()
        .filter(|name| ["a.mp4", "b.mp4"].contains(&name.as_str()));
    assert_eq!(broken.count(), 0, "{opened:?}");
    let again = again.unwrap();
    assert!(again.changes_since(&library).is_empty());
    assert_eq!(again.faults(FaultKind::Title).len(), bad);
    assert_eq!(again.other_files(), library.other_files());
    fs::remove_file(directory.path("b.mp4")).unwrap();
    directory.copy("fragmented.mp4", "b.mp4");
    let again = rescan(&again, now());
    let later = again.next_look().unwrap();
    assert_eq!(titles(&rescan(&again, later)), ["b.mp4", "film.mp4"]);
}

#[test]
fn a_manifest_is_enough_to_serve_beside_a_title_that_cannot_be_played() {
    let directory = packaged();
    put_bad_titles(&directory);
    let library = scan(&directory);
    assert_eq!(library.packaged().len(), 2);
    assert_eq!(library.faults(FaultKind::Title).len(), 2);
}

#[test]
fn titles_of_which_none_can_be_played_are_refused_with_box_and_offset() {
    let directory = directory();
    fs::remove_file(directory.path("film.mp4")).unwrap();
    put_bad_titles(&directory);
    assert_names_the_bad_titles(refused(&directory));
}

#[test]
fn a_long_list_of_bad_titles_is_cut() {
    let directory = Media::new();
    for number in 0..25 {
        directory.put(&format!("{number}.mp4"), "x");
    }
    let text = refused(&directory).to_string();
    assert_eq!(text.lines().count(), 11);
    assert!(
        text.ends_with("and 15 more titles that cannot be played"),
        "{text}"
    );
}

/// Calls `run` on a thread with the permissions of an ordinary user: root could read everything.
#[cfg(target_os = "linux")]
fn without_privileges(run: impl FnOnce() + Send) {
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

    let run = || {
        let mut sets = capabilities(None).unwrap();
        sets.effective &= !(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH);
        set_capabilities(None, sets).unwrap();
        run();
    };
    std::thread::scope(|scope| scope.spawn(run).join()).unwrap();
}

#[cfg(target_os = "linux")]
#[rstest]
#[case::listed_by_no_one(0o000)]
#[case::entered_by_no_one(0o600)]
fn a_directory_that_cannot_be_read_does_not_keep_the_others_from_being_served(#[case] mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;

    without_privileges(|| {
        let directory = directory();
        let closed = directory.path("closed");
        directory.copy("fragmented.mp4", "closed/inside.mp4");
        let allow = |mode| fs::set_permissions(&closed, fs::Permissions::from_mode(mode)).unwrap();
        let open = scan(&directory);
        allow(mode);
        let shut = rescan(&open, now());
        assert_eq!(titles(&shut), ["film.mp4"]);
        let [unreadable] = shut.faults(FaultKind::Directory)[..] else {
            panic!("{:?}", shut.faults(FaultKind::Directory))
        };
        assert_eq!(unreadable.path, closed.canonicalize().unwrap());
        let changes = shut.changes_since(&open);
        assert_eq!((changes.removed, changes.faults.len()), (1, 1));
        let same = rescan(&shut, now());
        assert!(same.changes_since(&shut).is_empty());
        scan(&directory);
        assert_contains(&strictly(&directory).to_string(), &["closed", "ermission"]);
        allow(0o700);
        let repaired = rescan(&same, now());
        assert_eq!(repaired.changes_since(&same).repaired, 1);
        let later = repaired.next_look().unwrap();
        let repaired = rescan(&repaired, later);
        assert_eq!(repaired.titles().count(), 2);
    });
}
