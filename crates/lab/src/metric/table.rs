//! The metrics.

use super::Better::{self, Higher, Lower, Neither};
use super::Unit::{self, BitsPerSecond, Bytes, Count, Seconds, Share};
use super::{Metric, Value};
use crate::run::{Adaptive, Control, LinkTotals, Restarted, Row, SenderCounts, WindowRow};

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

fn control(row: &Row, value: impl Fn(&Control) -> f64) -> Option<f64> {
    row.control.as_ref().map(value)
}

fn seen(row: &Row, value: impl Fn(&Control) -> Option<f64>) -> Option<f64> {
    row.control.as_ref().and_then(value)
}

/// The factor by which the window grew in a round trip, from the second to the fourth: the first goes to the handshake.
fn growth(control: &Control) -> Option<f64> {
    let after = |rtts: usize| Some(*control.window_first_rtts_bytes.get(rtts - 1)? as f64);
    let (second, fourth) = (after(2)?, after(4)?);
    (second > 0.0).then(|| (fourth / second).sqrt())
}

fn adaptive(row: &Row, value: impl Fn(&Adaptive) -> f64) -> Option<f64> {
    row.adaptive.as_ref().map(value)
}

/// How a metric is read from what a row says of a window, if it is counted there.
pub(super) fn in_window(name: &str) -> Option<Value<WindowRow>> {
    Some(match name {
        "throughput_bps" => Value::Number(|window| window.goodput_bps.map(|rate| rate as f64)),
        "received_bytes" => Value::Number(|window| Some(window.received_bytes as f64)),
        "sent_bytes" => Value::Number(|window| Some(window.sent_bytes as f64)),
        "lost_bytes" => Value::Number(|window| Some(window.lost_bytes as f64)),
        "sent_packets" => Value::Number(|window| Some(window.sent_packets as f64)),
        "lost_packets" => Value::Number(|window| Some(window.lost_packets as f64)),
        "loss_ratio" => Value::Ratio(|window| Some((window.lost_bytes as f64, window.sent_bytes as f64))),
        _ => return None,
    })
}

fn restarted(row: &Row, value: impl Fn(&Restarted) -> f64) -> Option<f64> {
    row.restarted.as_ref().map(value)
}

fn link(row: &Row, value: impl Fn(&LinkTotals) -> f64) -> Option<f64> {
    row.link.as_ref().map(value)
}

fn underflows_per_minute(row: &Row) -> Option<(f64, f64)> {
    let played = row.seen.ended_s? - row.seen.startup_delay_s?;
    Some((row.seen.underflow_events as f64, played / 60.0))
}

