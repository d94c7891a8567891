//! [`Composed`]: the controller that runs its components.

use std::sync::Arc;

use crate::algorithm::AnyAlgorithm;
use crate::component::Bursts;
use crate::events::{AckFrame, Congestion, Sent, Signal};
use crate::state::{Batch, Core, MINIMUM_RTO_NS};
use crate::{Bytes, CongestionController, Path, Phase, Reason, Snapshot, Timestamp, VideoKnowledge};

use super::Components;

/// A controller made of components. The [module](super) describes their order.
#[derive(Clone, Debug)]
pub(crate) struct Composed {
    core: Core,
    components: Components,
    /// Window that the transport gets, bytes.
    published: u64,
    /// True if no idle policy or adjustment acts.
    only_grows: bool,
    /// State before the last reduction; `None` if that reduction stays.
    undo: Option<Undo>,
}

/// State to return to if a loss was spurious (RFC 9438 §4.9.2).
#[derive(Clone, Debug)]
struct Undo {
    window: u64,
    ssthresh: Option<u64>,
    phase: Phase,
    recovery_start: Option<Timestamp>,
    max_flight: u64,
    /// For CUBIC: `cwnd_prior`, `W_max`, `K`, `t_epoch` and `W_est`.
    algorithm: AnyAlgorithm,
}

impl Composed {
    pub(crate) fn new(path: &Path, components: Components, known: Arc<VideoKnowledge>) -> Self {
        let mut core = Core::new(
            path,
            components.algorithm.minimum_packets(),
            components.needs(),
            known,
        );
        core.set_rules(components.rules.clone());
        let mut controller = Self {
            only_grows: components.only_grow(),
            published: core.window(),
            core,
            components,
            undo: None,
        };
        controller.components.startup.begin(&mut controller.core);
        controller.publish();
        controller
    }

    /// Changes the phase. Apart from this function, only the undoing of a spurious loss does.
    fn enter(&mut self, phase: Phase, reason: Reason, now: Timestamp) {
        self.core.enter(phase, reason);
        match phase {
            Phase::Avoidance => self.components.algorithm.begin(&mut self.core, reason, now),
            Phase::Recovery => {}
            Phase::Startup | Phase::AfterPersistentCongestion | Phase::AfterIdle => {
                self.components.startup.begin(&mut self.core);
            }
        }
    }

    /// Continues after the idle policy has changed the window: in slow start if it is below ssthresh now, otherwise in
    /// avoidance.
    #[cold]
    fn restarted(&mut self, now: Timestamp) {
        self.undo = None;
        self.core.reason = Reason::Idle;
        self.core.note_reduction();
        let (window, governs) = (self.core.window(), self.core.phase == Phase::Avoidance);
        // An algorithm that ended slow start without a threshold does not need slow start to recover its window.
        if self.core.ssthresh.map_or(!governs, |ssthresh| window < ssthresh) {
            self.enter(Phase::AfterIdle, Reason::Idle, now);
        } else if governs {
            self.components.algorithm.begin(&mut self.core, Reason::Idle, now);
        }
    }

    /// Handles a burst that left while, as far as is known, nothing was in flight: the sender may have paused.
    fn sent_after_silence(&mut self, event: &Sent) {
        let pauses = self.core.pause(event.now, MINIMUM_RTO_NS).is_some();
        if pauses {
            let before = self.core.window();
            self.components.algorithm.on_pause(&mut self.core);
            self.undo = None;
            if self.core.window() < before {
                self.core.note_reduction();
            }
        }
        let restarts = self.components.idle.on_sent(&mut self.core, event);
        if restarts {
            self.restarted(event.now);
        }
        if restarts || pauses {
            self.publish();
        }
    }

