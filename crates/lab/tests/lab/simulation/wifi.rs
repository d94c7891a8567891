//! RTT and goodput of a saturating `cubic` over the calibrated Wi-Fi hop, within the bands that were used once to set
//! the hop's parameters. No other controller was used for the calibration.
//!
//! `cargo test --release -p playrate-lab simulation::wifi -- --ignored --nocapture` prints the table of
//! `docs/simulation.md`. Set `WIFI` in the environment to print it for another hop, such as
//! `WIFI='queue=1MB,residual_loss=0.1%'`.

use std::time::Duration;

use lab::sim::{self, Setup};
use playrate_netsim::{PathConfig, Seed, WifiConfig};
use playrate_units::Bitrate;

use super::{film, viewer};

/// Results of some runs over one path.
#[derive(Default)]
struct WifiResults {
    /// Mbit/s of the title, from the request on, for each run.
    goodput: Vec<f64>,
    /// Every sample of the smoothed round-trip time in milliseconds, sorted.
    round_trips: Vec<f64>,
    /// The longest round-trip time of each run.
    longest: Vec<f64>,
    offered: u64,
    lost: u64,
    overflowed: u64,
}

impl WifiResults {
    fn rtt(&self, percent: usize) -> f64 {
        self.round_trips[(self.round_trips.len() - 1) * percent / 100]
    }

    fn goodput(&self) -> f64 {
        self.goodput.iter().sum::<f64>() / self.goodput.len() as f64
    }

    fn longest(&self) -> f64 {
        self.longest.iter().copied().fold(0.0, f64::max)
    }
}

/// A viewer with room for everything, so that the player never makes the link idle.
fn saturated(wifi: &WifiConfig, rtt: u64, length: Duration, seeds: u64) -> WifiResults {
    let title = film(wifi.mean_rate, length);
    let mut seen = WifiResults::default();
    for seed in 1..=seeds {
        let mut viewer = viewer("cubic", &title);
        viewer.leaves_after = Some(length);
        let path = PathConfig::wifi(wifi, Duration::from_millis(rtt));
        let run = sim::run(&Setup::new(path, Seed::new(seed)).with_viewer(viewer)).unwrap();
        let viewer = &run.viewers[0];
        let network = &viewer.report.network;
        seen.goodput
            .push(network.received.per(network.ended).unwrap().as_mbps());
        let samples = viewer.transport.iter();
        let mut round_trips: Vec<_> = samples
            .filter_map(|sample| Some(sample.smoothed_rtt?.as_secs_f64() * 1e3))
            .collect();
        round_trips.sort_by(f64::total_cmp);
        seen.longest.push(*round_trips.last().unwrap());
        seen.round_trips.extend(round_trips);
        seen.offered += run.forward.offered.packets;
        seen.lost += run.forward.dropped.loss.packets + run.forward.dropped.retries.packets;
        seen.overflowed += run.forward.dropped.queue_full.packets;
    }
    seen.round_trips.sort_by(f64::total_cmp);
    seen
}

/// Checks the bands measured over an available 15 Mbit/s: Cavendish et al., INTERNET 2014, figures 5, 6 and 9.
fn hold_to_the_bands(near: &WifiResults, far: &WifiResults) {
    let available = near.goodput();
    assert!((13.5..=15.5).contains(&available), "about 15 Mbit/s: {available}");
    let near_peak = near.longest();
    // On a path of 3 ms: up to 500 ms.
    assert!((300.0..=550.0).contains(&near_peak), "{near_peak}");
    // On a path of 100 ms: mostly the path's RTT, with peaks of 150 to 200 ms.
    let (rests, peaks) = (far.rtt(50), far.rtt(95));
    assert!((100.0..=105.0).contains(&rests), "{rests}");
    assert!((150.0..=200.0).contains(&peaks), "{peaks}");
}

#[test]
fn cubic_sees_the_round_trips_and_the_rate_that_the_hop_was_calibrated_by() {
    let length = Duration::from_secs(120);
    let hop = WifiConfig::new(Bitrate::from_mbps(15));
    hold_to_the_bands(&saturated(&hop, 3, length, 3), &saturated(&hop, 100, length, 3));
}

#[test]
#[ignore = "half a minute in a release build"]
fn the_calibration_over_eight_seeds() {
    let parameters = std::env::var("WIFI").map_or_else(|_| String::new(), |text| format!(",{text}"));
    let hop = |rate: &str| -> WifiConfig { format!("{rate}{parameters}").parse().unwrap() };
    println!(
        "| hop, RTT | goodput, Mbit/s | RTT p50 | p90 | p95 | p99 | longest of each seed | lost | overflowed |"
    );
    let mut all = Vec::new();
    for (rate, rtt) in [
        ("15Mbit/s", 3),
        ("15Mbit/s", 100),
        ("15Mbit/s", 200),
        ("31.9Mbit/s", 100),
    ] {
        let hop = hop(rate);
        let seen = saturated(&hop, rtt, Duration::from_secs(300), 8);
        let [least, most] = [f64::min, f64::max].map(|pick| {
            let values = seen.goodput.iter().copied();
            values.reduce(pick).unwrap()
        });
        let percent = |packets: u64| packets as f64 * 100.0 / seen.offered as f64;
        let longest: Vec<_> = seen.longest.iter().map(|rtt| format!("{rtt:.0}")).collect();
        println!(
            "| {hop}, {rtt} ms | {:.2} ({least:.2} to {most:.2}) | {:.0} | {:.0} | {:.0} | {:.0} | {} | \
            {:.3} % | {:.3} % |",
            seen.goodput(),
            seen.rtt(50),
            seen.rtt(90),
            seen.rtt(95),
            seen.rtt(99),
            longest.join(", "),
            percent(seen.lost),
            percent(seen.overflowed),
        );
        all.push(seen);
    }
    if parameters.is_empty() {
        let [near, far, ..] = &all[..] else {
            panic!("four paths")
        };
        hold_to_the_bands(near, far);
    }
}
