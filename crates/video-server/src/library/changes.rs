//! [`LibraryChanges`]: differences between two readings of a media directory.

use std::collections::{BTreeMap, BTreeSet};

use super::{EntityTag, Fault, FaultKind, Library, PackagedTitle};
use crate::http::path::ResourceName;

/// Differences between a library and an earlier one.
#[derive(Debug)]
#[non_exhaustive]
pub struct LibraryChanges<'a> {
    /// Number of titles that the earlier one did not have.
    pub added: usize,
    /// Number of titles whose files, or whose manifests' representations, differ now.
    pub changed: usize,
    /// Number of titles that only the earlier one has.
    pub removed: usize,
    /// New faults, which the earlier library did not have.
    pub faults: Vec<&'a Fault>,
    /// Number of bad titles, manifests and directories that are gone or good now.
    pub repaired: usize,
}

impl Library {
    /// Differences between this library and `earlier`.
    pub fn changes_since<'a>(&'a self, earlier: &'a Self) -> LibraryChanges<'a> {
        let (before, now) = (versions(earlier), versions(self));
        let is_new = |name: &&&ResourceName| !before.contains_key(*name);
        let is_changed = |(name, version): &(&&ResourceName, &Version<'_>)| {
            before.get(*name).is_some_and(|before| before != *version)
        };
        let repaired = without(&earlier.faults, &self.faults, |fault| (fault.kind, &fault.path));
        LibraryChanges {
            added: now.keys().filter(is_new).count(),
            changed: now.iter().filter(is_changed).count(),
            removed: before.keys().filter(|name| !now.contains_key(*name)).count(),
            faults: without(&self.faults, &earlier.faults, |fault| {
                (fault.kind, &fault.path, &fault.subject)
            }),
            repaired: repaired
                .iter()
                .filter(|fault| fault.kind != FaultKind::Warning)
                .count(),
        }
    }
}

/// The items of `all` whose keys do not occur in `others`.
fn without<'a, T, K: Ord>(all: &'a [T], others: &'a [T], key: impl Fn(&'a T) -> K) -> Vec<&'a T> {
    let others: BTreeSet<K> = others.iter().map(&key).collect();
    all.iter().filter(|item| !others.contains(&key(item))).collect()
}

impl LibraryChanges<'_> {
    /// Returns true if titles and faults are the same.
    pub fn is_empty(&self) -> bool {
        self.added + self.changed + self.removed + self.repaired == 0 && self.faults.is_empty()
    }

    /// Logs the new faults.
    pub fn warn(&self) {
        for fault in &self.faults {
            let consequence = match fault.kind {
                FaultKind::Title => {
                    "a title that cannot be played: its file is served unchanged, its rate is unknown"
                }
                FaultKind::Manifest => {
                    "a manifest that cannot be used: its files are served, their rates are unknown"
                }
                FaultKind::Directory => "a directory that cannot be read: its titles are not served",
                FaultKind::Warning => {
                    tracing::warn!("{fault}");
                    continue;
                }
            };
            tracing::warn!(error = %fault, "{consequence}");
        }
    }
}

