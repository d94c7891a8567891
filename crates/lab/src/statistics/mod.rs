//! How sure a result is: intervals, paired comparisons, effect sizes.
//!
//! A trial has a seed, and all controllers run with the same seeds, so whatever is compared is compared seed by seed: what is
//! computed from the trials of one seed is one value, and the interval is that of the mean of these values ([`Interval`]).
//! `docs/statistics.md` says which interval is taken when, and how often each holds what it should.

mod bootstrap;
mod effect;
mod interval;
mod paired;
mod spread;

pub use bootstrap::{RESAMPLES, SEED};
pub use effect::{Effect, cliffs_delta};
pub use interval::{CONFIDENCE, FEWEST_FOR_BOOTSTRAP, Interval, Method};
pub use paired::{Paired, Sample};
pub use spread::Spread;

#[cfg(test)]
mod tests;
