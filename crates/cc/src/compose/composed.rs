//! [`Composed`]: the controller that runs its parts.

use std::sync::Arc;

use core::time::Duration;

use crate::avoidance::Avoidance;
use crate::ceiling::Ceiling;
use crate::events::{AckBatch, Acked, Congestion, MtuChange, Sent, Signal};
use crate::idle::Idle;
use crate::loss::Loss;
use crate::shape::Shape;
use crate::startup::Startup;
use crate::{Bytes, CongestionController, Path, Phase, Reason, Snapshot, Timestamp, VideoKnowledge};

use super::phases::{is_slow_start, may_follow};
use super::{Batch, Core, Growth, Needs, Step};

/// One part of each kind.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    pub(crate) startup: Startup,
    pub(crate) law: Avoidance,
    pub(crate) shape: Shape,
    pub(crate) idle: Idle,
    pub(crate) loss: Loss,
    pub(crate) ceiling: Ceiling,
    /// The law's, for the window that startup and law share.
    pub(crate) growth: Growth,
}

impl Parts {
    /// Whether the law's window is published as it is, always.
    const fn are_plain(&self) -> bool {
        matches!(self.shape, Shape::None)
            && matches!(self.loss, Loss::Standard | Loss::Ignore)
            && matches!(self.ceiling, Ceiling::None)
    }

    /// What any of the parts needs.
    fn needs(&self) -> Needs {
        self.startup
            .needs()
            .merge(self.law.needs())
            .merge(self.shape.needs())
            .merge(self.ceiling.needs())
    }
}

/// A controller made of parts. See the [module](super) for the order in which they act.
#[derive(Clone, Debug)]
pub(crate) struct Composed {
    core: Core,
    parts: Parts,
    /// What the transport may have in flight.
    published: u64,
    /// Nothing stands between the law's window and the transport.
    plain: bool,
    /// And nothing but slow start and law has to do with an ACK batch.
    simple: bool,
}

impl Composed {
    pub(crate) fn new(path: &Path, parts: Parts, known: Arc<VideoKnowledge>) -> Self {
        let mut core = Core::new(path, parts.law.minimum_packets(), parts.needs(), known);
        core.set_growth(parts.growth);
        let plain = parts.are_plain();
        let mut controller = Self {
            simple: plain && matches!(parts.idle, Idle::Keep(_)) && !parts.growth.is_rate_limited(),
            plain,
            published: core.window(),
            core,
            parts,
        };
        controller.parts.loss.on_mtu_change(path.mtu);
        controller.parts.startup.begin(&mut controller.core);
        controller.publish();
        controller
    }

    /// The shared state alone, to test a part with.
    #[cfg(test)]
    pub(crate) fn into_core(self) -> Core {
        self.core
    }

    /// The one place where the phase changes.
    fn enter(&mut self, phase: Phase, reason: Reason, now: Timestamp) {
        debug_assert!(
            may_follow(self.core.phase, phase, reason),
            "{} -> {phase} because {reason}",
            self.core.phase
        );
        self.core.phase = phase;
        self.core.reason = reason;
        match phase {
            Phase::Avoidance => self.parts.law.begin(&mut self.core, reason, now),
            Phase::Recovery => {}
            Phase::Startup | Phase::AfterPersistentCongestion | Phase::AfterIdle => {
                self.parts.startup.begin(&mut self.core);
            }
        }
    }

    /// An idle part changed the window: slow start again if it is below ssthresh now, else avoidance anew.
    #[cold]
    fn restarted(&mut self, now: Timestamp) {
        self.core.reason = Reason::Idle;
        self.core.note_reduction();
        let (window, governs) = (self.core.window(), self.core.phase == Phase::Avoidance);
        // A law that ended slow start without a threshold needs no slow start to find its way back.
        if self.core.ssthresh.map_or(!governs, |ssthresh| window < ssthresh) {
            self.enter(Phase::AfterIdle, Reason::Idle, now);
        } else if governs {
            self.parts.law.begin(&mut self.core, Reason::Idle, now);
        }
    }

    /// A burst left although nothing was in flight, as far as is known: the sender may have paused.
    fn sent_after_silence(&mut self, event: &Sent) {
        let pause_ns = self.core.pause_ns(event.now);
        if let Some(pause_ns) = pause_ns {
            let before = self.core.window();
            self.parts.law.on_pause(&mut self.core, pause_ns);
            if self.core.window() < before {
                self.core.note_reduction();
            }
        }
        let restarts = self.parts.idle.on_sent(&mut self.core, event);
        if restarts {
            self.restarted(event.now);
        }
        if restarts || pause_ns.is_some() {
            self.publish();
        }
    }

    /// Congestion that belongs to no recovery yet: the law answers, and a recovery begins, or it holds.
    fn reduce(&mut self, event: &Congestion, reason: Reason) {
        let (core, parts) = (&mut self.core, &mut self.parts);
        if core.capped {
            core.set_window(core.window().min(self.published));
        }
        let before = core.window();
        let in_use = parts.idle.window_in_use(core, event.now);
        if let Some(in_use) = in_use {
            core.set_window(before.min(in_use));
        }
        if let Some(reduction) = parts.law.on_congestion(core, event) {
            let reduction = parts.idle.on_congestion(core, event, in_use, reduction);
            core.set_window(reduction.window);
            core.ssthresh = Some(reduction.ssthresh);
            core.recovery_start = Some(event.now);
            core.note_reduction();
            self.enter(Phase::Recovery, reason, event.now);
            return;
        }
        if in_use.is_some() {
            core.set_window(before);
        }
        if is_slow_start(core.phase) {
            self.enter(Phase::Avoidance, reason, event.now);
        }
    }

