//! [`Drawn`]: the values of a generated path.

use super::cube::Point;
use crate::scenario::share::equal_share;

/// Duration of the title in seconds, and of the part of a run with schedules and competitors.
pub(super) const TITLE_S: f64 = 120.0;
/// Seconds at the beginning of a run during which competitors with a limited stay join.
pub(super) const JOINS_S: f64 = 60.0;
/// Minimum queue: ten full packets. Below that no sender can keep a link busy.
const LEAST_QUEUE_BYTES: f64 = 15_000.0;
/// Slowest title in Mbit/s.
const LEAST_TITLE_MBPS: f64 = 0.06;

/// Values of a generated path. Rates are in Mbit/s, times in milliseconds unless said otherwise.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "properties of a path")]
pub(super) struct Drawn {
    /// Seed of its first trial, so that no two paths share their random losses or the beginning of their title.
    pub(super) seed: u64,
    /// Mean rate of the link.
    pub(super) rate: f64,
    /// Rate λ of the title, or of a ladder's highest representation.
    pub(super) title: f64,
    /// Viewer's mean fair share of the link over λ.
    pub(super) ratio: f64,
    pub(super) rtt: f64,
    pub(super) queue_bytes: f64,
    /// Queue over the bandwidth-delay product.
    pub(super) products: f64,
    pub(super) medium: Medium,
    pub(super) loss: DrawnLoss,
    pub(super) codel: bool,
    /// Share of overtaken packets, and their additional delay.
    pub(super) reordering: Option<(f64, f64)>,
    pub(super) jitter: Option<f64>,
    /// Routes after the first, in order of time.
    pub(super) routes: Vec<Route>,
    /// Time in seconds after which the routes repeat.
    pub(super) routes_repeat_s: Option<f64>,
    /// Rate of the return direction; `None` if unlimited.
    pub(super) uplink: Option<f64>,
    /// Packets in the return direction are sent on together at multiples of this time.
    pub(super) batches: Option<f64>,
    pub(super) competitors: Option<Competitors>,
    /// True for a title in several representations and an adaptive player.
    pub(super) ladder: bool,
    pub(super) viewers: u32,
    /// True for a player that pauses when it is 30 s ahead; otherwise it fetches the whole title as fast as it can.
    pub(super) pauses: bool,
    /// Playback speed of the viewers; 1 is normal.
    pub(super) speed: f64,
    /// Factor by which the server's library misstates the rate.
    pub(super) declared: f64,
    /// Time and target of the viewer's only seek, seconds.
    pub(super) seek: Option<(f64, f64)>,
    /// True for the loss thresholds of RFC 9002 without MTU discovery, as used for the first sets.
    pub(super) has_former_transport: bool,
}

/// A route that applies from a time on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    pub(super) at_s: f64,
    /// Preceding time without any route.
    pub(super) gap: f64,
    pub(super) rtt: f64,
}

/// Behaviour of the link's rate over time.
#[derive(Clone, Debug)]
pub(super) enum Medium {
    Constant,
    /// A policer enforces the mean rate on a link `times` as fast, with a bucket of `burst_ms` at the rate.
    Policed {
        times: f64,
        burst_ms: f64,
    },
    /// A synthetic cellular link of this kind with this seed.
    Cellular(&'static str, u64),
    /// Factors of the mean rate, each with its duration in seconds, repeated.
    Steps(Vec<(f64, f64)>),
    /// An outage of `length_s` seconds, first after `after_s` seconds and then every `every_s` seconds.
    Outages {
        length_s: f64,
        after_s: f64,
        every_s: f64,
    },
    Wifi(Hop),
}

/// Kind of a Wi-Fi hop: its name, and its parameters in the text form of a rate.
pub(super) type Hop = (&'static str, &'static str);

/// The calibrated hop of the papers' scenarios; a channel that other cells often occupy for long; a station at the edge
/// of the cell, with retries and a wide range of rates; and rates that persist for a second.
const HOPS: [Hop; 4] = [
    ("Wi-Fi", ""),
    ("Wi-Fi, busy channel", ",gap=1s,stall=80ms"),
    (
        "Wi-Fi, edge of the cell",
        ",frame_error=25%,modes=30/60/100/140/170",
    ),
    ("Wi-Fi, slow rate adaptation", ",dwell=1s"),
];

#[derive(Clone, Copy, Debug)]
pub(super) enum DrawnLoss {
    None,
    /// Share of packets lost independently.
    Random(f64),
    /// Share of packets lost, in bursts of `burst` packets on average.
    Bursts {
        share: f64,
        burst: f64,
    },
}

/// Endless downloads that compete with the viewers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Competitors {
    pub(super) count: u32,
    pub(super) controller: &'static str,
    /// Seconds for which each stays, from a random time in the first [`JOINS_S`] seconds; `None` for the whole run.
    pub(super) lasts_s: Option<f64>,
}

impl Competitors {
    /// Share of the title's duration during which each is present.
    fn presence(self) -> f64 {
        self.lasts_s.map_or(1.0, |lasts_s| lasts_s / TITLE_S)
    }
}

/// The number between `from` and `to` at coordinate `at` on a logarithmic axis.
pub(super) fn log(at: f64, from: f64, to: f64) -> f64 {
    from * libm::exp(at * libm::log(to / from))
}

/// The first of `parts` whose cumulative share, in twenty-fourths, reaches coordinate `at`; the last if none does.
pub(super) fn choice<T: Copy>(at: f64, parts: &[(f64, T)]) -> Option<T> {
    let mut reached = 0.0;
    let found = parts.iter().find(|(share, _)| {
        reached += share / 24.0;
        at < reached
    });
    found.or(parts.last()).map(|(_, value)| *value)
}

