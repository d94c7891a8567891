//! Files that are being copied while the directory is read again.

use super::packaged::{packaged, remove};
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

/// Writes the first `length` bytes of the fixture to `name`.
fn write(directory: &Media, name: &str, length: u64) {
    let all = fs::read(fixture("fragmented.mp4")).unwrap();
    directory.put(name, &all[..usize::try_from(length).unwrap()]);
}

/// Writes the first `eighths` eighths of `text` to `path`.
fn write_part(path: &Path, text: &str, eighths: u64) {
    fs::write(path, &text[..text.len() * usize::try_from(eighths).unwrap() / 8]).unwrap();
}

#[test]
fn a_copy_is_not_read_until_nothing_of_it_has_changed_for_some_seconds() {
    let directory = directory();
    let length = fs::metadata(fixture("fragmented.mp4")).unwrap().len();
    let first = scan(&directory);
    // More than half a minute of copying.
    let copying = look(first, 20, |number| {
        write(&directory, "copy.mp4", length * (number + 1) / 20);
    });
    assert_eq!(copying.titles().count(), 1);
    assert_eq!(copying.faults(FaultKind::Title).len(), 0);
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
    directory.put("broken.mp4", "x");
    let first = scan(&directory);
    let rate = first.titles().next().unwrap().1.average_rate;
    let writing = look(first, 5, |number| {
        for file in ["film.mp4", "broken.mp4"] {
            write(&directory, file, 1_000 * (number + 1));
        }
    });
    assert_eq!(writing.titles().next().unwrap().1.average_rate, rate);
    assert_eq!(writing.faults(FaultKind::Title).len(), 1);
    // The file itself is served unchanged, without a rate.
    let served = open(&writing, "film.mp4");
    assert_eq!((served.info.length, served.average_rate), (5_000, None));
    directory.copy("fragmented.mp4", "film.mp4");
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
    let path = directory.path("film").join(manifest);
    let text = fs::read_to_string(&path).unwrap();
    let first = scan(&directory);
    let titles = first.packaged().to_vec();
    let rate = open(&first, "film/low-1.m4s").average_rate;
    let writing = look(first, 5, |number| write_part(&path, &text, number + 1));
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
    let film = directory.path("film");
    let unused = if last.ends_with("mpd") { "m3u8" } else { "mpd" };
    remove(&directory, unused);
    directory.copy("fragmented.mp4", "other.mp4");
    let hidden = directory.path(".film");
    fs::rename(&film, &hidden).unwrap();
    let library = scan(&directory);
    assert_eq!(library.packaged().len(), 0);
    fs::rename(&hidden, &film).unwrap();
    let text = fs::read_to_string(film.join(last)).unwrap();
    // All but the last manifest have existed for long.
    let writing = look(library, 5, |number| {
        write_part(&film.join(last), &text, number + 1);
    });
    assert_eq!(writing.packaged(), []);
    fs::write(film.join(last), text).unwrap();
    let complete = look(writing, 3, |_| ());
    assert_eq!(complete.packaged().len(), 1);
}

#[test]
fn a_manifest_waits_for_the_title_that_it_names() {
    let directory = Media::new();
    directory.copy("fragmented.mp4", "film.mp4");
    directory.put("film.mpd", mpd("film.mp4", "PT10S"));
    let first = scan(&directory);
    let titles = first.packaged().to_vec();
    let writing = look(first, 5, |number| {
        write(&directory, "film.mp4", 1_000 * (number + 1));
    });
    assert_eq!(writing.packaged(), titles);
    directory.copy("fragmented-dash.mp4", "film.mp4");
    let complete = look(writing, 3, |_| ());
    assert_ne!(complete.packaged(), titles);
}

/// As with a live title, whose playlist is rewritten with each segment.
#[test]
fn a_manifest_that_changes_all_the_time_is_read_every_half_minute() {
    let directory = packaged();
    let first = scan(&directory);
    let titles = first.packaged().len();
    let text = fs::read_to_string(directory.path("film/low.m3u8"))
        .unwrap()
        .replace("low-", "film/low-");
    let write = |number: u64| {
        let comment = "x".repeat(usize::try_from(number).unwrap());
        directory.put("live.m3u8", format!("{text}# {comment}\n"));
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
