//! `ccp` and `ccpd`: set the window directly from the path's estimated storage.

use crate::component::{Bursts, Needs, Reduction};
use crate::events::{Congestion, Signal};
use crate::parameter::{Arguments, Parameter};
use crate::state::{Batch, Core, float, floor_bytes};
use crate::timestamp::{nanos, seconds};
use crate::{Bytes, Reason, Snapshot, Timestamp};

use super::Algorithm;
use super::reno::Reno;

/// Shortest time over which the derivative is taken. It bounds the gain at `kd / 1 ms`; single ACKs of a fast link
/// would otherwise make it explode.
const DERIVATIVE_INTERVAL_NS: u64 = 1_000_000;
/// Minimum storage of a very short path, segments: with less, the window has no room to move.
const SEGMENTS_OF_STORAGE: f64 = 20.0;
/// If the largest RTT exceeds the smallest by more than this, the excess is a stall, not a queue.
const PLAUSIBLE_QUEUE_NS: u64 = 1_000_000_000;

/// `w = [Kp·(B − x) − f]/2` (Cavendish et al. 2015 eq. (4)) or, with a derivative,
/// `w = Kp·(B − x − f) + Kd/Δt·Δ(x + f)` (Watanabe et al. 2013 eq. (6)).
///
/// `x = C·(rtt − rtt_min)` is the backlog and `f` the bytes in flight before the ACK. The window does not depend on its
/// previous value. Until the capacity `C` is known, this is Reno.
///
/// NOTE: the papers name B ("an estimated storage capacity of the TCP session path, or virtual buffer size") and x
/// ("estimated packet backlog") but do not say how to compute them. With `B = C·rtt_max`, the windows fall within the
/// ranges of the 2014 paper's figures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ccp {
    kp: f64,
    /// The queue is assumed to hold at least `floor − 1` times the pipe. Otherwise a window that never fills the queue
    /// never learns the queue's size and keeps its rate low. If `None`, `B` is the queue alone:
    /// `C · (rtt_max − rtt_min)`.
    floor: Option<f64>,
    derivative: Option<Derivative>,
    /// The peer is asked to acknowledge every packet.
    every_ack: bool,
    /// Lower bound of `B`, segments.
    least_storage: f64,
    /// Time after which a largest RTT is forgotten, ns; zero never forgets it.
    rtt_window_ns: u64,
    /// A loss ends slow start only if the packet may have found a queue.
    spares_slow_start: bool,
    /// Samples that the capacity estimate needs. One suffices if slow start ended with the first estimate.
    least_samples: u8,
    reno: Reno,
}

/// The derivative part of `ccpd`.
#[derive(Clone, Copy, Debug)]
struct Derivative {
    /// A time. The papers write "2000" for 2000 µs: their figures only fit if the unit is the microsecond.
    kd_ns: f64,
    /// Time and value of the last reading of `x + f`, bytes.
    last: Option<(Timestamp, f64)>,
    /// The derivative term in bytes, kept between two readings.
    value: f64,
}

impl Derivative {
    /// The derivative term for `stored` bytes on the path; samples older than `stale_ns` are ignored.
    fn update(&mut self, now: Timestamp, stored: f64, stale_ns: u64) -> f64 {
        let (at, before) = *self.last.get_or_insert((now, stored));
        let elapsed = now.nanos_since(at);
        if elapsed > stale_ns.max(DERIVATIVE_INTERVAL_NS) {
            self.value = 0.0;
            self.last = Some((now, stored));
        } else if elapsed >= DERIVATIVE_INTERVAL_NS {
            self.value = self.kd_ns / elapsed as f64 * (before - stored);
            self.last = Some((now, stored));
        }
        self.value
    }

    fn forget(&mut self) {
        self.last = None;
        self.value = 0.0;
    }
}

/// Inputs of the equations at one ACK frame, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PathState {
    pub(crate) storage: f64,
    pub(crate) backlog: f64,
    pub(crate) in_flight: f64,
}

