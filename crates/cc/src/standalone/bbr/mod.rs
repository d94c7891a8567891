//! `bbr`: BBR, version 3 (draft-ietf-ccwg-bbr-06 of July 2026), which models the path's rate and round-trip time and
//! sends accordingly, whether or not packets are lost.
//!
//! [`Sampler`] measures, [`Model`] remembers, [`Machine`] decides, this module sets the window. Names are the draft's.
//!
//! **Pacing by a window.** BBR governs a pacing rate R. A transport that paces by R also receives cwnd as the window.
//! quinn offers only a window and paces at 1.25·window/srtt, so there a window stands for R:
//!
//! ```text
//! window = min(cwnd, R·srtt + unused)           unused: part of a window that is never in transit
//! ```
//!
//! Consequences: the rate holds on average over an RTT, not between packets. A flight shorter than the window, as after
//! `ProbeRTT`, is filled at 1.25·R. A lower gain stops the sender until the flight has shrunk, rather than slowing it.
//! A queue raises srtt and with it the window, up to cwnd, as with pacing; the sender's own queue decays by a hundredth
//! per round trip. If no ACK frames arrive, nothing leaves beyond the window.
//!
//! | | draft | here |
//! |---|---|---|
//! | rate samples | each ACK, state for each packet | about eight per round trip, state for each of their marks |
//! | app-limited | as the sender says | also in the first round trip, and in the one after a silence |
//! | losses | packet by packet, before the model | one event per ACK frame, after it, known by its newest packet |
//! | ranges lost in Startup | discontiguous ranges | ACK frames that reveal losses, as in Linux |
//! | in flight reaches a bound | exactly | within one packet, which a strict transport never sends |
//! | CE marks | unspecified | as a loss; ends Startup or a probe; how many are marked is unknown |
//! | retransmission timeout | cwnd falls, the model stays | persistent congestion: everything is learnt again |
//! | spurious losses | undone | not undone |
//! | silence | the rate is set before it ends | after its first burst |
//! | random waits | random | a hash of the times of earlier waits |
//! | ACK frequency | adapted to the state | the peer's |
//! | the smallest RTT is measured again | by a shorter one | by one that is less than 1 ms longer |
//! | Startup above 1,536 packets | doubles | grows by 768 packets per round trip, and ends with the sixth loss event |
//! | aggregation in Startup | one round trip | this one and the last |

mod machine;
mod model;
mod sample;
mod state;
#[cfg(test)]
mod tests;

use core::time::Duration;
use std::sync::Arc;

use crate::component::Needs;
use crate::entry::Entry;
use crate::estimator::Rounds;
use crate::events::{AckFrame, Congestion, Sent, Signal};
use crate::state::{Batch, Core};
use crate::{Bitrate, Bytes, CongestionController, Path, Phase, Reason, Snapshot, Timestamp, VideoKnowledge};
use machine::Machine;
use model::{Model, percent_of, rate, volume};
use sample::{Sample, Sampler};
use state::State;

/// `BBR.MinPipeCwnd`, packets: smallest window.
const MINIMUM_PACKETS: u64 = 4;
/// `BBR.StartupPacingGain`, percent, for the rate before the first sample.
const STARTUP_GAIN: u64 = State::Startup.pacing_gain();
/// Share of the rate that `BBR.PacingMarginPercent` leaves, percent.
const PACING_MARGIN: u64 = 99;

