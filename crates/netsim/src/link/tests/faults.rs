//! Faults with a beginning and an end during a run.

use super::*;

const FROM: Duration = Duration::from_secs(2);
const UNTIL: Duration = Duration::from_secs(4);

/// Verdicts on packets of 1000 bytes, one every 10 ms for 6 s, on a link of 20 Mbit/s with this fault from 2 s to 4 s.
fn verdicts(kind: LinkFaultKind) -> Vec<(Duration, Verdict)> {
    let mut link = build(&twenty_mbps().with_faults(vec![LinkFault::new(FROM, UNTIL, kind)]));
    let times = (0..600).map(|number| Duration::from_millis(number * 10));
    let offered = times.map(|at| (at, link.offer(Time::from(at), Packet::new(1_000))));
    let offered = offered.collect();
    link.settle(Time::from_secs(10));
    assert!(link.stats().is_conserved());
    offered
}

/// Number of verdicts accepted by `is_hit`, before, during and after the fault.
fn hits(kind: LinkFaultKind, is_hit: impl Fn(Verdict) -> bool) -> [usize; 3] {
    let mut counts = [0; 3];
    for (at, verdict) in verdicts(kind) {
        counts[usize::from(at >= FROM) + usize::from(at >= UNTIL)] += usize::from(is_hit(verdict));
    }
    counts
}

fn percent(percent: u32) -> Probability {
    Probability::from_parts_per_billion(percent * 10_000_000)
}

fn is_lost(verdict: Verdict) -> bool {
    verdict == Verdict::Dropped(DropReason::Loss)
}

#[test]
fn an_outage_loses_everything_until_it_ends() {
    assert_eq!(hits(LinkFaultKind::Outage, is_lost), [0, 200, 0]);
}

#[test]
fn a_loss_fault_adds_to_the_loss_of_the_link() {
    let [before, during, after] = hits(LinkFaultKind::Loss(percent(50).into()), is_lost);
    assert_eq!((before, after), (0, 0));
    assert!((70..130).contains(&during), "{during} of 200 at 50 %");
}

#[test]
fn packets_above_a_smaller_mtu_vanish_and_those_below_pass() {
    let too_big = |verdict| verdict == Verdict::Dropped(DropReason::TooBig);
    let limit = |bytes| LinkFaultKind::Mtu(Bytes::new(bytes));
    assert_eq!(hits(limit(1_027), too_big), [0, 200, 0]);
    assert_eq!(hits(limit(1_028), too_big), [0, 0, 0]);
}

#[test]
fn a_copy_arrives_within_the_delay_of_the_link_after_its_original() {
    let verdicts = verdicts(LinkFaultKind::Duplication(Probability::ONE));
    let mut copies = 0;
    for (sent, verdict) in verdicts {
        let Verdict::Deliver { at, copy_at, .. } = verdict else {
            panic!("{verdict:?}");
        };
        assert_eq!(copy_at.is_some(), (FROM..UNTIL).contains(&sent));
        if let Some(copy) = copy_at {
            assert!((at..=at + RTT / 2).contains(&copy));
            copies += 1;
        }
    }
    assert_eq!(copies, 200);
}

#[test]
fn packets_of_a_reordering_fault_are_overtaken() {
    let verdicts = verdicts(LinkFaultKind::Reordering("10%,35ms".parse().unwrap()));
    let arrivals: Vec<_> = verdicts
        .iter()
        .filter_map(|(_, verdict)| verdict.arrival())
        .collect();
    let overtaken = arrivals.windows(2).filter(|pair| pair[1] < pair[0]).count();
    assert!((8..35).contains(&overtaken), "{overtaken} of 200 at 10 %");
    assert!(arrivals[..200].is_sorted() && arrivals[400..].is_sorted());
}

#[test]
fn damage_inverts_one_bit_outside_of_the_lengths_of_a_header() {
    let mut places = std::collections::BTreeSet::new();
    for (_, verdict) in verdicts(LinkFaultKind::Corruption(Probability::ONE)) {
        let Verdict::Deliver { damage, .. } = verdict else {
            panic!("{verdict:?}");
        };
        let Some(damage) = damage else { continue };
        let mut datagram = [0_u8; 1_000];
        damage.apply(&mut datagram);
        let damaged: Vec<_> = (0..1_000).filter(|&byte| datagram[byte] != 0).collect();
        assert_eq!(damaged.len(), 1);
        assert_eq!(datagram[damaged[0]].count_ones(), 1);
        places.insert(damaged[0]);
    }
    assert!(places.len() > 150, "{} places", places.len());
    assert!(places.iter().all(|place| (1..5).contains(place) || *place >= 64));
    // A datagram too short for the damage is left unchanged.
    let always = LinkFault::new(
        Duration::ZERO,
        Duration::MAX,
        LinkFaultKind::Corruption(Probability::ONE),
    );
    let (mut link, mut short) = (build(&twenty_mbps().with_faults(vec![always])), [0_u8; 3]);
    for number in 0..100 {
        if let Verdict::Deliver {
            damage: Some(damage), ..
        } = link.offer(Time::from_millis(number), Packet::new(3))
        {
            damage.apply(&mut short);
        }
    }
    assert_eq!(short[0], 0);
}

#[test]
fn a_fault_in_the_past_changes_no_later_packet() {
    let plain = |faulty: bool| {
        let config = twenty_mbps().with_loss(percent(1));
        let config = if faulty {
            let loss = LinkFaultKind::Loss(percent(20).into());
            config.with_faults(vec![LinkFault::new(FROM, UNTIL, loss)])
        } else {
            config
        };
        let mut link = build(&config);
        let offered = (0..1_000).map(|number| link.offer(Time::from_millis(number * 10), Packet::new(1_000)));
        offered.collect::<Vec<_>>()
    };
    let (without, with) = (plain(false), plain(true));
    assert_ne!(without, with);
    assert_eq!(without[..200], with[..200]);
    assert_eq!(without[405..], with[405..]);
}
