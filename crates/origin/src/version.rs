//! [`ObjectVersion`]: one version of an object.

use std::time::SystemTime;

use object_store::ObjectMeta;
use object_store::path::Path;
use sha2::{Digest, Sha256};

/// Hash of store, name and entity tag: the same on every start, so that what is on disk is found again.
pub(crate) type ObjectKey = u128;

/// One version of an object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ObjectVersion {
    /// Path in the bucket.
    pub(crate) path: Path,
    /// URL that messages name it by.
    pub(crate) url: String,
    /// Entity tag as the store writes it, with quotes.
    pub(crate) etag: String,
    pub(crate) length: u64,
    pub(crate) modified: SystemTime,
    pub(crate) key: ObjectKey,
}

impl ObjectVersion {
    /// The version that `meta` describes; `None` without an entity tag, or with a weak one, which identifies no bytes.
    pub(crate) fn new(bucket: &str, meta: ObjectMeta) -> Option<Self> {
        let etag = meta.e_tag.filter(|etag| !etag.starts_with("W/"))?;
        let url = format!("{bucket}{}", meta.location);
        let hash = Sha256::new()
            .chain_update(url.as_bytes())
            .chain_update([0])
            .chain_update(etag.as_bytes())
            .chain_update(meta.size.to_le_bytes())
            .finalize();
        let half = hash.first_chunk().copied().unwrap_or_default();
        Some(Self {
            path: meta.location,
            url,
            etag,
            length: meta.size,
            modified: meta.last_modified.into(),
            key: u128::from_le_bytes(half),
        })
    }
}
