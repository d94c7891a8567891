//! [`Seed`]: the number that seeds every generator of a run.

use rand_core::Rng;
use rand_pcg::Pcg32;
use serde::{Deserialize, Serialize};

/// The seed of a run. Every random sequence is derived from this number and a name, so adding a generator never shifts
/// the draws of another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seed(u64);

impl Seed {
    /// Creates a seed from its number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Number that the seed was created from.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Seed of the generator called `name`.
    #[must_use]
    pub fn child(self, name: &str) -> Self {
        // FNV-1a spreads the name, SplitMix64's finaliser spreads the sum: neighbouring seeds and names have nothing in
        // common.
        let name = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self(mix(mix(self.0) ^ name))
    }

    /// Thirty-two bytes for the generator called `name`, in the form of `quinn::EndpointConfig::rng_seed`.
    ///
    /// Reproducible, therefore not secret: for simulations only.
    pub fn derive(self, name: &str) -> [u8; 32] {
        let mut bytes = [0; 32];
        self.child(name).generator().fill_bytes(&mut bytes);
        bytes
    }

    /// A generator with this seed.
    pub(crate) fn generator(self) -> Pcg32 {
        Pcg32::new(mix(self.0), mix(self.0 ^ 0x9e37_79b9_7f4a_7c15))
    }
}

/// The finaliser of `SplitMix64` (Steele, Lea and Flood, OOPSLA 2014).
const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_a_number_give_the_same_bytes_every_time() {
        assert_eq!(Seed::new(7).derive("server"), Seed::new(7).derive("server"));
        assert_ne!(Seed::new(7).derive("server"), Seed::new(7).derive("client"));
        assert_ne!(Seed::new(7).derive("server"), Seed::new(8).derive("server"));
    }

    #[test]
    fn neighbouring_seeds_draw_independently() {
        let mut agree = 0;
        let (mut one, mut two) = (Seed::new(1).generator(), Seed::new(2).generator());
        for _ in 0..10_000 {
            agree += u32::from(one.next_u32() >> 31 == two.next_u32() >> 31);
        }
        assert!((4_800..5_200).contains(&agree), "{agree} of 10000 top bits agree");
    }
}
