//! [`Competition`]: recognizes buffer-filling flows and competes with them.

/// Round trips without a nearly empty queue that indicate a competitor (§2.2).
const PATIENCE_ROUNDS: u32 = 5;

/// Mode switching. Copa flows alone empty the queue at least once in five round trips; if the queue does not empty, it
/// contains a flow that fills the buffer.
///
/// In competitive mode 1/δ, the packets that Copa keeps in the queue, grows by one per round trip and halves on a loss,
/// like NewReno's window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Competition {
    /// 1/δ of default mode.
    default: f64,
    /// 1/δ in competitive mode; `None` in default mode.
    inverse_delta: Option<f64>,
    /// Round trips since the queue was last nearly empty.
    rounds: u32,
    /// Packets were lost in the current round trip.
    lost: bool,
}

impl Competition {
    /// Default mode with this δ.
    pub(super) fn new(delta: f64) -> Self {
        Self {
            default: 1.0 / delta,
            inverse_delta: None,
            rounds: 0,
            lost: false,
        }
    }

    /// The δ of the current mode.
    pub(super) fn delta(&self) -> f64 {
        1.0 / self.inverse_delta.unwrap_or(self.default)
    }

    /// Processes an ACK frame outside slow start. `may_grow` is false while something other than the window limits the
    /// sender.
    pub(super) fn on_batch(&mut self, nearly_empty: bool, new_round: bool, may_grow: bool) {
        if nearly_empty {
            (self.inverse_delta, self.rounds, self.lost) = (None, 0, false);
            return;
        }
        if !new_round {
            return;
        }
        self.rounds = self.rounds.saturating_add(1);
        let lost = core::mem::take(&mut self.lost);
        self.inverse_delta = match self.inverse_delta {
            None => (self.rounds >= PATIENCE_ROUNDS).then_some(self.default),
            Some(inverse) if may_grow && !lost => Some(inverse + 1.0),
            unchanged => unchanged,
        };
    }

    /// Halves 1/δ at the first loss of a round trip, but not below that of default mode.
    pub(super) fn on_loss(&mut self) {
        self.lost = true;
        let halved = |inverse: f64| (inverse / 2.0).max(self.default);
        self.inverse_delta = self.inverse_delta.map(halved);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::close;

    fn after(rounds: u32) -> Competition {
        let mut competition = Competition::new(0.5);
        for _ in 0..rounds {
            competition.on_batch(false, true, true);
        }
        competition
    }

    #[test]
    fn five_round_trips_without_a_nearly_empty_queue_make_a_competitor() {
        assert_eq!(after(4).inverse_delta, None);
        assert_eq!(after(5).inverse_delta, Some(2.0));
    }

    #[test]
    fn a_nearly_empty_queue_ends_competitive_mode_at_once() {
        let mut competition = after(20);
        competition.on_batch(true, false, true);
        close(competition.delta(), 0.5, 1e-9);
        for _ in 0..4 {
            competition.on_batch(false, true, true);
            assert_eq!(competition.inverse_delta, None);
        }
    }

    #[test]
    fn a_round_trip_adds_a_packet_and_a_loss_halves_down_to_default_mode() {
        let mut competition = after(13);
        assert_eq!(competition.inverse_delta, Some(10.0));
        competition.on_loss();
        assert_eq!(competition.inverse_delta, Some(5.0));
        competition.on_batch(false, true, true);
        // The round trip with the loss adds no packet.
        assert_eq!(competition.inverse_delta, Some(5.0));
        competition.on_batch(false, true, true);
        assert_eq!(competition.inverse_delta, Some(6.0));
        for _ in 0..3 {
            competition.on_loss();
        }
        assert_eq!(competition.inverse_delta, Some(2.0));
    }

    #[test]
    fn a_round_trip_that_the_window_did_not_limit_adds_none() {
        let mut competition = after(6);
        competition.on_batch(false, true, false);
        assert_eq!(competition.inverse_delta, Some(3.0));
    }

    #[test]
    fn a_loss_costs_nothing_in_default_mode() {
        let mut competition = after(4);
        competition.on_loss();
        close(competition.delta(), 0.5, 1e-9);
    }
}
