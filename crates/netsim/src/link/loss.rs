//! [`Loss`]: packets that leave the queue and never arrive.

use core::fmt;
use core::str::FromStr;

use playrate_units::Probability;
use rand_core::Rng;
use rand_pcg::Pcg32;

use super::parts_of;
use crate::ConfigError;

/// Random loss on the wire. A lost packet has taken its place in the queue and its time on the link.
///
/// Text form: `none`, a probability such as `0.01%`, or `gilbert(0.1%,20%)`, with `,LOSS_BAD` and then
/// `,LOSS_GOOD` appended if they are not 100 % and 0 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// No random loss; the queue may still drop.
    #[default]
    None,
    /// Independent loss of each packet with this probability.
    Bernoulli(Probability),
    /// Loss in bursts, see [`GilbertElliott`].
    GilbertElliott(GilbertElliott),
}

/// A channel that is good or bad and may change with every packet (Gilbert, BSTJ 1960; Elliott, BSTJ 1963).
/// Its mean loss is `(to_bad · loss_bad + to_good · loss_good) / (to_bad + to_good)`, a bad time `1 /
/// to_good` packets long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GilbertElliott {
    /// Probability that a good channel turns bad before a packet.
    pub to_bad: Probability,
    /// Probability that a bad channel turns good before a packet.
    pub to_good: Probability,
    /// Loss probability while the channel is bad.
    pub loss_bad: Probability,
    /// Loss probability while the channel is good.
    pub loss_good: Probability,
}

impl GilbertElliott {
    /// Gilbert's channel: everything is lost while it is bad, nothing while it is good.
    pub const fn gilbert(to_bad: Probability, to_good: Probability) -> Self {
        Self {
            to_bad,
            to_good,
            loss_bad: Probability::ONE,
            loss_good: Probability::ZERO,
        }
    }
}

impl Loss {
    /// The same loss, `factor` times as frequent: the probability of independent loss, or that of a good channel
    /// turning bad, so that bursts stay as long as they are. `None` if `factor` is negative or makes a probability
    /// above 100 %.
    pub fn scaled(self, factor: f64) -> Option<Self> {
        let scaled = |probability: Probability| {
            let parts = f64::from(probability.as_parts_per_billion()) * factor;
            let most = f64::from(Probability::ONE.as_parts_per_billion());
            (0.0..=most)
                .contains(&parts)
                .then(|| Probability::from_parts_per_billion(rounded(parts)))
        };
        match self {
            Self::None => (factor >= 0.0).then_some(Self::None),
            Self::Bernoulli(probability) => scaled(probability).map(Self::from),
            Self::GilbertElliott(channel) => {
                let to_bad = scaled(channel.to_bad)?;
                Some(Self::GilbertElliott(GilbertElliott { to_bad, ..channel }))
            }
        }
    }

    /// Mean share of packets lost, 0 to 1.
    pub fn mean(self) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Bernoulli(probability) => probability.as_f64(),
            Self::GilbertElliott(channel) => {
                let (to_bad, to_good) = (channel.to_bad.as_f64(), channel.to_good.as_f64());
                if to_bad + to_good == 0.0 {
                    // It begins good and stays so.
                    return channel.loss_good.as_f64();
                }
                let lost = to_bad * channel.loss_bad.as_f64() + to_good * channel.loss_good.as_f64();
                lost / (to_bad + to_good)
            }
        }
    }

    pub(crate) fn sampler(self) -> LossSampler {
        LossSampler {
            loss: self,
            bad: false,
        }
    }
}

/// The nearest whole number of what lies between 0 and a billion.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "parts per billion fit, and float casts saturate"
)]
fn rounded(parts: f64) -> u32 {
    libm::round(parts) as u32
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

impl From<GilbertElliott> for Loss {
    fn from(channel: GilbertElliott) -> Self {
        Self::GilbertElliott(channel)
    }
}

impl FromStr for Loss {
    type Err = ConfigError;
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let error = |_| ConfigError::LossText(text.to_owned());
        if text.trim() == "none" {
            return Ok(Self::None);
        }
        let Some(parts) = parts_of(text, "gilbert") else {
            return text.trim().parse::<Probability>().map(Self::from).map_err(error);
        };
        let parts = parts.into_iter().map(|part| part.parse().map_err(error));
        let parts = parts.collect::<Result<Vec<Probability>, _>>()?;
        let (&[to_bad, to_good] | &[to_bad, to_good, _] | &[to_bad, to_good, _, _]) = parts.as_slice() else {
            return Err(ConfigError::LossText(text.to_owned()));
        };
        let mut channel = GilbertElliott::gilbert(to_bad, to_good);
        channel.loss_bad = parts.get(2).copied().unwrap_or(channel.loss_bad);
        channel.loss_good = parts.get(3).copied().unwrap_or(channel.loss_good);
        Ok(Self::GilbertElliott(channel))
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.pad("none"),
            Self::Bernoulli(probability) => probability.fmt(f),
            Self::GilbertElliott(channel) => {
                let GilbertElliott {
                    to_bad,
                    to_good,
                    loss_bad,
                    loss_good,
                } = channel;
                if *loss_good != Probability::ZERO {
                    write!(f, "gilbert({to_bad},{to_good},{loss_bad},{loss_good})")
                } else if *loss_bad != Probability::ONE {
                    write!(f, "gilbert({to_bad},{to_good},{loss_bad})")
                } else {
                    write!(f, "gilbert({to_bad},{to_good})")
                }
            }
        }
    }
}

