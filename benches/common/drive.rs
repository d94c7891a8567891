//! Drives controllers the way quinn does, under quinn's trait and under playrate's.

use core::ops::Add;
use std::hint::black_box;
use std::time::{Duration, Instant};

use playrate::cc::events::{AckBatch, Acked, Congestion, Sent, Signal};
use playrate::cc::{Bytes, CongestionController, Timestamp};
use quinn::congestion::Controller;
use quinn_proto::RttEstimator;

use super::clock::{BDP, Clock, PACKET, RTT};

/// ACK frames that bring every controller out of slow start and past its first losses.
const WARM_UP: u32 = 20_000;
/// The path loses a packet when the window is more than it and a queue of its size hold, but not in quick succession.
const FRAMES_BETWEEN_LOSSES: u32 = 2_000;

/// How packets leave and are acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Bursts of so many packets, each acknowledged by one ACK frame.
    Bursts(u32),
    /// Packets that leave one by one, two of them acknowledged by one ACK frame.
    Apart,
}

impl Pattern {
    /// All that are measured.
    pub const ALL: [Self; 4] = [Self::Bursts(1), Self::Bursts(2), Self::Bursts(10), Self::Apart];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bursts(1) => "1",
            Self::Bursts(2) => "2",
            Self::Bursts(_) => "10",
            Self::Apart => "1+1",
        }
    }

    /// Packets that one ACK frame acknowledges.
    pub const fn packets(self) -> u32 {
        match self {
            Self::Bursts(packets) => packets,
            Self::Apart => 2,
        }
    }

    const fn burst(self) -> u32 {
        match self {
            Self::Bursts(packets) => packets,
            Self::Apart => 1,
        }
    }
}

/// A controller under either trait.
pub trait Driven {
    /// The time it is told.
    type Time: Copy + Add<Duration, Output = Self::Time>;
    /// A burst is about to leave.
    fn before_burst(&self, packets: u32);
    /// A burst left.
    fn sent(&mut self, now: Self::Time, bytes: u64);
    /// Packets of one burst were acknowledged.
    fn acked(&mut self, now: Self::Time, sent: Self::Time, packets: u32);
    /// An ACK frame was read; says the window.
    fn frame_read(&mut self, now: Self::Time, in_flight: u64) -> u64;
    /// A packet was lost.
    fn lost(&mut self, now: Self::Time, sent: Self::Time);
    /// A copy.
    fn copy(&self) -> Self;
}

/// Under quinn's trait.
pub struct Quinn {
    /// The controller.
    pub controller: Box<dyn Controller>,
    /// What it is shown with every acknowledgement.
    pub rtt: RttEstimator,
}

impl Driven for Quinn {
    type Time = Instant;

    /// quinn asks twice per datagram.
    #[inline]
    fn before_burst(&self, packets: u32) {
        for _ in 0..2 * packets {
            black_box(self.controller.window());
        }
    }

    #[inline]
    fn sent(&mut self, now: Instant, bytes: u64) {
        self.controller.on_sent(now, bytes, black_box(7));
    }

    #[inline]
    fn acked(&mut self, now: Instant, sent: Instant, packets: u32) {
        for _ in 0..packets {
            self.controller.on_ack(now, sent, PACKET.into(), false, &self.rtt);
        }
    }

    #[inline]
    fn frame_read(&mut self, now: Instant, in_flight: u64) -> u64 {
        self.controller.on_end_acks(now, in_flight, false, Some(7));
        self.controller.window()
    }

    #[inline]
    fn lost(&mut self, now: Instant, sent: Instant) {
        self.controller
            .on_congestion_event(now, sent, false, PACKET.into());
    }

    fn copy(&self) -> Self {
        Self {
            controller: self.controller.clone_box(),
            rtt: self.rtt,
        }
    }
}

/// Under playrate's own trait.
pub struct Own(pub Box<dyn CongestionController>);

impl Driven for Own {
    type Time = Timestamp;

    #[inline]
    fn before_burst(&self, _: u32) {}

    #[inline]
    fn sent(&mut self, now: Timestamp, bytes: u64) {
        self.0.on_sent(&Sent {
            now,
            bytes: Bytes::new(bytes),
        });
    }

    #[inline]
    fn acked(&mut self, now: Timestamp, sent: Timestamp, packets: u32) {
        self.0.on_acked(&Acked {
            now,
            sent,
            bytes: Bytes::new(u64::from(packets) * u64::from(PACKET)),
            packets,
            app_limited: false,
        });
    }

    #[inline]
    fn frame_read(&mut self, now: Timestamp, in_flight: u64) -> u64 {
        self.0.on_ack_batch(&AckBatch {
            now,
            in_flight: Bytes::new(in_flight),
            app_limited: false,
            smoothed_rtt: Some(black_box(RTT)),
        });
        self.0.window().as_u64()
    }

    #[inline]
    fn lost(&mut self, now: Timestamp, newest_sent: Timestamp) {
        self.0.on_congestion(&Congestion {
            now,
            newest_sent,
            signal: Signal::Loss {
                bytes: Bytes::new(PACKET.into()),
                persistent: false,
            },
        });
    }

    fn copy(&self) -> Self {
        Self(self.0.clone_box())
    }
}

/// A controller in the steady state of congestion avoidance, with packets in flight.
pub struct Driver<D: Driven> {
    controller: D,
    clock: Clock<D::Time>,
    pattern: Pattern,
    window: u64,
    since_loss: u32,
}

impl<D: Driven> Driver<D> {
    /// Brings a new controller to its steady state.
    pub fn new(controller: D, origin: D::Time, pattern: Pattern) -> Self {
        let mut driver = Self {
            controller,
            clock: Clock::new(origin, pattern.burst().into()),
            pattern,
            window: 0,
            since_loss: 0,
        };
        driver.cycles(WARM_UP);
        driver
    }

    /// Runs so many ACK frames.
    pub fn cycles(&mut self, frames: u32) {
        for _ in 0..frames {
            self.cycle();
        }
    }

    /// What happens for the packets of one ACK frame: they leave, and as many are acknowledged.
    #[inline]
    pub fn cycle(&mut self) {
        let (now, newest_sent) = match self.pattern {
            Pattern::Bursts(packets) => {
                let (now, sent) = self.send();
                self.controller.acked(now, sent, packets);
                (now, sent)
            }
            Pattern::Apart => {
                let (_, one) = self.send();
                let (now, two) = self.send();
                self.controller.acked(now, one, 1);
                self.controller.acked(now, two, 1);
                (now, two)
            }
        };
        self.window = self.controller.frame_read(now, self.window);
        self.since_loss += 1;
        if self.window > 2 * BDP && self.since_loss > FRAMES_BETWEEN_LOSSES {
            self.since_loss = 0;
            self.controller.lost(now, newest_sent);
        }
    }

    /// A burst leaves; says when, and when the one left that is acknowledged next.
    #[inline]
    pub fn send(&mut self) -> (D::Time, D::Time) {
        let packets = self.pattern.burst();
        self.controller.before_burst(packets);
        let (now, acknowledged) = self.clock.tick();
        self.controller.sent(now, u64::from(packets) * u64::from(PACKET));
        (now, acknowledged)
    }

    /// A copy of the controller as it is, and the next moment.
    pub fn copy(&mut self) -> (D, D::Time) {
        (self.controller.copy(), self.clock.tick().0)
    }
}
