//! [`Point`]: the position of a generated path in the hypercube that determines its properties.
//!
//! Latin hypercube sampling (McKay, Beckman and Conover 1979): among [`BLOCK`] consecutive points of a half, each has
//! its own stratum in every dimension, so that few points cover each dimension evenly. Odd and even numbers are two
//! independent samples, so that each half of a set of paths is a sample too. A point depends only on the seed and its
//! number: a longer set begins with the shorter one.

use playrate_netsim::Seed;

/// Points of one Latin hypercube. Twenty-four, so that shares of a half, a third, a quarter and an eighth are exact.
pub(crate) const BLOCK: u32 = 24;

/// A point of the sample, with a coordinate for each named dimension.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    /// Seed for values of this point only.
    own: Seed,
    /// Seed of the block of points that share strata.
    block: Seed,
    /// Position within the block, below [`BLOCK`].
    place: u32,
}

impl Point {
    /// The point `number`, counted from 1, of the sample with this seed.
    pub(crate) fn new(seed: Seed, number: u32) -> Self {
        let index = number.saturating_sub(1);
        let half = if index.is_multiple_of(2) { "odd" } else { "even" };
        let within = index / 2;
        Self {
            own: seed.child("point").child(&number.to_string()),
            block: seed.child(half).child(&(within / BLOCK).to_string()),
            place: within % BLOCK,
        }
    }

    /// Coordinate in the dimension called `name`, at least 0 and below 1.
    pub(crate) fn at(self, name: &str) -> f64 {
        let order = self.block.child(name);
        let key = |place: u32| (order.child(&place.to_string()).number(), place);
        // The rank among the block's random keys is a random permutation.
        let mine = key(self.place);
        let stratum = (0..BLOCK).filter(|&place| key(place) < mine).count();
        (stratum as f64 + unit(self.own.child(name))) / f64::from(BLOCK)
    }

    /// A number specific to this point, short enough for a text.
    pub(super) fn seed(self, name: &str) -> u64 {
        self.own.child("seed").child(name).number() % 1_000_000
    }

    /// A number specific to this point, at least 0 and below 1, without a stratum.
    pub(super) fn free(self, name: &str) -> f64 {
        unit(self.own.child("free").child(name))
    }
}

/// A number that is at least 0 and below 1, uniformly distributed over seeds.
fn unit(seed: Seed) -> f64 {
    // A float holds exactly 53 bits.
    (seed.number() >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_half_of_a_block_has_one_point_in_each_stratum_of_every_dimension() {
        for (first, name) in [(1, "rate"), (2, "rate"), (1, "queue"), (49, "rtt"), (50, "loss")] {
            let mut strata: Vec<u32> = (0..BLOCK)
                .map(|n| {
                    let at = Point::new(Seed::new(7), first + 2 * n).at(name);
                    assert!((0.0..1.0).contains(&at), "{at}");
                    #[expect(
                        clippy::cast_possible_truncation,
                        clippy::cast_sign_loss,
                        reason = "a stratum is below 24"
                    )]
                    let stratum = (at * f64::from(BLOCK)) as u32;
                    stratum
                })
                .collect();
            strata.sort_unstable();
            assert!(strata.into_iter().eq(0..BLOCK), "{name} from {first}");
        }
    }

    #[test]
    fn dimensions_and_seeds_have_orders_of_their_own() {
        let at = |seed, name| Point::new(Seed::new(seed), 1).at(name);
        assert!((at(1, "rate") - at(1, "rtt")).abs() > 1e-6);
        assert!((at(1, "rate") - at(2, "rate")).abs() > 1e-6);
        assert!((at(1, "rate") - at(1, "rate")).abs() < 1e-12);
    }
}
