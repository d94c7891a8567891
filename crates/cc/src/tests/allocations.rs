//! No event makes a controller allocate.

use core::time::Duration;
use std::sync::Arc;

use crate::events::{AckFrame, Acked, Congestion, Sent, Signal};
use crate::{Bytes, CongestionController, Path, Timestamp, VideoKnowledge};

/// A hundred round trips with an occasional loss, pause and change of the MTU, without a model that would allocate.
fn run(controller: &mut dyn CongestionController) {
    let mut now = Timestamp::ZERO;
    for round in 0..100_u64 {
        let sent = now;
        controller.on_sent(&Sent::new(now, Bytes::new(12_000)));
        now = now + Duration::from_millis(100);
        for pair in 0..5_u64 {
            now = now + Duration::from_micros(960);
            let limited = round % 7 == 0;
            let acked = [Acked::new(sent, Bytes::new(2_400), 2).with_app_limited(limited)];
            let frame = AckFrame::new(now, &acked, Bytes::new(2_400) * (4 - pair));
            let frame = frame.with_smoothed_rtt(Some(Duration::from_millis(100)));
            controller.on_ack_frame(&frame.with_app_limited(limited));
        }
        if round % 10 == 9 {
            let signal = Signal::Loss {
                bytes: Bytes::new(1_200),
                persistent: round % 50 == 49,
            };
            controller.on_congestion(&Congestion::new(now, sent, signal));
            now = now + Duration::from_secs(1);
            controller.on_mtu_change(Bytes::new(1_200 + round));
        }
    }
}

#[test]
fn no_event_allocates() {
    for spec in super::invariants::all() {
        let mut controller = spec.build(&Path::default(), Arc::new(VideoKnowledge::new()));
        let counted = allocation_counter::measure(|| run(&mut *controller));
        assert_eq!(counted.count_total, 0, "{spec}");
    }
}

#[test]
fn the_counter_counts() {
    let counted = allocation_counter::measure(|| {
        std::hint::black_box(Box::new(1_u64));
    });
    assert_eq!(counted.count_total, 1);
}