impl Ccp {
    pub(crate) fn from_arguments(arguments: &Arguments) -> Self {
        let derivative = arguments.value(KD).map(|_| Derivative {
            kd_ns: nanos(arguments.time(KD)) as f64,
            last: None,
            value: 0.0,
        });
        Self {
            kp: arguments.number("kp"),
            floor: (arguments.word("storage") != "queue").then(|| arguments.number("floor")),
            derivative,
            every_ack: arguments.is_on("every_ack"),
            least_storage: arguments.number("least_storage"),
            rtt_window_ns: nanos(arguments.time("rtt_window")),
            spares_slow_start: arguments.word("slow_start_loss") == "queued",
            least_samples: 4,
            reno: Reno::default(),
        }
    }

    /// The algorithm's window in bytes; negative if the equation gives a negative value.
    ///
    /// Derivatives older than `stale_ns` do not count.
    pub(crate) fn equation(&mut self, now: Timestamp, state: PathState, stale_ns: u64) -> f64 {
        let free = state.storage - state.backlog;
        match &mut self.derivative {
            None => self.kp.mul_add(free, -state.in_flight) / 2.0,
            Some(derivative) => {
                let d = derivative.update(now, state.backlog + state.in_flight, stale_ns);
                self.kp.mul_add(free - state.in_flight, d)
            }
        }
    }

    /// Path storage estimate `B = C · max(rtt_max, floor · rtt_min)` in bytes, from the smallest and the largest RTT in
    /// ns. The largest RTT is that of the connection or of a time window; it is `None` while no sample counts.
    fn storage(&self, capacity: f64, (min_ns, max_ns): (u64, Option<u64>), mtu: u64) -> f64 {
        let max_ns = max_ns
            .unwrap_or(min_ns)
            .min(min_ns.saturating_add(PLAUSIBLE_QUEUE_NS));
        let (min, max) = (seconds(min_ns), seconds(max_ns));
        let storage = match self.floor {
            Some(floor) => capacity * max.max(floor * min),
            None => capacity * (max - min),
        };
        storage.max(self.least_storage * float(mtu))
    }

    /// `C`, bytes per second: from four samples, or from the one that ended slow start.
    fn capacity(&self, core: &Core) -> Option<f64> {
        let capacity = core.capacity_after(self.least_samples)?;
        Some(capacity.as_bytes_per_second() as f64)
    }

    /// `B`, `x` and `f`; `None` until capacity and RTT are known.
    fn state(&self, core: &Core, batch: &Batch) -> Option<PathState> {
        let capacity = self.capacity(core)?;
        let rtts = (core.rtt.min_ns()?, core.rtt.max_ns());
        Some(PathState {
            storage: self.storage(capacity, rtts, core.mtu()),
            backlog: self.backlog(core)?,
            in_flight: batch.prior_in_flight() as f64,
        })
    }

    /// `x = C·max(0, rtt − rtt_min)`, bytes. Not `C·rtt`: `f` already contains the pipe.
    fn backlog(&self, core: &Core) -> Option<f64> {
        let queued = core.rtt.latest_ns()?.saturating_sub(core.rtt.min_ns()?);
        Some(self.capacity(core)? * seconds(queued))
    }

    /// `C·rtt_min` in bytes: the path's content without a queue.
    fn pipe(&self, core: &Core) -> Option<f64> {
        Some(self.capacity(core)? * seconds(core.rtt.min_ns()?))
    }
}

impl Algorithm for Ccp {
    fn add_needs(&self, needs: &mut Needs) {
        needs.bursts = Bursts::Capacity;
        needs.every_ack = self.every_ack;
        needs.rtt_window_ns = self.rtt_window_ns;
    }

    fn minimum_packets(&self) -> u64 {
        4
    }

