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

/// 16 warnings about each of these titles are more than the limit of titles.
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
    assert_eq!(library.faults(FaultKind::Warning).len(), 16 * COUNT);
}

/// Files that a manifest could name as segments. Without a manifest, opening them all would only delay the error.
#[cfg(target_os = "linux")]
#[test]
fn no_more_broken_titles_are_opened_than_the_limit_of_titles() {
    use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};

    let directory = Media::new();
    directory.put("0.mp4", b"\0\0\0\x08free");
    for number in 1..scan::TITLES * 3 / 2 {
        fs::hard_link(directory.path("0.mp4"), directory.path(&format!("{number}.mp4"))).unwrap();
    }
    let opened = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
    add_watch(&opened, directory.root(), WatchFlags::OPEN).unwrap();
    let error = refused(&directory);
    assert!(matches!(error, LibraryError::TooLarge { .. }), "{error}");
    let mut space = [std::mem::MaybeUninit::uninit(); 4_096];
    let (mut events, mut count) = (Reader::new(&opened, &mut space), 0);
    while let Ok(event) = events.next() {
        count += usize::from(event.file_name().is_some());
    }
    assert_eq!(count, scan::TITLES);
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
