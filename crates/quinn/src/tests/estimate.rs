//! The estimate of the rate that a connection carries, against links with known rates, under several controllers.
//! Tests of `playrate-noq` include this file too, so that both stacks meet the same bounds.

use std::time::Duration;

use playrate_cc::EstimateSource;
use playrate_netsim::{LinkConfig, Loss, PathConfig, QueueLimit, Rate};
use playrate_units::{Bitrate, Bytes};

use super::OWN_CONTROLLERS;
use super::wire::Wire;
use crate::ConnectionController;

const TICK: Duration = Duration::from_millis(20);
/// Rate of a link's QUIC packets, without UDP and IP headers, per mille of the link's rate.
const PACKETS: (u64, u64) = (1_452, 1_480);

/// A path and its application.
#[derive(Clone, Copy)]
struct Case {
    /// Schedule of the link's rate.
    rate: &'static str,
    rtt_ms: u64,
    /// Queue in thousandths of the bandwidth-delay product.
    queue: u64,
    loss: &'static str,
    /// Jitter of data, jitter of acknowledgements and the time between batches of acknowledgements, in milliseconds.
    disturbed: (u64, u64, u64),
    /// Bytes that the application writes every 40 ms; zero for as much as possible.
    frame: usize,
}

const PLAIN: Case = Case {
    rate: "10Mbit/s",
    rtt_ms: 50,
    queue: 1_000,
    loss: "0%",
    disturbed: (0, 0, 0),
    frame: 0,
};

#[rustfmt::skip]
const CASES: [Case; 15] = [
    Case { rate: "1Mbit/s", ..PLAIN },
    Case { rate: "50Mbit/s", rtt_ms: 10, ..PLAIN },
    Case { rate: "5Mbit/s", rtt_ms: 200, ..PLAIN },
    Case { queue: 4_000, ..PLAIN },
    Case { queue: 300, ..PLAIN },
    Case { loss: "0.5%", ..PLAIN },
    Case { disturbed: (15, 0, 0), ..PLAIN },
    Case { disturbed: (0, 20, 0), ..PLAIN },
    Case { disturbed: (0, 0, 25), ..PLAIN },
    Case { rate: "1Mbit/s", disturbed: (0, 0, 25), ..PLAIN },
    Case { rate: "20Mbit/s,5Mbit/s@4s", ..PLAIN },
    Case { rate: "20Mbit/s,2Mbit/s@4s", rtt_ms: 10, ..PLAIN },
    Case { rate: "5Mbit/s,20Mbit/s@4s", ..PLAIN },
    Case { frame: 10_000, ..PLAIN },
    Case { rate: "2Mbit/s", frame: 15_000, ..PLAIN },
];

impl Case {
    fn path(&self) -> PathConfig {
        let rate: Rate = self.rate.parse().unwrap();
        let stored = rate.mean().unwrap() * Duration::from_millis(self.rtt_ms);
        let queue = (stored.as_u64() * self.queue / 1_000).max(15_000);
        let half = Duration::from_millis(self.rtt_ms) / 2;
        let [jitter, ack_jitter, ack_batches] = {
            let (jitter, ack_jitter, ack_batches) = self.disturbed;
            [jitter, ack_jitter, ack_batches].map(Duration::from_millis)
        };
        let forward = LinkConfig::new(rate, half)
            .with_queue(QueueLimit::Bytes(Bytes::new(queue)))
            .with_loss(self.loss.parse::<Loss>().unwrap())
            .with_jitter(jitter);
        let backward = LinkConfig::new(Rate::Unlimited, half)
            .with_jitter(ack_jitter)
            .with_batches(ack_batches);
        PathConfig::new(forward, backward)
    }

    /// The link's rate at `now`, and the time of its last step.
    fn rate_at(&self, now: Duration) -> (Bitrate, Duration) {
        let steps = self.rate.split(',').map(|step| {
            let (rate, at) = step.split_once('@').unwrap_or((step, "0s"));
            let at = Duration::from_secs(at.trim_end_matches('s').parse().unwrap());
            (rate.parse().unwrap(), at)
        });
        steps.rev().find(|(_, at)| *at <= now).unwrap()
    }
}

/// From one second and from four round trips after a step on, an estimate never exceeds the link by more than 2 %. It
/// is within 10 % of the link in two cases: if it says that the link was busy, and if the link was busy without the
/// application as the limit.
fn follows_the_link(controller: &str, cases: &[Case]) {
    for case in cases {
        let control = ConnectionController::new(controller.parse().unwrap());
        let mut wire = Wire::new(&control, &case.path());
        if case.frame == 0 {
            wire.server_sends(100_000_000);
        }
        let mut carried = Vec::new();
        let (mut checked, mut busy_estimates) = (0, 0);
        for tick in 0..400 {
            if case.frame > 0 && tick % 2 == 0 {
                wire.server_sends(case.frame);
            }
            wire.run_for(TICK);
            let now = wire.now();
            let stats = wire.link_stats();
            carried.push((now, stats.delivered.bytes + stats.dropped.loss.bytes));
            let Some(estimate) = control.estimate(wire.instant()) else {
                continue;
            };
            let (link, stepped) = case.rate_at(now);
            let queued = control
                .monitor()
                .latest()
                .unwrap()
                .smoothed_rtt
                .unwrap_or_default();
            let settled =
                |rtt| now.saturating_sub(estimate.age) >= stepped + Duration::from_secs(1).max(4 * rtt);
            if !settled(Duration::from_millis(case.rtt_ms)) {
                continue;
            }
            checked += 1;
            let capacity = link.scaled(PACKETS.0, PACKETS.1);
            let at = format!(
                "{controller}, {}, {} ms, at {now:?}: {estimate:?}",
                case.rate, case.rtt_ms
            );
            assert!(estimate.rate <= capacity.scaled(102, 100), "above the link: {at}");
            let interval = Duration::from_secs(1).max(4 * queued);
            let before = carried.iter().rev().find(|(at, _)| *at + interval <= now);
            let was_busy = settled(queued)
                && before.is_some_and(|&(at, before)| {
                    let all = link * now.saturating_sub(at);
                    stats.delivered.bytes + stats.dropped.loss.bytes + Bytes::new(3_000) >= before + all
                });
            if !estimate.is_lower_bound() || was_busy && estimate.source != EstimateSource::Application {
                assert!(estimate.rate >= capacity.scaled(90, 100), "below the link: {at}");
            }
            busy_estimates += u32::from(!estimate.is_lower_bound());
        }
        assert!(
            checked > 100,
            "{controller} on {}: only {checked} estimates",
            case.rate
        );
        if controller == "cubic"
            && case.frame == 0
            && case.queue >= 1_000
            && case.loss == "0%"
            && case.rtt_ms >= 50
        {
            let disturbed = case.disturbed != PLAIN.disturbed;
            assert!(
                disturbed || busy_estimates > 40,
                "{} never counts as busy",
                case.rate
            );
        }
    }
}

#[test]
fn an_estimate_under_cubic_follows_the_link() {
    follows_the_link("cubic", &CASES);
}

#[test]
fn an_estimate_under_video_follows_the_link() {
    follows_the_link("video", &CASES);
}

#[test]
fn an_estimate_under_bbr_and_copa_follows_the_link() {
    follows_the_link("bbr", &CASES[2..12]);
    follows_the_link("copa", &CASES[2..12]);
}

#[test]
fn an_estimate_under_the_stacks_own_controllers_follows_the_link() {
    for controller in OWN_CONTROLLERS {
        follows_the_link(controller, &CASES[2..12]);
    }
}