    /// Handles congestion outside any recovery: either the algorithm reduces and a recovery begins, or it holds.
    fn reduce(&mut self, event: &Congestion) {
        let (core, components) = (&mut self.core, &mut self.components);
        let undo = Undo {
            window: core.window(),
            ssthresh: core.ssthresh,
            phase: core.phase,
            recovery_start: core.recovery_start,
            max_flight: core.max_flight,
            algorithm: components.algorithm.clone(),
        };
        if core.capped {
            core.set_window(core.window().min(self.published));
        }
        let before = core.window();
        let in_use = components.idle.window_in_use(core, event.now);
        if let Some(in_use) = in_use {
            core.set_window(before.min(in_use));
        }
        if let Some(reduction) = components.algorithm.on_congestion(core, event) {
            let reduction = components.idle.on_congestion(event, in_use, reduction);
            core.set_window(reduction.window);
            core.ssthresh = Some(reduction.ssthresh);
            core.recovery_start = Some(event.now);
            core.note_reduction();
            self.undo = Some(undo);
            self.enter(Phase::Recovery, event.reason(), event.now);
            return;
        }
        if in_use.is_some() {
            core.set_window(before);
        }
        // While a ceiling or the loss policy bounds a window, it does not double either.
        let doubles = components.startup.doubles(core) && !core.capped;
        if core.phase.is_slow_start() && (!doubles || components.algorithm.leaves_startup(core, event)) {
            self.enter(Phase::Avoidance, event.reason(), event.now);
        }
    }

    #[cold]
    fn end_recovery(&mut self, now: Timestamp) {
        self.components.idle.on_recovery_end(&mut self.core);
        self.enter(Phase::Avoidance, Reason::RecoveryEnded, now);
    }

    /// Processes an ACK batch in slow start, or in recovery, where it changes nothing.
    #[inline(never)]
    fn slow_start(&mut self, batch: &mut Batch) {
        if !self.core.phase.is_slow_start() {
            return;
        }
        let components = &mut self.components;
        let mut end = components.startup.on_batch(&mut self.core, batch);
        if end.is_none() {
            // While slow start goes on, the rest of the allowance is lost.
            batch.allowance = 0;
            end = components.algorithm.watch_startup(&mut self.core, batch);
        }
        if let Some(reason) = end {
            self.enter(Phase::Avoidance, reason, batch.now);
            self.components.algorithm.on_batch(&mut self.core, batch);
        }
    }

    /// Computes the published window.
    #[inline]
    fn publish(&mut self) {
        if self.only_grows {
            self.published = self.core.window();
        } else {
            self.publish_bounded();
        }
        debug_assert!(self.core.minimum() <= self.published && u32::try_from(self.published).is_ok());
    }

    #[inline(never)]
    fn publish_bounded(&mut self) {
        let (core, components) = (&mut self.core, &mut self.components);
        let shaper = components.shaper.filter(|shaper| match core.phase {
            Phase::Avoidance => true,
            Phase::Recovery => shaper.acts_in_recovery(),
            _ => false,
        });
        let wanted = match shaper {
            Some(shaper) => core.bounded(shaper.adjust(core, core.window())),
            None => core.window(),
        };
        let bounded = match &mut components.loss {
            Some(guard) => guard.adjust(core, wanted),
            None => wanted,
        };
        let ceiling = components.ceiling;
        let bounded = ceiling.map_or(bounded, |ceiling| ceiling.adjust(core, bounded));
        let bounded = core.bounded(bounded);
        core.capped = bounded < wanted;
        self.published = bounded;
    }
}

impl CongestionController for Composed {
    fn on_sent(&mut self, event: &Sent) {
        if self.core.in_flight == 0 {
            self.sent_after_silence(event);
        }
        self.core.note_sent(event);
    }

