//! `lia` and `olia`: Reno whose growth is coupled over the paths of a connection.
//!
//! [`CoupledPaths`] holds the window and the RTT of each path. From them, an algorithm derives the part of the
//! acknowledged bytes that counts; Reno does everything else. A path without others counts all of them, so it is Reno.

use std::sync::{Arc, Mutex, PoisonError};

use crate::component::{Needs, Reduction};
use crate::events::Congestion;
use crate::state::{Batch, Core, float};
use crate::{Reason, Timestamp};

use super::Algorithm;
use super::reno::Reno;

/// Fractions of a byte are counted in units of 2⁻¹⁶.
const ONE: i64 = 1 << 16;

/// Paths that a set can hold. Further paths are not coupled.
const PATHS: usize = 8;

/// A path that has not reported for this long does not count: stacks keep the controller of a path that a connection
/// migrated from. The other paths measure the time together, each by its own clock.
const SILENT_NS: u64 = 10_000_000_000;
/// Longest time between two reports of a path that counts as silence of the others. A longer one is its own pause.
const LONGEST_GAP_NS: u64 = 1_000_000_000;

/// The paths of one connection whose growth is coupled. Copies refer to the same set.
///
/// A path joins with its first acknowledgement after its first RTT sample, and leaves when its controller is dropped.
/// The set holds 8 paths; further ones grow as if they were alone.
#[derive(Clone, Debug, Default)]
pub struct CoupledPaths(Arc<Mutex<[Option<Member>; PATHS]>>);

impl PartialEq for CoupledPaths {
    /// Two sets are equal if they are the same one.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for CoupledPaths {}

/// State of one path in a set.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Member {
    /// Congestion window of the path, bytes.
    window: u64,
    /// Smoothed RTT, ns, at least 1.
    rtt_ns: u64,
    /// Bytes acknowledged between losses: `l_r` of OLIA.
    between: u64,
    /// Time of other paths since its last report, ns.
    silent_ns: u64,
}

impl Member {
    /// Window per RTT, bytes per ns.
    fn rate(&self) -> f64 {
        float(self.window) / float(self.rtt_ns)
    }

    /// Rate per RTT for a given window: `w/rtt²` or, for a path's quality, `l/rtt²`.
    fn per_squared_rtt(&self, bytes: u64) -> f64 {
        float(bytes) / float(self.rtt_ns) / float(self.rtt_ns)
    }
}

/// A path's place in a set. A copy takes a place of its own once it reports, so a copy that receives no events, such as
/// one for telemetry, does not count as a path.
#[derive(Debug)]
pub(crate) struct Membership {
    set: CoupledPaths,
    place: Option<usize>,
    /// Time of the last report.
    reported: Option<Timestamp>,
}

impl Membership {
    pub(crate) const fn new(set: CoupledPaths) -> Self {
        Self {
            set,
            place: None,
            reported: None,
        }
    }

    /// Stores `own` at `now` and returns the part of acknowledged bytes that counts under `rule`, in units of 2⁻¹⁶.
    fn update(&mut self, own: Member, now: Timestamp, rule: Rule) -> i64 {
        let mut members = self.set.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = self.place.or_else(|| members.iter().position(Option::is_none));
        let Some((place, member)) = place.and_then(|place| Some((place, members.get_mut(place)?))) else {
            return ONE;
        };
        *member = None;
        let passed_ns = self.reported.replace(now).map_or(0, |last| now.nanos_since(last));
        // Paths that report measure the time together. One that falls silent counts as reporting for a while.
        let reports = |other: &&Member| other.silent_ns < LONGEST_GAP_NS;
        let reporting = members.iter().flatten().filter(reports).count() as u64;
        let share = reporting.saturating_add(1);
        let silence_ns = passed_ns.min(LONGEST_GAP_NS).checked_div(share).unwrap_or(0);
        for other in members.iter_mut().flatten() {
            other.silent_ns = other.silent_ns.saturating_add(silence_ns);
        }
        if let Some(member) = members.get_mut(place) {
            *member = Some(own);
        }
        self.place = Some(place);
        rule.part(own, &*members)
    }
}

impl Clone for Membership {
    fn clone(&self) -> Self {
        Self::new(self.set.clone())
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            let mut members = self.set.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(member) = members.get_mut(place) {
                *member = None;
            }
        }
    }
}

/// A rule for the growth of coupled windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    Lia,
    Olia,
}

impl Rule {
    /// Reports the window and the bytes `between` losses of the path to its set. Returns the part of acknowledged bytes
    /// that counts, in units of 2⁻¹⁶.
    fn report(self, core: &mut Core, window: u64, between: u64) -> i64 {
        let now = core.last_acked.unwrap_or(Timestamp::ZERO);
        let (Some(membership), Some(rtt_ns)) = (&mut core.membership, core.rtt.smoothed_ns()) else {
            return ONE;
        };
        let own = Member {
            window,
            rtt_ns: rtt_ns.max(1),
            between,
            silent_ns: 0,
        };
        membership.update(own, now, self)
    }

