//! Encoding of metrics that are read at each scrape, and the older text format.

use std::collections::HashSet;
use std::fmt::{self, Write as _};

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Unit;

/// Names and values of labels.
pub(super) type Labels = Vec<(&'static str, String)>;

/// Encodes metrics, each given as `name = value` or `name [Unit] = value`, with the doc comment as description.
macro_rules! encode {
    ($encoder:expr, $($(#[doc = $help:literal])+ $name:ident $([$($unit:tt)+])? = $metric:expr;)+) => {
        $($crate::cli::metrics::exposition::put(
            $encoder,
            (stringify!($name), concat!($($help),+)),
            &[$(prometheus_client::registry::Unit::$($unit)+)?],
            &$metric,
        )?;)+
    };
}
pub(super) use encode;

/// Encodes a metric with this name and description, and with at most one unit, if it has a sample.
pub(super) fn put(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    unit: &[Unit],
    metric: &dyn EncodeMetric,
) -> fmt::Result {
    if metric.is_empty() {
        return Ok(());
    }
    metric.encode(encoder.encode_descriptor(name, help.trim(), unit.first(), metric.metric_type())?)
}

/// A number that only grows.
pub(super) fn counter(total: u64) -> ConstCounter<u64> {
    ConstCounter::new(total)
}

/// A number that may fall.
pub(super) fn gauge<N: TryInto<i64>>(now: N) -> ConstGauge<i64> {
    ConstGauge::new(now.try_into().unwrap_or(i64::MAX))
}

/// Totals that only grow, by their labels.
pub(super) fn totals_of<V: Into<String>, const N: usize>(
    counts: impl IntoIterator<Item = ([(&'static str, V); N], u64)>,
) -> Family<Labels, Counter> {
    let family = Family::<Labels, Counter>::default();
    for (labels, count) in counts {
        let labels = labels.map(|(name, value)| (name, value.into()));
        family.get_or_create(&labels.into()).inc_by(count);
    }
    family
}

/// Sums of the counts given for each value of the label `name`.
pub(super) fn sums(
    name: &'static str,
    counts: impl IntoIterator<Item = (String, usize)>,
) -> Family<Labels, Gauge> {
    let family = Family::<Labels, Gauge>::default();
    for (value, count) in counts {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        family.get_or_create(&vec![(name, value)]).inc_by(count);
    }
    family
}

/// Numbers of occurrences of each of `values`, by the label `name`.
pub(super) fn occurrences(
    name: &'static str,
    values: impl IntoIterator<Item = String>,
) -> Family<Labels, Gauge> {
    sums(name, values.into_iter().map(|value| (value, 1)))
}

/// `OpenMetrics` text in the older format: a counter's help and type have the name of its samples, and units and the
/// end mark are left out.
pub(super) fn text_format(openmetrics: &str) -> String {
    let mut counters = HashSet::new();
    for line in openmetrics.lines() {
        let name = line
            .strip_prefix("# TYPE ")
            .and_then(|line| line.strip_suffix(" counter"));
        counters.extend(name);
    }
    let mut written = String::with_capacity(openmetrics.len());
    for line in openmetrics.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("UNIT" | "EOF"), ..) => continue,
            (Some("#"), Some(word), Some(name), Some(rest)) if counters.contains(name) => {
                // Writing to a String cannot fail.
                let _ = write!(written, "# {word} {name}_total {rest}");
            }
            _ => written.push_str(line),
        }
        written.push('\n');
    }
    written
}
