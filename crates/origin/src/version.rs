//! [`ObjectVersion`]: one version of an object.

use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectMeta};
use sha2::{Digest, Sha256};

/// Hash of store, name and entity tag, the same on every start, so that chunks on disk are found again.
pub(crate) type ObjectKey = u128;

/// One version of an object. Two are the same if URL, entity tag and length are equal.
#[derive(Debug)]
pub(crate) struct ObjectVersion {
    /// Path below the location.
    pub(crate) path: Path,
    /// URL for use in messages.
    pub(crate) url: String,
    /// Strong entity tag, with quotes.
    pub(crate) etag: String,
    pub(crate) length: u64,
    /// Time of its last modification in whole seconds, because some of a store's answers are no more precise.
    pub(crate) modified: SystemTime,
    pub(crate) key: ObjectKey,
}

impl ObjectVersion {
    /// The version described by `meta` below `location`; `None` if the entity tag is missing or weak, because it then
    /// identifies no bytes.
    pub(crate) fn new(location: &str, meta: ObjectMeta) -> Option<Self> {
        let etag = quoted(meta.e_tag.filter(|etag| !etag.starts_with("W/"))?);
        let url = format!("{location}{}", meta.location);
        let hash = Sha256::new()
            .chain_update(url.as_bytes())
            .chain_update([0])
            .chain_update(etag.as_bytes())
            .chain_update(meta.size.to_le_bytes())
            .finalize();
        let since = SystemTime::from(meta.last_modified).duration_since(UNIX_EPOCH);
        let modified = UNIX_EPOCH + Duration::from_secs(since.unwrap_or_default().as_secs());
        let half = hash.first_chunk().copied().unwrap_or_default();
        Some(Self {
            path: meta.location,
            url,
            etag,
            length: meta.size,
            modified,
            key: u128::from_le_bytes(half),
        })
    }

    /// A request for `bytes` of this version and no other.
    pub(crate) fn options(&self, bytes: Range<u64>) -> GetOptions {
        GetOptions {
            range: Some(GetRange::Bounded(bytes)),
            if_match: Some(self.etag.clone()),
            ..GetOptions::default()
        }
    }
}

impl PartialEq for ObjectVersion {
    fn eq(&self, other: &Self) -> bool {
        (&self.url, &self.etag, self.length) == (&other.url, &other.etag, other.length)
    }
}

impl Eq for ObjectVersion {}

/// An entity tag with quotes; Azure leaves them out in listings.
pub(crate) fn quoted(etag: String) -> String {
    if etag.starts_with(['"', 'W']) && etag.ends_with('"') {
        etag
    } else {
        format!("\"{etag}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(etag: &str, millis: u64) -> ObjectVersion {
        let meta = ObjectMeta {
            location: Path::from("film.mp4"),
            last_modified: (UNIX_EPOCH + Duration::from_millis(millis)).into(),
            size: 1_000,
            e_tag: Some(etag.to_owned()),
            version: None,
        };
        ObjectVersion::new("s3://films/", meta).unwrap()
    }

    #[test]
    fn a_listing_with_milliseconds_has_the_version_of_an_answer_with_whole_seconds() {
        let (listed, requested) = (version("\"a\"", 5_678), version("\"a\"", 5_000));
        assert_eq!(listed, requested);
        assert_eq!(listed.modified, requested.modified);
        assert_ne!(listed, version("\"b\"", 5_678));
    }

    #[test]
    fn an_entity_tag_without_quotes_is_that_with_quotes() {
        let (listed, requested) = (version("0x8DB", 0), version("\"0x8DB\"", 0));
        assert_eq!(listed, requested);
        assert_eq!(listed.key, requested.key);
        assert_eq!(listed.etag, "\"0x8DB\"");
        assert_eq!(quoted("W/\"a\"".to_owned()), "W/\"a\"");
    }
}