    /// Growth of `own`'s window in relation to Reno's, `mtu · bytes/w`, in units of 2⁻¹⁶. The window shrinks if it is
    /// negative, which only OLIA's can be; it is at most 1.
    fn part(self, own: Member, members: &[Option<Member>]) -> i64 {
        let counts = |member: &&Member| member.silent_ns <= SILENT_NS;
        let members = || members.iter().flatten().filter(counts);
        let largest = |value: fn(&Member) -> f64| members().map(value).fold(0.0, f64::max);
        let sum: f64 = members().map(Member::rate).sum();
        let part = match self {
            // RFC 6356 §3: alpha/cwnd_total = max(w/rtt²)/(Σ w/rtt)², and at most 1/w.
            Self::Lia => {
                let best = largest(|member| member.per_squared_rtt(member.window));
                float(own.window) * best / (sum * sum)
            }
            // draft-khalili-mptcp-congestion-control-05: (w/rtt²)/(Σ w/rtt)² + alpha/w.
            Self::Olia => {
                let share = own.rate() / sum;
                let quality = |member: &Member| member.per_squared_rtt(member.between);
                let (best, window) = (largest(quality), largest(|member| float(member.window)));
                let is_largest = |member: &Member| float(member.window) >= window;
                let is_collected = |member: &Member| quality(member) >= best && !is_largest(member);
                let count =
                    |of: &dyn Fn(&Member) -> bool| members().filter(|member| of(member)).count() as f64;
                let (paths, collected) = (members().count() as f64, count(&is_collected));
                let alpha = if collected > 0.0 && is_collected(&own) {
                    1.0 / (paths * collected)
                } else if collected > 0.0 && is_largest(&own) {
                    -1.0 / (paths * count(&is_largest))
                } else {
                    0.0
                };
                share * share + alpha
            }
        };
        #[expect(clippy::cast_possible_truncation, reason = "the result is between -1 and 1")]
        let part = (part.clamp(-1.0, 1.0) * ONE as f64).round() as i64;
        part
    }
}

/// Reports the window of `core`, and returns LIA's factor for its growth, from 0 to 1.
pub(crate) fn growth_factor(core: &mut Core) -> f64 {
    let window = core.window();
    Rule::Lia.report(core, window, 0) as f64 / ONE as f64
}

/// Reno with coupled growth in congestion avoidance, under either rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coupled {
    rule: Rule,
    reno: Reno,
    /// Bytes that Reno has not counted, in units of 2⁻¹⁶: a fraction, or a debt before the window shrinks by a packet.
    uncounted: i64,
    /// Bytes acknowledged between the last two losses and since the last one: `l1` and `l2` of OLIA.
    acked: [u64; 2],
}

impl Coupled {
    pub(crate) fn new(rule: Rule) -> Self {
        Self {
            rule,
            reno: Reno::default(),
            uncounted: 0,
            acked: [0; 2],
        }
    }

    /// Reports `window` to the set, and returns the part of acknowledged bytes that counts.
    fn report(&self, core: &mut Core, window: u64) -> i64 {
        let between = self.acked.into_iter().max().unwrap_or(0);
        self.rule.report(core, window, between)
    }

    /// Counts acknowledged bytes, and reports the window.
    fn count_acked(&mut self, core: &mut Core, batch: &Batch) -> i64 {
        let [_, since] = &mut self.acked;
        *since = since.saturating_add(batch.acked);
        self.report(core, core.window())
    }
}

impl Algorithm for Coupled {
    fn add_needs(&self, needs: &mut Needs) {
        needs.coupled = true;
    }

    fn begin(&mut self, core: &mut Core, reason: Reason, now: Timestamp) {
        self.uncounted = 0;
        self.reno.begin(core, reason, now);
    }

    fn on_batch(&mut self, core: &mut Core, batch: &Batch) {
        let part = self.count_acked(core, batch);
        let allowance = i64::try_from(batch.allowance).unwrap_or(i64::MAX);
        let bytes = self.uncounted.saturating_add(allowance.saturating_mul(part));
        self.uncounted = bytes;
        if bytes >= 0 {
            self.uncounted = bytes % ONE;
            let whole = Batch {
                allowance: (bytes / ONE).unsigned_abs(),
                ..*batch
            };
            self.reno.on_batch(core, &whole);
        } else if (bytes / ONE).unsigned_abs() >= core.window() {
            self.uncounted = 0;
            core.set_window(core.window().saturating_sub(core.mtu()));
        }
    }

    fn watch_startup(&mut self, core: &mut Core, batch: &Batch) -> Option<Reason> {
        self.count_acked(core, batch);
        None
    }

    fn on_congestion(&mut self, core: &mut Core, event: &Congestion) -> Option<Reduction> {
        let [_, since] = self.acked;
        self.acked = [since, 0];
        self.uncounted = 0;
        let reduction = self.reno.on_congestion(core, event)?;
        self.report(core, core.bounded(reduction.window));
        Some(reduction)
    }

    fn on_persistent(&mut self, core: &mut Core) {
        self.uncounted = 0;
        self.reno.on_persistent(core);
        self.report(core, core.minimum());
    }
}

#[cfg(test)]
#[path = "coupled_tests.rs"]
mod tests;
