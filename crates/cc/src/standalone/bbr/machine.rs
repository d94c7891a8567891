//! The state machine (draft §5.3): when BBR speeds up, slows down and cruises.

use crate::state::Batch;
use crate::{Phase, Reason, Timestamp};

use super::Bbr;
use super::sample::Sample;
use super::state::{AckPhase, State};

/// Minimum time with half a BDP in flight: `BBR.ProbeRTTDuration`.
const PROBE_RTT_NS: u64 = 200_000_000;
/// The pipe counts as full after this many round trips without a 25 % higher delivery rate (§5.3.1.2).
const FULL_BW_ROUNDS: u8 = 3;
/// `BBRStartupFullLossCnt`: ranges lost in a round trip that can end Startup.
const STARTUP_FULL_LOSSES: u32 = 6;
/// Round trips after which Drain ends in any case (§5.3.2).
const DRAIN_ROUNDS: u64 = 3;
/// Wait between probes for bandwidth: two seconds and up to one more (§5.3.3.8).
const PROBE_WAIT_NS: u64 = 2_000_000_000;
const PROBE_WAIT_SPREAD_NS: u64 = 1_000_000_000;
/// Maximum number of round trips between probes for bandwidth, so that Reno may keep up (`T_reno_bound`).
const RENO_ROUNDS: u64 = 63;
/// Maximum of `bw_probe_up_rounds`, a power of two.
const MOST_UP_ROUNDS: u32 = 30;

/// Variables of the state machine, with the draft's names.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a variable of the draft")]
pub(super) struct Machine {
    pub(super) state: State,
    pub(super) full_bw_reached: bool,
    full_bw_now: bool,
    full_bw: u64,
    full_bw_count: u8,
    /// Congestion events of the current loss round: `loss_events_in_round` of Linux.
    pub(super) loss_events: u32,
    /// A CE mark was reported in Startup since the last loss round ended.
    pub(super) marked: bool,
    drain_start_round: u64,
    pub(super) ack_phase: AckPhase,
    pub(super) is_bw_probe_sample: bool,
    pub(super) prev_probe_too_high: bool,
    prev_probe_precautionary: bool,
    bw_probe_up_rounds: u32,
    bw_probe_up_acked: u64,
    /// `BBR.probe_up_cnt` in bytes; zero if it is infinite.
    probe_up_acked_per_inc: u64,
    rounds_since_probe_up: u64,
    pub(super) bw_probe_wait_ns: u64,
    pub(super) cycle_stamp: Timestamp,
    probe_rtt_done: Option<Timestamp>,
    probe_rtt_round_done: bool,
}

impl Machine {
    /// Counts a completed round trip.
    pub(super) const fn on_round(&mut self) {
        self.rounds_since_probe_up = self.rounds_since_probe_up.saturating_add(1);
    }

    /// `ResetFullBW()`, with a baseline to grow from.
    const fn reset_full_bw(&mut self, baseline: u64) {
        self.full_bw = baseline;
        self.full_bw_count = 0;
        self.full_bw_now = false;
    }

    /// `CheckFullBWReached()` at the end of a round trip. Startup grows cwnd by 1/`divisor` of itself per round trip.
    pub(super) fn check_full_bw(&mut self, sample: &Sample, divisor: u64) {
        if self.full_bw_now || sample.app_limited {
            return;
        }
        let least = (self.full_bw / 4).checked_div(divisor).unwrap_or(0);
        if sample.delivery_rate >= self.full_bw.saturating_add(least) {
            self.reset_full_bw(sample.delivery_rate);
            return;
        }
        self.full_bw_count = self.full_bw_count.saturating_add(1);
        self.full_bw_now = self.full_bw_count >= FULL_BW_ROUNDS;
        self.full_bw_reached |= self.full_bw_now;
    }

    /// Doubles the growth of `inflight_longterm` per round trip: `RaiseInflightLongtermSlope()`.
    fn raise_slope(&mut self, cwnd: u64, mtu: u64) {
        let growth = 1_u64 << self.bw_probe_up_rounds;
        self.bw_probe_up_rounds = self.bw_probe_up_rounds.saturating_add(1).min(MOST_UP_ROUNDS);
        self.probe_up_acked_per_inc = cwnd.checked_div(growth).unwrap_or(0).max(mtu);
    }

