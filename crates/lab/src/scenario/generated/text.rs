//! The scenario file of a generated path.

use std::fmt::Write as _;

use super::draw::{Competitors, Drawn, DrawnLoss, JOINS_S, Medium, Route, TITLE_S};

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
pub(super) fn scenario(name: &str, drawn: &Drawn) -> String {
    let mut text = format!(
        "about = \"{}\"\nsource = \"{name}\"\ncontrollers = [\"cubic\"]\nseed = {}\nideal = false\n\n[title]\n",
        about(drawn),
        drawn.seed
    );
    // Writing to a String cannot fail, here and below.
    let _ = if drawn.ladder {
        let rates = LADDER.map(|(name, part)| format!("{name} = \"{}\"", mbps(part * drawn.title)));
        writeln!(text, "ladder = \"bbb\"\nrates = {{ {} }}", rates.join(", "))
    } else {
        writeln!(text, "trace = \"film-1080p\"\nrate = \"{}\"", mbps(drawn.title))
    };
    let declared =
        unless_normal(drawn.declared).map(|factor| format!("declared_rate_factor = {factor:.6}\n"));
    text.extend(declared);
    let _ = write!(
        text,
        "duration = \"{TITLE_S}s\"\n\n[path]\nrate = \"{}\"\nrtt = \"{}\"\nqueue = \"{:.0}B\"\n",
        rate(drawn),
        rtt(drawn),
        drawn.queue_bytes,
    );
    let micros = |millis: f64| format!("{:.0}us", millis * 1e3);
    let policer = match drawn.medium {
        Medium::Policed { burst_ms, .. } => {
            let burst = (burst_ms * drawn.rate * 1e3 / 8.0).max(LEAST_BURST_BYTES);
            Some(format!("{},{burst:.0}B", mbps(drawn.rate)))
        }
        _ => None,
    };
    let reordering = drawn.reordering;
    let reordering = reordering.map(|(share, by)| format!("{:.3}%,{}", share * 100.0, micros(by)));
    for (key, value) in [
        ("loss", loss(drawn.loss)),
        ("aqm", drawn.codel.then(|| "codel".to_owned())),
        ("policer", policer),
        ("reordering", reordering),
        ("jitter", drawn.jitter.map(micros)),
        ("uplink", drawn.uplink.map(mbps)),
        ("ack_batches", drawn.batches.map(micros)),
    ] {
        text.extend(value.map(|value| format!("{key} = \"{value}\"\n")));
    }
    if drawn.has_former_transport {
        text.push_str("\n[transport]\nloss_thresholds = \"rfc9002\"\nmtu_discovery = false\n");
    }
    let _ = writeln!(text, "\n[viewer]\nleaves_after = \"{PATIENCE_S}s\"");
    text.extend(unless_normal(drawn.speed).map(|speed| format!("speed = {speed:.2}\n")));
    text.extend(drawn.seek.map(|(at, to)| format!("seeks = [\"{at}s->{to}s\"]\n")));
    if !drawn.ladder {
        let bytes = |seconds: f64| drawn.title * 1e6 / 8.0 * seconds;
        let _ = writeln!(text, "playout_buffer = \"{:.0}B\"", bytes(PLAYOUT_S));
        if drawn.pauses {
            let _ = writeln!(text, "receive_buffer = \"{:.0}B\"", bytes(FULL_S));
        }
    }
    if drawn.viewers > 1 {
        let _ = writeln!(text, "count = {}\njoin_every = \"10s\"", drawn.viewers);
    }
    if let Some(competitors) = drawn.competitors {
        let _ = write!(
            text,
            "\n[bulk]\ncontroller = \"{}\"\ncount = {}\nstays = \"{TITLE_S}s\"\n",
            competitors.controller, competitors.count
        );
        let stay = |lasts_s| format!("joins = \"0s..{JOINS_S}s\"\nleaves_after = \"{lasts_s}s\"\n");
        text.extend(competitors.lasts_s.map(stay));
    }
    text
}

/// A factor other than exactly 1.
fn unless_normal(factor: f64) -> Option<f64> {
    (factor.to_bits() != 1.0_f64.to_bits()).then_some(factor)
}

/// A rate with three digits.
fn mbps(rate: f64) -> String {
    match rate {
        _ if rate < 1.0 => format!("{:.0}kbit/s", rate * 1e3),
        _ if rate < 10.0 => format!("{rate:.2}Mbit/s"),
        _ => format!("{rate:.1}Mbit/s"),
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
fn loss(loss: DrawnLoss) -> Option<String> {
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

/// Describes the path in words.
fn about(drawn: &Drawn) -> String {
    let mut words = vec![
        format!("{} on average", mbps(drawn.rate)),
        format!("RTT {:.0} ms", drawn.rtt),
        format!("queue of {:.2} products", drawn.products),
    ];
    words.extend(match &drawn.medium {
        Medium::Constant => None,
        Medium::Policed { times, burst_ms } => Some(format!(
            "enforced by a policer with a bucket of {burst_ms:.0} ms on a link {times:.1} times as fast"
        )),
        Medium::Cellular("cellular", _) => Some("cellular".to_owned()),
        Medium::Cellular(kind, _) => Some(format!("{} with its fades", kind.to_uppercase())),
        Medium::Steps(steps) => Some(format!("{} rates in turn", steps.len())),
        Medium::Outages {
            length_s, every_s, ..
        } => Some(format!("an outage of {length_s:.1} s every {every_s:.0} s")),
        Medium::Wifi((kind, _)) => Some((*kind).to_owned()),
    });
    words.extend(match drawn.loss {
        DrawnLoss::None => None,
        DrawnLoss::Random(share) => Some(format!("{:.3} % lost at random", share * 100.0)),
        DrawnLoss::Bursts { share, burst } => {
            let percent = share * 100.0;
            Some(format!("{percent:.3} % lost in bursts of {burst:.0} packets"))
        }
    });
    words.extend(drawn.codel.then(|| "CoDel".to_owned()));
    let reordered = |(share, by)| format!("{:.2} % overtaken by {by:.0} ms", share * 100.0);
    words.extend(drawn.reordering.map(reordered));
    words.extend(drawn.jitter.map(|jitter| format!("jitter {jitter:.0} ms")));
    let rtts = drawn.routes.iter().map(|route| format!("{:.0}", route.rtt));
    let rtts: Vec<_> = rtts.collect();
    if !rtts.is_empty() {
        let again = drawn.routes_repeat_s.map_or("", |_| ", over and over");
        words.push(format!("then RTTs of {} ms{again}", rtts.join(", ")));
    }
    words.extend(drawn.uplink.map(|uplink| format!("uplink {}", mbps(uplink))));
    words.extend(drawn.batches.map(|batches| format!("ACKs every {batches:.0} ms")));
    words.extend(drawn.competitors.map(beside));
    let title = if drawn.ladder { "ladder up to" } else { "title of" };
    words.push(format!(
        "{title} {}; fair share {:.2} λ",
        mbps(drawn.title),
        drawn.ratio
    ));
    words.extend((drawn.viewers > 1).then(|| format!("{} viewers", drawn.viewers)));
    let pauses = drawn.pauses && !drawn.ladder;
    words.extend(pauses.then(|| "pauses when 30 s ahead".to_owned()));
    format!("{}.", words.join("; "))
}

fn beside(competitors: Competitors) -> String {
    let Competitors {
        count, controller, ..
    } = competitors;
    let stay = competitors
        .lasts_s
        .map(|lasts_s| format!(" for {lasts_s} s each"));
    format!("beside {count} {controller}{}", stay.unwrap_or_default())
}
