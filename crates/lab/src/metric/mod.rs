//! [`Metric`]: every number of a result that summaries and reports use, under a single name.
//!
//! A metric is named after its field in `runs.jsonl`, or has its own name if it is computed from several fields.

mod unit;

use std::time::Duration;

use playrate_units::Bitrate;
use serde::Serialize;

pub(crate) use unit::Unit;

use crate::result::Row;
use crate::sim::ControlStatistics;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Better {
    Lower,
    Higher,
    /// The metric is not a measure of quality.
    #[serde(rename = "")]
    Neither,
}

/// Function that reads a metric from a row.
#[derive(Debug)]
enum Value {
    /// A number; several rows are averaged.
    Number(fn(&Row) -> Option<f64>),
    /// Numerator and denominator; each is summed over several rows.
    Ratio(fn(&Row) -> Option<(f64, f64)>),
}

/// A number of a result. Serializes to the properties that the page needs.
#[derive(Debug, Serialize)]
pub(crate) struct Metric {
    /// Explanation of the label; empty if the label says it all.
    pub(crate) about: &'static str,
    pub(crate) better: Better,
    /// Heading for people, without the unit.
    pub(crate) label: &'static str,
    /// Name in files and on the command line.
    pub(crate) name: &'static str,
    pub(crate) unit: Unit,
    #[serde(skip)]
    value: Value,
}

impl Metric {
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        METRICS.iter().find(|metric| metric.name == name)
    }

    /// The value in `row`, in [`unit`](Self::unit); `None` if the row has none.
    pub(crate) fn value(&self, row: &Row) -> Option<f64> {
        self.pooled([row])
    }

    /// The combined value of several flows of one run: the mean of numbers, or the ratio of the sums. `None` if there
    /// is no row, or if one row has no value.
    pub(crate) fn pooled<'a>(&self, rows: impl IntoIterator<Item = &'a Row>) -> Option<f64> {
        let (mut numerator, mut denominator) = (0.0, 0.0);
        for row in rows {
            let (more, of) = match self.value {
                Value::Number(read) => (read(row)?, 1.0),
                Value::Ratio(read) => read(row)?,
            };
            numerator += more;
            denominator += of;
        }
        (denominator > 0.0).then(|| numerator / denominator)
    }
}

/// A field's value in the unit of `runs.jsonl`; `None` if the row has none.
trait Number {
    fn number(&self) -> Option<f64>;
}

impl Number for u64 {
    fn number(&self) -> Option<f64> {
        Some(*self as f64)
    }
}

impl Number for f64 {
    fn number(&self) -> Option<f64> {
        Some(*self)
    }
}

impl Number for Duration {
    fn number(&self) -> Option<f64> {
        Some(self.as_nanos() as f64 / 1e9)
    }
}

impl Number for Bitrate {
    fn number(&self) -> Option<f64> {
        self.as_bits_per_second().number()
    }
}

impl<T: Number> Number for Option<T> {
    fn number(&self) -> Option<f64> {
        self.as_ref()?.number()
    }
}

/// A metric: name, label, unit, which direction is better, explanation, value in a row.
macro_rules! metric {
    ($name:expr, $label:literal, $unit:ident, $better:ident, $about:literal, $value:expr) => {
        Metric {
            name: $name,
            label: $label,
            about: $about,
            unit: Unit::$unit,
            better: Better::$better,
            value: $value,
        }
    };
}

/// A metric that is a field, of the row itself or of one of its groups. It has the field's name, except in the playback
/// report.
macro_rules! field {
    (row.$name:ident, $($about:tt),+) => {
        metric!(stringify!($name), $($about),+, Value::Number(|row| row.$name.number()))
    };
    (playback.$field:ident as $name:literal, $($about:tt),+) => {
        metric!($name, $($about),+, Value::Number(|row| row.playback.$field.number()))
    };
    ($group:ident.$name:ident, $($about:tt),+) => {
        metric!(stringify!($name), $($about),+, Value::Number(|row| row.$group.as_ref()?.$name.number()))
    };
}

/// Mean growth factor of the window per round trip, from the second to the fourth: the first is the handshake.
fn growth(control: &ControlStatistics) -> Option<f64> {
    let after = |rtts: usize| control.window_first_rtts_bytes.get(rtts - 1)?.number();
    let (second, fourth) = (after(2)?, after(4)?);
    (second > 0.0).then(|| (fourth / second).sqrt())
}

fn underflows_per_minute(row: &Row) -> Option<(f64, f64)> {
    let played = row.playback.ended.number()? - row.playback.startup_delay.number()?;
    Some((row.playback.underflow_events as f64, played / 60.0))
}

