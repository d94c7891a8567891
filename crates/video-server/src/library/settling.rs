//! Decides by two looks which files of a media directory are complete.

use std::path::Path;
use std::time::{Duration, Instant};

use playrate_media::manifest::Manifest;

use super::Library;
use super::file::OpenFile;
use crate::http::path::ResourceName;
use crate::http::validator::EntityTag;

/// Time that a new or changed file must stay unchanged before it is read: a copy in progress changes it.
const SETTLING: Duration = Duration::from_secs(3);

/// Time after which a manifest is read although it keeps changing, as that of a live title does.
const LONGEST: Duration = Duration::from_secs(30);

/// A version of a file that has been seen but not read.
#[derive(Clone, Debug)]
pub(super) struct Unsettled {
    etag: EntityTag,
    since: Instant,
    /// Time at which the first unread version was seen.
    first: Instant,
}

impl Library {
    /// Looks at the file `name` at `path`, and keeps its version for the next look. Returns true if it may be read: it
    /// is unchanged since `previous` read it, or unchanged for [`SETTLING`], or it is a manifest that has been changing
    /// for [`LONGEST`]. Without `now` every file may be read.
    pub(super) fn is_settled(
        &mut self,
        (previous, now): (&Self, Option<Instant>),
        name: &ResourceName,
        path: &Path,
    ) -> bool {
        // Reading a missing file gives an error with the reason.
        let Ok(Some(etag)) = OpenFile::etag_at(path) else {
            return true;
        };
        let read_before = previous.versions.get(name);
        let Some(now) = now.filter(|_| read_before != Some(&etag)) else {
            self.versions.insert(name.clone(), etag);
            return true;
        };
        let seen = previous.unsettled.get(name);
        let first = seen.map_or(now, |seen| seen.first);
        let since = seen
            .filter(|seen| seen.etag == etag)
            .map_or(now, |seen| seen.since);
        let is_overdue = Manifest::is_named(path) && now.saturating_duration_since(first) >= LONGEST;
        if is_overdue || now.saturating_duration_since(since) >= SETTLING {
            self.versions.insert(name.clone(), etag);
            return true;
        }
        if let Some(etag) = read_before {
            self.versions.insert(name.clone(), etag.clone());
        }
        self.unsettled
            .insert(name.clone(), Unsettled { etag, since, first });
        false
    }

    /// Earliest time at which another look may find complete files that this one left out; `None` if it left out none.
    pub fn next_look(&self) -> Option<Instant> {
        let times = self.unsettled.values().map(|file| file.since + SETTLING);
        times.min()
    }
}
