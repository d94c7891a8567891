//! `search`: SEARCH ("Slow start Exit At Right Chokepoint"), which leaves slow start when arrivals no longer keep up
//! with departures.

use crate::component::{Bursts, Needs};
use crate::parameter::{Arguments, Parameter};
use crate::state::{Batch, Core};
use crate::{Reason, Timestamp};

use super::{Startup, standard};

// draft-chung-ccwg-search-09, "SEARCH 4.0"; names in capitals are the draft's. Choices that it leaves open follow
// `search.rs` of neqo (Mozilla) and `tcp_cubic_search.c` of the draft's authors.
/// Number of bins in the window.
const W: u32 = 10;
/// Additional bins, so that the window can be shifted back by an RTT lengthened by the queue: `EXTRA_BINS`.
const EXTRA_BINS: u32 = 15;
/// Places for bins: those above, and one before the first, because bins hold running totals.
const NUM_BINS: u32 = W + EXTRA_BINS + 1;
/// Length of a bin as a share of the first RTT, in hundredths: a window of 3.5 RTTs in ten bins.
const BIN_PERCENT: u64 = 35;
/// Acknowledged bytes per byte sent while the queue drains: `SEARCH_DRAIN_ACKEDSEG_THRESH` of the authors' module for
/// Linux.
const DRAIN_DIVISOR: u64 = 16;

/// SEARCH. Once per bin it compares the bytes that arrived in the last window with those sent in the window one RTT
/// earlier. While the path has room these are equal; when a share of them is missing, slow start ends.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    /// The share that ends slow start: `THRESH`.
    threshold: f64,
    exit: Exit,
    totals: Totals,
    bins: Box<Bins>,
    drain: Option<Drain>,
}

/// Changes of the window at the end of slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    /// The window follows the flight down to the target, and the queue drains.
    Drain,
    /// The window is set to the target immediately.
    Reset,
    /// The window does not change.
    Keep,
}

/// Bytes so far. They wrap: only differences over a window are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Totals {
    acked: u32,
    sent: u32,
}

/// Running totals at the end of each bin. Times are nanoseconds.
#[derive(Clone, Debug, Default)]
struct Bins {
    totals: [Totals; NUM_BINS as usize],
    /// Number of the newest completed bin, counted from zero.
    newest: u32,
    /// End of the current bin.
    end: Timestamp,
    /// Length of a bin; zero until the first RTT is known.
    bin_ns: u64,
    initial_rtt_ns: u64,
}

/// The queue drains: the window goes down to `target` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Drain {
    target: u64,
    /// Acknowledged bytes that have not been replaced by sent ones.
    acked: u64,
}

impl Bins {
    /// Begins with the first RTT, and again after a pause.
    fn begin(&mut self, now: Timestamp, rtt_ns: u64, totals: Totals) {
        let bin_ns = (rtt_ns.saturating_mul(BIN_PERCENT) / 100).max(1);
        *self = Self {
            totals: [totals; NUM_BINS as usize],
            newest: 0,
            end: now.plus_nanos(bin_ns),
            bin_ns,
            initial_rtt_ns: rtt_ns,
        };
    }

    /// Closes the bins that have ended. Returns their number.
    fn advance(&mut self, now: Timestamp, totals: Totals) -> u64 {
        if now <= self.end {
            return 0;
        }
        let late = now.nanos_since(self.end).checked_div(self.bin_ns).unwrap_or(0);
        let passed = late.saturating_add(1);
        self.end = self.end.plus_nanos(passed.saturating_mul(self.bin_ns));
        let before = self.at(self.newest);
        for _ in 1..passed.min(u64::from(NUM_BINS)) {
            self.push(before);
        }
        self.push(totals);
        passed
    }

    fn push(&mut self, totals: Totals) {
        self.newest = self.newest.wrapping_add(1);
        self.totals[place(self.newest)] = totals;
    }

    fn at(&self, bin: u32) -> Totals {
        self.totals[place(bin)]
    }

    /// Bytes acknowledged in the `count` bins up to `last`.
    fn acked(&self, last: u32, count: u32) -> u32 {
        let first = self.at(last.wrapping_sub(count));
        self.at(last).acked.wrapping_sub(first.acked)
    }

    /// Bytes sent in the window that ends with `last`.
    fn sent(&self, last: u32) -> u32 {
        let first = self.at(last.wrapping_sub(W));
        self.at(last).sent.wrapping_sub(first.sent)
    }

