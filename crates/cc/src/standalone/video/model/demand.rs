//! [`Demand`]: the player's needs as its requests show them, and the resulting ceiling.

use crate::parameter::Arguments;
use crate::state::{Core, float, floor_bytes};
use crate::timestamp::{nanos, seconds};
use crate::{Bitrate, Playback, Timestamp, VideoKnowledge};

/// A silence is a pause if it is at least this long and this many smoothed RTTs. Shorter silences separate a segment
/// from the request for the next, even if the player's buffer is empty.
const PAUSE_NS: u64 = 500_000_000;
const PAUSE_RTTS: u64 = 2;
/// The library's rate is trusted while the player consumes at most this many times that rate.
const BELIEVED: f64 = 1.25;

/// Pauses of the player, and the bytes received between them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Demand {
    /// Multiple of the video's rate after a pause.
    pace: f64,
    /// Time without a pause after which the player needs a higher rate, ns.
    patience_ns: u64,
    uses_rate: bool,
    uses_ladder: bool,
    believes_player: bool,
    /// End of the last pause; `None` before the first.
    asked: Option<Timestamp>,
    /// Bytes acknowledged since the end of that pause.
    received: u64,
    /// Consumption rate of the player between the last two pauses, bytes per second.
    consumed: f64,
    /// Share of the connection's data that this path delivers; 1 if it is the only one.
    pub(crate) share: f64,
}

impl Demand {
    pub(crate) fn from_arguments(arguments: &Arguments) -> Self {
        Self {
            pace: arguments.number("pace"),
            patience_ns: nanos(arguments.time("patience")),
            uses_rate: arguments.is_on("rate"),
            uses_ladder: arguments.is_on("ladder"),
            believes_player: arguments.is_on("player"),
            share: 1.0,
            ..Self::default()
        }
    }

    /// Records a burst that leaves at `now` after `quiet_ns` with nothing in flight.
    pub(crate) fn on_sent(&mut self, now: Timestamp, quiet_ns: u64, smoothed_rtt: u64) {
        if quiet_ns <= PAUSE_NS.max(PAUSE_RTTS.saturating_mul(smoothed_rtt)) {
            return;
        }
        if let Some(asked) = self.asked {
            self.consumed = float(self.received) / seconds(now.nanos_since(asked));
        }
        self.asked = Some(now);
        self.received = 0;
    }

    /// Counts `acked` more bytes that have arrived.
    pub(crate) const fn on_acked(&mut self, acked: u64) {
        self.received = self.received.saturating_add(acked);
    }

    /// Base rate of the ceiling: the rate of the best representation that the player may choose, so that a player that
    /// measures throughput can reach it.
    fn rate(&self, known: &VideoKnowledge) -> Option<Bitrate> {
        let rate = if self.uses_ladder {
            known.highest_rate()
        } else {
            known.average_rate()
        };
        // The rate of an encoder that follows the path is no bound: it comes from the window.
        let rate = rate.filter(|_| self.uses_rate && !known.follows_path())?;
        Some(known.on_the_wire(rate))
    }

