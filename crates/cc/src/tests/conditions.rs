//! Invariants of every controller of the registry on paths that change, jitter, police or delay acknowledgements.
//!
//! | invariant | bound |
//! |---|---|
//! | no collapse outlasts its cause by 10 s | half of what the controller carries without the cause |
//! | no window grows beyond what is used | 2.25 times the largest flight |
//! | no path is flooded | 5 % of the packets lost after 5 s |
//! | no receiver is flooded with gaps | 1,000 gaps at a time, of quinn's 1,024 |
//!
//! [`EXCEPTIONS`] lists the violations, with the reasons. An exception that is no longer needed fails.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex};

use rstest::rstest;

use super::MS_IN_NS as MS;
use super::trace::{Conditions, Link, trace_under};
use crate::testing::{Demand, Example, examples};
use crate::{Bitrate, Bytes};

/// Length of a run and beginning of its last five seconds, s. Changes happen at 10 s.
const END: u64 = 25;
const LAST: u64 = 20;
const CHANGE: u64 = 10_000 * MS;
/// 10 Mbit/s, 60 ms and a queue of one bandwidth-delay product.
const LINK: Link = Link {
    rate: Bitrate::from_mbps(10),
    rtt: Duration::from_millis(60),
    queue: Bytes::new(75_000),
};

fn none() -> Conditions {
    Conditions::default()
}

