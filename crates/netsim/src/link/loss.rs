//! [`Loss`]: packets that leave the queue and never arrive.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use playrate_units::Probability;
use rand_core::Rng;
use rand_pcg::Pcg32;

use super::draw::whole;
use super::parts_of;
use crate::{ConfigError, Time};

/// Random loss on the wire. A lost packet still uses its place in the queue and its time on the link.
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

/// A channel that is good or bad and may change with every packet (Gilbert, BSTJ 1960; Elliott, BSTJ 1963). Its mean
/// loss is `(to_bad · loss_bad + to_good · loss_good) / (to_bad + to_good)`; on a busy link, a bad time lasts
/// `1 / to_good` packets. While the link carries none of its packets, the channel may change once for each full packet
/// that the link could have carried at its mean rate. So a burst also ends by time. On a link without a rate it only
/// changes with packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GilbertElliott {
    /// Probability that a good channel turns bad before a packet, or in the time of one.
    pub to_bad: Probability,
    /// Probability that a bad channel turns good before a packet, or in the time of one.
    pub to_good: Probability,
    /// Loss probability while the channel is bad.
    pub loss_bad: Probability,
    /// Loss probability while the channel is good.
    pub loss_good: Probability,
}

impl Loss {
    /// The same loss, `factor` times as frequent: the probability of independent loss, or that of a good channel
    /// turning bad, so that bursts keep their length. `None` if `factor` is negative or makes a probability exceed 100
    /// %.
    pub fn scaled(self, factor: f64) -> Option<Self> {
        let scaled = |probability: Probability| {
            let parts = f64::from(probability.as_parts_per_billion()) * factor;
            let most = f64::from(Probability::ONE.as_parts_per_billion());
            (0.0..=most).contains(&parts).then(|| rounded(parts))
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
                    // It begins good and stays good.
                    return channel.loss_good.as_f64();
                }
                let lost = to_bad * channel.loss_bad.as_f64() + to_good * channel.loss_good.as_f64();
                lost / (to_bad + to_good)
            }
        }
    }

    /// Draws losses on a link that needs `packet_time` for a full packet at its mean rate; zero if it has no rate.
    pub(crate) fn sampler(self, packet_time: Duration) -> LossSampler {
        LossSampler {
            loss: self,
            packet_time,
            bad: false,
            last_departure: None,
        }
    }
}

impl GilbertElliott {
    /// Probability that a channel in state `bad` is in the other state after this number of steps. If a good channel
    /// turns bad with probability a and a bad one turns good with probability b, the channel is bad after k steps with
    /// probability `π + (s − π)(1 − a − b)^k`. `π = a/(a + b)` is the stationary probability of a bad channel; s is 1
    /// if it was bad before, and 0 if not.
    fn turns(&self, bad: bool, steps: u64) -> Probability {
        let turn = if bad { self.to_good } else { self.to_bad };
        let either = self.to_bad.as_f64() + self.to_good.as_f64();
        if steps <= 1 || either == 0.0 {
            return turn;
        }
        let mixed = 1.0 - libm::pow(1.0 - either, steps as f64);
        rounded(f64::from(turn.as_parts_per_billion()) * mixed / either)
    }
}

/// The probability nearest to this number of parts per billion; bounded by 0 and 1.
fn rounded(parts: f64) -> Probability {
    Probability::from_parts_per_billion(u32::try_from(whole(parts)).unwrap_or(u32::MAX))
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
        // Gilbert's channel: everything is lost while it is bad, nothing while it is good.
        let channel = GilbertElliott {
            to_bad,
            to_good,
            loss_bad: parts.get(2).copied().unwrap_or(Probability::ONE),
            loss_good: parts.get(3).copied().unwrap_or(Probability::ZERO),
        };
        Ok(Self::GilbertElliott(channel))
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.pad("none"),
            Self::Bernoulli(probability) => probability.fmt(f),
            Self::GilbertElliott(channel) => {
                write!(f, "gilbert({},{}", channel.to_bad, channel.to_good)?;
                if channel.loss_bad != Probability::ONE || channel.loss_good != Probability::ZERO {
                    write!(f, ",{}", channel.loss_bad)?;
                }
                if channel.loss_good != Probability::ZERO {
                    write!(f, ",{}", channel.loss_good)?;
                }
                f.write_str(")")
            }
        }
    }
}

/// Draws the loss of each packet.
#[derive(Clone, Debug)]
pub(crate) struct LossSampler {
    loss: Loss,
    /// Time of a full packet at the link's mean rate; zero without a rate.
    packet_time: Duration,
    bad: bool,
    last_departure: Option<Time>,
}

impl LossSampler {
    /// Returns true if the packet whose turn is at `start` and that departs at `departs` is lost.
    pub(crate) fn loses(&mut self, start: Time, departs: Time, generator: &mut Pcg32) -> bool {
        match &self.loss {
            Loss::None => false,
            Loss::Bernoulli(probability) => probability.accepts(generator.next_u32()),
            Loss::GilbertElliott(channel) => {
                let steps = self.idle_packets(start).saturating_add(1);
                self.bad ^= channel.turns(self.bad, steps).accepts(generator.next_u32());
                self.last_departure = Some(departs);
                let loss = if self.bad {
                    channel.loss_bad
                } else {
                    channel.loss_good
                };
                loss.accepts(generator.next_u32())
            }
        }
    }

