//! [`Run`]: BBR on a path with one narrow link, packet by packet, with observable state.

use std::collections::VecDeque;
use std::sync::Arc;

use super::super::Bbr;
use super::super::state::State;
use crate::events::{AckFrame, Acked, Congestion, Sent, Signal};
use crate::tests::MTU;
use crate::{Bytes, CongestionController as _, Path, Phase, Reason, Timestamp};

/// 10 Mbit/s and 40 ms: a BDP of 50 kB.
pub(super) const RATE: u64 = 1_250_000;
const RTT_NS: u64 = 40_000_000;
pub(super) const BDP: u64 = 50_000;

/// A packet in flight.
#[derive(Clone, Copy, Debug)]
struct Packet {
    sent: u64,
    /// Arrival of its acknowledgement; `None` if the queue was full.
    back: Option<u64>,
}

/// A sender with BBR on a path with one narrow link, whose receiver acknowledges every second packet.
pub(super) struct Run {
    pub(super) bbr: Bbr,
    pub(super) now: u64,
    flight: VecDeque<Packet>,
    busy_until: u64,
    /// Bytes per second of the link.
    pub(super) rate: u64,
    pub(super) rtt_ns: u64,
    pub(super) queue: u64,
    /// Most bytes that the application keeps in flight.
    pub(super) demand: u64,
    /// One packet in this many is lost; 0 for none.
    pub(super) lose_one_in: u64,
    /// Packets sent so far.
    pub(super) sent: u64,
    /// Time (ms) at which each state was entered.
    pub(super) states: Vec<(u64, State)>,
}

impl Run {
    pub(super) fn new(queue: u64) -> Self {
        Self {
            bbr: Bbr::new(&Path::default(), Arc::default()),
            now: 1_000_000,
            flight: VecDeque::new(),
            busy_until: 0,
            rate: RATE,
            rtt_ns: RTT_NS,
            queue,
            demand: u64::MAX,
            lose_one_in: 0,
            sent: 0,
            states: vec![(0, State::Startup)],
        }
    }

    pub(super) fn in_flight(&self) -> u64 {
        self.flight.len() as u64 * MTU
    }

    fn send(&mut self) {
        while self.in_flight() + MTU <= self.bbr.window().as_u64().min(self.demand) {
            let sent = Sent::new(Timestamp::from_nanos(self.now), Bytes::new(MTU));
            let waiting = self.busy_until.saturating_sub(self.now) * self.rate / 1_000_000_000;
            self.sent += 1;
            let lost = self.lose_one_in > 0 && self.sent.is_multiple_of(self.lose_one_in);
            let mut back = None;
            if waiting <= self.queue && !lost {
                self.busy_until = self.busy_until.max(self.now) + MTU * 1_000_000_000 / self.rate;
                back = Some(self.busy_until + self.rtt_ns);
            }
            self.flight.push_back(Packet { sent: self.now, back });
            self.bbr.on_sent(&sent);
        }
    }

    /// The next ACK frame arrives, and the packets that it shows to be lost are declared lost.
    fn receive(&mut self) {
        let arriving: Vec<u64> = self
            .flight
            .iter()
            .filter_map(|packet| packet.back)
            .take(2)
            .collect();
        let Some(&now) = arriving.last() else {
            // Nothing of the flight arrives: a timeout.
            self.now += 3 * self.rtt_ns;
            self.lose(self.flight.len());
            return;
        };
        self.now = now;
        let limited = self.in_flight() + MTU > self.demand;
        let is_acked = |packet: &Packet| packet.back.is_some_and(|back| back <= now);
        let time = Timestamp::from_nanos(now);
        let run = |packet: &Packet| {
            Acked::new(Timestamp::from_nanos(packet.sent), Bytes::new(MTU), 1).with_app_limited(limited)
        };
        let acked: Vec<Acked> = self
            .flight
            .iter()
            .filter(|packet| is_acked(packet))
            .map(run)
            .collect();
        let newest = self
            .flight
            .iter()
            .rposition(is_acked)
            .expect("a packet that arrives");
        let before = newest - (arriving.len() - 1);
        self.flight.retain(|packet| !is_acked(packet));
        let frame = AckFrame::new(time, &acked, Bytes::new(self.in_flight())).with_app_limited(limited);
        self.bbr.on_ack_frame(&frame);
        if before > 0 {
            self.lose(before);
        }
    }