/// BBR, version 3, for one path.
#[derive(Clone, Debug, Default)]
struct Bbr {
    /// Shared state of all controllers; its window is `C.cwnd`.
    core: Core,
    sampler: Sampler,
    /// Latest rate sample: RS of the draft.
    sample: Sample,
    model: Model,
    machine: Machine,
    /// Rounds of `BBR.round_count`; `StartRound()` restarts them.
    round: Rounds,
    round_count: u64,
    round_start: bool,
    /// Round trips after which the short-term model answers losses.
    loss_round: Rounds,
    /// `C.pacing_rate`, bytes per second; `None` before the first RTT.
    pacing_rate: Option<u64>,
    /// True if cwnd was used in full in this round trip, and in the last one.
    cwnd_limited: (bool, bool),
    /// From the first loss of a flight to the acknowledgement of a packet that left after it.
    in_recovery: bool,
    /// Remembered cwnd in bytes: `BBR.prior_cwnd`.
    prior_cwnd: u64,
    idle_restart: bool,
    /// Smoothed bytes per ACK frame, times eight.
    frame_bytes: u64,
    /// Bytes acknowledged so far: `C.delivered`.
    delivered: u64,
    /// Kind of the last congestion signal.
    congestion: Reason,
    /// State of the generator of waits.
    random: u64,
    /// Published window in bytes, as the transport reads it.
    window: u64,
}

impl Bbr {
    fn new(path: &Path, known: Arc<VideoKnowledge>) -> Self {
        let core = Core::new(path, MINIMUM_PACKETS, Needs::default(), known);
        Self {
            frame_bytes: core.mtu().saturating_mul(8),
            congestion: Reason::Loss,
            window: core.window(),
            core,
            ..Self::default()
        }
    }