/// Part of a title that can differ between two of its versions.
#[derive(PartialEq)]
enum Version<'a> {
    File(&'a EntityTag),
    Packaged(&'a PackagedTitle),
}

/// Versions of all titles. A manifest never has the name of a title that is a file.
fn versions(library: &Library) -> BTreeMap<&ResourceName, Version<'_>> {
    let files = library.indexed.iter();
    let files = files.map(|(name, indexed)| (name, Version::File(&indexed.etag)));
    let packaged = library.packaged.titles.iter();
    let packaged = packaged.map(|title| (&title.manifest, Version::Packaged(title)));
    files.chain(packaged).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use playrate_media::MemorySource;
    use quinn::{Runtime as _, TokioRuntime};
    use tempfile::TempDir;

    use super::*;

    fn fixture() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/fixtures/fragmented.mp4")
    }

    fn directory() -> TempDir {
        let directory = tempfile::tempdir().unwrap();
        fs::copy(fixture(), directory.path().join("film.mp4")).unwrap();
        directory
    }

    /// Rescans the directory until everything in it is settled.
    fn again(library: &Library) -> Library {
        let look = |library: &Library, now| library.rescan(now, &mut |_| ()).unwrap().unwrap();
        let found = look(library, TokioRuntime.now());
        match found.next_look() {
            None => found,
            Some(next) => look(&found, next),
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
        let path = directory.path().join("film.mp4");
        let library = Library::scan(directory.path()).unwrap();
        // The same version, judging by its metadata.
        let metadata = fs::metadata(&path).unwrap();
        fs::write(&path, vec![0; usize::try_from(metadata.len()).unwrap()]).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
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
        let path = |name: &str| directory.path().join(name);
        fs::write(path("bad.mp4"), "x").unwrap();
        fs::write(path("bad.m3u8"), "x").unwrap();
        let first = Library::scan(directory.path()).unwrap();
        fs::rename(path("film.mp4"), path("renamed.mp4")).unwrap();
        let second = again(&first);
        assert_eq!(counts(&second.changes_since(&first)), [1, 0, 1, 0, 0, 0]);
        fs::remove_file(path("bad.m3u8")).unwrap();
        fs::copy(fixture(), path("bad.mp4")).unwrap();
        let third = again(&second);
        assert_eq!(counts(&third.changes_since(&second)), [1, 0, 0, 0, 0, 2]);
        fs::copy(fixture(), path("new")).unwrap();
        fs::rename(path("new"), path("bad.mp4")).unwrap();
        fs::write(path("worse.mp4"), "x").unwrap();
        fs::write(path("worse.mpd"), "x").unwrap();
        let fourth = again(&third);
        assert_eq!(counts(&fourth.changes_since(&third)), [0, 1, 0, 1, 1, 0]);
        assert!(fourth.strictly().is_err());
    }

    #[test]
    fn a_packaged_title_changes_with_its_segments() {
        let directory = directory();
        let playlist =
            "#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXTINF:3,\na.m4s\n#EXTINF:3,\nb.m4s\n#EXT-X-ENDLIST\n";
        fs::write(directory.path().join("list.m3u8"), playlist).unwrap();
        fs::write(directory.path().join("a.m4s"), [0; 1_000]).unwrap();
        let before = Library::scan(directory.path()).unwrap();
        fs::write(directory.path().join("b.m4s"), [0; 5_000]).unwrap();
        let after = again(&before);
        assert_eq!(counts(&after.changes_since(&before)), [0, 1, 0, 0, 0, 0]);
        assert_eq!(after.packaged()[0].representations[0].missing, 0);
    }

    #[test]
    fn titles_from_memory_stay_and_every_directory_is_visited() {
        let directory = directory();
        fs::create_dir_all(directory.path().join("a/b")).unwrap();
        let source = MemorySource::new(fs::read(fixture()).unwrap()).unwrap();
        let library = Library::scan(directory.path()).unwrap();
        let library = library.with_source("built-in.mp4", Arc::new(source)).unwrap();
        fs::remove_file(directory.path().join("film.mp4")).unwrap();
        let mut visited = Vec::new();
        let visit = &mut |directory: &Path| visited.push(directory.to_owned());
        let after = library.rescan(TokioRuntime.now(), visit).unwrap().unwrap();
        let names: Vec<_> = after.titles().map(|(name, _)| name.as_str().to_owned()).collect();
        assert_eq!(names, ["built-in.mp4"]);
        let root = directory.path().canonicalize().unwrap();
        assert_eq!(visited, [root.clone(), root.join("a"), root.join("a/b")]);
        assert!(after.open(after.titles().next().unwrap().0).unwrap().is_some());
    }

    #[test]
    fn a_fault_is_reported_again_only_after_it_has_changed() {
        let directory = directory();
        let path = |name: &str| directory.path().join(name);
        let playlist = |segments: &[&str]| {
            let mut text = "#EXTM3U\n#EXT-X-TARGETDURATION:3\n".to_owned();
            text.extend(segments.iter().map(|file| format!("#EXTINF:3,\n{file}\n")));
            fs::write(path("list.m3u8"), text + "#EXT-X-ENDLIST\n").unwrap();
        };
        playlist(&["a.m4s", "b.m4s", "c.m4s"]);
        fs::write(path("a.m4s"), [0; 1_000]).unwrap();
        let main = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=9\nnone.m3u8\n";
        fs::write(path("main.m3u8"), main).unwrap();
        fs::write(path("bad.mp4"), "x").unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("nowhere", path("link.mp4")).unwrap();
            let not_utf8 = std::os::unix::ffi::OsStrExt::from_bytes(b"\xff.mp4");
            fs::write(directory.path().join::<&std::ffi::OsStr>(not_utf8), "x").unwrap();
        }
        let warnings = |changes: &LibraryChanges<'_>| {
            let warnings = changes
                .faults
                .iter()
                .filter(|fault| fault.kind == FaultKind::Warning);
            let texts = warnings.map(ToString::to_string);
            texts.collect::<Vec<_>>().join("\n")
        };
        let first = Library::scan(directory.path()).unwrap();
        let nothing = Library::new();
        let said = warnings(&first.changes_since(&nothing));
        for part in ["2 of the 3 segments", "`none.m3u8`"] {
            assert!(said.contains(part), "{part} is missing in: {said}");
        }
        if cfg!(unix) {
            for part in ["link.mp4 is not indexed", ".mp4 is not served"] {
                assert!(said.contains(part), "{part} is missing in: {said}");
            }
        }
        let same = again(&first);
        assert!(same.changes_since(&first).is_empty());
        // Segments of a title that is being copied arrive one by one.
        fs::write(path("b.m4s"), [0; 1_000]).unwrap();
        fs::write(path("bad.mp4"), "").unwrap();
        let third = again(&same);
        let changes = third.changes_since(&same);
        assert_eq!(warnings(&changes), "");
        assert_eq!(counts(&changes), [0, 1, 0, 1, 0, 0]);
        // Complete, and then incomplete again.
        fs::write(path("c.m4s"), [0; 1_000]).unwrap();
        let complete = again(&third);
        fs::remove_file(path("c.m4s")).unwrap();
        let fifth = again(&complete);
        let said = warnings(&fifth.changes_since(&complete));
        assert!(said.contains("1 of the 3 segments"), "{said}");
    }
}