fn title_wire_rate(row: &Row) -> Option<f64> {
    let bytes = link(row, |link| link.link_bytes as f64)?;
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

/// Every metric, in the order in which tables have them.
#[rustfmt::skip] // A table: two lines for each.
pub const METRICS: &[Metric] = &[
    // What the viewer saw.
    number("startup_delay_s", "Start-up delay", Seconds, Lower, "from the request to the first picture",
        |row| row.seen.startup_delay_s),
    number("ended_s", "End of playback", Seconds, Neither, "from the request",
        |row| row.seen.ended_s),
    number("frames", "Pictures", Count, Neither, "of the title", |row| {
        Some(row.seen.frames as f64)
    }),
    number("frames_shown", "Pictures shown", Count, Higher, "", |row| {
        Some(row.seen.frames_shown as f64)
    }),
    number("frames_discarded", "Picture discards", Count, Lower, "their data came too late to show them",
        |row| Some(row.seen.frames_discarded as f64)),
    ratio("discard_share", "Share of pictures discarded", Lower, "", |row| {
        Some((row.seen.frames_discarded as f64, row.seen.frames as f64))
    }),
    number("frames_missing", "Pictures missing", Count, Lower, "not there when the title ended",
        |row| Some(row.seen.frames_missing as f64)),
    number("underflow_events", "Underflows", Count, Lower, "the playout buffer ran empty and the picture froze",
        |row| Some(row.seen.underflow_events as f64)),
    Metric {
        name: "underflows_per_minute",
        label: "Underflows per minute",
        about: "of playing",
        unit: Count,
        better: Lower,
        value: Value::Ratio(underflows_per_minute),
    },
    number("frozen_s", "Time frozen", Seconds, Lower, "the picture stood still",
        |row| Some(row.seen.frozen_s)),
    number("rebases", "Rebases", Count, Lower, "the player's clock was started anew",
        |row| Some(row.seen.rebases as f64)),
    number("rebuffer_ratio", "Rebuffer ratio", Share, Lower, "stalled time over stalled and playing time",
        |row| row.seen.rebuffer_ratio),
    number("mean_bitrate_bps", "Mean bitrate", BitsPerSecond, Higher, "of what was played",
        |row| row.seen.mean_bitrate_bps.map(|rate| rate as f64)),
    // What an adaptive player chose and measured.
    number("segments", "Segments", Count, Neither, "played",
        |row| adaptive(row, |a| a.segments as f64)),
    number("switches", "Switches", Count, Lower, "between representations",
        |row| adaptive(row, |a| a.switches as f64)),
    number("switch_share", "Share of segments with a switch", Share, Lower, "to another representation than the one before",
        |row| adaptive(row, |a| a.switch_share)),
    number("mean_representation_bps", "Mean representation", BitsPerSecond, Higher, "rate of the representations played",
        |row| adaptive(row, |a| a.mean_representation_bps as f64)),
    number("instant_mean_bps", "Instantaneous estimate", BitsPerSecond, Neither, "of throughput, by the player",
        |row| adaptive(row, |a| a.instant_mean_bps as f64)),
    number("instant_sd_bps", "Instantaneous estimate, standard deviation", BitsPerSecond, Neither, "of throughput, by the player",
        |row| adaptive(row, |a| a.instant_sd_bps as f64)),
    number("instant_p05_bps", "Instantaneous estimate, 5 % below", BitsPerSecond, Neither, "of throughput, by the player",
        |row| adaptive(row, |a| a.instant_p05_bps as f64)),
    number("instant_p50_bps", "Instantaneous estimate, median", BitsPerSecond, Neither, "of throughput, by the player",
        |row| adaptive(row, |a| a.instant_p50_bps as f64)),
    number("instant_p95_bps", "Instantaneous estimate, 95 % below", BitsPerSecond, Neither, "of throughput, by the player",
        |row| adaptive(row, |a| a.instant_p95_bps as f64)),
    number("instant_variation", "Instantaneous estimate, variation", Share, Lower, "standard deviation over mean",
        |row| adaptive(row, |a| a.instant_variation)),
    number("smoothed_mean_bps", "Smoothed estimate", BitsPerSecond, Neither, "of throughput, by the player",
        |row| adaptive(row, |a| a.smoothed_mean_bps as f64)),
    number("smoothed_sd_bps", "Smoothed estimate, standard deviation", BitsPerSecond, Neither, "of throughput, by the player",
        |row| adaptive(row, |a| a.smoothed_sd_bps as f64)),
    number("smoothed_p05_bps", "Smoothed estimate, 5 % below", BitsPerSecond, Neither, "of throughput, by the player",
        |row| adaptive(row, |a| a.smoothed_p05_bps as f64)),
    number("smoothed_p50_bps", "Smoothed estimate, median", BitsPerSecond, Neither, "of throughput, by the player",
        |row| adaptive(row, |a| a.smoothed_p50_bps as f64)),
    number("smoothed_p95_bps", "Smoothed estimate, 95 % below", BitsPerSecond, Neither, "of throughput, by the player",
        |row| adaptive(row, |a| a.smoothed_p95_bps as f64)),
    number("smoothed_variation", "Smoothed estimate, variation", Share, Lower, "standard deviation over mean",
        |row| adaptive(row, |a| a.smoothed_variation)),
    // What arrived.
    number("received_bytes", "Received", Bytes, Neither, "bytes of the title",
        |row| Some(row.received_bytes as f64)),
    number("download_s", "Download time", Seconds, Lower, "from the request to the last byte",
        |row| Some(row.download_s)),
    number("throughput_bps", "Throughput", BitsPerSecond, Higher, "bytes of the title over the download time",
        |row| row.throughput_bps.map(|rate| rate as f64)),
    number("title_rate_bps", "Title rate λ", BitsPerSecond, Neither, "average, of video and audio",
        |row| Some(row.title_rate_bps as f64)),
    number("title_wire_rate_bps", "Title rate λ on the wire", BitsPerSecond, Neither, "headers and resent data included",
        title_wire_rate),
    number("link_rate_bps", "Link rate", BitsPerSecond, Neither, "mean of the bottleneck, headers included",
        |row| row.link_rate_bps.map(|rate| rate as f64)),
    // What the sender counted.
    number("sent_packets", "Packets sent", Count, Neither, "", |row| {
        sent(row, |sender| sender.sent_packets as f64)
    }),
    number("sent_bytes", "Bytes sent", Bytes, Neither, "", |row| {
        sent(row, |sender| sender.sent_bytes as f64)
    }),
    number("lost_packets", "Packet retransmissions", Count, Lower, "packets that the sender declared lost",
        |row| sent(row, |sender| sender.lost_packets as f64)),
    number("lost_bytes", "Bytes lost", Bytes, Lower, "in packets that the sender declared lost",
        |row| sent(row, |sender| sender.lost_bytes as f64)),
    ratio("loss_ratio", "Share of packets lost", Lower, "declared lost, of those sent",
        loss_ratio),
    number("congestion_events", "Congestion events", Count, Neither, "",
        |row| sent(row, |sender| sender.congestion_events as f64)),
    number("min_rtt_s", "Smallest RTT", Seconds, Neither, "", |row| {
        sent(row, |sender| sender.min_rtt_s)
    }),
    number("last_srtt_s", "Last smoothed RTT", Seconds, Lower, "", |row| {
        sent(row, |sender| sender.last_srtt_s)
    }),
    // What its congestion control did.
    number("window_mean_bytes", "Mean window", Bytes, Neither, "congestion window",
        |row| control(row, |c| c.window_mean_bytes as f64)),
    number("window_p05_bytes", "5 % of the window below", Bytes, Neither, "congestion window",
        |row| control(row, |c| c.window_p05_bytes as f64)),
    number("window_p50_bytes", "Median window", Bytes, Neither, "congestion window",
        |row| control(row, |c| c.window_p50_bytes as f64)),
    number("window_p95_bytes", "95 % of the window below", Bytes, Neither, "congestion window",
        |row| control(row, |c| c.window_p95_bytes as f64)),
    number("window_max_bytes", "Largest window", Bytes, Neither, "congestion window",
        |row| control(row, |c| c.window_max_bytes as f64)),
    number("window_spread_bytes", "Window range", Bytes, Neither, "from 5 % to 95 % of the time",
        |row| { control(row, |c| { c.window_p95_bytes.saturating_sub(c.window_p05_bytes) as f64 }) }),
    number("window_swings", "Window swings", Count, Neither, "turns by more than a tenth",
        |row| control(row, |c| c.window_swings as f64)),
    number("window_step_sd", "Window unrest", Share, Neither, "standard deviation of relative changes in a tenth of a second",
        |row| control(row, |c| c.window_step_sd)),
    number("window_30s_mean_bytes", "Mean window, first 30 s", Bytes, Neither, "congestion window",
        |row| control(row, |c| c.window_30s_mean_bytes as f64)),
    number("window_30s_p05_bytes", "5 % of the window below, first 30 s", Bytes, Neither, "congestion window",
        |row| control(row, |c| c.window_30s_p05_bytes as f64)),
    number("window_30s_p95_bytes", "95 % of the window below, first 30 s", Bytes, Neither, "congestion window",
        |row| control(row, |c| c.window_30s_p95_bytes as f64)),
    number("window_30s_max_bytes", "Largest window, first 30 s", Bytes, Neither, "congestion window",
        |row| control(row, |c| c.window_30s_max_bytes as f64)),
    number("window_30s_spread_bytes", "Window range, first 30 s", Bytes, Neither, "from 5 % to 95 % of the time",
        |row| { control(row, |c| { c.window_30s_p95_bytes.saturating_sub(c.window_30s_p05_bytes) as f64 }) }),
    number("window_30s_swings", "Window swings, first 30 s", Count, Neither, "turns by more than a tenth",
        |row| control(row, |c| c.window_30s_swings as f64)),
    number("window_30s_step_sd", "Window unrest, first 30 s", Share, Neither, "standard deviation of relative changes in a tenth of a second",
        |row| control(row, |c| c.window_30s_step_sd)),
    number("window_recoveries", "Window recoveries", Count, Neither, "congestion signals after which it came back",
        |row| control(row, |c| c.window_recoveries as f64)),
    number("window_recovery_mean_s", "Window recovery", Seconds, Neither, "time until the window is back after a congestion signal",
        |row| seen(row, |c| c.window_recovery_mean_s)),
    number("window_reached_bdp_s", "Time to the BDP", Seconds, Neither, "until the window first carried the bandwidth-delay product",
        |row| seen(row, |c| c.window_reached_bdp_s)),
    number("window_growth", "Window growth per RTT", Count, Neither, "mean factor, from the second to the fourth propagation RTT",
        |row| seen(row, growth)),
    number("window_third_rtt_bytes", "Window after three RTTs", Bytes, Neither, "the first of them goes to the handshake",
        |row| { seen(row, |c| { c.window_first_rtts_bytes.get(2).map(|window| *window as f64) }) }),
    number("startup_s", "Length of slow start", Seconds, Neither, "until it is first left",
        |row| seen(row, |c| c.startup_s)),
    number("startup_window_bytes", "Window at the end of slow start", Bytes, Neither, "",
        |row| seen(row, |c| c.startup_window_bytes.map(|window| window as f64))),
    number("slow_start_entries", "Returns to slow start", Count, Neither, "after the first",
        |row| control(row, |c| c.slow_start_entries as f64)),
    number("rtt_mean_s", "Mean RTT", Seconds, Lower, "", |row| {
        control(row, |c| c.rtt_mean_s)
    }),
    number("rtt_sd_s", "Standard deviation of the RTT", Seconds, Lower, "",
        |row| control(row, |c| c.rtt_sd_s)),
    number("rtt_p05_s", "5 % of RTTs below", Seconds, Lower, "", |row| {
        control(row, |c| c.rtt_p05_s)
    }),
    number("rtt_p50_s", "Median RTT", Seconds, Lower, "", |row| {
        control(row, |c| c.rtt_p50_s)
    }),
    number("rtt_p95_s", "95 % of RTTs below", Seconds, Lower, "", |row| {
        control(row, |c| c.rtt_p95_s)
    }),
    number("rtt_max_s", "Largest RTT", Seconds, Lower, "", |row| {
        control(row, |c| c.rtt_max_s)
    }),
    number("capacity_mean_bps", "Capacity estimate", BitsPerSecond, Neither, "mean over the session",
        |row| seen(row, |c| c.capacity_mean_bps.map(|rate| rate as f64))),
    number("capacity_sd_bps", "Unrest of the capacity estimate", BitsPerSecond, Neither, "its standard deviation",
        |row| seen(row, |c| c.capacity_sd_bps.map(|rate| rate as f64))),
    // What happened when a sender went on after a pause.
    number("restarts", "Restarts", Count, Neither, "times that the sender went on after a pause",
        |row| restarted(row, |r| r.restarts as f64)),
    number("restart_loss_share", "Share of restarts with loss", Share, Lower, "packets were lost soon after",
        |row| restarted(row, |r| r.restart_loss_share)),
    number("restart_lost_mean_bytes", "Bytes lost after a restart", Bytes, Lower, "on average",
        |row| restarted(row, |r| r.restart_lost_mean_bytes as f64)),
    number("restart_avoidance_share", "Share of restarts with congestion avoidance", Share, Neither, "before the next pause",
        |row| restarted(row, |r| r.restart_avoidance_share)),
    number("restart_avoidance_mean_s", "Time to congestion avoidance", Seconds, Neither, "from the first packet after a pause",
        |row| restarted(row, |r| r.restart_avoidance_mean_s)),
    // What the bottleneck counted.
    number("link_packets", "Packets delivered", Count, Neither, "by the bottleneck, of all flows",
        |row| link(row, |link| link.link_packets as f64)),
    number("link_bytes", "Bytes delivered", Bytes, Neither, "by the bottleneck, of all flows, headers included",
        |row| link(row, |link| link.link_bytes as f64)),
    number("queue_drops", "Queue drops", Count, Lower, "the bottleneck's queue was full",
        |row| link(row, |link| link.queue_drops as f64)),
    number("random_losses", "Random losses", Count, Neither, "of the path's own",
        |row| link(row, |link| link.random_losses as f64)),
    ratio("drop_ratio", "Share of packets dropped", Lower, "by the bottleneck, of all flows, random losses included",
        drop_ratio),
    number("max_queue_bytes", "Longest queue", Bytes, Lower, "", |row| {
        link(row, |link| link.max_queue_bytes as f64)
    }),
    number("mean_queue_delay_s", "Mean queueing delay", Seconds, Lower, "",
        |row| link(row, |link| link.mean_queue_delay_s)),
    number("max_queue_delay_s", "Longest queueing delay", Seconds, Lower, "",
        |row| link(row, |link| link.max_queue_delay_s)),
];
