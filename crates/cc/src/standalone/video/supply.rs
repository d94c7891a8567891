//! [`Supply`]: the playing time that the player has ahead of it.

use crate::timestamp::seconds;
use crate::{Playback, Timestamp, VideoKnowledge};

/// Playing time that the player has been sent beyond what it can have shown, seconds.
///
/// Every acknowledged byte adds its playing time at the average rate, and time takes away as much as it lasts. So it is
/// exact for a player that plays all the time, and too small for one that pauses, which then is served sooner than it
/// needs. While the rate is unknown it is zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Supply {
    /// No more than this is believed, seconds: a player that seeks discards what it has.
    most: f64,
    ahead: f64,
    at: Option<Timestamp>,
}

impl Supply {
    /// The supply of a player that has nothing; at most `most` seconds are believed.
    pub(super) const fn at_most(most: f64) -> Self {
        Self {
            most,
            ahead: 0.0,
            at: None,
        }
    }

    /// `acked` more bytes have arrived.
    pub(super) fn on_acked(&mut self, known: &VideoKnowledge, acked: u64, now: Timestamp) {
        let passed = self
            .at
            .replace(now)
            .map_or(0.0, |at| seconds(now.nanos_since(at)));
        let Some(rate) = known.wire_rate() else { return };
        let arrived = acked as f64 / rate.as_bytes_per_second().max(1) as f64;
        self.ahead = ((self.ahead - passed).max(0.0) + arrived).min(self.most);
    }

    /// The playing time ahead, seconds; none in the player's state `playback` if it starts up or has run empty.
    pub(super) const fn ahead(&self, playback: Option<Playback>) -> f64 {
        match playback {
            Some(Playback::Starting | Playback::Starved) => 0.0,
            _ => self.ahead,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bitrate;
    use crate::tests::at;

    const MOST: f64 = 40.0;

    /// A player of 8 Mbit/s, which is 1 MB a second.
    fn known() -> VideoKnowledge {
        let known = VideoKnowledge::new();
        known.set_average_rate(Some(Bitrate::from_mbps(8)));
        known
    }

    #[test]
    fn bytes_add_their_playing_time_and_time_takes_it_away() {
        let (mut supply, known) = (Supply::at_most(MOST), known());
        supply.on_acked(&known, 3_000_000, at(0));
        supply.on_acked(&known, 500_000, at(2_000));
        assert!((supply.ahead(known.playback()) - 1.5).abs() < 1e-9);
        supply.on_acked(&known, 1_000, at(60_000));
        assert!(
            (supply.ahead(known.playback()) - 0.001).abs() < 1e-9,
            "never less than nothing"
        );
    }

    #[test]
    fn a_player_that_starts_or_has_run_empty_has_nothing() {
        let (mut supply, known) = (Supply::at_most(MOST), known());
        supply.on_acked(&known, 3_000_000, at(0));
        known.set_playback(Some(Playback::Starved));
        assert_eq!(supply.ahead(known.playback()).to_bits(), 0.0_f64.to_bits());
        known.set_playback(Some(Playback::Playing));
        assert!((supply.ahead(known.playback()) - 3.0).abs() < 1e-9);
    }

    #[test]
    fn the_estimate_is_bounded() {
        let (mut supply, known) = (Supply::at_most(MOST), known());
        supply.on_acked(&known, u64::MAX, at(0));
        assert!((supply.ahead(known.playback()) - MOST).abs() < 1e-9);
    }
}