/// Test, names of the specs, reason.
type Exception = (&'static str, &'static [&'static str], &'static str);

const KEEPS_RTT: &str = "the papers' form keeps its smallest RTT";
const NO_ANSWER: &str = "the papers' form answers no loss";
const QUEUE_OF_ACKS: &str = "it treats a queue of acknowledgements as a queue of data, as in its paper";
const BY_DELAY: &[&str] = &[
    "vegas",
    "vegas(arithmetic=original)",
    "ccp",
    "ccpd",
    "ccp-sss",
    "ccp-lss",
    "ccp+loss=ignore",
    "ccp(kp=1.5)",
    "ccpd(kd=4ms)",
];

const EXCEPTIONS: &[Exception] = &[
    (
        "longer by 200 ms",
        &["vegas", "vegas(arithmetic=original)"],
        "from four segments it grows by one per round trip of 260 ms",
    ),
    ("longer by 80 ms", &["ccp+loss=ignore"], KEEPS_RTT),
    ("longer by 200 ms", &["ccp+loss=ignore"], KEEPS_RTT),
    (
        "jitter",
        BY_DELAY,
        "it treats any RTT above the smallest as a queue, as in its paper",
    ),
    ("uplink", BY_DELAY, QUEUE_OF_ACKS),
    (
        "uplink",
        &["ccp-lb(pob_rate=4)", "ccpd+shape=playout-buffer(pob_rate=4)"],
        QUEUE_OF_ACKS,
    ),
    (
        "uplink",
        &["bbr"],
        "the draft holds the flight to twice the smallest RTT, which the uplink's queue exceeds",
    ),
    ("policer", &["ccp+loss=ignore", "ccp-lb+loss=ignore"], NO_ANSWER),
    ("short queue", &["ccp-lb+loss=ignore"], NO_ANSWER),
    (
        "processor",
        &["ccp-sss"],
        "its window is half of what the path holds, whatever is used, as in its paper",
    ),
];

/// Examples that send endlessly; the others differ from these only by pauses.
fn all() -> impl Iterator<Item = Example> {
    let endless = |example: &Example| example.demand == Demand::Endless;
    examples().expect("all parse").into_iter().filter(endless)
}

fn is_excepted(test: &str, name: &str) -> bool {
    EXCEPTIONS
        .iter()
        .any(|(of, specs, _)| *of == test && specs.contains(&name))
}

/// Fails for specs that violate the invariant `test` and are not exceptions, and for exceptions that satisfy it.
#[track_caller]
fn check(test: &str, is_kept: impl Fn(&Example) -> Result<(), String>) {
    let mut wrong = Vec::new();
    for example in all() {
        match (is_kept(&example), is_excepted(test, &example.name)) {
            (Err(what), false) => wrong.push(format!("{}: {what}", example.name)),
            (Ok(()), true) => wrong.push(format!("{}: needs no exception", example.name)),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{test}\n{}", wrong.join("\n"));
}

/// Rate in the last five seconds, bit/s.
fn last_rate(example: &Example, link: Link, conditions: Conditions) -> u64 {
    trace_under(link, conditions, &example.spec, END)
        .rate(LAST, END)
        .as_bits_per_second()
}

/// The same without the tested condition; each run is made once.
fn undisturbed_rate(example: &Example, conditions: Conditions) -> u64 {
    static KNOWN: LazyLock<Mutex<BTreeMap<(String, Conditions), u64>>> = LazyLock::new(Mutex::default);
    let key = (example.name.clone(), conditions);
    if let Some(&rate) = KNOWN.lock().expect("no test panics with it").get(&key) {
        return rate;
    }
    let rate = last_rate(example, LINK, conditions);
    KNOWN.lock().expect("no test panics with it").insert(key, rate);
    rate
}

#[rstest]
#[case::by_5_ms(5, None)]
#[case::by_30_ms(30, None)]
#[case::by_30_ms_with_loss(30, Some(1_000))]
#[case::by_80_ms(80, None)]
#[case::by_200_ms(200, None)]
fn a_path_that_becomes_longer_is_filled_again(#[case] by: u64, #[case] lose_one_in: Option<u64>) {
    let before = Conditions {
        lose_one_in,
        ..none()
    };
    let after = Conditions {
        longer: Some((CHANGE, by * MS)),
        ..before
    };
    let test = format!(
        "longer by {by} ms{}",
        if lose_one_in.is_some() { ", losses" } else { "" }
    );
    check(&test, |example| {
        half(last_rate(example, LINK, after), undisturbed_rate(example, before))
    });
}

#[rstest]
#[case("jitter", Conditions { jitter: 30 * MS, ..none() })]
#[case("ACK batches", Conditions { ack_slot: Some(25 * MS), ..none() })]
#[case("uplink", Conditions { uplink: Some(12_500), ..none() })]
fn a_path_with_noise_is_filled(#[case] test: &str, #[case] conditions: Conditions) {
    check(test, |example| {
        half(
            last_rate(example, LINK, conditions),
            undisturbed_rate(example, none()),
        )
    });
}

#[rstest]
#[case("policer", LINK, Conditions { policer: Some((625_000, 25_000)), ..none() })]
#[case("short queue", Link { queue: Bytes::new(12_000), ..LINK }, none())]
fn a_path_that_drops_without_queueing_is_not_flooded(
    #[case] test: &str,
    #[case] link: Link,
    #[case] conditions: Conditions,
) {
    check(test, |example| {
        let trace = trace_under(link, conditions, &example.spec, END);
        at_most(5.0, trace.lost_percent(5, END), "percent lost")?;
        let half_of_what_passes = undisturbed_rate(example, none()).min(5_000_000);
        half(trace.rate(LAST, END).as_bits_per_second(), half_of_what_passes)
    });
}

// 250 packets/s with 60 ms in flight: 15 packets.
#[test]
fn a_window_that_the_senders_processor_does_not_use_stays_small() {
    let conditions = Conditions {
        processor: Some(4 * MS),
        ..none()
    };
    check("processor", |example| {
        let trace = trace_under(LINK, conditions, &example.spec, 10);
        let widest = trace.rounds.iter().map(|round| round.window.as_u64()).max();
        let widest = widest.unwrap_or(0) as f64 / trace.largest_flight as f64;
        at_most(2.25, widest, "times the flight")
    });
}

// The pipe holds 3,125 packets. Doubling to 6,250 would cost 2,200.
#[test]
fn slow_start_on_a_fast_path_leaves_the_receiver_few_gaps() {
    let link = Link {
        rate: Bitrate::from_mbps(300),
        rtt: Duration::from_millis(100),
        queue: Bytes::new(1_125_000),
    };
    let conditions = Conditions {
        uninformed: true,
        ..none()
    };
    check("fast path", |example| {
        let gaps = trace_under(link, conditions, &example.spec, 4).most_gaps;
        at_most(1_000.0, gaps as f64, "gaps")
    });
}

fn at_most(most: f64, value: f64, unit: &str) -> Result<(), String> {
    let keeps = (value <= most).then_some(());
    keeps.ok_or_else(|| format!("{value:.1} {unit}"))
}

fn half(rate: u64, of: u64) -> Result<(), String> {
    let keeps = (rate * 2 >= of).then_some(());
    keeps.ok_or_else(|| format!("{:.1} of {:.1} Mbit/s", rate as f64 / 1e6, of as f64 / 1e6))
}
