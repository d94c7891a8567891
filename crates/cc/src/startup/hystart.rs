//! `hystart`: HyStart as in Linux since 2.6.29 for CUBIC; it leaves slow start immediately. It needs the
//! feature `papers`.

use crate::parameter::{Arguments, Parameter};
use crate::state::{Batch, Core};
use crate::timestamp::nanos;
use crate::{Phase, Reason, Timestamp};

use super::{Startup, standard};

// Ha and Rhee, "Taming the elephants: new TCP slow start", Computer Networks 55(9), 2011. The values are those of
// net/ipv4/tcp_cubic.c of Linux 3.6, introduced in 2.6.39.
/// HyStart ignores windows below this many packets: `hystart_low_window`.
const LOW_WINDOW: u64 = 16;
/// A train that ends slow start lasts longer than this fraction of the smallest RTT (`delay_min >> 4` in milliseconds;
/// `delay_min` is in eighths of one).
const TRAIN_DIVISOR: u64 = 2;
/// Number of samples for the RTT of a round, which is the smallest of them: `HYSTART_MIN_SAMPLES`.
const MIN_SAMPLES: u32 = 8;
/// Smallest rise of the RTT that counts: `HYSTART_DELAY_MIN`, 4 ms.
const DELAY_MIN_NS: u64 = 4_000_000;
/// Largest rise that is required: `HYSTART_DELAY_MAX`, 16 ms.
const DELAY_MAX_NS: u64 = 16_000_000;
/// The rise that counts is this fraction of the smallest RTT (`delay_min >> 4` in eighths of a millisecond, like
/// `delay_min`).
const DELAY_DIVISOR: u64 = 16;

/// HyStart. Either of two signs ends slow start, with the window as ssthresh. One is a train of ACK frames that began
/// with the round and lasts longer than half of the smallest RTT. The other is a round whose first eight RTTs all
/// exceed the connection's smallest RTT by a sixteenth, but between 4 and 16 ms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HyStart {
    watches_train: bool,
    watches_delay: bool,
    /// ACK frames of a train follow each other within this time, ns.
    spacing_ns: u64,
    /// A sign was found. Linux looks for another only after a timeout.
    found: bool,
    round: Option<AckRound>,
}

/// The current round. Times are nanoseconds.
#[derive(Clone, Copy, Debug)]
struct AckRound {
    start: Timestamp,
    /// Arrival of the train's last ACK frame.
    last_ack: Timestamp,
    /// Smallest of the first eight RTTs.
    min_ns: u64,
    samples: u32,
}

/// The rise of the RTT over the smallest RTT that ends slow start, ns.
fn threshold(min_ns: u64) -> u64 {
    (min_ns / DELAY_DIVISOR).clamp(DELAY_MIN_NS, DELAY_MAX_NS)
}

impl AckRound {
    const fn at(now: Timestamp) -> Self {
        Self {
            start: now,
            last_ack: now,
            min_ns: u64::MAX,
            samples: 0,
        }
    }

    /// Processes an ACK frame. Returns the length of the train, ns, if it has continued since the round began.
    fn train_ns(&mut self, now: Timestamp, spacing_ns: u64) -> Option<u64> {
        if now.nanos_since(self.last_ack) > spacing_ns {
            return None;
        }
        self.last_ack = now;
        Some(now.nanos_since(self.start))
    }

    /// Records an RTT. Returns true if the smallest of the previous eight exceeds `limit_ns`.
    fn delay_exceeds(&mut self, rtt_ns: u64, limit_ns: u64) -> bool {
        if self.samples < MIN_SAMPLES {
            self.min_ns = self.min_ns.min(rtt_ns);
            self.samples = self.samples.saturating_add(1);
            return false;
        }
        self.min_ns > limit_ns
    }
}

impl HyStart {
    pub(crate) fn from_arguments(arguments: &Arguments) -> Self {
        let detect = arguments.word("detect");
        Self {
            watches_train: detect != "delay",
            watches_delay: detect != "train",
            spacing_ns: nanos(arguments.time("spacing")),
            found: false,
            round: None,
        }
    }

    /// `hystart_update` of Linux: the sign of this ACK frame, if any.
    fn sign(&mut self, core: &Core, batch: &Batch) -> Option<Reason> {
        let round = self.round.as_mut().filter(|_| !self.found)?;
        if core.window() < core.mtu().saturating_mul(LOW_WINDOW) {
            return None;
        }
        let (min_ns, rtt_ns) = (core.rtt.min_ns()?, batch.rtt_ns?);
        let train = round.train_ns(batch.now, self.spacing_ns);
        let train = train.is_some_and(|ns| ns > min_ns / TRAIN_DIVISOR);
        let delay = round.delay_exceeds(rtt_ns, min_ns.saturating_add(threshold(min_ns)));
        if self.watches_train && train {
            Some(Reason::AckTrain)
        } else if self.watches_delay && delay {
            Some(Reason::RttRose)
        } else {
            None
        }
    }
}

impl Startup for HyStart {
    fn begin(&mut self, core: &mut Core) {
        self.found &= core.phase == Phase::AfterIdle;
        self.round = None;
    }

    /// As in Linux, a frame that begins a round counts for the previous round.
    fn on_batch(&mut self, core: &mut Core, batch: &mut Batch) -> Option<Reason> {
        if let Some(reason) = self.sign(core, batch) {
            self.found = true;
            core.ssthresh = Some(core.window());
            return Some(reason);
        }
        if batch.new_round {
            self.round = Some(AckRound::at(batch.now));
        }
        standard::grow(core, batch)
    }
}

pub(crate) const PARAMETERS: &[Parameter] = &[
    Parameter::word("detect", "both", &["both", "train", "delay"])
        .about("signs that end slow start: a train of ACK frames, a rise of the RTT, or both"),
    Parameter::millis("spacing", 2, 0..=1_000)
        .about("ACK frames of a train follow each other within this time (hystart_ack_delta of Linux)"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::MS_IN_NS as MS;
    use rstest::rstest;

    // HYSTART_DELAY_THRESH(delay_min >> 4), clamped to 4 and 16 ms.
    #[rstest]
    #[case(3, 4_000_000)]
    #[case(64, 4_000_000)]
    #[case(100, 6_250_000)]
    #[case(200, 12_500_000)]
    #[case(300, 16_000_000)]
    fn the_threshold_is_a_sixteenth_of_the_smallest_rtt_within_4_and_16_ms(
        #[case] min_ms: u64,
        #[case] ns: u64,
    ) {
        assert_eq!(threshold(min_ms * MS), ns);
    }
}
