//! [`Ceiling`]: the window beyond which the player has no use for more.

use crate::parameter::Arguments;
use crate::state::{Core, floor_bytes};
use crate::timestamp::seconds;
use crate::{Timestamp, VideoKnowledge};

use super::supply::Supply;

/// No more than this many full supplies are believed to be ahead of a player.
const MOST_FULL: f64 = 2.0;

/// A multiple of the video's rate, which falls as the player's supply grows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ceiling {
    /// Factors of the rate without supply, and with a full one.
    fastest: f64,
    slowest: f64,
    /// Seconds of playing time that are a full supply.
    full: f64,
    supply: Supply,
    uses_rate: bool,
    uses_ladder: bool,
    believes_player: bool,
}

impl Ceiling {
    pub(super) fn from_arguments(arguments: &Arguments) -> Self {
        let fastest = arguments.number("fastest");
        let full = arguments.time("full").as_secs_f64();
        Self {
            fastest,
            slowest: arguments.number("slowest").min(fastest),
            full,
            supply: Supply::at_most(MOST_FULL * full),
            uses_rate: arguments.is_on("rate"),
            uses_ladder: arguments.is_on("ladder"),
            believes_player: arguments.is_on("player"),
        }
    }

    /// `acked` more bytes have arrived.
    pub(super) fn on_acked(&mut self, known: &VideoKnowledge, acked: u64, now: Timestamp) {
        self.supply.on_acked(known, acked, now);
    }

    /// The window that carries all that the player can use over an RTT of `rtt` ns, bytes; `None` while the rate is
    /// unknown. The best representation counts, so that a player that measures throughput finds it.
    pub(super) fn window(&self, core: &Core, rtt: u64) -> Option<u64> {
        let known = &core.known;
        let rate = if self.uses_ladder {
            known.highest_rate()
        } else {
            known.average_rate()
        };
        let rate = rate.filter(|_| self.uses_rate)?;
        let rate = known.on_the_wire(rate).as_bytes_per_second() as f64;
        let playback = known.playback().filter(|_| self.believes_player);
        let filled = (self.supply.ahead(playback) / self.full).min(1.0);
        let factor = (self.slowest - self.fastest).mul_add(filled, self.fastest);
        Some(floor_bytes(factor * rate * seconds(rtt)).saturating_add(core.headroom()))
    }
}
