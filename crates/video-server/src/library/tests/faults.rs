//! Directories with titles that cannot be played.

use super::packaged::packaged;
use super::*;

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
