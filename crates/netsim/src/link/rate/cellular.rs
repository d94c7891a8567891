//! [`CellularConfig`]: a made-up cellular link whose rate wanders and at times fails.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use playrate_units::Bitrate;
use rand_pcg::Pcg32;

use super::super::draw::{exponential, unit, whole};
use super::RateSchedule;
use crate::{ConfigError, Seed};

/// Length of the drawn part; then it repeats.
const PERIOD: Duration = Duration::from_secs(240);
/// Time for which a rate holds: a few scheduling intervals of a base station.
const STEP: Duration = Duration::from_millis(20);
/// Correlation time and standard deviation of the slow part of the rate's logarithm: a user who moves, and others who
/// come and go.
const SLOW: (f64, f64) = (8.0, 0.45);
/// The same of its fast part: fading, and the base station's scheduler.
const FAST: (f64, f64) = (0.3, 0.35);
/// Bounds of the rate over its median.
const BOUNDS: (f64, f64) = (0.03, 4.0);
/// Mean time between outages: handovers and shadows.
const GAP: Duration = Duration::from_secs(40);
/// Mean length of an outage. Sprout's model of such links leaves an outage at a rate of 1/s as well.
const OUTAGE: Duration = Duration::from_secs(1);
/// Duration of the longest outage.
const LONGEST: Duration = Duration::from_secs(5);

/// A cellular link: a rate that holds for 20 ms at a time, and repeats after 240 s.
///
/// The logarithm of the rate is the sum of two Ornstein-Uhlenbeck processes, a slow one (correlation time 8 s, standard
/// deviation 0.45) and a fast one (0.3 s, 0.35), so that rates are log-normal with a coefficient of variation of 0.6;
/// they are kept between 0.03 and 4 times the median. Outages begin every 40 s on average and last 1 s on average, 5 s
/// at most; both are exponential. The whole is scaled to the mean rate, outages included. All parameters are ours: the
/// form follows the model by which Sprout (Winstein et al., NSDI 2013) describes such links, a rate that wanders with
/// outages from which it escapes at a constant rate, and measured links differ by more than these do.
///
/// Text form: `20Mbit/s,7`, the mean rate and a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellularConfig {
    mean: Bitrate,
    seed: u64,
    schedule: RateSchedule,
}

impl CellularConfig {
    /// Draws a link of this mean rate; the same for the same seed.
    ///
    /// # Errors
    /// If the rate is zero, or beyond what the model counts exactly.
    pub fn new(mean: Bitrate, seed: u64) -> Result<Self, ConfigError> {
        let steps = steps(mean, &mut Seed::new(seed).child("cellular").generator());
        let schedule = RateSchedule::new(&steps, Some(PERIOD)).ok();
        // An outage at every step cannot be, but rates below one bit per second round to zero.
        let schedule = schedule.ok_or_else(|| ConfigError::Rate(mean.to_string()))?;
        Ok(Self { mean, seed, schedule })
    }

    /// Mean rate over a period.
    pub fn mean(&self) -> Bitrate {
        self.mean
    }

    pub(super) fn schedule(&self) -> &RateSchedule {
        &self.schedule
    }
}

/// An Ornstein-Uhlenbeck process in steps of [`STEP`], exact at each.
struct Wandering {
    keeps: f64,
    moves: f64,
    now: f64,
}

impl Wandering {
    fn new((time, deviation): (f64, f64), draws: &mut Pcg32) -> Self {
        let keeps = libm::exp(-STEP.as_secs_f64() / time);
        Self {
            keeps,
            moves: deviation * libm::sqrt(1.0 - keeps * keeps),
            now: deviation * normal(draws),
        }
    }

    fn next(&mut self, draws: &mut Pcg32) -> f64 {
        self.now = self.keeps * self.now + self.moves * normal(draws);
        self.now
    }
}

/// A standard normal draw (Box and Muller 1958).
fn normal(draws: &mut Pcg32) -> f64 {
    // 1 − u is never zero.
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - unit(draws)));
    radius * libm::cos(core::f64::consts::TAU * unit(draws))
}

/// The steps of a period, whose mean is `mean`.
fn steps(mean: Bitrate, draws: &mut Pcg32) -> Vec<(Duration, Bitrate)> {
    let (mut slow, mut fast) = (Wandering::new(SLOW, draws), Wandering::new(FAST, draws));
    let mut outage = exponential(draws, GAP);
    let mut ends = outage + exponential(draws, OUTAGE).min(LONGEST);
    let mut at = Duration::ZERO;
    let mut parts = Vec::new();
    while at < PERIOD {
        let part = libm::exp(slow.next(draws) + fast.next(draws)).clamp(BOUNDS.0, BOUNDS.1);
        let is_out = (outage..ends).contains(&at);
        parts.push((at, if is_out { 0.0 } else { part }));
        at += STEP;
        if at >= ends {
            outage = at + exponential(draws, GAP);
            ends = outage + exponential(draws, OUTAGE).min(LONGEST);
        }
    }
    let sum: f64 = parts.iter().map(|(_, part)| part).sum();
    let scale = mean.as_bits_per_second() as f64 * parts.len() as f64 / sum;
    parts
        .into_iter()
        .map(|(at, part)| (at, Bitrate::from_bits_per_second(whole(part * scale))))
        .collect()
}

impl FromStr for CellularConfig {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let error = || ConfigError::RateText(format!("cellular({text})"));
        let (mean, seed) = text.split_once(',').ok_or_else(error)?;
        let mean = mean.trim().parse().map_err(|_| error())?;
        Self::new(mean, seed.trim().parse().map_err(|_| error())?)
    }
}

impl fmt::Display for CellularConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.mean, self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_link_with_its_mean_its_spread_and_its_outages() {
        let mean = Bitrate::from_mbps(20);
        let link = CellularConfig::new(mean, 7).unwrap();
        assert_eq!(link, "20Mbit/s,7".parse().unwrap());
        assert_ne!(link.schedule, CellularConfig::new(mean, 8).unwrap().schedule);
        let (mut out, mut squares, mut count) = (0.0, 0.0, 0.0);
        for seed in 0..20 {
            let steps = steps(mean, &mut Seed::new(seed).child("cellular").generator());
            let rates: Vec<f64> = steps.iter().map(|(_, rate)| rate.as_mbps()).collect();
            let average = rates.iter().sum::<f64>() / rates.len() as f64;
            assert!((average - 20.0).abs() < 0.001, "{average}");
            out += rates.iter().filter(|rate| **rate < 1e-9).count() as f64;
            squares += rates.iter().map(|rate| (rate / 20.0 - 1.0).powi(2)).sum::<f64>();
            count += rates.len() as f64;
        }
        // A second of every 41 is an outage, and the rest varies by 0.6 of the mean.
        assert!((0.015..0.035).contains(&(out / count)), "{}", out / count);
        let variation = (squares / count).sqrt();
        assert!((0.5..0.75).contains(&variation), "{variation}");
    }

    #[test]
    fn a_rate_of_nothing_is_refused() {
        assert!("0bit/s,1".parse::<CellularConfig>().is_err());
        assert!("20Mbit/s".parse::<CellularConfig>().is_err());
    }
}
