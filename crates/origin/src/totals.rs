//! [`OriginTotals`]: costs of readers and the store so far.

use std::time::Duration;

use parking_lot::Mutex;
use playrate_units::Bytes;

/// Totals being counted. Cache sizes are read on demand.
pub(crate) type Counters = Mutex<OriginTotals>;

/// Totals since the start.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct OriginTotals {
    /// Reads that found their chunk in memory.
    pub memory_hits: u64,
    /// Reads that found their chunk on disk.
    pub disk_hits: u64,
    /// Reads that had to wait for the store.
    pub misses: u64,
    /// Misses that waited for bytes already requested by others.
    pub coalesced: u64,
    /// Requests for bytes of objects.
    pub gets: u64,
    /// Requests for versions of objects.
    pub heads: u64,
    /// Listings of all objects.
    pub lists: u64,
    /// Requests that failed even after retries.
    pub errors: u64,
    /// Objects found to be replaced by another version.
    pub changed: u64,
    /// Bytes of objects that the store sent.
    pub bytes: Bytes,
    /// Fetches ahead of a request.
    pub ahead: u64,
    /// Fetches ahead that were cancelled before they had ended.
    pub ahead_cancelled: u64,
    /// Chunks not written to disk because it was too slow or had no free slot.
    pub disk_skipped: u64,
    /// Size of the chunks in memory now.
    pub memory: Bytes,
    /// Size of the chunks on disk now.
    pub disk: Bytes,
    /// Number of requests for bytes per class of [`FIRST_BYTE_BOUNDS`](Self::FIRST_BYTE_BOUNDS): a request belongs to
    /// the first class whose bound its first byte met.
    pub first_bytes: [u64; Self::FIRST_BYTE_BOUNDS.len()],
    /// Sum of the times to the first byte, over all requests that got one.
    pub first_bytes_sum: Duration,
}

impl OriginTotals {
    /// Upper bounds in seconds of the classes of [`first_bytes`](Self::first_bytes).
    pub const FIRST_BYTE_BOUNDS: [f64; 13] = [
        0.001,
        0.002,
        0.005,
        0.01,
        0.02,
        0.05,
        0.1,
        0.2,
        0.5,
        1.0,
        2.0,
        5.0,
        f64::INFINITY,
    ];

    /// Counts a first byte that came after `time`.
    pub(crate) fn add_first_byte(&mut self, time: Duration) {
        let class = Self::FIRST_BYTE_BOUNDS.partition_point(|&bound| bound < time.as_secs_f64());
        self.first_bytes[class] += 1;
        self.first_bytes_sum += time;
    }
}
