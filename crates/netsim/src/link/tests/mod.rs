//! Vectors and properties of one link.

mod faults;
mod impairments;

use playrate_units::{Bitrate, Probability};
use proptest::prelude::*;

use super::*;
use crate::ConfigError;

const RTT: Duration = Duration::from_millis(100);

fn twenty_mbps() -> LinkConfig {
    LinkConfig::new(Bitrate::from_mbps(20), RTT / 2)
}

fn build(config: &LinkConfig) -> Link {
    config.build(RTT, Seed::new(1)).unwrap()
}

/// Reason why a packet was dropped; `None` if it arrives.
fn reason(verdict: Verdict) -> Option<DropReason> {
    match verdict {
        Verdict::Deliver { .. } => None,
        Verdict::Dropped(reason) => Some(reason),
    }
}

#[test]
fn a_packet_takes_its_serialisation_and_its_propagation() {
    let verdict = build(&twenty_mbps()).offer(Time::from_millis(1), Packet::new(1452));
    let expected = Verdict::Deliver {
        // (1452 + 28) B × 8 / 20 Mbit/s = 592 µs
        at: Time::from_nanos(1_000_000 + 592_000 + 50_000_000),
        marked: false,
        damage: None,
        copy_at: None,
    };
    assert_eq!(verdict, expected);
}

#[test]
fn a_late_driver_does_not_lower_the_rate() {
    // Offers made all at once are served as if they had come evenly.
    let mut link = build(&twenty_mbps());
    let mut last = Time::ZERO;
    for lump in 0..10_u64 {
        for _ in 0..100 {
            let verdict = link.offer(Time::from_micros(lump * 59_200), Packet::new(1452));
            let before = std::mem::replace(&mut last, verdict.arrival().unwrap());
            assert!(last > before);
        }
    }
    assert_eq!(last, Time::from_micros(1_000 * 592 + 50_000));
}

#[test]
fn the_queue_drops_its_tail_in_packets() {
    let mut link = build(&twenty_mbps().with_queue(QueueLimit::Packets(3)));
    let verdicts: Vec<_> = (0..5)
        .map(|_| link.offer(Time::ZERO, Packet::new(1000)))
        .collect();
    assert!(verdicts[..3].iter().all(|v| v.arrival().is_some()));
    assert_eq!(verdicts[3..], [Verdict::Dropped(DropReason::QueueFull); 2]);
    // One packet has left after (1000 + 28) × 8 / 20 Mbit/s = 411.2 µs, so there is room for one.
    for (nanos, fits) in [(411_199, false), (411_200, true), (411_200, false)] {
        let verdict = link.offer(Time::from_nanos(nanos), Packet::new(1000));
        assert_eq!(verdict.arrival().is_some(), fits, "{nanos} ns");
    }
}

#[test]
fn the_queue_drops_its_tail_in_bytes_and_lets_smaller_packets_in() {
    let mut link = build(&twenty_mbps().with_queue(QueueLimit::Bytes(Bytes::new(3_000))));
    for (payload, dropped) in [
        (1452, None),
        (1452, None),
        (13, Some(DropReason::QueueFull)),
        (12, None),
    ] {
        assert_eq!(reason(link.offer(Time::ZERO, Packet::new(payload))), dropped);
    }
    assert_eq!(link.backlog, 3_000);
    assert_eq!(link.stats().max_queue, Bytes::new(3_000));
}

#[test]
fn nothing_waits_on_an_unlimited_link() {
    let mut link = build(&LinkConfig::new(Rate::Unlimited, Duration::from_millis(5)));
    for _ in 0..100_000 {
        assert_eq!(
            link.offer(Time::ZERO, Packet::new(1452)).arrival(),
            Some(Time::from_millis(5))
        );
    }
    let stats = link.stats();
    assert_eq!((stats.delivered.packets, stats.max_queue), (100_000, Bytes::ZERO));
}

#[test]
fn a_packet_beyond_the_mtu_is_dropped_whole() {
    let mut link = build(&twenty_mbps());
    assert_eq!(reason(link.offer(Time::ZERO, Packet::new(1472))), None);
    let beyond = link.offer(Time::ZERO, Packet::new(1473));
    assert_eq!(reason(beyond), Some(DropReason::TooBig));
}

