//! [`Losses`]: separates losses of the path itself from those that this sender causes.

use crate::Timestamp;
use crate::state::{Core, float};

use crate::standalone::video::model::Round;

const SECOND_NS: u64 = 1_000_000_000;
/// Packets per sample, acknowledged or lost, and the minimum number of losses for a sample to count.
const SAMPLE: u64 = 64;
const LEAST_LOST: u64 = 3;
/// Standard deviations of a Poisson distribution.
const CHANCE: f64 = 2.0;
/// A share this many times the tolerated one does not need a second sample.
const AT_ONCE: f64 = 10.0;
/// Time for which a cut bounds the window: that of BBR between two probes (draft-ietf-ccwg-bbr §5.3.3). Each later cut
/// at a remembered bound doubles it.
const BOUND_NS: u64 = 2 * SECOND_NS;
const MOST_DOUBLINGS: u32 = 3;
/// A bound is remembered until the window exceeds it by this factor without losses that count.
const PASSED: f64 = 2.0;
/// If a path loses this many times its previous share, or at least this share, it has changed.
const MARGIN: f64 = 1.5;
const MOST_TOLERATED: f64 = 0.2;
/// A cut helped if less than this part of the lost share remains.
const HELPED: f64 = 0.75;
/// Time for which the path's own loss share is assumed unchanged.
const TRUST_NS: u64 = 20 * SECOND_NS;

/// Judges the share of packets lost. Sizes are bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Losses {
    /// Share of packets whose loss costs nothing, as configured and as learnt.
    configured: f64,
    tolerated: f64,
    learnt_until: Timestamp,
    acked: u64,
    lost: u64,
    /// The last sample exceeded the tolerated share.
    exceeded: bool,
    /// Share lost before the last cut.
    cut_at: f64,
    /// Window after the last cut, and the end of the time for which it bounds growth.
    bound: Option<(u64, Timestamp)>,
    /// Cuts at the remembered bound.
    doublings: u32,
}

impl Losses {
    pub(crate) fn new(tolerated: f64) -> Self {
        Self {
            configured: tolerated,
            tolerated,
            ..Self::default()
        }
    }

    /// Processes a round that ended at `now`. Returns the share of packets lost if it requires a smaller window: if two
    /// consecutive samples, or one beyond a remembered bound, exceed the tolerated share, or if one exceeds ten times
    /// that share. If a cut did not help, the losses are the path's own, and are tolerated.
    pub(crate) fn ask_for_less(&mut self, round: &Round, core: &Core, now: Timestamp) -> Option<f64> {
        let (window, mtu) = (core.window(), core.mtu());
        if self
            .bound
            .is_some_and(|(bound, _)| float(window) > PASSED * float(bound))
        {
            self.forget_bound();
        }
        if now > self.learnt_until {
            self.tolerated = self.configured;
        }
        self.acked = self.acked.saturating_add(round.acked);
        self.lost = self.lost.saturating_add(round.lost);
        let all = self.acked.saturating_add(self.lost);
        if all < SAMPLE.saturating_mul(mtu) {
            return None;
        }
        let (lost, share) = (self.lost, float(self.lost) / float(all));
        (self.acked, self.lost) = (0, 0);
        let exceeds = self.exceed(lost, all, mtu);
        let exceeded = core::mem::replace(&mut self.exceeded, exceeds);
        let is_probing = self.bound.is_some_and(|(bound, _)| window > bound);
        if !exceeds || !(exceeded || is_probing || share > AT_ONCE * self.tolerated) {
            return None;
        }
        self.exceeded = false;
        if self.bound.is_some() && !is_probing && share >= HELPED * self.cut_at {
            self.tolerated = (MARGIN * share).min(MOST_TOLERATED);
            self.learnt_until = now.plus_nanos(TRUST_NS);
            self.forget_bound();
            return None;
        }
        self.cut_at = share;
        Some(share)
    }

    /// Returns true if the current sample has already lost enough to exceed the tolerated share.
    pub(crate) fn exceed_so_far(&self, mtu: u64) -> bool {
        self.exceed(self.lost, SAMPLE.saturating_mul(mtu), mtu)
    }

    /// Returns true if `lost` of `all` bytes exceed the tolerated share by more than chance explains.
    fn exceed(&self, lost: u64, all: u64, mtu: u64) -> bool {
        let tolerated = self.tolerated * float(all) / float(mtu);
        lost >= LEAST_LOST.saturating_mul(mtu)
            && float(lost) / float(mtu) > tolerated + CHANCE * libm::sqrt(tolerated)
    }

    /// Notes that the window was cut to `window`: for some seconds it does not grow beyond this, and then only slowly.
    pub(crate) const fn note_cut(&mut self, window: u64, now: Timestamp) {
        if self.bound.is_some() && self.doublings < MOST_DOUBLINGS {
            self.doublings = self.doublings.saturating_add(1);
        }
        let bound_ns = BOUND_NS.saturating_mul(1 << self.doublings);
        self.bound = Some((window, now.plus_nanos(bound_ns)));
    }

