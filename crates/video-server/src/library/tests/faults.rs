//! Directories with titles that cannot be played.

use super::packaged::packaged;
use super::*;

/// Two titles that cannot be played.
fn put_bad_titles(directory: &Path) {
    let good = fs::read(fixture("progressive-moov-first.mp4")).unwrap();
    fs::write(directory.join("cut.mp4"), &good[..good.len() / 2]).unwrap();
    fs::write(directory.join("empty.mp4"), "").unwrap();
}

/// The error of a directory if every title must be playable.
fn strictly(directory: &Path) -> LibraryError {
    Library::scan(directory).and_then(Library::strictly).unwrap_err()
}

fn assert_names_the_bad_titles(error: LibraryError) {
    let text = error.to_string();
    let LibraryError::BadTitles(titles) = error else {
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
    assert_eq!(library.faults(FaultKind::Title).len(), 2);
    let mut cut = open(&library, "cut.mp4");
    assert_eq!(cut.average_rate, None);
    assert_eq!(
        whole(&mut cut),
        fs::read(directory.path().join("cut.mp4")).unwrap()
    );
    assert_names_the_bad_titles(strictly(directory.path()));
}

#[test]
fn a_manifest_is_enough_to_serve_beside_a_title_that_cannot_be_played() {
    let directory = packaged();
    put_bad_titles(directory.path());
    let library = Library::scan(directory.path()).unwrap();
    assert_eq!(
        (library.packaged().len(), library.faults(FaultKind::Title).len()),
        (2, 2)
    );
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
        let closed = directory.path().join("closed");
        fs::create_dir(&closed).unwrap();
        fs::copy(fixture("fragmented.mp4"), closed.join("inside.mp4")).unwrap();
        let allow = |mode| fs::set_permissions(&closed, fs::Permissions::from_mode(mode)).unwrap();
        let open = Library::scan(directory.path()).unwrap();
        allow(mode);
        let shut = rescan(&open, now());
        let titles: Vec<_> = shut.titles().map(|(name, _)| name.as_str()).collect();
        assert_eq!(titles, ["film.mp4"]);
        let [unreadable] = shut.faults(FaultKind::Directory)[..] else {
            panic!("{:?}", shut.faults(FaultKind::Directory))
        };
        assert_eq!(unreadable.path, closed.canonicalize().unwrap());
        let changes = shut.changes_since(&open);
        assert_eq!((changes.removed, changes.faults.len()), (1, 1));
        let same = rescan(&shut, now());
        assert!(same.changes_since(&shut).is_empty());
        assert!(Library::scan(directory.path()).is_ok());
        let refused = strictly(directory.path()).to_string();
        assert!(
            refused.contains("closed") && refused.contains("ermission"),
            "{refused}"
        );
        allow(0o700);
        let repaired = rescan(&same, now());
        assert_eq!(repaired.changes_since(&same).repaired, 1);
        let later = repaired.next_look().unwrap();
        let repaired = rescan(&repaired, later);
        assert_eq!(repaired.titles().count(), 2);
    });
}
