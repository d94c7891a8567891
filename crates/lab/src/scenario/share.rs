//! The throughput of an ideal sender on a scenario's path, and whether the title fits into it.

use playrate_units::Bitrate;

use super::Scenario;
use super::file::TimeRange;
use crate::sim::WIRE_PER_MEDIA;

/// Maximum part of an ideal sender's throughput that a title may need on the wire to fit: the rest is for start-up and
/// for a varying rate.
pub(crate) const FITS: f64 = 0.9;

/// Mean over time of one flow's equal share of a link. There are `always` permanent flows, including this one; each of
/// the `others` is present for a part `presence` of the time, independently of the rest.
pub(super) fn equal_share(always: u32, others: u32, presence: f64) -> f64 {
    // Probability of each number of other flows (binomial), starting with none.
    let mut probabilities = vec![1.0];
    for _ in 0..others {
        let absent = probabilities.iter().map(|p| p * (1.0 - presence)).chain([0.0]);
        let present = [0.0]
            .into_iter()
            .chain(probabilities.iter().map(|p| p * presence));
        probabilities = absent.zip(present).map(|(one, other)| one + other).collect();
    }
    let shares = (always..).zip(probabilities);
    shares.map(|(flows, p)| p / f64::from(flows.max(1))).sum()
}

impl Scenario {
    /// Rate in bit/s of an ideal sender, including headers: the viewer's equal share of the mean rate among all flows,
    /// less the path's random loss. `None` if the rate is unlimited.
    pub(crate) fn ideal_rate(&self) -> Option<f64> {
        let link = &self.path.forward;
        let length = self.viewer.title.source().title().duration().as_secs_f64();
        let (others, presence) = self.bulk.as_ref().map_or((0, 0.0), |bulk| {
            let TimeRange { from, to } = bulk.flows.joins;
            let spread = bulk.flows.join_every.as_secs_f64() * f64::from(bulk.flows.count.saturating_sub(1));
            let joins = f64::midpoint(from.as_secs_f64(), to.as_secs_f64() + spread);
            let rest = (length - joins).max(0.0);
            let stay = bulk
                .flows
                .leaves_after
                .map_or(f64::INFINITY, |stay| stay.as_secs_f64());
            let stay = stay.min(rest);
            (bulk.flows.count, if length > 0.0 { stay / length } else { 0.0 })
        });
        let cross = link.cross_traffic.iter();
        let cross: u64 = cross.map(|cross| cross.mean().as_bits_per_second()).sum();
        let limit = link.policer.map_or(Bitrate::MAX, |policer| policer.rate);
        let rate = link.rate.mean()?.min(limit).as_bits_per_second();
        let rate = rate.saturating_sub(cross) as f64;
        Some(rate * equal_share(self.viewers.count, others, presence) * (1.0 - link.loss.mean()))
    }

    /// Rate in bit/s that the title needs on the wire: the average of its lowest representation, including headers.
    pub(crate) fn needed_rate(&self) -> f64 {
        let lowest = self.viewer.title.representations().and_then(|presentation| {
            let rates = presentation.representations().iter().map(|one| one.rate);
            rates.min()
        });
        lowest.unwrap_or_else(|| self.title_rate()).as_bits_per_second() as f64 * WIRE_PER_MEDIA
    }

    /// Returns true if an ideal sender's throughput is enough for the title ([`FITS`]).
    pub(crate) fn fits(&self) -> bool {
        self.ideal_rate()
            .is_none_or(|rate| self.needed_rate() <= FITS * rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_equal_share_is_the_mean_over_the_flows_that_are_there() {
        for (always, others, presence, share) in [
            (1, 0, 0.0, 1.0),
            (2, 0, 0.0, 0.5),
            (1, 4, 1.0, 0.2),
            // Alone for half of the time, with one other for the rest.
            (1, 1, 0.5, 0.75),
        ] {
            assert!((equal_share(always, others, presence) - share).abs() < 1e-12);
        }
    }
}
