//! Files that are being copied while the directory is read again.

use super::packaged::packaged;
use super::*;

/// Rescans every 2 s, `count` times, calling `change` with the number of the look before each.
fn look(library: Library, count: u64, change: impl Fn(u64)) -> Library {
    let begin = now();
    (0..count).fold(library, |library, number| {
        change(number);
        let at = begin + Duration::from_secs(2 * number);
        rescan(&library, at)
    })
}

/// Writes the first `length` bytes of the fixture to `path`.
fn write(path: &Path, length: usize) {
    fs::write(path, &fs::read(fixture("fragmented.mp4")).unwrap()[..length]).unwrap();
}

#[test]
fn a_copy_is_not_read_until_nothing_of_it_has_changed_for_some_seconds() {
    let directory = directory();
    let length = usize::try_from(fs::metadata(fixture("fragmented.mp4")).unwrap().len()).unwrap();
    let copy = directory.path().join("copy.mp4");
    let first = Library::scan(directory.path()).unwrap();
    // More than half a minute of copying.
    let copying = look(first, 20, |number| {
        write(&copy, length * usize::try_from(number + 1).unwrap() / 20);
    });
    assert_eq!(
        (copying.titles().count(), copying.faults(FaultKind::Title).len()),
        (1, 0)
    );
    let next = copying.next_look().unwrap();
    let too_early = next.checked_sub(Duration::from_millis(1)).unwrap();
    let early = rescan(&copying, too_early);
    assert_eq!(early.titles().count(), 1);
    assert_eq!(early.next_look(), Some(next));
    let complete = rescan(&early, next);
    assert_eq!((complete.titles().count(), complete.next_look()), (2, None));
    assert_eq!(complete.changes_since(&early).added, 1);
}

#[test]
fn a_title_keeps_what_is_known_of_it_while_another_version_is_written_over_it() {
    let directory = directory();
    let film = directory.path().join("film.mp4");
    let broken = directory.path().join("broken.mp4");
    fs::write(&broken, "x").unwrap();
    let first = Library::scan(directory.path()).unwrap();
    let rate = first.titles().next().unwrap().1.average_rate;
    let writing = look(first, 5, |number| {
        for file in [&film, &broken] {
            write(file, 1_000 * usize::try_from(number + 1).unwrap());
        }
    });
    assert_eq!(writing.titles().next().unwrap().1.average_rate, rate);
    assert_eq!(writing.faults(FaultKind::Title).len(), 1);
    // The file itself is served unchanged, without a rate.
    let served = open(&writing, "film.mp4");
    assert_eq!((served.info.length, served.average_rate), (5_000, None));
    fs::copy(fixture("fragmented.mp4"), &film).unwrap();
    let complete = look(writing, 3, |_| ());
    assert_ne!(complete.titles().next().unwrap().1.average_rate, rate);
    assert!(open(&complete, "film.mp4").average_rate.is_some());
}

#[rstest]
#[case::dash("manifest.mpd")]
#[case::hls_main("master.m3u8")]
#[case::hls_media("low.m3u8")]
fn a_packaged_title_keeps_what_is_known_of_it_while_a_manifest_is_written(#[case] manifest: &str) {
    let directory = packaged();
    let path = directory.path().join("film").join(manifest);
    let text = fs::read_to_string(&path).unwrap();
    let first = Library::scan(directory.path()).unwrap();
    let titles = first.packaged().to_vec();
    let rate = open(&first, "film/low-1.m4s").average_rate;
    let writing = look(first, 5, |number| {
        fs::write(
            &path,
            &text[..text.len() * usize::try_from(number + 1).unwrap() / 8],
        )
        .unwrap();
    });
    let mut kept = writing.packaged().to_vec();
    kept.sort_by(|a, b| a.manifest.as_str().cmp(b.manifest.as_str()));
    assert_eq!(kept, titles);
    assert!(
        writing.faults(FaultKind::Manifest).is_empty(),
        "{:?}",
        writing.faults(FaultKind::Manifest)
    );
    assert_eq!(open(&writing, "film/low-1.m4s").average_rate, rate);
    fs::write(&path, "").unwrap();
    let broken = look(writing, 3, |_| ());
    assert_eq!(broken.faults(FaultKind::Manifest).len(), 1);
}

#[rstest]
#[case::dash("manifest.mpd")]
#[case::hls_main("master.m3u8")]
#[case::hls_media("low.m3u8")]
fn a_new_packaged_title_appears_whole_and_once(#[case] last: &str) {
    let directory = packaged();
    let film = directory.path().join("film");
    let unused = if last.ends_with("mpd") { "m3u8" } else { "mpd" };
    for file in fs::read_dir(&film).unwrap() {
        let path = file.unwrap().path();
        if path.extension().unwrap() == unused {
            fs::remove_file(path).unwrap();
        }
    }
    fs::copy(fixture("fragmented.mp4"), directory.path().join("other.mp4")).unwrap();
    let hidden = directory.path().join(".film");
    fs::rename(&film, &hidden).unwrap();
    let library = Library::scan(directory.path()).unwrap();
    assert_eq!(library.packaged().len(), 0);
    fs::rename(&hidden, &film).unwrap();
    let text = fs::read_to_string(film.join(last)).unwrap();
    // All but the last manifest have existed for long.
    let writing = look(library, 5, |number| {
        fs::write(
            film.join(last),
            &text[..text.len() * usize::try_from(number + 1).unwrap() / 8],
        )
        .unwrap();
    });
    assert_eq!(writing.packaged(), []);
    fs::write(film.join(last), text).unwrap();
    let complete = look(writing, 3, |_| ());
    assert_eq!(complete.packaged().len(), 1);
}

#[test]
fn a_manifest_waits_for_the_title_that_it_names() {
    let directory = tempfile::tempdir().unwrap();
    fs::copy(fixture("fragmented.mp4"), directory.path().join("film.mp4")).unwrap();
    fs::write(directory.path().join("film.mpd"), mpd("film.mp4", "PT10S")).unwrap();
    let first = Library::scan(directory.path()).unwrap();
    let titles = first.packaged().to_vec();
    let writing = look(first, 5, |number| {
        write(
            &directory.path().join("film.mp4"),
            1_000 * usize::try_from(number + 1).unwrap(),
        );
    });
    assert_eq!(writing.packaged(), titles);
    fs::copy(fixture("fragmented-dash.mp4"), directory.path().join("film.mp4")).unwrap();
    let complete = look(writing, 3, |_| ());
    assert_ne!(complete.packaged(), titles);
}

/// As with a live title, whose playlist is rewritten with each segment.
#[test]
fn a_manifest_that_changes_all_the_time_is_read_every_half_minute() {
    let directory = packaged();
    let first = Library::scan(directory.path()).unwrap();
    let titles = first.packaged().len();
    let live = directory.path().join("live.m3u8");
    let from = directory.path().join("film").join("low.m3u8");
    let text = fs::read_to_string(from).unwrap().replace("low-", "film/low-");
    let write = |number: u64| {
        fs::write(
            &live,
            format!("{text}# {}\n", "x".repeat(usize::try_from(number).unwrap())),
        )
        .unwrap();
    };
    let soon = look(first, 14, write);
    assert_eq!(soon.packaged().len(), titles);
    let began = soon.next_look().unwrap();
    let later = (14..18).fold(soon, |library, number| {
        write(number);
        let at = began + Duration::from_secs(2 * (number - 13));
        rescan(&library, at)
    });
    assert_eq!(later.packaged().len(), titles + 1);
}