#[test]
fn loss_comes_at_its_rate_and_takes_time_on_the_link() {
    let config = LinkConfig::new(Bitrate::from_mbps(20), Duration::ZERO)
        .with_loss("2%".parse::<Probability>().unwrap())
        .with_queue(QueueLimit::Packets(1_000_000));
    let mut link = build(&config);
    let mut end = Time::ZERO;
    for _ in 0..200_000 {
        end = link.offer(Time::ZERO, Packet::new(1452)).arrival().unwrap_or(end);
    }
    let lost = link.stats().dropped.loss.packets;
    // Mean 4000, standard deviation 63: within five of them.
    assert!((3_687..4_313).contains(&lost), "{lost} of 200000 lost at 2 %");
    assert!(
        end >= Time::from_micros(592 * 199_900),
        "lost packets took their time: last at {end}"
    );
}

#[test]
fn a_seed_decides_which_packets_are_lost() {
    let run = |seed| {
        let config = twenty_mbps().with_loss(Probability::from_parts_per_billion(100_000_000));
        let mut link = config.build(RTT, Seed::new(seed)).unwrap();
        for n in 0..1_000_u64 {
            link.offer(Time::from_millis(n), Packet::new(1200));
        }
        link.digest()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_series_counts_every_packet_and_its_fate() {
    let mut link = build(&twenty_mbps().with_queue(QueueLimit::Packets(1)))
        .with_series(LinkSeries::new(Duration::from_millis(1), 64));
    link.offer(Time::ZERO, Packet::new(972));
    let second = link.offer(Time::ZERO, Packet::new(972));
    assert_eq!(second, Verdict::Dropped(DropReason::QueueFull));
    link.settle(Time::from_millis(10));
    let bin = link.series().unwrap().bins()[0];
    assert_eq!((bin.offered, bin.dropped), (2, 1));
    assert_eq!(bin.max_queue, Bytes::new(1_000));
    assert_eq!(bin.delivered, Bytes::new(1_000));
}

#[test]
fn impossible_links_are_refused_with_the_value_at_fault() {
    let refused = |config: LinkConfig| config.build(RTT, Seed::new(1)).unwrap_err().to_string();
    assert!(refused(twenty_mbps().with_rate(Bitrate::ZERO)).contains("`0bit/s`"));
    assert!(refused(twenty_mbps().with_delay(Duration::from_secs(3_601))).contains("`3601s`"));
    assert!(refused(twenty_mbps().with_queue(QueueLimit::Packets(0))).contains("`0packets`"));
    assert!(refused(twenty_mbps().with_queue(QueueLimit::Bytes(Bytes::new(1_499)))).contains("`1.499kB`"));
    assert!(matches!(
        twenty_mbps().with_mtu(Bytes::new(1_227)).build(RTT, Seed::new(1)),
        Err(ConfigError::Mtu(_))
    ));
}

proptest! {
    #[test]
    fn every_byte_is_accounted_for_and_the_queue_keeps_its_limit(
        offers in proptest::collection::vec((0..3_000_000_u64, 0..1_600_usize), 1..400),
        limit in 1_500..20_000_u64,
        loss in 0..200_000_000_u32,
        rate in 100_000..100_000_000_u64,
    ) {
        let config = LinkConfig::new(Bitrate::from_bits_per_second(rate), RTT / 2)
            .with_queue(QueueLimit::Bytes(Bytes::new(limit)))
            .with_loss(Probability::from_parts_per_billion(loss));
        let mut link = build(&config);
        let (mut now, mut arrived, mut last) = (Time::ZERO, PacketCount::default(), Time::ZERO);
        for (gap, payload) in offers {
            now = now + Duration::from_nanos(gap);
            if let Verdict::Deliver { at, .. } = link.offer(now, Packet::new(payload)) {
                prop_assert!(at >= now + RTT / 2, "faster than propagation");
                prop_assert!(at >= last, "overtaken");
                last = at;
                arrived.add(payload as u64 + IP_UDP_OVERHEAD);
            }
            prop_assert!(link.backlog <= limit);
            prop_assert!(link.stats().is_conserved());
        }
        link.settle(Time::MAX);
        let stats = link.stats();
        prop_assert_eq!(stats.queued, PacketCount::default());
        prop_assert_eq!(stats.delivered, arrived);
        prop_assert!(stats.is_conserved());
        // No faster than the rate either: everything that passed needs at least its transmission time.
        let bits = u128::from(arrived.bytes.as_u64()) * 8 * 1_000_000_000;
        let busy = last.since(Time::ZERO).saturating_sub(RTT / 2).as_nanos();
        prop_assert!(bits <= (busy + 1) * u128::from(rate));
    }
}
