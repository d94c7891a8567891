//! [`OriginCollector`]: metrics of an object store and the cache of its objects.

use std::fmt;

use playrate_origin::OriginTotals;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use video_server::serve::VideoServer;

use super::exposition::{counter, encode, gauge};

/// Reads the totals of the store at each scrape; exports nothing if the media is in a directory.
#[derive(Debug)]
pub(super) struct OriginCollector(pub(super) VideoServer);

impl Collector for OriginCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(totals) = self.0.library().origin_totals() else {
            return Ok(());
        };
        encode! { &mut encoder,
            /// Reads of objects that found their bytes in memory.
            memory_hits = counter(totals.memory_hits);
            /// Reads of objects that found their bytes on disk.
            disk_hits = counter(totals.disk_hits);
            /// Reads of objects that waited for the store.
            misses = counter(totals.misses);
            /// Reads that waited for bytes already requested from the store.
            coalesced_reads = counter(totals.coalesced);
            /// Requests for bytes of objects.
            get_requests = counter(totals.gets);
            /// Requests for versions of objects.
            head_requests = counter(totals.heads);
            /// Listings of the store.
            list_requests = counter(totals.lists);
            /// Requests that failed even after retries.
            failed_requests = counter(totals.errors);
            /// Objects found to be replaced by another version.
            replaced_objects = counter(totals.changed);
            /// Fetches of bytes that players are expected to request next.
            read_ahead = counter(totals.ahead);
            /// Fetches ahead that were cancelled because no player expected them any more.
            cancelled_read_ahead = counter(totals.ahead_cancelled);
            /// Pieces of objects that were not kept on disk because it was too slow.
            skipped_disk_writes = counter(totals.disk_skipped);
            /// Bytes of objects that the store sent.
            received [Bytes] = counter(totals.bytes.as_u64());
            /// Size of the bytes of objects in memory.
            memory [Bytes] = gauge(totals.memory.as_u64());
            /// Size of the bytes of objects on disk.
            disk [Bytes] = gauge(totals.disk.as_u64());
        }
        let classes = OriginTotals::FIRST_BYTE_BOUNDS
            .into_iter()
            .zip(totals.first_bytes);
        let mut histogram = encoder.encode_descriptor(
            "first_byte",
            "Time from a request for bytes to the first of them.",
            Some(&Unit::Seconds),
            MetricType::Histogram,
        )?;
        histogram.encode_histogram::<NoLabelSet>(
            totals.first_bytes_sum.as_secs_f64(),
            totals.first_bytes.iter().sum(),
            &classes.collect::<Vec<_>>(),
            None,
        )
    }
}
