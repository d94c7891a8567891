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
    /// `None` for a file whose version could not be determined.
    File(Option<&'a EntityTag>),
    Packaged(&'a PackagedTitle),
}

/// Versions of all titles. A manifest never has the name of a title that is a file.
fn versions(library: &Library) -> BTreeMap<&ResourceName, Version<'_>> {
    let files = library.indexed.keys();
    let files = files.map(|name| (name, Version::File(library.versions.get(name))));
    let packaged = library.packaged.titles.iter();
    let packaged = packaged.map(|title| (&title.manifest, Version::Packaged(title)));
    files.chain(packaged).collect()
}
