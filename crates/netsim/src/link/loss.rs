//! [`Loss`]: packets that leave the queue and never arrive.

use core::fmt;
use core::str::FromStr;

use playrate_units::Probability;
use rand_core::Rng;
use rand_pcg::Pcg32;

use crate::ConfigError;

/// Random loss on the wire. A lost packet has taken its place in the queue and its time on the link.
///
/// Text form: `none` or a probability such as `0.01%`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// Nothing is lost but what the queue drops.
    #[default]
    None,
    /// Each packet independently with this probability.
    Bernoulli(Probability),
}

impl Loss {
    pub(crate) fn sampler(self) -> LossSampler {
        match self {
            Self::None => LossSampler::None,
            Self::Bernoulli(probability) => LossSampler::Bernoulli(probability),
        }
    }
}

impl From<Probability> for Loss {
    fn from(probability: Probability) -> Self {
        if probability == Probability::ZERO {
            Self::None
        } else {
            Self::Bernoulli(probability)
        }
    }
}

impl FromStr for Loss {
    type Err = ConfigError;
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        if text.trim() == "none" {
            return Ok(Self::None);
        }
        text.parse::<Probability>()
            .map(Self::from)
            .map_err(|_| ConfigError::LossText(text.to_owned()))
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.pad("none"),
            Self::Bernoulli(probability) => probability.fmt(f),
        }
    }
}

/// Decides packet by packet.
#[derive(Clone, Debug)]
pub(crate) enum LossSampler {
    None,
    Bernoulli(Probability),
}

impl LossSampler {
    pub(crate) fn loses(&mut self, generator: &mut Pcg32) -> bool {
        match self {
            Self::None => false,
            Self::Bernoulli(probability) => probability.accepts(generator.next_u32()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips_and_zero_is_none() {
        assert_eq!("0%".parse(), Ok(Loss::None));
        assert_eq!("none".parse(), Ok(Loss::None));
        assert_eq!("0.01%".parse::<Loss>().unwrap().to_string(), "0.01%");
        assert_eq!(
            "often".parse::<Loss>(),
            Err(ConfigError::LossText("often".into()))
        );
    }
}
