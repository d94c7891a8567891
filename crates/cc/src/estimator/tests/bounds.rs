//! Any sequence of events: no panic, no allocation, bounded state.

use proptest::prelude::*;

use super::path::{MS, Path, PathEvent, run, tell, trains};
use crate::estimator::{Capacity, DeliveryRate, TrainCapacity};
use crate::events::{Acked, Congestion, Sent, Signal};
use crate::tests::{OwnedFrame, assert_in};
use crate::{Bitrate, Bytes, Timestamp};

fn check(capacity: &Capacity) {
    let estimate = capacity.estimate(4);
    assert!(estimate.is_none() || capacity.estimate(1).is_some());
    if let (Some(estimate), Some(bound)) = (estimate, capacity.delivery.max()) {
        assert!(estimate > Bitrate::ZERO || bound == Bitrate::ZERO);
    }
}

fn bytes() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1..100_000_u64, Just(u64::MAX)]
}

/// The next event and its duration in ns; send times lie up to this far in the past or future.
fn step() -> impl Strategy<Value = (u64, u8, u64, u64, u32)> {
    let passes = prop_oneof![
        Just(0),
        1..2_000_000_u64,
        1..10_000_000_000_u64,
        Just(u64::MAX / 3)
    ];
    let back = prop_oneof![0..400_000_000_u64, Just(u64::MAX)];
    (
        passes,
        0..8_u8,
        back,
        bytes(),
        prop_oneof![1..20_u32, Just(u32::MAX)],
    )
}

fn reported(now: u64, (kind, back, amount, packets): (u8, u64, u64, u32)) -> PathEvent {
    let sent = Timestamp::from_nanos(now.checked_sub(back).unwrap_or(now.saturating_add(1_000)));
    let now = Timestamp::from_nanos(now);
    let bytes = Bytes::new(amount);
    match kind {
        0 | 1 => PathEvent::Sent(Sent::new(now, bytes)),
        // Zero to four runs.
        2..=6 => PathEvent::Acked(OwnedFrame {
            now,
            acked: (2..kind)
                .map(|run| Timestamp::from_nanos(sent.as_nanos() >> (run % 3)))
                .map(|sent| Acked::new(sent, bytes, packets).with_app_limited(packets % 2 == 0))
                .collect(),
            in_flight: bytes,
            app_limited: packets % 3 == 0,
            smoothed_rtt: None,
        }),
        _ => PathEvent::Lost(Congestion {
            now,
            newest_sent: sent,
            signal: match packets {
                1..=15 => Signal::Loss {
                    bytes,
                    persistent: packets == 15,
                },
                _ => Signal::EcnCe,
            },
        }),
    }
}

proptest! {
    #[test]
    fn nothing_that_can_be_told_makes_them_panic(steps in prop::collection::vec(step(), 1..200)) {
        let mut capacity = Capacity::default();
        let mut now = 0_u64;
        for (passes, kind, back, amount, packets) in steps {
            now = now.saturating_add(passes);
            tell(&mut capacity, &reported(now, (kind, back, amount, packets)));
            check(&capacity);
        }
    }
}

#[test]
fn nothing_is_allocated_after_construction() {
    let path = Path::with(|path| {
        path.lose_one_in = 100;
        path.late_one_in = 100;
        path.jitter = MS;
    });
    let reported = run(&path, trains(200, 10, 60 * MS));
    let mut capacity = Capacity::default();
    let allocated = allocation_counter::measure(|| {
        for reported in &reported {
            tell(&mut capacity, reported);
            if let PathEvent::Acked(_) = reported {
                check(&capacity);
            }
        }
    });
    assert_in(reported.len(), 1_001..);
    assert_eq!(allocated.count_total, 0);
}

#[test]
fn state_is_small_enough_for_a_controller_of_two_kib() {
    assert_in(size_of::<TrainCapacity>(), ..=1_024);
    assert_in(size_of::<DeliveryRate>(), ..=400);
    assert_in(size_of::<Capacity>(), ..=1_500);
}