    #[cold]
    fn end_recovery(&mut self, now: Timestamp) {
        self.parts.idle.on_recovery_end(&mut self.core);
        self.enter(Phase::Avoidance, Reason::RecoveryEnded, now);
    }

    /// An ACK batch arrived in slow start or, which changes nothing, in recovery.
    #[inline(never)]
    fn slow_start(&mut self, batch: &Batch) {
        if !is_slow_start(self.core.phase) {
            return;
        }
        let parts = &mut self.parts;
        let mut step = parts.startup.on_batch(&mut self.core, batch);
        if step == Step::Stay {
            step = parts.law.watch_startup(&mut self.core, batch);
        }
        if let Step::Leave { reason, unused } = step {
            self.enter(Phase::Avoidance, reason, batch.now);
            self.parts
                .law
                .on_batch(&mut self.core, &batch.with_credit(unused));
        }
    }

    /// An ACK frame has been read: runs it through the parts. One function for both ways to be told, so that all that
    /// is called here only once is part of it.
    #[inline(never)]
    fn end_frame(&mut self, last_run: Option<&Acked>, event: &AckBatch) {
        let Some(mut batch) = self.core.close_batch(last_run, event) else {
            return;
        };
        if self.core.phase == Phase::Recovery && batch.after_recovery {
            self.end_recovery(batch.now);
        }
        let simple = self.simple;
        if !simple && self.parts.idle.on_batch(&mut self.core, &mut batch) {
            self.restarted(batch.now);
        }
        let before = self.core.window();
        if self.core.phase == Phase::Avoidance {
            self.parts.law.on_batch(&mut self.core, &batch);
        } else {
            self.slow_start(&batch);
        }
        if simple {
            self.published = self.core.window();
            return;
        }
        self.core.bound_growth(before);
        self.parts.loss.on_batch(&mut self.core, &batch);
        self.publish();
    }

    /// Works out what the transport may have in flight.
    #[inline]
    fn publish(&mut self) {
        if self.plain {
            self.published = self.core.window();
        } else {
            self.publish_bounded();
        }
        debug_assert!(self.core.minimum() <= self.published && u32::try_from(self.published).is_ok());
    }

    #[inline(never)]
    fn publish_bounded(&mut self) {
        let core = &mut self.core;
        let shaped = core.bounded(self.parts.shape.apply(core));
        let bounded = self.parts.loss.limit(core, shaped);
        let bounded = core.bounded(self.parts.ceiling.limit(core, bounded));
        core.capped = bounded < shaped;
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

    fn on_acked(&mut self, event: &Acked) {
        self.core.note_acked(event);
    }

    fn on_ack_batch(&mut self, event: &AckBatch) {
        self.end_frame(None, event);
    }

    fn on_ack_frame(&mut self, acked: &Acked, batch: &AckBatch) -> Bytes {
        self.end_frame(Some(acked), batch);
        self.window()
    }

    fn on_congestion(&mut self, event: &Congestion) {
        let (reason, persistent) = match event.signal {
            Signal::Loss { persistent, .. } => (Reason::Loss, persistent),
            Signal::EcnCe => (Reason::EcnCe, false),
        };
        if self.core.in_recovery(event.newest_sent) {
            self.parts.idle.on_further_congestion(&mut self.core, event);
        } else {
            self.reduce(event, reason);
        }
        // RFC 9002 §7.6.2, B.8: whether or not a recovery is going on.
        if persistent {
            let (core, parts) = (&mut self.core, &mut self.parts);
            parts.law.on_persistent(core);
            parts.idle.on_persistent(core);
            core.set_window(core.minimum());
            core.recovery_start = None;
            core.note_reduction();
            core.rtt.forget_extremes();
            self.enter(
                Phase::AfterPersistentCongestion,
                Reason::PersistentCongestion,
                event.now,
            );
        }
        self.parts.loss.on_congestion(&mut self.core, event);
        self.core.note_congestion(event);
        self.publish();
    }

    fn on_mtu_change(&mut self, event: &MtuChange) {
        let before = self.core.mtu();
        self.core.set_mtu(event.mtu);
        self.parts.law.on_mtu_change(&mut self.core, before);
        self.parts.loss.on_mtu_change(event.mtu);
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
        let mut snapshot = Snapshot {
            phase: core.phase(),
            window: self.window(),
            law_window: Some(Bytes::new(core.window())),
            ssthresh: core.ssthresh.map(Bytes::new),
            smoothed_rtt: core.rtt.smoothed_ns().map(Duration::from_nanos),
            min_rtt: core.rtt.min_ns().map(Duration::from_nanos),
            max_rtt: core.rtt.max_ns().map(Duration::from_nanos),
            reason: core.reason,
            capacity: core.early_capacity(),
            waiting_for: core.known.unknown_of(core.needs.knowledge),
            ..Snapshot::default()
        };
        self.parts.law.describe(core, &mut snapshot);
        snapshot
    }

    fn wants_every_ack(&self) -> bool {
        self.core.needs.every_ack
    }

    fn needs_every_burst(&self) -> bool {
        self.core.needs_every_burst()
    }

    fn clone_box(&self) -> Box<dyn CongestionController> {
        Box::new(self.clone())
    }
}
