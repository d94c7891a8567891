//! [`OriginOptions`]: settings of an origin.

use std::path::PathBuf;
use std::time::Duration;

use playrate_units::Bytes as ByteCount;

/// Settings of an [`Origin`](crate::Origin).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OriginOptions {
    /// Location of the media: `s3://BUCKET/PREFIX`, `gs://…`, `az://…`.
    pub location: String,
    /// Memory for chunks; at least 32 MiB is used.
    pub memory: ByteCount,
    /// Place for chunks on disk.
    pub disk: Option<DiskOptions>,
    /// Time for which the version of an object, or its existence, is trusted without asking the store again.
    pub freshness: Duration,
    /// Maximum time without a byte from the store, including retries.
    pub timeout: Duration,
}

/// Place for chunks on disk.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a cache on disk has a place and a size")]
pub struct DiskOptions {
    /// Directory of one server, created if necessary.
    pub directory: PathBuf,
    /// Maximum size of the chunks.
    pub size: ByteCount,
}

impl OriginOptions {
    /// Options with 256 MB of memory, no disk, a freshness of 5 s and a timeout of 10 s.
    pub fn new(location: impl Into<String>) -> Self {
        Self {
            location: location.into(),
            memory: ByteCount::new(256_000_000),
            disk: None,
            freshness: Duration::from_secs(5),
            timeout: Duration::from_secs(10),
        }
    }
}
