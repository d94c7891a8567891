//! [`OriginCollector`]: metrics of an object store and the cache of its objects.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use video_server::serve::VideoServer;

/// Reads the totals of the store at each scrape; exports nothing if the media is in a directory.
#[derive(Debug)]
pub(super) struct OriginCollector(pub(super) VideoServer);

impl Collector for OriginCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(totals) = self.0.library().origin_totals() else {
            return Ok(());
        };
        let mut put = |name, help, unit: Option<&Unit>, metric: &dyn EncodeMetric| {
            metric.encode(encoder.encode_descriptor(name, help, unit, metric.metric_type())?)
        };
        for (name, help, count) in [
            (
                "memory_hits",
                "Reads of objects that found their bytes in memory.",
                totals.memory_hits,
            ),
            (
                "disk_hits",
                "Reads of objects that found their bytes on disk.",
                totals.disk_hits,
            ),
            (
                "misses",
                "Reads of objects that waited for the store.",
                totals.misses,
            ),
            (
                "coalesced_reads",
                "Reads that waited for bytes which the store had been asked for already.",
                totals.coalesced,
            ),
            ("get_requests", "Requests for bytes of objects.", totals.gets),
            ("head_requests", "Requests for versions of objects.", totals.heads),
            ("list_requests", "Listings of the store.", totals.lists),
            (
                "failed_requests",
                "Requests that failed, also after further attempts.",
                totals.errors,
            ),
            (
                "replaced_objects",
                "Objects that were found replaced by another version.",
                totals.changed,
            ),
            (
                "read_ahead",
                "Fetches of what players are expected to request next.",
                totals.ahead,
            ),
            (
                "cancelled_read_ahead",
                "Fetches ahead that were cancelled, as no player expected them any more.",
                totals.ahead_cancelled,
            ),
            (
                "skipped_disk_writes",
                "Pieces of objects that were not kept on disk, as it was too slow.",
                totals.disk_skipped,
            ),
        ] {
            put(name, help, None, &ConstCounter::new(count))?;
        }
        put(
            "received",
            "Bytes of objects that the store sent.",
            Some(&Unit::Bytes),
            &ConstCounter::new(totals.bytes.as_u64()),
        )?;
        let gauge = |bytes: u64| ConstGauge::new(i64::try_from(bytes).unwrap_or(i64::MAX));
        for (name, help, size) in [
            ("memory", "Size of the bytes of objects in memory.", totals.memory),
            ("disk", "Size of the bytes of objects on disk.", totals.disk),
        ] {
            put(name, help, Some(&Unit::Bytes), &gauge(size.as_u64()))?;
        }
        let mut before = 0;
        let classes = totals.first_bytes.iter().map(|&(bound, count)| {
            let class = (bound, count.saturating_sub(before));
            before = count;
            class
        });
        let mut classes: Vec<_> = classes.collect();
        classes.push((f64::INFINITY, totals.first_bytes_count.saturating_sub(before)));
        let mut histogram = encoder.encode_descriptor(
            "first_byte",
            "Time from a request for bytes to the first of them.",
            Some(&Unit::Seconds),
            MetricType::Histogram,
        )?;
        histogram.encode_histogram::<NoLabelSet>(
            totals.first_bytes_sum.as_secs_f64(),
            totals.first_bytes_count,
            &classes,
            None,
        )
    }
}
