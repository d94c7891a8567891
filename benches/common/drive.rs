//! Drives controllers as quinn does, under quinn's trait and under playrate's.

use core::ops::Add;
use std::hint::black_box;
use std::time::{Duration, Instant};

use playrate::cc::events::{AckFrame, Acked, Congestion, Sent, Signal};
use playrate::cc::{Bytes, CongestionController, Timestamp};
use quinn::congestion::Controller;
use quinn_proto::RttEstimator;

use super::clock::{BDP, Clock, PACKET, RTT};

/// Number of ACK frames that bring every controller out of slow start and past its first losses.
const WARM_UP: u32 = 20_000;
/// Minimum number of ACK frames between two losses. The path loses a packet when the window exceeds twice its BDP.
const FRAMES_BETWEEN_LOSSES: u32 = 2_000;

/// Grouping of packets into bursts and ACK frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Bursts of this many packets, each acknowledged by one ACK frame.
    Bursts(u32),
    /// Packets that leave one by one, two of them acknowledged by one ACK frame.
    Apart,
}

impl Pattern {
    /// All patterns that are measured.
    pub const ALL: [Self; 4] = [Self::Bursts(1), Self::Bursts(2), Self::Bursts(10), Self::Apart];

    /// Name in reports and options.
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
    /// Type of times in its events.
    type Time: Copy + Add<Duration, Output = Self::Time>;
    /// Reads the window as often as quinn does before a burst leaves.
    fn before_burst(&self, packets: u32);
    /// Reports a burst that left.
    fn sent(&mut self, now: Self::Time, bytes: u64);
    /// Reports acknowledged packets of one burst.
    fn acked(&mut self, now: Self::Time, sent: Self::Time, packets: u32);
    /// Reports the end of an ACK frame and returns the window.
    fn frame_read(&mut self, now: Self::Time, in_flight: u64) -> u64;
    /// Reports a lost packet.
    fn lost(&mut self, now: Self::Time, sent: Self::Time);
    /// A copy in the same state.
    fn copy(&self) -> Self;
}

/// A controller under quinn's trait.
pub struct Quinn {
    /// The controller, as quinn holds it.
    pub controller: Box<dyn Controller>,
    /// Estimator passed with every acknowledgement.
    pub rtt: RttEstimator,
}

impl Driven for Quinn {
    type Time = Instant;

    /// quinn reads the window twice per datagram.
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

/// A controller under playrate's trait.
pub struct Own {
    controller: Box<dyn CongestionController>,
    /// Runs of the ACK frame that is being reported.
    runs: Vec<Acked>,
}

impl Own {
    /// A new driver of `controller`.
    pub fn new(controller: Box<dyn CongestionController>) -> Self {
        Self {
            controller,
            runs: Vec::new(),
        }
    }
}

impl Driven for Own {
    type Time = Timestamp;

    #[inline]
    fn before_burst(&self, _: u32) {}

    #[inline]
    fn sent(&mut self, now: Timestamp, bytes: u64) {
        self.controller.on_sent(&Sent::new(now, Bytes::new(bytes)));
    }

    #[inline]
    fn acked(&mut self, _: Timestamp, sent: Timestamp, packets: u32) {
        let bytes = Bytes::new(u64::from(packets) * u64::from(PACKET));
        self.runs.push(Acked::new(sent, bytes, packets));
    }

    #[inline]
    fn frame_read(&mut self, now: Timestamp, in_flight: u64) -> u64 {
        let frame = AckFrame::new(now, &self.runs, Bytes::new(in_flight));
        let window = self
            .controller
            .on_ack_frame(&frame.with_smoothed_rtt(Some(black_box(RTT))));
        self.runs.clear();
        window.as_u64()
    }

    #[inline]
    fn lost(&mut self, now: Timestamp, newest_sent: Timestamp) {
        let signal = Signal::Loss {
            bytes: Bytes::new(PACKET.into()),
            persistent: false,
        };
        self.controller
            .on_congestion(&Congestion::new(now, newest_sent, signal));
    }

    fn copy(&self) -> Self {
        Self::new(self.controller.clone_box())
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

    /// Runs `frames` ACK frames.
    pub fn cycles(&mut self, frames: u32) {
        for _ in 0..frames {
            self.cycle();
        }
    }

    /// Runs one ACK frame: its packets leave, and as many are acknowledged.
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

    /// Sends a burst. Returns its time, and the departure of the burst that is acknowledged next.
    #[inline]
    pub fn send(&mut self) -> (D::Time, D::Time) {
        let packets = self.pattern.burst();
        self.controller.before_burst(packets);
        let (now, acknowledged) = self.clock.tick();
        self.controller.sent(now, u64::from(packets) * u64::from(PACKET));
        (now, acknowledged)
    }

    /// A copy of the controller in its present state, and the next time.
    pub fn copy(&mut self) -> (D, D::Time) {
        (self.controller.copy(), self.clock.tick().0)
    }
}