    /// Number of full packets that the link could have carried at its mean rate from the last packet to `start`.
    fn idle_packets(&self, start: Time) -> u64 {
        let last = self.last_departure.unwrap_or(start);
        let idle = start.since(last).as_nanos();
        let packets = idle.checked_div(self.packet_time.as_nanos()).unwrap_or(0);
        u64::try_from(packets).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;

    /// Time of a full packet in these tests.
    const PACKET: Duration = Duration::from_millis(1);

    /// Fates of `count` packets that each begin `idle` after the departure of the previous one.
    fn fates(loss: Loss, seed: u64, idle: Duration, count: usize) -> Vec<bool> {
        let (mut sampler, mut generator) = (loss.sampler(PACKET), Seed::new(seed).generator());
        let mut start = Time::ZERO;
        let fates = (0..count).map(|_| {
            let departs = start + PACKET;
            let is_lost = sampler.loses(start, departs, &mut generator);
            start = departs + idle;
            is_lost
        });
        fates.collect()
    }

    fn count(fates: &[bool]) -> f64 {
        fates.iter().filter(|lost| **lost).count() as f64
    }

    #[test]
    fn the_mean_loss_is_what_packets_see_in_the_long_run() {
        for text in ["none", "2%", "gilbert(1%,25%)", "gilbert(1%,25%,50%,0.1%)"] {
            let loss: Loss = text.parse().unwrap();
            for idle in [Duration::ZERO, PACKET * 5 / 2, Duration::from_secs(1)] {
                let seen = count(&fates(loss, 5, idle, 1_000_000)) / 1e6;
                let mean = loss.mean();
                assert!((seen - mean).abs() < 0.002, "{text}, {idle:?}: {seen}, {mean}");
            }
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
        let fates = fates(channel, 1, Duration::ZERO, 400_000);
        let lost = count(&fates);
        let bursts = fates.windows(2).filter(|pair| pair == &[false, true]).count() as f64;
        // Mean loss 1/26 = 3.85 %, mean burst 4 packets.
        assert!((0.0365..0.0405).contains(&(lost / 400_000.0)), "{lost} lost");
        assert!(
            (3.8..4.2).contains(&(lost / bursts)),
            "bursts of {}",
            lost / bursts
        );
    }

    fn channel(text: &str) -> GilbertElliott {
        match text.parse() {
            Ok(Loss::GilbertElliott(channel)) => channel,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn on_a_busy_link_the_channel_takes_one_step_for_each_packet() {
        // A step for each packet, written out; an idle time shorter than a packet does not count.
        let channel = channel("gilbert(3%,10%,80%,1%)");
        let mut generator = Seed::new(9).generator();
        let mut bad = false;
        let mut expected = Vec::new();
        for _ in 0..10_000 {
            let turn = if bad { channel.to_good } else { channel.to_bad };
            bad ^= turn.accepts(generator.next_u32());
            let loss = if bad { channel.loss_bad } else { channel.loss_good };
            expected.push(loss.accepts(generator.next_u32()));
        }
        for idle in [Duration::ZERO, PACKET.saturating_sub(Duration::from_nanos(1))] {
            assert_eq!(
                fates(Loss::GilbertElliott(channel), 9, idle, 10_000),
                expected,
                "{idle:?}"
            );
        }
        assert_ne!(fates(Loss::GilbertElliott(channel), 9, PACKET, 10_000), expected);
    }

    #[test]
    fn many_steps_at_once_are_as_many_single_steps() {
        for text in ["gilbert(1%,25%)", "gilbert(0.1%,0.2%)", "gilbert(90%,80%)"] {
            let channel = channel(text);
            let (to_bad, to_good) = (channel.to_bad.as_f64(), channel.to_good.as_f64());
            for begins_bad in [false, true] {
                let mut bad = f64::from(u8::from(begins_bad));
                for steps in 1..=40 {
                    bad = bad * (1.0 - to_good) + (1.0 - bad) * to_bad;
                    let turned = if begins_bad { 1.0 - bad } else { bad };
                    let turns = channel.turns(begins_bad, steps).as_f64();
                    assert!(
                        (turns - turned).abs() < 2e-9,
                        "{text}, {steps}: {turns}, {turned}"
                    );
                }
                let stationary = if begins_bad { to_good } else { to_bad } / (to_bad + to_good);
                let turns = channel.turns(begins_bad, u64::MAX).as_f64();
                assert!((turns - stationary).abs() < 2e-9, "{text}: {turns}, {stationary}");
            }
        }
        assert_eq!(channel("gilbert(0%,0%)").turns(true, 1_000), Probability::ZERO);
    }

    #[test]
    fn a_probe_each_second_is_soon_out_of_a_burst_that_packets_alone_would_hardly_leave() {
        // Bursts of 100 packets, 100 ms of a busy link.
        let channel: Loss = "gilbert(0.01%,1%)".parse().unwrap();
        for seed in 0..200 {
            let mut sampler = channel.sampler(PACKET);
            sampler.bad = true;
            let mut generator = Seed::new(seed).generator();
            let mut lost =
                |sampler: &mut LossSampler, start| sampler.loses(start, start + PACKET, &mut generator);
            lost(&mut sampler, Time::ZERO);
            let probes = [1, 2].map(|second| lost(&mut sampler, Time::from_secs(second)));
            assert_ne!(probes, [true; 2], "seed {seed}");
        }
    }

    #[test]
    fn without_a_rate_only_packets_count() {
        let channel: Loss = "gilbert(1%,25%)".parse().unwrap();
        let fates_of = |gap: Duration| -> Vec<bool> {
            let (mut sampler, mut generator) = (channel.sampler(Duration::ZERO), Seed::new(1).generator());
            let at = (0..10_000).map(|n| Time::ZERO + gap * n);
            at.map(|at| sampler.loses(at, at, &mut generator)).collect()
        };
        assert_eq!(fates_of(Duration::ZERO), fates_of(Duration::from_secs(1)));
    }
}