    /// The oldest `packets` packets are declared lost.
    pub(super) fn lose(&mut self, packets: usize) {
        let newest = self.flight.drain(..packets).next_back().expect("a packet").sent;
        let signal = Signal::loss(Bytes::new(packets as u64 * MTU));
        self.congestion(newest, signal);
    }

    pub(super) fn congestion(&mut self, newest: u64, signal: Signal) {
        let (now, newest) = (Timestamp::from_nanos(self.now), Timestamp::from_nanos(newest));
        self.bbr.on_congestion(&Congestion::new(now, newest, signal));
    }

    /// The peer reports a CE mark on the last packet sent.
    pub(super) fn mark(&mut self) {
        let newest = self.flight.back().map_or(self.now, |packet| packet.sent);
        self.congestion(newest, Signal::EcnCe);
    }

    pub(super) fn window(&self) -> u64 {
        self.bbr.window().as_u64()
    }

    pub(super) fn phase(&self) -> (Phase, Reason) {
        (self.bbr.core.phase, self.bbr.core.reason)
    }

    /// Bytes that are delivered in the next `ms` ms.
    pub(super) fn delivered_in(&mut self, ms: u64) -> u64 {
        let before = self.bbr.delivered;
        self.for_ms(ms);
        self.bbr.delivered - before
    }

    pub(super) fn state(&self) -> State {
        self.bbr.machine.state
    }

    pub(super) fn step(&mut self) {
        self.send();
        self.receive();
        if self.states.last().is_none_or(|&(_, state)| state != self.state()) {
            self.states.push((self.now / 1_000_000, self.state()));
        }
    }

    /// Runs until `done`, at most for a minute.
    #[track_caller]
    pub(super) fn until(&mut self, done: impl Fn(&Self) -> bool) {
        let end = self.now + 60_000_000_000;
        while !done(self) {
            assert!(self.now < end, "not within a minute: {:?}", self.states);
            self.step();
        }
    }

    #[track_caller]
    pub(super) fn until_state(&mut self, state: State) {
        self.until(|run| run.state() == state);
    }

    /// Runs until `ProbeRTT`: the path becomes 2 ms longer, so nothing confirms the smallest RTT.
    #[track_caller]
    pub(super) fn until_probe_rtt(&mut self) {
        self.rtt_ns += 2_000_000;
        self.until_state(State::ProbeRtt);
    }

    pub(super) fn for_ms(&mut self, ms: u64) {
        let end = self.now + ms * 1_000_000;
        self.until(|run| run.now >= end);
    }

    /// Times (ms) at which `state` was entered.
    pub(super) fn entries(&self, state: State) -> Vec<u64> {
        let entries = self.states.iter().filter(|&&(_, entered)| entered == state);
        entries.map(|&(ms, _)| ms).collect()
    }

    /// Everything in flight arrives, and then nothing happens for a while.
    pub(super) fn go_silent(&mut self, ms: u64) {
        let demand = core::mem::replace(&mut self.demand, 0);
        while !self.flight.is_empty() {
            self.receive();
        }
        self.now += ms * 1_000_000;
        self.demand = demand;
    }

    pub(super) fn order(&self) -> Vec<State> {
        self.states.iter().map(|&(_, state)| state).collect()
    }
}

/// A run that has cruised for a while, with an ample queue.
pub(super) fn cruising() -> Run {
    let mut run = Run::new(4 * BDP);
    run.until_state(State::Cruise);
    run.for_ms(1_000);
    assert_eq!(run.state(), State::Cruise);
    run
}

/// A run whose last probe found the queue of a quarter of a BDP too short.
pub(super) fn after_a_probe_too_high() -> Run {
    let mut run = Run::new(BDP / 4);
    run.until_state(State::Up);
    run.until(|run| run.bbr.machine.prev_probe_too_high);
    // No ProbeRTT comes in between.
    run.bbr.model.schedule_probe_rtt(Timestamp::from_nanos(run.now));
    run
}