    /// Growth of `inflight_longterm` for `acked` bytes, in bytes: a segment for each `probe_up_acked_per_inc`.
    fn growth_for(&mut self, acked: u64, mtu: u64) -> u64 {
        self.bw_probe_up_acked = self.bw_probe_up_acked.saturating_add(acked);
        let per = self.probe_up_acked_per_inc;
        let segments = self.bw_probe_up_acked.checked_div(per).unwrap_or(0);
        self.bw_probe_up_acked = self
            .bw_probe_up_acked
            .saturating_sub(segments.saturating_mul(per));
        segments.saturating_mul(mtu)
    }
}

impl Bbr {
    /// Updates the state for an ACK frame, with the latest rate sample.
    pub(super) fn advance(&mut self, batch: &Batch, loss_round_start: bool) {
        self.check_startup_done(batch, loss_round_start);
        self.check_drain_done(batch);
        self.update_probe_bw(batch);
        self.model.on_rtt(batch.now, batch.rtt_ns);
        self.check_probe_rtt(batch);
    }

    /// `AdaptLowerBoundsFromCongestion()` at the end of a loss round.
    pub(super) fn end_loss_round(&mut self) {
        let probing = self.machine.state.is_probing();
        if self.model.end_loss_round(probing, self.core.window()) {
            self.core.reason = self.congestion;
        }
    }

    fn check_startup_done(&mut self, batch: &Batch, loss_round_start: bool) {
        if loss_round_start {
            let events = core::mem::take(&mut self.machine.loss_events);
            let marked = core::mem::take(&mut self.machine.marked);
            let lost = events >= STARTUP_FULL_LOSSES && self.sample.is_inflight_too_high();
            if !self.machine.full_bw_reached && (lost || marked) {
                self.end_startup_by_loss(batch.now);
                return;
            }
        }
        if self.machine.state == State::Startup && self.machine.full_bw_reached {
            self.end_startup(batch.now, Reason::CapacityKnown);
        }
    }

    /// Handles a loss of more than the tolerated share in Startup. With a large window, this does not wait for the end
    /// of the round trip: a receiver accepts only a limited number of gaps.
    pub(super) fn on_startup_loss(&mut self, now: Timestamp) {
        if self.startup_divisor() > 1 && self.machine.loss_events >= STARTUP_FULL_LOSSES {
            self.end_startup_by_loss(now);
        }
    }

    fn end_startup_by_loss(&mut self, now: Timestamp) {
        self.machine.full_bw_reached = true;
        self.model.bound_by_startup_loss();
        self.end_startup(now, self.congestion);
    }

    /// Ends Startup with Drain: `EnterDrain()` of the draft.
    fn end_startup(&mut self, now: Timestamp, reason: Reason) {
        self.core.enter(Phase::Avoidance, reason);
        if self.machine.state == State::Startup {
            self.machine.state = State::Drain;
            self.machine.drain_start_round = self.round_count;
        } else {
            // ProbeRTT continues; it ends in ProbeBW.
            debug_assert_eq!(self.machine.state, State::ProbeRtt, "at {now:?}");
        }
    }

    fn check_drain_done(&mut self, batch: &Batch) {
        let machine = &self.machine;
        if machine.state == State::Drain
            && (batch.in_flight <= self.inflight(self.model.bw())
                || self.round_count > machine.drain_start_round.saturating_add(DRAIN_ROUNDS))
        {
            self.start_down(batch.now);
        }
    }

    /// Advances the cycle of `ProbeBW`: `UpdateProbeBWCyclePhase()`.
    fn update_probe_bw(&mut self, batch: &Batch) {
        if !self.machine.full_bw_reached || self.adapt_long_term(batch) {
            return;
        }
        let state = self.machine.state;
        match state {
            State::Down | State::Cruise if self.is_time_to_probe(batch.now) => self.start_refill(batch.now),
            State::Down if self.is_time_to_cruise(batch.in_flight) => self.machine.state = State::Cruise,
            State::Refill if self.round_start => {
                self.machine.is_bw_probe_sample = true;
                self.start_up(batch.now);
            }
            State::Up if self.is_time_to_go_down(batch) => {
                self.machine.prev_probe_too_high = false;
                self.start_down(batch.now);
            }
            _ => {}
        }
    }