/// Draws the loss of each packet.
#[derive(Clone, Debug)]
pub(crate) struct LossSampler {
    loss: Loss,
    bad: bool,
}

impl LossSampler {
    pub(crate) fn loses(&mut self, generator: &mut Pcg32) -> bool {
        match &self.loss {
            Loss::None => false,
            Loss::Bernoulli(probability) => probability.accepts(generator.next_u32()),
            Loss::GilbertElliott(channel) => {
                let turn = if self.bad { channel.to_good } else { channel.to_bad };
                self.bad ^= turn.accepts(generator.next_u32());
                let loss = if self.bad {
                    channel.loss_bad
                } else {
                    channel.loss_good
                };
                loss.accepts(generator.next_u32())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;

    #[test]
    fn the_mean_loss_is_what_packets_see_in_the_long_run() {
        for text in ["none", "2%", "gilbert(1%,25%)", "gilbert(1%,25%,50%,0.1%)"] {
            let loss: Loss = text.parse().unwrap();
            let (mut sampler, mut generator) = (loss.sampler(), Seed::new(5).generator());
            let count = (0..1_000_000).filter(|_| sampler.loses(&mut generator)).count();
            let seen = f64::from(u32::try_from(count).unwrap()) / 1e6;
            assert!(
                (seen - loss.mean()).abs() < 0.002,
                "{text}: {seen}, {}",
                loss.mean()
            );
        }
    }

    #[test]
    fn text_round_trips_and_zero_is_none() {
        assert_eq!("0%".parse(), Ok(Loss::None));
        for text in [
            "none",
            "0.01%",
            "gilbert(0.1%,20%)",
            "gilbert(0.1%,20%,50%)",
            "gilbert(0.1%,20%,50%,1%)",
        ] {
            assert_eq!(text.parse::<Loss>().unwrap().to_string(), text);
        }
        for text in [
            "often",
            "gilbert(1%)",
            "gilbert(1%,2%,3%,4%,5%)",
            "gilbert(1%,often)",
        ] {
            assert_eq!(text.parse::<Loss>(), Err(ConfigError::LossText(text.into())));
        }
    }

    #[test]
    fn a_scaled_loss_is_as_many_times_as_frequent_and_its_bursts_stay() {
        let scaled = |text: &str, factor| {
            let scaled = text.parse::<Loss>().unwrap().scaled(factor);
            scaled.map(|loss| loss.to_string())
        };
        for (text, factor, expected) in [
            ("none", 4.0, "none"),
            ("0.01%", 4.0, "0.04%"),
            ("0.01%", 0.0, "none"),
            ("50%", 2.0, "100%"),
            ("gilbert(0.1%,20%,50%)", 2.5, "gilbert(0.25%,20%,50%)"),
        ] {
            assert_eq!(scaled(text, factor).as_deref(), Some(expected), "{text}");
        }
        for (text, factor) in [
            ("60%", 2.0),
            ("0.01%", -1.0),
            ("none", f64::NAN),
            ("1%", f64::NAN),
        ] {
            assert_eq!(scaled(text, factor), None, "{text} times {factor}");
        }
    }

    #[test]
    fn a_gilbert_channel_loses_in_bursts_of_its_mean_length() {
        let channel: Loss = "gilbert(1%,25%)".parse().unwrap();
        let (mut sampler, mut generator) = (channel.sampler(), Seed::new(1).generator());
        let fates: Vec<bool> = (0..400_000).map(|_| sampler.loses(&mut generator)).collect();
        let lost = fates.iter().filter(|lost| **lost).count() as f64;
        let bursts = fates.windows(2).filter(|pair| pair == &[false, true]).count() as f64;
        // Mean loss 1/26 = 3.85 %, mean burst 4 packets.
        assert!((0.0365..0.0405).contains(&(lost / 400_000.0)), "{lost} lost");
        assert!(
            (3.8..4.2).contains(&(lost / bursts)),
            "bursts of {}",
            lost / bursts
        );
    }
}
