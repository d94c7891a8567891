//! [`Object`]: one version of an object of a store.

use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::{Bytes, BytesMut};

use crate::error::OriginError;
use crate::shared::OriginRuntime;
use crate::version::ObjectVersion;

/// One version of an object.
#[derive(Clone, Debug)]
pub struct Object {
    pub(crate) origin: Arc<OriginRuntime>,
    pub(crate) version: Arc<ObjectVersion>,
}

impl Object {
    /// Size of the object in bytes.
    pub fn len(&self) -> u64 {
        self.version.length
    }

    /// Returns true if it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Entity tag as the store writes it, with quotes. Versions with the same tag have the same bytes.
    pub fn etag(&self) -> &str {
        &self.version.etag
    }

    /// Time of its last modification.
    pub fn modified(&self) -> SystemTime {
        self.version.modified
    }

    /// Fetches `bytes` on the calling thread, without caching them.
    pub(crate) fn read_past_the_cache(&self, bytes: Range<u64>) -> Result<Bytes, OriginError> {
        let (shared, version) = (Arc::clone(&self.origin.shared), Arc::clone(&self.version));
        self.origin.block(async move {
            let length = usize::try_from(bytes.end - bytes.start).unwrap_or(usize::MAX);
            let mut stream = shared.get(&version, bytes).await?.into_stream();
            let mut read = BytesMut::new();
            while read.len() < length {
                let left = (length - read.len()) as u64;
                let piece = shared.next_piece(&version, &mut stream, left).await?;
                read.extend_from_slice(&piece);
            }
            read.truncate(length);
            Ok(read.freeze())
        })
    }
}