    /// Sufficient window over an RTT of `rtt` ns, bytes. `None` unless the player's demand agrees with the known facts:
    /// it has paused within the permitted time, it consumes at the library's rate, and its buffer has not run empty.
    pub(crate) fn ceiling(&self, core: &Core, now: Timestamp, rtt: u64) -> Option<u64> {
        let asked = self.asked?;
        let rate = float(self.rate(&core.known)?.as_bytes_per_second()) * self.share;
        let playback = core.known.playback().filter(|_| self.believes_player);
        let is_short = matches!(playback, Some(Playback::Starting | Playback::Starved));
        if is_short || now.nanos_since(asked) > self.patience_ns || self.consumed > BELIEVED * rate {
            return None;
        }
        Some(floor_bytes(self.pace * rate * seconds(rtt)).saturating_add(core.headroom()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameter::Value;
    use crate::standalone::video::PARAMETERS;
    use crate::tests::at;

    const RTT: u64 = 100_000_000;
    const SECOND: u64 = 1_000_000_000;

    /// A player of a title of 1 MB/s that received `bytes` in the 10 s between its last two pauses, without this fact.
    fn after(bytes: u64, fact: &str) -> (Demand, Core) {
        let mut arguments = Arguments::defaults(PARAMETERS);
        for (parameter, value) in PARAMETERS.iter().zip(arguments.values_mut()) {
            if parameter.name == fact {
                *value = Value::Word("off");
            }
        }
        let core = Core::sample(100_000, 100, 100);
        core.known.set_average_rate(Some(Bitrate::from_mbps(8)));
        core.known.set_highest_rate(Some(Bitrate::from_mbps(16)));
        let mut demand = Demand::from_arguments(&arguments);
        demand.on_sent(at(1_000), SECOND, RTT);
        demand.on_acked(bytes);
        demand.on_sent(at(11_000), SECOND, RTT);
        (demand, core)
    }

    #[test]
    fn a_player_that_never_paused_has_no_ceiling() {
        let (_, core) = after(0, "");
        let demand = Demand::from_arguments(&Arguments::defaults(PARAMETERS));
        assert_eq!(demand.ceiling(&core, at(60_000), RTT), None);
    }

    #[test]
    fn the_time_between_a_segment_and_the_next_request_is_no_pause() {
        let (_, core) = after(0, "");
        let long = (3 * SECOND, 2 * SECOND, false);
        for (quiet, rtt, is_pause) in [(PAUSE_NS, RTT, false), (PAUSE_NS + 1, RTT, true), long] {
            let mut demand = Demand::from_arguments(&Arguments::defaults(PARAMETERS));
            demand.on_sent(at(20_000), quiet, rtt);
            let ceiling = demand.ceiling(&core, at(20_000), RTT);
            assert_eq!(ceiling.is_some(), is_pause, "{quiet}");
        }
    }

    #[test]
    fn the_ceiling_is_twice_the_best_rate_for_three_seconds_after_a_pause() {
        let (demand, core) = after(10_000_000, "");
        let expected = Some(2 * 200_000 + core.headroom());
        assert_eq!(demand.ceiling(&core, at(11_000), RTT), expected);
        assert_eq!(demand.ceiling(&core, at(14_000), RTT), expected);
        assert_eq!(demand.ceiling(&core, at(14_001), RTT), None, "it keeps asking");
    }

    #[test]
    fn a_player_that_consumes_more_than_the_library_says_has_no_ceiling() {
        for (bytes, has) in [(10_000_000, true), (25_000_000, true), (26_000_000, false)] {
            let (demand, core) = after(bytes, "");
            assert_eq!(demand.ceiling(&core, at(11_000), RTT).is_some(), has, "{bytes}");
        }
    }

    #[test]
    fn on_one_of_several_paths_the_rate_is_this_paths_share() {
        let (mut demand, core) = after(2_500_000, "");
        let ceiling = |demand: &Demand| demand.ceiling(&core, at(11_000), RTT);
        demand.share = 0.25;
        assert_eq!(ceiling(&demand), Some(2 * 50_000 + core.headroom()));
        // The player consumes 250 kB/s here. At most 1.25 · 0.05 · 2 MB/s agree with the rate.
        demand.share = 0.05;
        assert_eq!(ceiling(&demand), None);
    }

    #[test]
    fn no_rate_of_an_encoder_that_follows_the_path_is_a_ceiling() {
        for fact in ["", "ladder", "player"] {
            for (average, highest) in [(1, None), (8, None), (8, Some(16)), (100, Some(100))] {
                let (demand, core) = after(100_000, fact);
                core.known.set_average_rate(Some(Bitrate::from_mbps(average)));
                core.known.set_highest_rate(highest.map(Bitrate::from_mbps));
                assert!(
                    demand.ceiling(&core, at(11_000), RTT).is_some(),
                    "{fact} {average}"
                );
                core.known.set_follows_path(true);
                assert_eq!(demand.ceiling(&core, at(11_000), RTT), None, "{fact} {average}");
            }
        }
    }

    #[test]
    fn each_fact_can_be_left_out() {
        let now = at(11_000);
        for (fact, expected) in [("ladder", Some(200_000)), ("rate", None)] {
            let (demand, core) = after(1_000_000, fact);
            let expected = expected.map(|bytes: u64| bytes + core.headroom());
            assert_eq!(demand.ceiling(&core, now, RTT), expected, "{fact}");
        }
        for (fact, has) in [("", false), ("player", true)] {
            let (demand, core) = after(1_000_000, fact);
            core.known.set_playback(Some(Playback::Starved));
            assert_eq!(demand.ceiling(&core, now, RTT).is_some(), has, "{fact}");
        }
    }
}