    /// `AdaptLongTermModel()`: returns true if it changed the state.
    fn adapt_long_term(&mut self, batch: &Batch) -> bool {
        let machine = &mut self.machine;
        if self.round_start {
            match machine.ack_phase {
                AckPhase::ProbeStarting => machine.ack_phase = AckPhase::ProbeFeedback,
                AckPhase::ProbeStopping => {
                    machine.is_bw_probe_sample = false;
                    machine.ack_phase = AckPhase::Init;
                    if machine.state.probes_bw() {
                        if !self.sample.app_limited {
                            self.model.advance_max_bw_filter();
                        }
                        if machine.prev_probe_precautionary && !machine.prev_probe_too_high {
                            self.start_refill(batch.now);
                            return true;
                        }
                    }
                }
                _ => {}
            }
        }
        let bound = self.model.inflight_longterm;
        let Some(bound) = bound.filter(|_| !self.sample.is_inflight_too_high()) else {
            return false;
        };
        let bound = bound.max(self.sample.tx_in_flight);
        self.model.inflight_longterm = Some(bound);
        if self.machine.state == State::Up && self.is_bound_by_longterm() {
            let growth = self.machine.growth_for(batch.acked, self.core.mtu());
            self.model.inflight_longterm = Some(bound.saturating_add(growth));
            if self.round_start {
                self.machine.raise_slope(self.core.window(), self.core.mtu());
            }
        }
        false
    }

    /// Returns true if cwnd is all that `inflight_longterm` allows and the sender used it in full.
    fn is_bound_by_longterm(&self) -> bool {
        let bound = self.model.inflight_longterm;
        self.is_cwnd_limited() && bound.is_some_and(|bound| self.core.window() >= bound)
    }

    /// Returns true if UP has found the limit: `IsTimeToGoDown()`.
    fn is_time_to_go_down(&mut self, batch: &Batch) -> bool {
        if self.machine.prev_probe_too_high
            && let Some(bound) = self.model.inflight_longterm
            && self.reaches(batch.prior_in_flight(), bound)
        {
            self.machine.prev_probe_precautionary = true;
            return true;
        }
        if self.is_bound_by_longterm() {
            self.machine.reset_full_bw(self.sample.delivery_rate);
            return false;
        }
        self.machine.full_bw_now
    }

    /// Returns true if the queue is empty and headroom is left: `IsTimeToCruise()`.
    fn is_time_to_cruise(&self, in_flight: u64) -> bool {
        let mtu = self.core.mtu();
        let bound = self.model.inflight_with_headroom(mtu);
        bound.is_none_or(|bound| in_flight <= bound.max(self.core.minimum()))
            && in_flight <= self.inflight(self.model.max_bw())
    }

    /// Returns true if the wait for the next probe is over: `IsTimeToProbeBW()`.
    fn is_time_to_probe(&self, now: Timestamp) -> bool {
        let waited = now.nanos_since(self.machine.cycle_stamp);
        let segments = self.target_inflight().checked_div(self.core.mtu()).unwrap_or(0);
        waited > self.machine.bw_probe_wait_ns
            || self.machine.rounds_since_probe_up >= segments.min(RENO_ROUNDS)
    }

    /// Ends a probe and draws the wait for the next: `StartProbeBW_DOWN()`.
    pub(super) fn start_down(&mut self, now: Timestamp) {
        self.model.reset_congestion_signals();
        let draw = self.draw(now);
        self.round.restart(now);
        let machine = &mut self.machine;
        machine.probe_up_acked_per_inc = 0;
        machine.rounds_since_probe_up = draw & 1;
        machine.bw_probe_wait_ns = PROBE_WAIT_NS.saturating_add((draw >> 1) % PROBE_WAIT_SPREAD_NS);
        machine.cycle_stamp = now;
        machine.ack_phase = AckPhase::ProbeStopping;
        machine.state = State::Down;
    }

    /// Begins a probe by filling the path: `StartProbeBW_REFILL()`.
    fn start_refill(&mut self, now: Timestamp) {
        self.model.reset_short_term();
        self.round.restart(now);
        let machine = &mut self.machine;
        machine.bw_probe_up_rounds = 0;
        machine.bw_probe_up_acked = 0;
        machine.prev_probe_precautionary = false;
        machine.ack_phase = AckPhase::Refilling;
        machine.state = State::Refill;
    }