fn title_wire_rate(row: &Row) -> Option<f64> {
    let bytes = row.link.as_ref()?.link_bytes as f64;
    let received = row.received_bytes as f64;
    (received > 0.0).then(|| row.title_rate_bps as f64 * bytes / received)
}

fn loss_ratio(row: &Row) -> Option<(f64, f64)> {
    let sender = row.sender.as_ref()?;
    Some((sender.lost_packets as f64, sender.sent_packets as f64))
}

fn drop_ratio(row: &Row) -> Option<(f64, f64)> {
    let link = row.link.as_ref()?;
    let dropped = link.queue_drops.saturating_add(link.random_losses) as f64;
    Some((dropped, dropped + link.link_packets as f64))
}

/// Every metric, in the order of tables.
#[rustfmt::skip] // A table: one entry has one or two lines.
pub(crate) const METRICS: &[Metric] = &[
    // The viewer.
    metric!("impaired_share", "Impaired share", Share, Lower,
        "larger of stalled time and unshown frames' display time, over its sum with the time shown; 1 if nothing shown",
        Value::Number(Row::impaired_share)),
    metric!("score", "Score", Share, Lower, "mean of waiting and skipping share; of a ladder the impaired share",
        Value::Number(Row::score)),
    field!(delivery.waiting_share, "Waiting share", Share, Lower, "of a player that waits for every frame"),
    field!(delivery.skipping_share, "Skipping share", Share, Lower,
        "of frames late for players of 1 to 32 s latency"),
    field!(playback.startup_delay as "startup_delay_s", "Start-up delay", Seconds, Lower,
        "from the request to the first frame"),
    field!(playback.ended as "ended_s", "End of playback", Seconds, Neither, "from the request"),
    field!(playback.frames as "frames", "Frames", Count, Neither, "of the title"),
    field!(playback.frames_shown as "frames_shown", "Frames shown", Count, Higher, ""),
    field!(playback.frames_discarded as "frames_discarded", "Discarded frames", Count, Lower,
        "arrived too late to be shown"),
    metric!("discard_share", "Share of frames discarded", Share, Lower, "arrived too late to be shown",
        Value::Ratio(|row| Some((row.playback.frames_discarded as f64, row.playback.frames as f64)))),
    field!(playback.frames_missing as "frames_missing", "Missing frames", Count, Lower,
        "not received when the title ended"),
    field!(playback.underflow_events as "underflow_events", "Underflows", Count, Lower,
        "the playout buffer ran empty"),
    metric!("underflows_per_minute", "Underflows per minute", Count, Lower, "of playback",
        Value::Ratio(underflows_per_minute)),
    field!(playback.stalled_time as "frozen_s", "Stalled time", Seconds, Lower,
        "no new frame was shown after playback had begun"),
    field!(playback.rebases as "rebases", "Rebases", Count, Lower,
        "the player stopped its clock and refilled its buffer"),
    field!(playback.rebuffering_ratio as "rebuffer_ratio", "Rebuffering ratio", Share, Lower,
        "stalled time over stalled and playing time"),
    field!(playback.mean_bitrate as "mean_bitrate_bps", "Mean bitrate", BitsPerSecond, Higher, "of the frames shown"),
    // The adaptive player.
    field!(adaptive.segments, "Segments", Count, Neither, "played"),
    field!(adaptive.switches, "Switches", Count, Lower, "between representations"),
    field!(adaptive.switch_share, "Share of segments with a switch", Share, Lower,
        "to another representation than the segment before"),
    field!(adaptive.mean_representation_bps, "Mean representation", BitsPerSecond, Higher,
        "rate of the segments played"),
    field!(adaptive.instant_mean_bps, "Instantaneous estimate", BitsPerSecond, Neither,
        "of throughput, by the player"),
    field!(adaptive.instant_sd_bps, "Instantaneous estimate, standard deviation", BitsPerSecond, Neither,
        "of throughput, by the player"),
    field!(adaptive.instant_p05_bps, "Instantaneous estimate, 5th percentile", BitsPerSecond, Neither,
        "of throughput, by the player"),
    field!(adaptive.instant_p50_bps, "Instantaneous estimate, median", BitsPerSecond, Neither,
        "of throughput, by the player"),
    field!(adaptive.instant_p95_bps, "Instantaneous estimate, 95th percentile", BitsPerSecond, Neither,
        "of throughput, by the player"),
    field!(adaptive.instant_variation, "Instantaneous estimate, variation", Share, Lower,
        "standard deviation over mean"),
    field!(adaptive.smoothed_mean_bps, "Smoothed estimate", BitsPerSecond, Neither, "of throughput, by the player"),
    field!(adaptive.smoothed_sd_bps, "Smoothed estimate, standard deviation", BitsPerSecond, Neither,
        "of throughput, by the player"),
    field!(adaptive.smoothed_p05_bps, "Smoothed estimate, 5th percentile", BitsPerSecond, Neither,
        "of throughput, by the player"),
    field!(adaptive.smoothed_p50_bps, "Smoothed estimate, median", BitsPerSecond, Neither,
        "of throughput, by the player"),
    field!(adaptive.smoothed_p95_bps, "Smoothed estimate, 95th percentile", BitsPerSecond, Neither,
        "of throughput, by the player"),
    field!(adaptive.smoothed_variation, "Smoothed estimate, variation", Share, Lower, "standard deviation over mean"),
    // The broadcast.
    field!(broadcast.frames_on_time_share, "Frames on time", Share, Higher, "arrived within the latency bound"),
    field!(broadcast.frame_latency_p50_s, "Median latency", Seconds, Lower,
        "behind the encoder, of frames that arrived"),
    field!(broadcast.frame_latency_p95_s, "Latency, 95th percentile", Seconds, Lower,
        "behind the encoder, of frames that arrived"),
    field!(broadcast.frame_latency_p99_s, "Latency, 99th percentile", Seconds, Lower,
        "behind the encoder, of frames that arrived"),
    field!(broadcast.frame_latency_max_s, "Largest latency", Seconds, Lower,
        "behind the encoder, of frames that arrived"),
    field!(broadcast.encoded_rate_bps, "Encoded rate", BitsPerSecond, Higher, "mean of the encoder"),
    field!(broadcast.frames_made, "Frames made", Count, Neither, "by the encoder"),
    field!(broadcast.frames_arrived, "Frames arrived", Count, Higher, "late ones included"),
    field!(broadcast.srtt_p50_s, "Median smoothed RTT", Seconds, Lower, "when a frame is made"),
    // The download.
    field!(row.received_bytes, "Received", Bytes, Neither, "bytes of the title"),
    field!(row.download_s, "Download time", Seconds, Lower, "from the request to the last byte"),
    field!(row.throughput_bps, "Throughput", BitsPerSecond, Higher, "bytes of the title over the download time"),
    field!(row.title_rate_bps, "Title rate λ", BitsPerSecond, Neither, "average, of video and audio"),
    field!(row.title_duration_s, "Title duration", Seconds, Neither, "playing time of the whole title"),
    metric!("title_wire_rate_bps", "Title rate λ on the wire", BitsPerSecond, Neither,
        "headers and retransmissions included", Value::Number(title_wire_rate)),
    field!(row.link_rate_bps, "Link rate", BitsPerSecond, Neither, "mean of the bottleneck, headers included"),
    // The sender's transport.
    field!(sender.sent_packets, "Packets sent", Count, Neither, ""),
    field!(sender.sent_bytes, "Bytes sent", Bytes, Neither, ""),
    field!(sender.lost_packets, "Packet retransmissions", Count, Lower, "packets that the sender declared lost"),
    field!(sender.lost_bytes, "Bytes lost", Bytes, Lower, "in packets that the sender declared lost"),
    metric!("loss_ratio", "Share of packets lost", Share, Lower, "declared lost, of those sent",
        Value::Ratio(loss_ratio)),
    field!(sender.congestion_events, "Congestion events", Count, Neither, ""),
    field!(sender.min_rtt_s, "Smallest RTT", Seconds, Neither, ""),
    field!(sender.last_srtt_s, "Last smoothed RTT", Seconds, Lower, ""),
    // The sender's congestion control.
    field!(control.window_mean_bytes, "Mean window", Bytes, Neither, "congestion window"),
    field!(control.window_p05_bytes, "Window, 5th percentile", Bytes, Neither, "congestion window"),
    field!(control.window_p50_bytes, "Median window", Bytes, Neither, "congestion window"),
    field!(control.window_p95_bytes, "Window, 95th percentile", Bytes, Neither, "congestion window"),
    field!(control.window_max_bytes, "Largest window", Bytes, Neither, "congestion window"),
    metric!("window_spread_bytes", "Window range", Bytes, Neither, "from the 5th to the 95th percentile", Value::Number(
        |row| { let c = row.control.as_ref()?; c.window_p95_bytes.saturating_sub(c.window_p05_bytes).number() })),
    field!(control.window_swings, "Window swings", Count, Neither, "turns by more than a tenth"),
    field!(control.window_step_sd, "Window variability", Share, Neither,
        "standard deviation of relative changes in a tenth of a second"),
    field!(control.window_30s_mean_bytes, "Mean window, first 30 s", Bytes, Neither, "congestion window"),
    field!(control.window_30s_p05_bytes, "Window, 5th percentile, first 30 s", Bytes, Neither, "congestion window"),
    field!(control.window_30s_p95_bytes, "Window, 95th percentile, first 30 s", Bytes, Neither, "congestion window"),
    field!(control.window_30s_max_bytes, "Largest window, first 30 s", Bytes, Neither, "congestion window"),
    metric!("window_30s_spread_bytes", "Window range, first 30 s", Bytes, Neither,
        "from the 5th to the 95th percentile", Value::Number(|row| {
            let c = row.control.as_ref()?;
            c.window_30s_p95_bytes.saturating_sub(c.window_30s_p05_bytes).number()
        })),
    field!(control.window_30s_swings, "Window swings, first 30 s", Count, Neither, "turns by more than a tenth"),
    field!(control.window_30s_step_sd, "Window variability, first 30 s", Share, Neither,
        "standard deviation of relative changes in a tenth of a second"),
    field!(control.window_recoveries, "Window recoveries", Count, Neither,
        "congestion signals after which the window came back to 90 %"),
    field!(control.window_recovery_mean_s, "Window recovery", Seconds, Neither,
        "from a congestion signal until the window is back at 90 %"),
    field!(control.window_kept_share, "Window kept at a cut", Share, Neither,
        "mean of window after a congestion signal over window before it"),
    field!(control.window_reached_bdp_s, "Time to the BDP", Seconds, Neither,
        "until the window first was the bandwidth-delay product"),
    metric!("window_growth", "Window growth per RTT", Count, Neither,
        "mean factor, from the second to the fourth propagation RTT",
        Value::Number(|row| row.control.as_ref().and_then(growth))),
    metric!("window_third_rtt_bytes", "Window after three RTTs", Bytes, Neither, "the first of them is the handshake's",
        Value::Number(|row| row.control.as_ref()?.window_first_rtts_bytes.get(2)?.number())),
    field!(control.startup_s, "Length of slow start", Seconds, Neither, "until it is first left"),
    field!(control.startup_window_bytes, "Window at the end of slow start", Bytes, Neither, ""),
    field!(control.slow_start_entries, "Returns to slow start", Count, Neither, "after the first"),
    field!(control.rtt_mean_s, "Mean RTT", Seconds, Lower, ""),
    field!(control.rtt_sd_s, "RTT, standard deviation", Seconds, Lower, ""),
    field!(control.rtt_p05_s, "RTT, 5th percentile", Seconds, Lower, ""),
    field!(control.rtt_p50_s, "Median RTT", Seconds, Lower, ""),
    field!(control.rtt_p95_s, "RTT, 95th percentile", Seconds, Lower, ""),
    field!(control.rtt_max_s, "Largest RTT", Seconds, Lower, ""),
    field!(control.capacity_mean_bps, "Capacity estimate", BitsPerSecond, Neither, "mean over the session"),
    field!(control.capacity_sd_bps, "Capacity estimate, standard deviation", BitsPerSecond, Neither,
        "over the session"),
    // Restarts after pauses of the sender.
    field!(restarted.restarts, "Restarts", Count, Neither, "after pauses of the sender"),
    field!(restarted.restart_loss_share, "Share of restarts with loss", Share, Lower, "within ten propagation RTTs"),
    field!(restarted.restart_lost_mean_bytes, "Bytes lost after a restart", Bytes, Lower, "mean over all restarts"),
    field!(restarted.restart_avoidance_share, "Share of restarts with congestion avoidance", Share, Neither,
        "before the next pause"),
    field!(restarted.restart_avoidance_mean_s, "Time to congestion avoidance", Seconds, Neither,
        "from the first packet after a pause"),
    // The bottleneck.
    field!(link.link_packets, "Packets delivered", Count, Neither, "by the bottleneck, of all flows"),
    field!(link.link_bytes, "Bytes delivered", Bytes, Neither, "by the bottleneck, of all flows, headers included"),
    field!(link.queue_drops, "Queue drops", Count, Lower, "the bottleneck's queue was full"),
    field!(link.random_losses, "Random losses", Count, Neither, "on the path"),
    metric!("drop_ratio", "Share of packets dropped", Share, Lower,
        "by the full queue or at random, of all flows; other drops do not count", Value::Ratio(drop_ratio)),
    field!(link.aqm_drops, "Drops of queue management", Count, Lower, "before the bottleneck's queue was full"),
    field!(link.policer_drops, "Drops of a policer", Count, Lower, "above the rate that it enforces"),
    field!(link.retry_losses, "Wi-Fi losses", Count, Neither, "packets that the hop gave up"),
    field!(link.max_queue_bytes, "Largest queue", Bytes, Lower, ""),
    field!(link.mean_queue_delay_s, "Mean queueing delay", Seconds, Lower, ""),
    field!(link.max_queue_delay_s, "Largest queueing delay", Seconds, Lower, ""),
];

#[cfg(test)]
mod tests;