    fn begin(&mut self, core: &mut Core, reason: Reason, now: Timestamp) {
        if let Some(derivative) = &mut self.derivative {
            derivative.forget();
        }
        if reason == Reason::CapacityKnown {
            self.least_samples = 1;
        }
        self.reno.begin(core, reason, now);
    }

    fn on_batch(&mut self, core: &mut Core, batch: &Batch) {
        let Some(state) = self.state(core, batch) else {
            self.reno.on_batch(core, batch);
            return;
        };
        let stale_ns = core.rtt.smoothed_ns().unwrap_or(0).saturating_mul(2);
        let window = self.equation(batch.now, state, stale_ns);
        core.set_window(floor_bytes(window));
    }

    /// In the papers a loss changes nothing; the loss policy decides what it costs. Before the capacity is known, a
    /// loss must end unbounded slow start: then it costs as much as with Reno.
    fn on_congestion(&mut self, core: &mut Core, event: &Congestion) -> Option<Reduction> {
        match self.capacity(core) {
            Some(_) => None,
            None => self.reno.on_congestion(core, event),
        }
    }

    /// Slow start doubles the flight, so half as much was in flight when the packet now declared lost left. If that was
    /// no more than the pipe, no queue overflowed, and `B` has no queue to be estimated from.
    fn leaves_startup(&self, core: &Core, event: &Congestion) -> bool {
        let is_loss = matches!(event.signal, Signal::Loss { .. });
        let found_no_queue = || {
            self.pipe(core)
                .is_some_and(|pipe| float(core.in_flight) <= 2.0 * pipe)
        };
        !(self.spares_slow_start && is_loss && found_no_queue())
    }

    /// "Severe congestion" returns to slow start (Watanabe et al. 2014, §VI-B). The capacity is kept.
    fn on_persistent(&mut self, core: &mut Core) {
        core.ssthresh = Some((core.in_flight / 2).max(core.minimum()));
        self.reno.on_persistent(core);
    }

    fn describe(&self, core: &Core, snapshot: &mut Snapshot) {
        snapshot.backlog = self.backlog(core).map(|bytes| Bytes::new(floor_bytes(bytes)));
    }
}

/// Name of the weight of the derivative.
const KD: &str = "kd";

/// The parameters of `ccpd`.
pub(crate) const PARAMETERS: [Parameter; 8] = [
    Parameter::number("kp", 1.0, 0.0..=100.0).about("share of the free storage that is used, Kp"),
    Parameter::millis(KD, 2, 0..=1_000)
        .about("weight of the change of what is stored, Kd; a bare number is microseconds"),
    Parameter::word("storage", "rtt-max", &["rtt-max", "queue"])
        .about("what B is: C·rtt_max (pipe and queue), or C·(rtt_max − rtt_min)"),
    Parameter::number("floor", 2.0, 1.0..=100.0).about(
        "rtt_max counts as at least this many rtt_min, so that a window that never queues does not stay \
         small",
    ),
    Parameter::switch("every_ack", false)
        .about("ask the peer to acknowledge every packet: more capacity samples for a third more CPU"),
    Parameter::number("least_storage", SEGMENTS_OF_STORAGE, 0.0..=10_000.0)
        .about("B is at least this many packets, so that the window of a very short path has room to move"),
    Parameter::millis("rtt_window", 0, 0..=3_600_000)
        .about("time over which rtt_max is taken; 0 is the whole connection"),
    Parameter::word("slow_start_loss", "any", &["any", "queued"]).about(
        "losses that end slow start: any, or those with more than 2·C·rtt_min in flight, which may have \
         found a queue",
    ),
];

/// The parameters of `ccp`, which has no derivative.
pub(crate) fn without_derivative() -> Vec<Parameter> {
    let parameters = PARAMETERS.into_iter();
    parameters.filter(|parameter| parameter.name != KD).collect()
}

#[cfg(test)]
#[path = "ccp_tests.rs"]
mod tests;
