//! [`Run`]: BBR on a path with one narrow link, packet by packet, with observable state.

use core::time::Duration;
use std::sync::Arc;

use super::super::Bbr;
use super::super::state::State;
use crate::events::{Congestion, Sent, Signal};
use crate::tests::MTU;
use crate::tests::trace::flight::Flight;
use crate::tests::trace::{Habit, Link, Network};
use crate::{Bitrate, Bytes, CongestionController as _, Path, Phase, Reason, Timestamp};

/// 10 Mbit/s and 40 ms: a BDP of 50 kB.
pub(super) const RATE: u64 = 1_250_000;
pub(super) const BDP: u64 = 50_000;

/// A sender with BBR on a path with one narrow link, whose receiver acknowledges every second packet.
pub(super) struct Run {
    pub(super) bbr: Bbr,
    pub(super) now: u64,
    flight: Flight,
    pub(super) network: Network,
    /// Maximum number of bytes that the application keeps in flight.
    pub(super) demand: u64,
    /// Time (ms) at which each state was entered.
    pub(super) states: Vec<(u64, State)>,
}

impl Run {
    pub(super) fn new(queue: u64) -> Self {
        let link = Link {
            rate: Bitrate::from_bytes_per_second(RATE),
            rtt: Duration::from_millis(40),
            queue: Bytes::new(queue),
        };
        Self {
            bbr: Bbr::new(&Path::default(), Arc::default()),
            now: 1_000_000,
            flight: Flight::default(),
            network: Network::new(link, Habit::STANDARD, None),
            demand: u64::MAX,
            states: vec![(0, State::Startup)],
        }
    }

    pub(super) fn in_flight(&self) -> u64 {
        self.flight.bytes()
    }

    fn at(&self) -> Timestamp {
        Timestamp::from_nanos(self.now)
    }

    fn send(&mut self) {
        while self.in_flight() + MTU <= self.window().min(self.demand) {
            let number = self.flight.leave(self.at(), MTU);
            self.network.take(self.now, number, MTU);
            self.bbr.on_sent(&Sent::new(self.at(), Bytes::new(MTU)));
        }
    }

    /// Receives the next ACK frame, and declares the packets lost that it shows to be lost.
    fn receive(&mut self) {
        let Some(now) = self.network.next_ack() else {
            // Nothing of the flight arrives: a timeout.
            self.now += 6 * self.network.one_way_ns;
            return self.lose(self.flight.len());
        };
        self.now = self.now.max(now);
        let (at, limited) = (self.at(), self.in_flight() + MTU > self.demand);
        if let Some(frame) = self.flight.receive(&mut self.network, at, limited) {
            self.bbr.on_ack_frame(&frame.event());
        }
        // No packet overtakes another here.
        if let Some(lost) = self.flight.detect_losses(at, 1) {
            self.bbr.on_congestion(&lost);
        }
    }

    /// Declares the oldest `packets` packets lost.
    pub(super) fn lose(&mut self, packets: usize) {
        let lost = self.flight.lose(self.at(), packets).expect("a packet");
        self.bbr.on_congestion(&lost);
    }

    /// Reports congestion at the last packet sent.
    pub(super) fn congestion(&mut self, signal: Signal) {
        let newest = self.flight.newest().unwrap_or(self.at());
        self.bbr
            .on_congestion(&Congestion::new(self.at(), newest, signal));
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
        self.network.one_way_ns += 1_000_000;
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

    /// Delivers everything in flight, and then lets this time pass without an event.
    pub(super) fn go_silent(&mut self, ms: u64) {
        let demand = core::mem::replace(&mut self.demand, 0);
        while self.in_flight() > 0 {
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
    run.bbr.model.schedule_probe_rtt(run.at());
    run
}
