//! `hystartpp`: HyStart++ (RFC 9406), which leaves slow start when the RTT rises instead of waiting for a
//! loss.

use crate::Reason;
use crate::state::{Batch, Core};

use super::{Startup, standard};

// RFC 9406 §4.3: "It is RECOMMENDED that a HyStart++ implementation use the following constants". L, the limit on
// growth per ACK, is infinite for a sender that paces, and quinn always does.
/// Smallest rise of the RTT that counts: `MIN_RTT_THRESH`, 4 ms.
const MIN_RTT_THRESH_NS: u64 = 4_000_000;
/// Largest rise that is required: `MAX_RTT_THRESH`, 16 ms.
const MAX_RTT_THRESH_NS: u64 = 16_000_000;
/// The rise that counts is this fraction of the last round's RTT: `MIN_RTT_DIVISOR`.
const MIN_RTT_DIVISOR: u64 = 8;
/// Samples that a round needs before it is judged: `N_RTT_SAMPLE`.
const N_RTT_SAMPLE: u32 = 8;
/// Conservative slow start grows by this fraction of slow start: `CSS_GROWTH_DIVISOR`.
const CSS_GROWTH_DIVISOR: u64 = 4;
/// Rounds that conservative slow start lasts: `CSS_ROUNDS`.
const CSS_ROUNDS: u32 = 5;

/// State of HyStart++. Times are nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HyStartPp {
    last_round_min: Option<u64>,
    round_min: Option<u64>,
    samples: u32,
    css: Option<ConservativeSlowStart>,
}

/// Slow start at a quarter of its speed, while it is uncertain that the rise was congestion.
#[derive(Clone, Copy, Debug)]
struct ConservativeSlowStart {
    baseline: u64,
    rounds: u32,
}

/// The rise of the RTT over `last_round_min` that ends slow start, ns.
fn threshold(last_round_min: u64) -> u64 {
    (last_round_min / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH_NS, MAX_RTT_THRESH_NS)
}

impl HyStartPp {
    fn next_round(&mut self) {
        self.last_round_min = self.round_min.take();
        self.samples = 0;
        if let Some(css) = &mut self.css {
            css.rounds = css.rounds.saturating_add(1);
        }
    }

    /// Enters or leaves conservative slow start.
    fn judge(&mut self) {
        let Some(round_min) = self.round_min.filter(|_| self.samples >= N_RTT_SAMPLE) else {
            return;
        };
        let rose = |last: u64| round_min >= last.saturating_add(threshold(last));
        self.css = match self.css {
            None if self.last_round_min.is_some_and(rose) => Some(ConservativeSlowStart {
                baseline: round_min,
                rounds: 0,
            }),
            css => css.filter(|css| round_min >= css.baseline),
        };
    }
}

impl Startup for HyStartPp {
    fn begin(&mut self, _core: &mut Core) {
        *self = Self::default();
    }

    fn on_batch(&mut self, core: &mut Core, batch: &mut Batch) -> Option<Reason> {
        // RFC 9406 §4.3: HyStart++ is for the initial slow start only.
        if core.ssthresh.is_some() {
            return standard::grow(core, batch);
        }
        if batch.new_round {
            self.next_round();
        }
        if self.css.is_some_and(|css| css.rounds >= CSS_ROUNDS) {
            core.ssthresh = Some(core.window());
            return Some(Reason::RttRose);
        }
        core.grow(match self.css {
            None => batch.allowance,
            Some(_) => batch.allowance / CSS_GROWTH_DIVISOR,
        });
        if let Some(rtt) = batch.rtt_ns {
            self.round_min = Some(self.round_min.map_or(rtt, |min| min.min(rtt)));
            self.samples = self.samples.saturating_add(1);
        }
        self.judge();
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::MS_IN_NS as MS;
    use rstest::rstest;

    // RFC 9406 §4.2: RttThresh = max(MIN_RTT_THRESH, min(lastRoundMinRTT / MIN_RTT_DIVISOR, MAX_RTT_THRESH)).
    #[rstest]
    #[case(10, 4_000_000)]
    #[case(32, 4_000_000)]
    #[case(64, 8_000_000)]
    #[case(100, 12_500_000)]
    #[case(128, 16_000_000)]
    #[case(200, 16_000_000)]
    fn the_threshold_is_an_eighth_of_the_last_rounds_rtt_within_4_and_16_ms(
        #[case] rtt_ms: u64,
        #[case] ns: u64,
    ) {
        assert_eq!(threshold(rtt_ms * MS), ns);
    }

    fn round(min_ms: u64, samples: u32) -> HyStartPp {
        HyStartPp {
            last_round_min: Some(100 * MS),
            round_min: Some(min_ms * MS),
            samples,
            css: None,
        }
    }

    // RFC 9406 §4.2 with lastRoundMinRTT 100 ms: the threshold is 112.5 ms, after eight samples.
    #[rstest]
    #[case(112, 8, false)]
    #[case(113, 7, false)]
    #[case(113, 8, true)]
    fn conservative_slow_start_begins_at_the_threshold_after_eight_samples(
        #[case] min_ms: u64,
        #[case] samples: u32,
        #[case] enters: bool,
    ) {
        let mut state = round(min_ms, samples);
        state.judge();
        assert_eq!(state.css.is_some(), enters);
    }

    // RFC 9406 §4.2: currentRoundMinRTT < cssBaselineMinRtt resumes slow start.
    #[test]
    fn conservative_slow_start_ends_when_the_rtt_falls_below_its_baseline() {
        let mut state = round(113, 8);
        state.judge();
        state.next_round();
        state.round_min = Some(112 * MS);
        state.samples = 7;
        state.judge();
        assert!(state.css.is_some(), "seven samples are too few");
        state.samples = 8;
        state.judge();
        assert!(state.css.is_none());
    }
}