    /// Missing share of the bytes sent in the window one RTT ago, as of the window that ends now; `None` if the bins do
    /// not reach back that far.
    fn missing(&self, rtt_ns: u64) -> Option<f64> {
        let back = u32::try_from(rtt_ns.checked_div(self.bin_ns)?).ok()?;
        let previous = self.newest.checked_sub(back)?;
        // One bin more than the window, for the interpolation.
        if previous <= W || back >= EXTRA_BINS {
            return None;
        }
        let fraction = rtt_ns.checked_rem(self.bin_ns)? as f64 / self.bin_ns as f64;
        let (later, earlier) = (self.sent(previous), self.sent(previous.wrapping_sub(1)));
        let sent = f64::from(later) * (1.0 - fraction) + f64::from(earlier) * fraction;
        let acked = f64::from(self.acked(self.newest, W));
        (sent > 0.0).then(|| (sent - acked) / sent)
    }

    /// Bytes that arrived in an RTT without a queue: the path's bandwidth-delay product.
    fn target(&self) -> u64 {
        let bins = self.initial_rtt_ns.div_ceil(self.bin_ns.max(1));
        let bins = u32::try_from(bins).unwrap_or(W).min(W);
        self.acked(self.newest, bins).into()
    }
}

const fn place(bin: u32) -> usize {
    (bin % NUM_BINS) as usize
}

impl Drain {
    /// The window after an ACK frame: the flight and a sixteenth of the acknowledged bytes, down to the target.
    fn window(&mut self, core: &Core, batch: &Batch) -> u64 {
        self.acked = self.acked.saturating_add(batch.acked);
        let packets = (self.acked / DRAIN_DIVISOR).checked_div(core.mtu()).unwrap_or(0);
        let sent = packets.saturating_mul(core.mtu());
        self.acked = self.acked.saturating_sub(sent.saturating_mul(DRAIN_DIVISOR));
        let window = batch
            .in_flight
            .saturating_add(sent)
            .saturating_add(core.headroom());
        window.max(self.target).min(core.window())
    }
}

impl Search {
    pub(crate) fn from_arguments(arguments: &Arguments) -> Self {
        Self {
            threshold: arguments.number("threshold"),
            exit: match arguments.word("exit") {
                "drain" => Exit::Drain,
                "reset" => Exit::Reset,
                _ => Exit::Keep,
            },
            totals: Totals::default(),
            bins: Box::default(),
            drain: None,
        }
    }

    /// Counts the acknowledged bytes of a frame; returns true if that closes a bin and slow start has ended.
    fn finds_chokepoint(&mut self, core: &Core, batch: &Batch) -> bool {
        let acked = u32::try_from(batch.acked).unwrap_or(u32::MAX);
        self.totals.acked = self.totals.acked.wrapping_add(acked);
        self.totals.sent = core.sent;
        let Some(rtt_ns) = batch.rtt_ns else { return false };
        if self.bins.bin_ns == 0 {
            self.bins.begin(batch.now, rtt_ns, self.totals);
            return false;
        }
        let passed = self.bins.advance(batch.now, self.totals);
        if passed > W.into() {
            // Nothing of the last window remains, and the path may have changed ("missed bins", optional).
            self.forget();
            return false;
        }
        passed > 0
            && self
                .bins
                .missing(rtt_ns)
                .is_some_and(|share| share >= self.threshold)
    }

    fn forget(&mut self) {
        self.totals = Totals::default();
        self.bins.bin_ns = 0;
        self.drain = None;
    }
}

/// Ends slow start with the current window.
fn leave(core: &mut Core) -> Reason {
    core.ssthresh = Some(core.window());
    Reason::RateFlattened
}

impl Startup for Search {
    fn add_needs(&self, needs: &mut Needs) {
        needs.bursts = needs.bursts.max(Bursts::Every);
    }

    fn begin(&mut self, _core: &mut Core) {
        self.forget();
    }

    fn on_batch(&mut self, core: &mut Core, batch: &mut Batch) -> Option<Reason> {
        if let Some(drain) = &mut self.drain {
            batch.allowance = 0;
            let window = drain.window(core, batch);
            core.set_window(window);
            if core.window() > drain.target {
                return None;
            }
            return Some(leave(core));
        }
        if !self.finds_chokepoint(core, batch) {
            return standard::grow(core, batch);
        }
        let target = self.bins.target().max(core.initial_window()).min(core.window());
        match self.exit {
            Exit::Drain => {
                self.drain = Some(Drain { target, acked: 0 });
                return None;
            }
            Exit::Reset => {
                batch.allowance = 0;
                core.set_window(target);
            }
            Exit::Keep => {}
        }
        Some(leave(core))
    }
}

pub(crate) const PARAMETERS: &[Parameter] = &[
    Parameter::number("threshold", 0.26, 0.05..=1.0)
        .about("share of what was sent one RTT ago that is missing when slow start ends (THRESH)"),
    Parameter::word("exit", "drain", &["drain", "reset", "keep"]).about(
        "window at the end: drain lets it follow the flight down to what arrived in an empty RTT, reset sets \
         it to that at once, keep leaves it",
    ),
];

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