impl Drawn {
    /// The values of the path at `point`.
    pub(super) fn new(point: Point) -> Self {
        let rate = log(point.at("rate"), 1.0, 100.0);
        let rtt = log(point.at("rtt"), 5.0, 400.0);
        let ratio = log(point.at("ratio"), 0.9, 10.0);
        let products = log(point.at("queue"), 0.1, 10.0);
        let product = rate * rtt * 1e3 / 8.0;
        let queue_bytes = (products * product).max(LEAST_QUEUE_BYTES);
        let viewers = if point.at("viewers") < 3.0 / 24.0 { 2 } else { 1 };
        let competitors = competitors(point);
        let title = rate * fair_share(viewers, competitors) / ratio;
        Self {
            seed: point.seed("run"),
            rate,
            title: title.max(LEAST_TITLE_MBPS),
            ratio,
            rtt,
            queue_bytes,
            products: queue_bytes / product,
            medium: medium(point),
            loss: loss(point),
            codel: point.at("codel") < 4.0 / 24.0,
            reordering: (point.at("reordering") < 2.0 / 24.0).then(|| {
                let share = log(point.free("reordered"), 0.001, 0.03);
                (share, log(point.free("reordered by"), 1.0, 0.3 * rtt + 1.0))
            }),
            jitter: (point.at("jitter") < 4.0 / 24.0)
                .then(|| log(point.free("jitter"), 1.0, 0.3 * rtt + 1.0)),
            routes: Vec::new(),
            routes_repeat_s: None,
            uplink: None,
            batches: None,
            competitors,
            ladder: point.at("ladder") < 0.2,
            viewers,
            pauses: point.at("pauses") < 8.0 / 24.0,
            speed: 1.0,
            declared: 1.0,
            seek: None,
            has_former_transport: true,
        }
    }
}

/// Mean over time of a viewer's equal share among all present flows.
fn fair_share(viewers: u32, competitors: Option<Competitors>) -> f64 {
    let (count, presence) = competitors.map_or((0, 0.0), |some| (some.count, some.presence()));
    equal_share(viewers, count, presence)
}

fn loss(point: Point) -> DrawnLoss {
    let share = log(point.at("loss share"), 0.000_01, 0.03);
    match choice(point.at("loss"), &[(8.0, 0), (9.0, 1), (7.0, 2)]) {
        Some(1) => DrawnLoss::Random(share),
        Some(2) => DrawnLoss::Bursts {
            share,
            burst: log(point.at("burst"), 2.0, 20.0),
        },
        _ => DrawnLoss::None,
    }
}

fn medium(point: Point) -> Medium {
    match choice(
        point.at("medium"),
        &[(8.0, 0), (2.0, 4), (3.0, 5), (4.0, 1), (3.0, 2), (4.0, 3)],
    ) {
        Some(4) => Medium::Policed {
            times: 1.5 + 3.5 * point.free("policed link"),
            burst_ms: log(point.at("policer's burst"), 10.0, 300.0),
        },
        Some(5) => Medium::Cellular("cellular", point.seed("cellular")),
        Some(1) => Medium::Steps(steps(point)),
        Some(2) => {
            let length_s = log(point.at("outage"), 0.3, 5.0);
            let every_s = 25.0 + 35.0 * point.free("outages");
            Medium::Outages {
                length_s,
                // Not in the first seconds, which determine start-up.
                after_s: 8.0 + (every_s - length_s - 10.0) * point.free("first outage"),
                every_s,
            }
        }
        Some(3) => {
            let hop = choice(point.at("hop"), &HOPS.map(|hop| (6.0, hop)));
            Medium::Wifi(hop.unwrap_or(HOPS[0]))
        }
        _ => Medium::Constant,
    }
}

/// Three to five levels between 0.3 and 1.7 times the mean (before they are scaled to it), for 4 to 20 s each.
fn steps(point: Point) -> Vec<(f64, f64)> {
    let count = 3 + usize::from(point.free("levels") > 0.33) + usize::from(point.free("levels") > 0.66);
    let level = |n: usize| {
        let part = log(point.free(&format!("level {n}")), 0.3, 1.7);
        let lasts = 4.0 + 16.0 * point.free(&format!("length {n}"));
        (part, (lasts * 10.0).round() / 10.0)
    };
    let levels: Vec<_> = (0..count).map(level).collect();
    let length: f64 = levels.iter().map(|(_, lasts)| lasts).sum();
    let mean = levels.iter().map(|(part, lasts)| part * lasts).sum::<f64>() / length;
    levels
        .into_iter()
        .map(|(part, lasts)| (part / mean, lasts))
        .collect()
}

fn competitors(point: Point) -> Option<Competitors> {
    let counts = [
        (12.0, 0),
        (4.0, 1),
        (2.0, 2),
        (2.0, 3),
        (1.0, 4),
        (1.0, 5),
        (1.0, 6),
        (1.0, 8),
    ];
    let count = choice(point.at("competitors"), &counts).filter(|count| *count > 0)?;
    let controller = choice(
        point.at("competitors' controller"),
        &[(12.0, "cubic"), (6.0, "reno"), (6.0, "bbr")],
    )?;
    let leaves = point.at("competitors' stay") >= 0.5;
    let lasts_s = leaves.then(|| (20.0 + 40.0 * point.free("competitors' stay")).round());
    Some(Competitors {
        count,
        controller,
        lasts_s,
    })
}