    /// Begins to send faster than the path's rate: `StartProbeBW_UP()`.
    fn start_up(&mut self, now: Timestamp) {
        self.round.restart(now);
        let machine = &mut self.machine;
        machine.ack_phase = AckPhase::ProbeStarting;
        machine.reset_full_bw(self.sample.delivery_rate);
        machine.state = State::Up;
        machine.raise_slope(self.core.window(), self.core.mtu());
    }

    /// Enters `ProbeRTT` when it is due, and leaves it: `CheckProbeRTT()`.
    fn check_probe_rtt(&mut self, batch: &Batch) {
        if self.machine.state != State::ProbeRtt && self.model.probe_rtt_expired && !self.idle_restart {
            self.machine.state = State::ProbeRtt;
            self.save_cwnd();
            self.machine.probe_rtt_done = None;
            self.machine.ack_phase = AckPhase::ProbeStopping;
            self.round.restart(batch.now);
        }
        if self.machine.state == State::ProbeRtt {
            self.sampler.mark_app_limited(batch.now);
            if self.machine.probe_rtt_done.is_some() {
                self.machine.probe_rtt_round_done |= self.round_start;
                if self.machine.probe_rtt_round_done {
                    self.check_probe_rtt_done(batch.now);
                }
            } else if batch.in_flight <= self.probe_rtt_cwnd() {
                self.machine.probe_rtt_done = Some(batch.now.plus_nanos(PROBE_RTT_NS));
                self.machine.probe_rtt_round_done = false;
                self.round.restart(batch.now);
            }
        }
        self.idle_restart = false;
    }

    /// Leaves `ProbeRTT` if its time is over: `CheckProbeRTTDone()` and `ExitProbeRTT()`.
    pub(super) fn check_probe_rtt_done(&mut self, now: Timestamp) {
        if self.machine.probe_rtt_done.is_none_or(|done| now <= done) {
            return;
        }
        self.model.schedule_probe_rtt(now);
        self.restore_cwnd();
        self.model.reset_short_term();
        if self.machine.full_bw_reached {
            self.start_down(now);
            self.machine.state = State::Cruise;
        } else {
            self.machine.state = State::Startup;
        }
    }

    /// `HandleInflightTooHigh()`, for a sample whose `tx_in_flight` is the flight at the loss.
    pub(super) fn handle_inflight_too_high(&mut self, now: Timestamp, sample: &Sample) {
        self.machine.prev_probe_too_high = true;
        self.machine.is_bw_probe_sample = false;
        if !sample.app_limited {
            self.model
                .bound_by_probe(sample.tx_in_flight, self.target_inflight());
            self.core.reason = self.congestion;
        }
        if self.machine.state == State::Up {
            self.start_down(now);
        }
    }

    /// `TargetInflight()`: one BDP, unless congestion cut cwnd below it.
    pub(super) fn target_inflight(&self) -> u64 {
        let bdp = self.bdp_multiple(self.model.bw(), 100);
        bdp.min(self.core.window())
    }

    /// Flight in `ProbeRTT`, bytes: `ProbeRTTCwnd()`.
    pub(super) fn probe_rtt_cwnd(&self) -> u64 {
        let gain = State::ProbeRtt.cwnd_gain();
        self.bdp_multiple(self.model.bw(), gain).max(self.core.minimum())
    }

    /// One BDP at this rate, with its budget: `Inflight(1.0)`.
    fn inflight(&self, rate: u64) -> u64 {
        self.quantized(self.bdp_multiple(rate, 100))
    }

    /// Raises a flight to the size that bursts and ACK frames require: `QuantizationBudget()`.
    pub(super) fn quantized(&self, inflight: u64) -> u64 {
        let inflight = inflight.max(self.send_quantum()).max(self.core.minimum());
        if self.machine.state == State::Up {
            inflight.saturating_add(self.core.mtu().saturating_mul(2))
        } else {
            inflight
        }
    }

    /// `BDPMultiple()`; before the first RTT the initial window.
    pub(super) fn bdp_multiple(&self, rate: u64, gain_percent: u64) -> u64 {
        self.model
            .bdp_multiple(rate, gain_percent)
            .unwrap_or_else(|| self.core.initial_window())
    }

    /// `C.send_quantum`: bytes that leave in a millisecond.
    fn send_quantum(&self) -> u64 {
        let quantum = self.pacing_rate.unwrap_or(0) / 1_000;
        quantum.min(64_000).max(self.core.mtu().saturating_mul(2))
    }
}