    /// Window at which packets were lost recently, and true if the window must not exceed it yet.
    pub(crate) fn bound(&self, now: Timestamp) -> Option<(u64, bool)> {
        self.bound.map(|(bound, until)| (bound, now < until))
    }

    const fn forget_bound(&mut self) {
        self.bound = None;
        self.doublings = 0;
    }

    /// Returns true if `lost` bytes are more than the tolerated share of the window.
    pub(crate) fn are_heavy(&self, lost: u64, core: &Core) -> bool {
        lost > LEAST_LOST.saturating_mul(core.mtu()) && float(lost) > self.configured * float(core.window())
    }

    /// Forgets the current sample and the bound.
    pub(crate) const fn begin_anew(&mut self) {
        (self.acked, self.lost) = (0, 0);
        self.exceeded = false;
        self.forget_bound();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::at;

    /// The MTU of [`Core::sample`].
    const MTU: u64 = 1_200;

    /// A round of 100 packets with `lost` losses.
    fn round(lost: u64) -> Round {
        Round {
            acked: (100 - lost) * MTU,
            lost: lost * MTU,
            ..Round::sample(0, 0, 0.0)
        }
    }

    fn asks(losses: &mut Losses, lost: u64, window: u64, ms: u64) -> bool {
        let core = Core::sample(window, 100, 100);
        losses.ask_for_less(&round(lost), &core, at(ms)).is_some()
    }

    #[test]
    fn a_burst_costs_nothing_and_lasting_losses_do() {
        let mut losses = Losses::new(0.02);
        assert!(!asks(&mut losses, 8, 100_000, 0), "one sample");
        assert!(!asks(&mut losses, 0, 100_000, 100));
        assert!(!asks(&mut losses, 8, 100_000, 200));
        assert!(asks(&mut losses, 5, 100_000, 300), "two in a row");
        // More than ten times the tolerated share.
        assert!(asks(&mut losses, 25, 100_000, 400));
    }

    #[test]
    fn losses_that_a_smaller_window_does_not_end_are_the_paths_own_for_some_time() {
        let mut losses = Losses::new(0.02);
        asks(&mut losses, 5, 100_000, 0);
        assert!(asks(&mut losses, 5, 100_000, 100));
        losses.note_cut(85_000, at(100));
        assert_eq!(losses.bound(at(2_099)), Some((85_000, true)));
        assert_eq!(losses.bound(at(2_100)), Some((85_000, false)));
        for ms in [200, 300, 400, 500] {
            assert!(!asks(&mut losses, 5, 85_000, ms));
        }
        assert_eq!(losses.bound(at(500)), None);
        assert!(!asks(&mut losses, 5, 85_000, 21_000));
        // After twenty seconds they require a smaller window again.
        assert!(asks(&mut losses, 5, 85_000, 21_100));
    }

    #[test]
    fn more_than_the_tolerated_share_has_to_be_more_than_chance() {
        // Two of a hundred are tolerated, with a standard deviation of 1.4.
        for (lost, expected) in [(4, false), (5, true)] {
            let mut losses = Losses::new(0.02);
            asks(&mut losses, lost, 100_000, 0);
            assert_eq!(asks(&mut losses, lost, 100_000, 100), expected, "{lost}");
        }
    }

    #[test]
    fn a_cut_that_helps_is_followed_by_another() {
        let mut losses = Losses::new(0.02);
        assert!(asks(&mut losses, 40, 100_000, 0));
        losses.note_cut(85_000, at(0));
        asks(&mut losses, 20, 85_000, 100);
        assert!(asks(&mut losses, 20, 85_000, 200), "half as much is lost");
    }

    #[test]
    fn few_packets_make_no_share() {
        let (mut losses, core) = (Losses::new(0.02), Core::sample(100_000, 100, 100));
        let few = Round {
            acked: 0,
            lost: 10 * MTU,
            ..round(0)
        };
        for ms in 0..6 {
            assert_eq!(losses.ask_for_less(&few, &core, at(ms)), None);
        }
        assert_eq!(losses.ask_for_less(&few, &core, at(6)), Some(1.0), "64 packets");
    }

    #[test]
    fn a_bound_is_remembered_held_longer_at_each_cut_and_forgotten_far_beyond() {
        let mut losses = Losses::new(0.02);
        assert!(asks(&mut losses, 40, 100_000, 0));
        losses.note_cut(50_000, at(0));
        assert_eq!(losses.bound(at(2_000)), Some((50_000, false)));
        for (ms, held) in [(3_000, 4_000), (8_000, 8_000), (20_000, 16_000), (60_000, 16_000)] {
            assert!(asks(&mut losses, 5, 60_000, ms), "one sample beyond the bound");
            losses.note_cut(50_000, at(ms));
            assert_eq!(losses.bound(at(ms + held - 1)), Some((50_000, true)), "{held}");
            assert_eq!(losses.bound(at(ms + held)), Some((50_000, false)), "{held}");
        }
        asks(&mut losses, 0, 100_001, 90_000);
        assert_eq!(losses.bound(at(90_000)), None);
    }
}
