//! [`OriginTotals`]: what readers and the store have cost so far.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use playrate_units::Bytes;

/// Upper bounds in seconds of the classes of [`OriginTotals::first_bytes`], each but the last.
const BOUNDS: [f64; 12] = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0,
];

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
    /// Reads among the misses that waited for bytes that others had requested already.
    pub coalesced: u64,
    /// Requests for bytes of objects.
    pub gets: u64,
    /// Requests for versions of objects.
    pub heads: u64,
    /// Listings of all objects.
    pub lists: u64,
    /// Requests that failed, also after further attempts.
    pub errors: u64,
    /// Objects that were found to be replaced by another version.
    pub changed: u64,
    /// Bytes of objects that the store sent.
    pub bytes: Bytes,
    /// Objects that were fetched ahead of a request.
    pub ahead: u64,
    /// Fetches ahead that were cancelled before they had ended.
    pub ahead_cancelled: u64,
    /// Chunks that were not written to disk, as it was too slow or had no free place.
    pub disk_skipped: u64,
    /// Size of the chunks in memory now.
    pub memory: Bytes,
    /// Size of the chunks on disk now.
    pub disk: Bytes,
    /// Upper bound in seconds, and number of requests for bytes whose first byte came within it; cumulative.
    pub first_bytes: Vec<(f64, u64)>,
    /// Sum of the times to the first bytes of all requests that had one.
    pub first_bytes_sum: Duration,
    /// Number of requests that had a first byte.
    pub first_bytes_count: u64,
}

/// Counters from which [`OriginTotals`] are taken.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) memory_hits: AtomicU64,
    pub(crate) disk_hits: AtomicU64,
    pub(crate) misses: AtomicU64,
    pub(crate) coalesced: AtomicU64,
    pub(crate) gets: AtomicU64,
    pub(crate) heads: AtomicU64,
    pub(crate) lists: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) changed: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) ahead: AtomicU64,
    pub(crate) ahead_cancelled: AtomicU64,
    pub(crate) disk_skipped: AtomicU64,
    first_bytes: [AtomicU64; BOUNDS.len()],
    first_bytes_count: AtomicU64,
    first_bytes_micros: AtomicU64,
}

impl Counters {
    /// Counts a first byte that came after `time`.
    pub(crate) fn first_byte(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        for (count, bound) in self.first_bytes.iter().zip(BOUNDS) {
            if seconds <= bound {
                count.fetch_add(1, Relaxed);
            }
        }
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.first_bytes_micros.fetch_add(micros, Relaxed);
        self.first_bytes_count.fetch_add(1, Relaxed);
    }

    pub(crate) fn totals(&self) -> OriginTotals {
        let of = |count: &AtomicU64| count.load(Relaxed);
        let classes = BOUNDS.into_iter().zip(&self.first_bytes);
        OriginTotals {
            memory_hits: of(&self.memory_hits),
            disk_hits: of(&self.disk_hits),
            misses: of(&self.misses),
            coalesced: of(&self.coalesced),
            gets: of(&self.gets),
            heads: of(&self.heads),
            lists: of(&self.lists),
            errors: of(&self.errors),
            changed: of(&self.changed),
            bytes: Bytes::new(of(&self.bytes)),
            ahead: of(&self.ahead),
            ahead_cancelled: of(&self.ahead_cancelled),
            disk_skipped: of(&self.disk_skipped),
            memory: Bytes::ZERO,
            disk: Bytes::ZERO,
            first_bytes: classes.map(|(bound, count)| (bound, of(count))).collect(),
            first_bytes_sum: Duration::from_micros(of(&self.first_bytes_micros)),
            first_bytes_count: of(&self.first_bytes_count),
        }
    }
}
