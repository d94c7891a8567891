//! The scenario file of a generated path.

use std::borrow::Borrow;
use std::fmt::Write as _;

use askama::Template;

use super::draw::{Drawn, DrawnLoss, JOINS_S, Medium, Route, TITLE_S};

/// Rates of a ladder's other representations as fractions of the highest rate, lowest first.
const LADDER: [(&str, f64); 4] = [("r1", 0.12), ("r2", 0.25), ("r3", 0.5), ("r4", 1.0)];
/// Maximum time that a viewer waits for the end of a title; without a limit a few slow runs would take hours.
const PATIENCE_S: f64 = 1.5 * TITLE_S;
/// Playing time of the playout buffer. The papers' buffer holds one second of their title.
const PLAYOUT_S: f64 = 1.0;
/// Minimum bucket of a policer: ten full packets.
const LEAST_BURST_BYTES: f64 = 15_000.0;
/// Maximum ratio of a Wi-Fi hop's mean back-off to the time of a full packet.
const LONGEST_BACKOFF: f64 = 0.2;
/// Bits of a full packet.
const PACKET_BITS: f64 = 12_000.0;
/// Playing time at which a pausing player is full.
const FULL_S: f64 = 30.0;

/// Short name without its letter: number, rate and RTT, such as `017-20M-100ms`.
pub(super) fn name(number: u32, drawn: &Drawn) -> String {
    let rate = if drawn.rate < 9.95 {
        format!("{:.1}", drawn.rate)
    } else {
        format!("{:.0}", drawn.rate)
    };
    format!("{number:03}-{rate}M-{:.0}ms", drawn.rtt)
}

/// The scenario file of the path called `name`.
#[derive(Template)]
#[template(path = "generated.toml", escape = "none")]
struct File<'a> {
    name: &'a str,
    it: &'a Drawn,
}

/// The scenario file of the path called `name`.
pub(super) fn scenario(name: &str, drawn: &Drawn) -> String {
    // Writing to a String cannot fail, here and below.
    let text = File { name, it: drawn }.render().unwrap_or_default();
    text + "\n"
}

/// Bytes in the full bucket of the path's policer; `None` without one.
fn bucket(drawn: &Drawn) -> Option<f64> {
    match drawn.medium {
        Medium::Policed { burst_ms, .. } => Some((burst_ms * drawn.rate * 1e3 / 8.0).max(LEAST_BURST_BYTES)),
        _ => None,
    }
}

/// A rate with three digits.
fn mbps(rate: impl Borrow<f64>) -> String {
    match *rate.borrow() {
        rate if rate < 1.0 => format!("{:.0}kbit/s", rate * 1e3),
        rate if rate < 10.0 => format!("{rate:.2}Mbit/s"),
        rate => format!("{rate:.1}Mbit/s"),
    }
}

/// Value of the key `path.rate`.
fn rate(drawn: &Drawn) -> String {
    match &drawn.medium {
        Medium::Constant => mbps(drawn.rate),
        Medium::Policed { times, .. } => mbps(times * drawn.rate),
        Medium::Cellular(kind, seed) => format!("{kind}({},{seed})", mbps(drawn.rate)),
        Medium::Steps(steps) => {
            let mut at = 0.0;
            let mut parts = Vec::new();
            for (part, lasts) in steps {
                parts.push(format!("{}@{at:.1}s", mbps(part * drawn.rate)));
                at += lasts;
            }
            format!("{},repeat@{at:.1}s", parts.join(","))
        }
        Medium::Outages {
            length_s,
            after_s,
            every_s,
        } => {
            let full = mbps(drawn.rate * every_s / (every_s - length_s));
            let until = after_s + length_s;
            format!("{full},0bit/s@{after_s:.2}s,{full}@{until:.2}s,repeat@{every_s:.2}s")
        }
        Medium::Wifi((_, parameters)) => {
            // Frames are not aggregated, so on a fast hop the back-offs for 20 Mbit/s would leave no time to send.
            let backoff = (LONGEST_BACKOFF * PACKET_BITS / drawn.rate).min(70.0);
            let parameters = format!(",backoff={:.0}ns{parameters}", backoff * 1e3);
            format!("wifi({}{parameters})", mbps(drawn.rate))
        }
    }
}

/// Value of the key `path.rtt`.
fn rtt(drawn: &Drawn) -> String {
    let mut text = format!("{:.0}us", drawn.rtt * 1e3);
    for Route { at_s, gap, rtt } in &drawn.routes {
        if *gap > 0.0 {
            let _ = write!(text, ",down@{:.2}s", at_s - gap / 1e3);
        }
        let _ = write!(text, ",{:.0}us@{at_s:.2}s", rtt * 1e3);
    }
    if let Some(repeat) = drawn.routes_repeat_s {
        let _ = write!(text, ",repeat@{repeat:.2}s");
    }
    text
}

/// Value of the key `path.loss`, if there is any.
fn loss(loss: &DrawnLoss) -> Option<String> {
    match loss {
        DrawnLoss::None => None,
        DrawnLoss::Random(share) => Some(format!("{:.4}%", share * 100.0)),
        DrawnLoss::Bursts { share, burst } => {
            let to_good = 1.0 / burst;
            // Chosen so that the mean loss, to_bad / (to_bad + to_good), equals the share.
            let to_bad = share * to_good / (1.0 - share);
            Some(format!("gilbert({:.5}%,{:.2}%)", to_bad * 100.0, to_good * 100.0))
        }
    }
}
