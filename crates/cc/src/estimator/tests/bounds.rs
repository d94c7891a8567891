//! Whatever happens: no panic, no allocation, bounded state.

use core::time::Duration;

use proptest::prelude::*;

use super::path::{MS, Path, Told, run, trains};
use crate::estimator::{Capacity, DeliveryRate, LossGuard, RttRange, TrainCapacity};
use crate::events::{AckBatch, Acked, Congestion, MtuChange, Sent, Signal};
use crate::{Bitrate, Bytes, Timestamp};

/// One of everything.
struct All {
    capacity: Capacity,
    guard: LossGuard,
    newest_sent: Timestamp,
    latest: Duration,
}

impl All {
    fn new() -> Self {
        Self {
            capacity: Capacity::default(),
            guard: LossGuard::new(Bytes::new(1_200)),
            newest_sent: Timestamp::ZERO,
            latest: Duration::ZERO,
        }
    }

    fn tell(&mut self, told: &Told) {
        match told {
            Told::Sent(event) => {
                self.capacity.on_sent(event);
            }
            Told::Acked(event) => {
                self.capacity.on_acked(event);
                self.guard.on_acked(event);
                self.newest_sent = self.newest_sent.max(event.sent);
            }
            Told::Batch(event) => self.batch(event),
            Told::Lost(event) => {
                let rtt = RttRange {
                    latest: self.latest,
                    min: Duration::from_millis(100),
                    max: Some(Duration::from_millis(200)),
                };
                self.capacity.on_congestion(event);
                self.guard.on_congestion(event, &rtt);
            }
        }
    }

    fn batch(&mut self, event: &AckBatch) {
        self.latest = event.now.since(self.newest_sent);
        self.capacity.on_ack_batch(event);
        self.guard.on_ack_batch(event);
    }

    /// Asks everything.
    fn ask(&mut self) {
        let capacity = self.capacity.estimate();
        assert!(capacity.is_none() || self.capacity.early_estimate().is_some());
        if let (Some(capacity), Some(bound)) = (capacity, self.capacity.delivery().max()) {
            assert!(capacity > Bitrate::ZERO || bound == Bitrate::ZERO);
        }
        let limited = self.guard.limit(Bytes::new(100_000));
        assert!(limited <= Bytes::new(100_000) && limited > Bytes::ZERO);
        assert!((0.0..=1.0).contains(&self.guard.loss_average()));
    }
}

fn bytes() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1..100_000_u64, Just(u64::MAX)]
}

/// What happens next, and how long it takes (ns); send times lie so far back, or ahead.
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
        0..9_u8,
        back,
        bytes(),
        prop_oneof![1..20_u32, Just(u32::MAX)],
    )
}

fn told(now: u64, (kind, back, amount, packets): (u8, u64, u64, u32)) -> Option<Told> {
    let sent = Timestamp::from_nanos(now.checked_sub(back).unwrap_or(now.saturating_add(1_000)));
    let now = Timestamp::from_nanos(now);
    let bytes = Bytes::new(amount);
    Some(match kind {
        0 | 1 => Told::Sent(Sent { now, bytes }),
        2..=4 => Told::Acked(Acked {
            now,
            sent,
            bytes,
            packets,
            app_limited: packets % 2 == 0,
        }),
        5 | 6 => Told::Batch(AckBatch {
            now,
            in_flight: bytes,
            app_limited: packets % 3 == 0,
            smoothed_rtt: None,
        }),
        7 => Told::Lost(Congestion {
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
        _ => return None,
    })
}

proptest! {
    #[test]
    fn nothing_that_can_be_told_makes_them_panic(steps in prop::collection::vec(step(), 1..200)) {
        let mut all = All::new();
        let mut now = 0_u64;
        for (passes, kind, back, amount, packets) in steps {
            now = now.saturating_add(passes);
            match told(now, (kind, back, amount, packets)) {
                Some(told) => all.tell(&told),
                None => all.guard.on_mtu_change(&MtuChange { mtu: Bytes::new(amount) }),
            }
            all.ask();
        }
    }
}

#[test]
fn nothing_is_allocated_after_construction() {
    let path = Path {
        lose_one_in: 100,
        late_one_in: 100,
        jitter: MS,
        ..Path::new()
    };
    let told = run(&path, trains(200, 10, 60 * MS));
    let mut all = All::new();
    let allocated = allocation_counter::measure(|| {
        for told in &told {
            all.tell(told);
            if let Told::Batch(_) = told {
                all.ask();
            }
        }
    });
    assert!(told.len() > 3_000, "{}", told.len());
    assert_eq!(allocated.count_total, 0);
}

#[test]
fn state_is_small_enough_for_a_controller_of_two_kib() {
    assert!(
        size_of::<TrainCapacity>() <= 1_024,
        "{}",
        size_of::<TrainCapacity>()
    );
    assert!(size_of::<DeliveryRate>() <= 400, "{}", size_of::<DeliveryRate>());
    let others = size_of::<LossGuard>();
    assert!(
        size_of::<Capacity>() + others <= 1_600,
        "{}",
        size_of::<Capacity>()
    );
}
