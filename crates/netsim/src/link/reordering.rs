//! [`Reordering`]: packets that are overtaken by later ones.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use playrate_units::{Probability, duration};

use crate::ConfigError;

/// Packets that are delayed and overtaken by others. Text form: `1%,10ms`, probability and additional delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reordering {
    /// Probability that a packet is delayed.
    pub probability: Probability,
    /// Additional delay of such a packet.
    pub by: Duration,
}

impl Reordering {
    /// Delays packets with this probability by this much.
    pub const fn new(probability: Probability, by: Duration) -> Self {
        Self { probability, by }
    }
}

impl FromStr for Reordering {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let error = || ConfigError::Reordering(text.to_owned());
        let (probability, by) = text.split_once(',').ok_or_else(error)?;
        Ok(Self {
            probability: probability.trim().parse().map_err(|_| error())?,
            by: duration::parse(by.trim()).map_err(|_| error())?,
        })
    }
}

impl fmt::Display for Reordering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.probability, duration::display(self.by))
    }
}