    /// Passes an ACK frame through the components.
    fn on_ack_frame(&mut self, event: &AckFrame<'_>) -> Bytes {
        let Some(mut batch) = self.core.note_acked(event) else {
            return self.window();
        };
        if self.core.phase == Phase::Recovery && batch.after_recovery {
            self.end_recovery(batch.now);
        }
        if !self.only_grows {
            if self.core.is_silent(batch.now) {
                return self.window();
            }
            if self.components.idle.on_batch(&mut self.core, &mut batch) {
                self.restarted(batch.now);
            }
            self.core.count_frame(&mut batch);
        }
        let before = self.core.window();
        if self.core.phase == Phase::Avoidance {
            self.components.algorithm.on_batch(&mut self.core, &batch);
        } else {
            self.slow_start(&mut batch);
        }
        if self.only_grows {
            self.published = self.core.window();
            return self.window();
        }
        self.core.bound_growth(before);
        if let Some(guard) = &mut self.components.loss {
            guard.on_batch(&mut self.core, &batch);
        }
        self.publish();
        self.window()
    }

    fn on_congestion(&mut self, event: &Congestion) {
        let lost_again = self.core.lost_again(event);
        if self.core.in_recovery(event.newest_sent) {
            self.components.idle.on_further_congestion(&mut self.core, event);
        } else {
            // An older reduction stays: a later hint is about this event.
            self.undo = None;
            if !(lost_again || self.core.is_silent(event.now)) {
                self.reduce(event);
            }
        }
        // RFC 9002 §7.6.2, B.8: whether or not a recovery is going on.
        if event.is_persistent() || lost_again {
            let (core, components) = (&mut self.core, &mut self.components);
            components.algorithm.on_persistent(core);
            components.idle.on_persistent(core);
            core.set_window(core.minimum());
            core.note_reduction();
            let reason = if event.is_persistent() {
                core.recovery_start = None;
                core.rtt.forget_extremes();
                Reason::PersistentCongestion
            } else {
                core.recovery_start = Some(event.now);
                Reason::LostAgain
            };
            self.enter(Phase::AfterPersistentCongestion, reason, event.now);
        }
        if let Some(guard) = &mut self.components.loss {
            guard.on_congestion(&self.core, event);
        }
        // A mark is never spurious, and persistent congestion makes the controller start again.
        if event.signal == Signal::EcnCe || self.core.phase == Phase::AfterPersistentCongestion {
            self.undo = None;
        }
        self.core.note_congestion(event);
        self.publish();
    }

    /// Returns to the state before the last reduction, unless the window has grown beyond it since (RFC 9438 §4.9.2).
    fn on_spurious_congestion(&mut self) {
        let window = self.core.window();
        if let Some(undo) = self.undo.take_if(|undo| window < undo.window) {
            self.core.set_window(undo.window);
            self.core.ssthresh = undo.ssthresh;
            self.core.recovery_start = undo.recovery_start;
            self.core.max_flight = self.core.max_flight.max(undo.max_flight);
            self.core.enter(undo.phase, Reason::SpuriousLoss);
            self.components.algorithm = undo.algorithm;
            self.publish();
        }
    }

    fn on_mtu_change(&mut self, mtu: Bytes) {
        self.undo = None;
        let before = self.core.mtu();
        self.core.set_mtu(mtu);
        self.components.algorithm.on_mtu_change(&mut self.core, before);
        self.publish();
    }

    fn window(&self) -> Bytes {
        Bytes::new(self.published)
    }

    fn initial_window(&self) -> Bytes {
        Bytes::new(self.core.initial_window())
    }

    fn snapshot(&self) -> Snapshot {
        let core = &self.core;
        let mut snapshot = core.snapshot(self.published);
        snapshot.algorithm_window = Some(Bytes::new(core.window()));
        snapshot.ssthresh = core.ssthresh.map(Bytes::new);
        snapshot.capacity = core.capacity_after(1);
        self.components.algorithm.describe(core, &mut snapshot);
        snapshot
    }

    fn packets_per_ack(&self) -> Option<u32> {
        self.core.needs.every_ack.then_some(1)
    }

    fn requires_every_burst(&self) -> bool {
        self.core.needs.bursts >= Bursts::Every
    }

    fn clone_box(&self) -> Box<dyn CongestionController> {
        Box::new(self.clone())
    }
}