    /// A pseudorandom number: `SplitMix64` (Steele et al. 2014) over the connection's events and their times.
    fn draw(&mut self, now: Timestamp) -> u64 {
        self.random = (self.random ^ now.as_nanos()).wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut draw = self.random;
        draw = (draw ^ (draw >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        draw = (draw ^ (draw >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        draw ^ (draw >> 31)
    }

    /// Returns true if the transport stops sending with `in_flight` bytes in flight under a window of `limit`: it
    /// leaves up to a packet of the window unused.
    fn reaches(&self, in_flight: u64, limit: u64) -> bool {
        in_flight.saturating_add(self.core.mtu()) >= limit
    }

    /// Returns true if cwnd was used in full within a round trip: `C.is_cwnd_limited`.
    const fn is_cwnd_limited(&self) -> bool {
        self.cwnd_limited.0 || self.cwnd_limited.1
    }

    /// `UpdateRound()`, and updates whether the sender uses cwnd in full.
    fn update_rounds(&mut self, batch: &Batch) {
        self.round_start = self.round.on_batch(batch.now, batch.newest_sent);
        if self.round_start {
            self.round_count = self.round_count.saturating_add(1);
            self.machine.on_round();
            self.model.on_round();
            self.cwnd_limited = (false, self.cwnd_limited.0);
        }
        self.cwnd_limited.0 |= self.reaches(batch.prior_in_flight(), self.core.window());
    }

    /// `SetPacingRateWithGain()`, and `InitPacingRate()` with the first RTT.
    fn set_pacing_rate(&mut self, gain_percent: u64) {
        let Some(srtt) = self.core.rtt.smoothed_ns() else {
            return;
        };
        let paced = percent_of(PACING_MARGIN, percent_of(gain_percent, self.model.bw()));
        let before = self.pacing_rate;
        let before = before.unwrap_or_else(|| percent_of(STARTUP_GAIN, rate(self.core.window(), srtt)));
        self.pacing_rate = Some(if self.machine.full_bw_reached {
            paced
        } else {
            paced.max(before)
        });
    }

    /// Divisor of acknowledged bytes for growth in Startup: 1 except for a large window.
    fn startup_divisor(&self) -> u64 {
        if self.machine.full_bw_reached {
            1
        } else {
            self.core.slow_start_divisor()
        }
    }

    /// Sets cwnd after an ACK frame: `SetCwnd()` of the draft.
    fn set_cwnd(&mut self, batch: &Batch) {
        let machine = &self.machine;
        let extra = self.model.extra_acked(machine.full_bw_reached);
        let inflight = self.bdp_multiple(self.model.bw(), machine.state.cwnd_gain());
        let max_inflight = self.quantized(inflight.saturating_add(extra));
        let acked = batch.acked.checked_div(self.startup_divisor()).unwrap_or(0);
        let grown = self.core.window().saturating_add(acked);
        let mut cwnd = self.core.window();
        if machine.full_bw_reached {
            cwnd = grown.min(max_inflight);
        } else if cwnd < max_inflight || self.delivered < self.core.initial_window() {
            cwnd = grown;
        }
        if machine.state == State::ProbeRtt {
            cwnd = cwnd.min(self.probe_rtt_cwnd());
        }
        // `BoundCwndForModel()`; the minimum is the core's.
        let longterm = match machine.state {
            State::Down | State::Refill | State::Up => self.model.inflight_longterm,
            State::Cruise | State::ProbeRtt => self.model.inflight_with_headroom(self.core.mtu()),
            State::Startup | State::Drain => None,
        };
        let bounds = [longterm, self.model.inflight_shortterm];
        self.core
            .set_window(bounds.into_iter().flatten().fold(cwnd, u64::min));
    }

    /// Saves the cwnd before its first reduction: `SaveCwnd()`.
    fn save_cwnd(&mut self) {
        let cwnd = self.core.window();
        self.prior_cwnd = if self.in_recovery || self.machine.state == State::ProbeRtt {
            self.prior_cwnd.max(cwnd)
        } else {
            cwnd
        };
    }

    /// Restores the saved cwnd: `RestoreCwnd()` of the draft.
    fn restore_cwnd(&mut self) {
        self.core.set_window(self.core.window().max(self.prior_cwnd));
    }

    /// Publishes cwnd, or the window that carries the pacing rate if the transport does not pace by it.
    fn publish(&mut self) {
        let cwnd = self.core.window();
        let paced = match (self.pacing_rate, self.core.rtt.smoothed_ns()) {
            (Some(rate), Some(srtt)) if !self.core.paced => {
                volume(rate, srtt).saturating_add(self.unused()).min(cwnd)
            }
            _ => cwnd,
        };
        self.window = self.core.bounded(paced);
    }

    /// Mean bytes of a window that are not in transit: those at the receiver that the next ACK frame will acknowledge,
    /// (f − mtu)/2 for frames of f bytes, and the half packet that a strict transport keeps.
    fn unused(&self) -> u64 {
        let frame = (self.frame_bytes / 8).max(self.core.mtu());
        let kept = self.core.mtu().saturating_sub(self.core.headroom());
        frame.saturating_sub(kept) / 2
    }

    /// Forgets all measurements after persistent congestion, because the path may have changed.
    fn restart(&mut self) {
        self.core.rtt.forget_extremes();
        self.core.set_window(self.core.minimum());
        self.model = Model::default();
        self.machine = Machine::default();
        self.pacing_rate = None;
        self.in_recovery = false;
        self.prior_cwnd = 0;
        self.core
            .enter(Phase::AfterPersistentCongestion, Reason::PersistentCongestion);
    }

    /// `NoteLoss()`, and the start of recovery.
    fn note_congestion(&mut self, event: &Congestion) {
        if self.model.note_congestion() {
            self.loss_round.restart(event.now);
        }
        self.machine.loss_events = self.machine.loss_events.saturating_add(1);
        if !self.in_recovery {
            self.save_cwnd();
            self.in_recovery = true;
            self.core.recovery_start = Some(event.now);
        }
    }
}

impl CongestionController for Bbr {
    fn on_sent(&mut self, event: &Sent) {
        // `HandleRestartFromIdle()`; a connection's first flight does not follow a silence.
        if self.sampler.is_idle() && self.core.last_acked.is_some() {
            self.idle_restart = true;
            self.model.restart_aggregation(event.now);
            if self.machine.state.probes_bw() {
                self.set_pacing_rate(100);
            } else if self.machine.state == State::ProbeRtt {
                self.check_probe_rtt_done(event.now);
            }
            self.publish();
        }
        self.sampler.on_sent(event);
        self.core.note_sent(event);
    }

    /// `UpdateOnACK()` of the draft.
    fn on_ack_frame(&mut self, event: &AckFrame<'_>) -> Bytes {
        let sample = self.sampler.on_ack_frame(event);
        let Some(batch) = self.core.note_acked(event) else {
            return self.window();
        };
        if let Some(sample) = sample {
            self.sample = sample;
            self.model.on_sample(&sample);
        }
        self.delivered = self.delivered.saturating_add(batch.acked);
        let smoothed = self.frame_bytes.saturating_sub(self.frame_bytes / 8);
        self.frame_bytes = smoothed.saturating_add(batch.acked);
        self.update_rounds(&batch);
        let loss_round_start = self.loss_round.on_batch(batch.now, batch.newest_sent);
        if loss_round_start {
            self.end_loss_round();
        }
        self.model.on_acked(batch.now, batch.acked, self.core.window());
        if self.round_start {
            let divisor = self.startup_divisor();
            self.machine.check_full_bw(&self.sample, divisor);
        }
        self.advance(&batch, loss_round_start);
        if loss_round_start {
            self.model.restart_latest(&self.sample);
        }
        if self.in_recovery && batch.after_recovery {
            self.in_recovery = false;
            self.restore_cwnd();
        }
        self.set_pacing_rate(self.machine.state.pacing_gain());
        self.set_cwnd(&batch);
        self.publish();
        self.window()
    }

    fn on_congestion(&mut self, event: &Congestion) {
        let mut sample = self.sampler.on_congestion(event);
        self.core.note_congestion(event);
        let too_high = match event.signal {
            Signal::Loss { persistent: true, .. } => {
                self.restart();
                self.publish();
                return;
            }
            Signal::Loss { bytes, .. } => {
                self.congestion = Reason::Loss;
                let too_high = sample.is_inflight_too_high();
                sample.tx_in_flight = sample.inflight_at_loss(bytes.as_u64());
                too_high
            }
            Signal::EcnCe => {
                self.congestion = Reason::EcnCe;
                self.machine.marked |= !self.machine.full_bw_reached;
                true
            }
        };
        self.note_congestion(event);
        if too_high && self.machine.is_bw_probe_sample {
            self.handle_inflight_too_high(event.now, &sample);
        } else if too_high {
            self.on_startup_loss(event.now);
        }
    }

    fn on_mtu_change(&mut self, mtu: Bytes) {
        self.core.set_mtu(mtu);
        self.publish();
    }

    fn window(&self) -> Bytes {
        Bytes::new(self.window)
    }

    fn initial_window(&self) -> Bytes {
        Bytes::new(self.core.initial_window())
    }

    fn pacing_rate(&self) -> Option<Bitrate> {
        self.pacing_rate.map(Bitrate::from_bytes_per_second)
    }

    fn snapshot(&self) -> Snapshot {
        let mut snapshot = self.core.snapshot(self.window);
        let (smoothed, min) = (self.core.rtt.smoothed_ns(), self.model.min_rtt());
        let bw = self.model.max_bw();
        let queueing = || Some(smoothed?.saturating_sub(min?));
        snapshot.min_rtt = min.map(Duration::from_nanos);
        snapshot.capacity = (bw > 0).then(|| Bitrate::from_bytes_per_second(bw));
        snapshot.backlog = queueing().map(|queueing| Bytes::new(volume(bw, queueing)));
        snapshot
    }

    fn clone_box(&self) -> Box<dyn CongestionController> {
        Box::new(self.clone())
    }
}

pub(crate) fn entry() -> Entry {
    Entry::custom("bbr", |path, _, known| Box::new(Bbr::new(path, known)))
        .about("BBR, version 3")
        .defined_in("draft-ietf-ccwg-bbr-06")
        .absolute()
        .with_traits(|traits| traits.holds_on_loss = true)
}
