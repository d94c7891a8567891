//! Clients that report false values by CMCD, together with clients that report none: the product's server and clients
//! in virtual time.
//!
//! No report gets a client more than 1.1 times the throughput of one that makes the same requests without reports.
//! `PLAYRATE_REPORTS=100` tries that many random reports with each controller instead of a few.

mod lies;
mod pair;

use std::sync::Arc;
use std::time::Duration;

use lies::{Lie, Requests};
use pair::{Pair, Share};
use playrate::cc::testing::examples;
use playrate::cc::{ControllerSpec, Path, VideoKnowledge};
use playrate_netsim::Seed;
use playrate_test_support::in_parallel;
use playrate_units::Bitrate;

/// Maximum throughput that a report may gain, as a multiple of that without one.
const TOLERATED: f64 = 1.1;
/// Number of random reports to try with each controller that knows the video.
const RANDOM: u64 = 6;
/// Rates of the title. On a link of 8 Mbit/s for two clients, a ceiling of three times the first rate binds, and a
/// floor at the second rate takes half of the link.
const RATES: [Bitrate; 2] = [Bitrate::from_mbps(1), Bitrate::from_mbps(4)];

/// Every algorithm, alias and component, as shown in the figures.
fn controllers() -> Vec<ControllerSpec> {
    let mut specs = Vec::new();
    for example in examples().unwrap() {
        if !specs.contains(&example.spec) {
            specs.push(example.spec);
        }
    }
    specs
}

/// Returns true if a controller reads facts of the video.
fn knows_the_video(spec: &ControllerSpec) -> bool {
    let controller = spec.build(&Path::default(), Arc::new(VideoKnowledge::new()));
    !controller.snapshot().waiting_for.is_empty()
}

fn pair(controller: &ControllerSpec, rate: Bitrate, round_trip_ms: u64) -> Pair<'_> {
    let round_trip = Duration::from_millis(round_trip_ms);
    Pair {
        controller,
        rate,
        round_trip,
    }
}

/// The client's throughput with a lie as a multiple of that without, over round-trip times other than 60 ms. If two
/// flows fill a short queue, chance decides which one loses a packet, but not how much a report gains.
fn mean_gain(controller: &ControllerSpec, rate: Bitrate, lie: &Lie) -> f64 {
    let total = |lie: &Lie| -> f64 {
        let shares = (61..=66).map(|round_trip| pair(controller, rate, round_trip).run(lie).client);
        shares.sum()
    };
    total(lie) / total(&lie.silent())
}

/// The client's throughput with each lie as a multiple of that without, and the worst lie in words. Stops at the first
/// one that gains too much.
fn gains(controller: &ControllerSpec, rate: Bitrate, lies: &[Lie]) -> (f64, String) {
    let pair = pair(controller, rate, 60);
    let mut without: Vec<(Requests, Share)> = Vec::new();
    let mut worst = (0.0, String::new());
    for lie in lies {
        let known = without.iter().find(|(requests, _)| *requests == lie.requests);
        let share = known.map_or_else(|| pair.run(&lie.silent()), |(_, share)| *share);
        if known.is_none() {
            without.push((lie.requests, share));
        }
        let with = pair.run(lie);
        let mut gain = with.client / share.client;
        if gain > TOLERATED {
            gain = mean_gain(controller, rate, lie);
        }
        if gain > worst.0 {
            let text = format!(
                "{}: {:.2} and {:.2} Mbit/s, without {:.2} and {:.2}",
                lie.name, with.client, with.other, share.client, share.other
            );
            worst = (gain, text);
        }
        if gain > TOLERATED {
            break;
        }
    }
    worst
}

#[test]
fn no_report_gets_a_client_more_than_a_tenth_above_its_throughput_without() {
    let random = std::env::var("PLAYRATE_REPORTS").map_or(RANDOM, |number| number.parse().unwrap());
    let mut jobs = Vec::new();
    for controller in controllers() {
        let lies = if knows_the_video(&controller) {
            let random = (0..random).map(|seed| Lie::random(Seed::new(seed)));
            Lie::worst().into_iter().chain(random).collect()
        } else {
            vec![Lie::everything()]
        };
        // With a title of half the link's rate a few show the same.
        let some = lies
            .iter()
            .filter(|lie| lie.requests == Requests::OneTitle)
            .take(4);
        jobs.push((controller.clone(), RATES[1], some.cloned().collect::<Vec<_>>()));
        jobs.push((controller, RATES[0], lies));
    }
    assert!(jobs.len() > 40, "{} runs", jobs.len());
    let unfair = in_parallel(&jobs, None, |(controller, rate, lies)| {
        let (gain, worst) = gains(controller, *rate, lies);
        let line = format!("{gain:.3} {controller}, title of {rate}: {worst}");
        println!("{line}");
        (gain > TOLERATED).then_some(line)
    });
    let unfair: Vec<_> = unfair.into_iter().flatten().collect();
    assert!(unfair.is_empty(), "{unfair:#?}");
}

/// The runs above compare with clients whose reports have no content, so that responses have the same lengths and equal
/// knowledge gives equal runs. Over all controllers together, such a client gets as much as one without CMCD.
#[test]
fn a_report_without_content_is_as_good_as_none() {
    let jobs = controllers();
    let shares = in_parallel(&jobs, None, |controller| {
        let pair = pair(controller, RATES[0], 60);
        [Lie::none(), Lie::everything().silent()].map(|lie| pair.run(&lie).client)
    });
    let [none, silent] = [0, 1].map(|kind| shares.iter().map(|share| share[kind]).sum::<f64>());
    println!("{:.3}", silent / none);
    assert!((0.95..1.05).contains(&(silent / none)), "{silent} and {none}");
}
