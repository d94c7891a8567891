//! Paths of the second family: like the first, plus other things that change or delay packets on real paths.

use super::cube::Point;
use super::draw::{Drawn, DrawnLoss, Medium, Route, choice, log};

/// Maximum ratio of the link's rate to its uplink's: cable and DSL lines seldom exceed a hundred.
const MOST_ASYMMETRY: f64 = 200.0;
/// Number of satellites in a constellation that serve a viewer in turn, and the time in seconds for each.
const SATELLITES: u32 = 8;
const SATELLITE_S: f64 = 15.0;

/// The values of the path at `point`.
pub(super) fn drawn(point: Point) -> Drawn {
    let mut drawn = Drawn::new(point);
    // Rates, queues, titles and short RTTs stay those of the first family.
    if point.at("long path") < 3.0 / 24.0 {
        let rtt = log(point.free("long rtt"), 300.0, 600.0);
        drawn.queue_bytes *= rtt / drawn.rtt;
        drawn.rtt = rtt;
        drawn.loss = DrawnLoss::Random(log(point.free("long path's loss"), 0.001, 0.02));
    }
    drawn.medium = medium(point, drawn.medium);
    drawn.jitter = (point.at("jitter") < 6.0 / 24.0).then(|| log(point.free("jitter"), 1.0, 30.0));
    (drawn.routes, drawn.routes_repeat_s) = routes(point, drawn.rtt);
    if drawn.routes.len() > 1 && matches!(drawn.medium, Medium::Constant | Medium::Steps(_)) {
        // Each satellite of a constellation also has its own rate.
        let level = |n: usize| log(point.free(&format!("rate of satellite {n}")), 0.5, 1.5);
        let levels: Vec<f64> = (0..=drawn.routes.len()).map(level).collect();
        let mean = levels.iter().sum::<f64>() / levels.len() as f64;
        drawn.medium = Medium::Steps(levels.iter().map(|level| (level / mean, SATELLITE_S)).collect());
    }
    let is_wifi = matches!(drawn.medium, Medium::Wifi(_));
    if point.at("uplink") < 8.0 / 24.0 && !is_wifi {
        let uplink = log(point.free("uplink"), 0.05, 0.5);
        drawn.uplink = Some(uplink.max(drawn.rate / MOST_ASYMMETRY));
    }
    drawn.batches = (point.at("batches") < 6.0 / 24.0).then(|| log(point.free("batches"), 2.0, 25.0));
    drawn.has_former_transport = false;
    // A player of a ladder has no such settings.
    if !drawn.ladder {
        if point.at("speed") < 4.0 / 24.0 {
            drawn.speed = log(point.free("speed"), 0.5, 3.0);
        }
        if point.at("declared") < 4.0 / 24.0 {
            drawn.declared = log(point.free("declared"), 1e-5, 1e5);
        }
        drawn.seek = (point.at("seek") < 3.0 / 24.0).then_some((20.0, 60.0));
    }
    drawn
}

/// The medium of the first family or, in 7 of 24, one with fades or with a short-bucket policer.
fn medium(point: Point, first: Medium) -> Medium {
    match choice(
        point.at("second medium"),
        &[(3.0, 1), (2.0, 2), (2.0, 3), (17.0, 0)],
    ) {
        Some(1) => Medium::Cellular("lte", point.seed("lte")),
        Some(2) => Medium::Cellular("umts", point.seed("umts")),
        Some(3) => Medium::Policed {
            times: 1.5 + 3.5 * point.free("policed link"),
            burst_ms: log(point.free("short bucket"), 5.0, 50.0),
        },
        _ => first,
    }
}

/// Routes after the first one of `rtt` milliseconds, and the time in seconds after which they repeat. In 4 of 24 each,
/// the RTT rises by 5 to 200 ms or falls by a fraction; in 2 it flaps; in 2 it changes every 15 s as with a
/// constellation of satellites. Half of the changes include 50 to 500 ms without a route.
fn routes(point: Point, rtt: f64) -> (Vec<Route>, Option<f64>) {
    let gap = if point.at("gap") < 0.5 {
        log(point.free("gap"), 50.0, 500.0)
    } else {
        0.0
    };
    let to = |at_s: f64, rtt: f64| Route { at_s, gap, rtt };
    let at_s = 15.0 + 45.0 * point.free("new route");
    let more = rtt + log(point.free("longer by"), 5.0, 200.0);
    let kinds = [(4.0, 1), (4.0, 2), (2.0, 3), (2.0, 4), (12.0, 0)];
    match choice(point.at("routes"), &kinds) {
        Some(1) => (vec![to(at_s, more)], None),
        Some(2) => (
            vec![to(at_s, rtt * log(point.free("shorter by"), 0.2, 0.9))],
            None,
        ),
        Some(3) => {
            let half = 3.0 + 17.0 * point.free("flaps");
            (vec![to(half, more)], Some(2.0 * half))
        }
        Some(4) => {
            let satellite = |n: u32| {
                let more = log(point.free(&format!("satellite {n}")), 1.0, 60.0);
                to(SATELLITE_S * f64::from(n), rtt + more)
            };
            (
                (1..SATELLITES).map(satellite).collect(),
                Some(SATELLITE_S * f64::from(SATELLITES)),
            )
        }
        _ => (Vec::new(), None),
    }
}
