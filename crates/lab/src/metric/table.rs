//! The metrics.

use super::Better::{self, Higher, Lower, Neither};
use super::Unit::{self, BitsPerSecond, Bytes, Count, Seconds, Share};
use super::{Metric, Value};
use crate::run::{LinkTotals, Row, SenderCounts};

const fn number(
    name: &'static str,
    label: &'static str,
    unit: Unit,
    better: Better,
    about: &'static str,
    value: fn(&Row) -> Option<f64>,
) -> Metric {
    Metric {
        name,
        label,
        about,
        unit,
        better,
        value: Value::Number(value),
    }
}

const fn ratio(
    name: &'static str,
    label: &'static str,
    better: Better,
    about: &'static str,
    value: fn(&Row) -> Option<(f64, f64)>,
) -> Metric {
    Metric {
        name,
        label,
        about,
        unit: Share,
        better,
        value: Value::Ratio(value),
    }
}

fn sent(row: &Row, value: impl Fn(&SenderCounts) -> f64) -> Option<f64> {
    row.sender.as_ref().map(value)
}

fn link(row: &Row, value: impl Fn(&LinkTotals) -> f64) -> Option<f64> {
    row.link.as_ref().map(value)
}

/// Every metric, in the order in which tables have them.
pub const METRICS: &[Metric] = &[
    // What the viewer saw.
    number(
        "startup_delay_s",
        "Start-up delay",
        Seconds,
        Lower,
        "from the request to the first picture",
        |row| row.seen.startup_delay_s,
    ),
    number(
        "ended_s",
        "End of playback",
        Seconds,
        Neither,
        "from the request",
        |row| row.seen.ended_s,
    ),
    number("frames", "Pictures", Count, Neither, "of the title", |row| {
        Some(row.seen.frames as f64)
    }),
    number("frames_shown", "Pictures shown", Count, Higher, "", |row| {
        Some(row.seen.frames_shown as f64)
    }),
    number(
        "frames_discarded",
        "Picture discards",
        Count,
        Lower,
        "their data came too late to show them",
        |row| Some(row.seen.frames_discarded as f64),
    ),
    ratio("discard_share", "Share of pictures discarded", Lower, "", |row| {
        Some((row.seen.frames_discarded as f64, row.seen.frames as f64))
    }),
    number(
        "frames_missing",
        "Pictures missing",
        Count,
        Lower,
        "not there when the title ended",
        |row| Some(row.seen.frames_missing as f64),
    ),
    number(
        "underflow_events",
        "Underflows",
        Count,
        Lower,
        "the playout buffer ran empty and the picture froze",
        |row| Some(row.seen.underflow_events as f64),
    ),
    number(
        "frozen_s",
        "Time frozen",
        Seconds,
        Lower,
        "the picture stood still",
        |row| Some(row.seen.frozen_s),
    ),
    number(
        "rebases",
        "Rebases",
        Count,
        Lower,
        "the player's clock was started anew",
        |row| Some(row.seen.rebases as f64),
    ),
    number(
        "rebuffer_ratio",
        "Rebuffer ratio",
        Share,
        Lower,
        "stalled time over stalled and playing time",
        |row| row.seen.rebuffer_ratio,
    ),
    number(
        "mean_bitrate_bps",
        "Mean bitrate",
        BitsPerSecond,
        Higher,
        "of what was played",
        |row| row.seen.mean_bitrate_bps.map(|rate| rate as f64),
    ),
    // What arrived.
    number(
        "received_bytes",
        "Received",
        Bytes,
        Neither,
        "bytes of the title",
        |row| Some(row.received_bytes as f64),
    ),
    number(
        "download_s",
        "Download time",
        Seconds,
        Lower,
        "from the request to the last byte",
        |row| Some(row.download_s),
    ),
    number(
        "throughput_bps",
        "Throughput",
        BitsPerSecond,
        Higher,
        "bytes of the title over the download time",
        |row| row.throughput_bps.map(|rate| rate as f64),
    ),
    number(
        "title_rate_bps",
        "Title rate λ",
        BitsPerSecond,
        Neither,
        "average, of video and audio",
        |row| Some(row.title_rate_bps as f64),
    ),
    number(
        "title_wire_rate_bps",
        "Title rate λ on the wire",
        BitsPerSecond,
        Neither,
        "headers and resent data included",
        |row| {
            let bytes = link(row, |link| link.link_bytes as f64)?;
            let received = row.received_bytes as f64;
            (received > 0.0).then(|| row.title_rate_bps as f64 * bytes / received)
        },
    ),
    number(
        "link_rate_bps",
        "Link rate",
        BitsPerSecond,
        Neither,
        "mean of the bottleneck, headers included",
        |row| row.link_rate_bps.map(|rate| rate as f64),
    ),
    // What the sender counted.
    number("sent_packets", "Packets sent", Count, Neither, "", |row| {
        sent(row, |sender| sender.sent_packets as f64)
    }),
    number("sent_bytes", "Bytes sent", Bytes, Neither, "", |row| {
        sent(row, |sender| sender.sent_bytes as f64)
    }),
    number(
        "lost_packets",
        "Packet retransmissions",
        Count,
        Lower,
        "packets that the sender declared lost",
        |row| sent(row, |sender| sender.lost_packets as f64),
    ),
    number(
        "lost_bytes",
        "Bytes lost",
        Bytes,
        Lower,
        "in packets that the sender declared lost",
        |row| sent(row, |sender| sender.lost_bytes as f64),
    ),
    ratio(
        "loss_ratio",
        "Share of packets lost",
        Lower,
        "declared lost, of those sent",
        |row| {
            let sender = row.sender.as_ref()?;
            Some((sender.lost_packets as f64, sender.sent_packets as f64))
        },
    ),
    number(
        "congestion_events",
        "Congestion events",
        Count,
        Neither,
        "",
        |row| sent(row, |sender| sender.congestion_events as f64),
    ),
    number("min_rtt_s", "Smallest RTT", Seconds, Neither, "", |row| {
        sent(row, |sender| sender.min_rtt_s)
    }),
    number("last_srtt_s", "Last smoothed RTT", Seconds, Lower, "", |row| {
        sent(row, |sender| sender.last_srtt_s)
    }),
    // What the bottleneck counted.
    number(
        "link_packets",
        "Packets delivered",
        Count,
        Neither,
        "by the bottleneck, of all flows",
        |row| link(row, |link| link.link_packets as f64),
    ),
    number(
        "link_bytes",
        "Bytes delivered",
        Bytes,
        Neither,
        "by the bottleneck, of all flows, headers included",
        |row| link(row, |link| link.link_bytes as f64),
    ),
    number(
        "queue_drops",
        "Queue drops",
        Count,
        Lower,
        "the bottleneck's queue was full",
        |row| link(row, |link| link.queue_drops as f64),
    ),
    number(
        "random_losses",
        "Random losses",
        Count,
        Neither,
        "of the path's own",
        |row| link(row, |link| link.random_losses as f64),
    ),
    ratio(
        "drop_ratio",
        "Share of packets dropped",
        Lower,
        "by the bottleneck, of all flows, random losses included",
        |row| {
            let link = row.link.as_ref()?;
            let dropped = link.queue_drops.saturating_add(link.random_losses) as f64;
            Some((dropped, dropped + link.link_packets as f64))
        },
    ),
    number("max_queue_bytes", "Longest queue", Bytes, Lower, "", |row| {
        link(row, |link| link.max_queue_bytes as f64)
    }),
    number(
        "mean_queue_delay_s",
        "Mean queueing delay",
        Seconds,
        Lower,
        "",
        |row| link(row, |link| link.mean_queue_delay_s),
    ),
    number(
        "max_queue_delay_s",
        "Longest queueing delay",
        Seconds,
        Lower,
        "",
        |row| link(row, |link| link.max_queue_delay_s),
    ),
];
