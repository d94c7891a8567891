//! [`CellularConfig`]: a synthetic cellular link. Its rate wanders, has outages, and may fade.

use core::fmt;
use core::time::Duration;

use playrate_units::Bitrate;
use rand_pcg::Pcg32;

use super::super::draw::{exponential, scale, unit, whole};
use super::super::parts_of;
use super::RateSchedule;
use crate::{ConfigError, Seed};

/// Length of the drawn part, which then repeats.
const PERIOD: Duration = Duration::from_secs(240);
/// Time between changes of the rate: a few scheduling intervals of a base station.
const STEP: Duration = Duration::from_millis(20);
/// Correlation time and standard deviation of the slow part of the rate's logarithm: the user moves, and others come
/// and go.
const SLOW: (f64, f64) = (8.0, 0.45);
/// The same for its fast part: fading, and the base station's scheduler.
const FAST: (f64, f64) = (0.3, 0.35);
/// Bounds of the rate over its median.
const BOUNDS: (f64, f64) = (0.03, 4.0);
/// Mean time between outages: handovers and shadows.
const GAP: Duration = Duration::from_secs(40);
/// Mean length of an outage. Sprout's model of such links also leaves an outage at a rate of 1/s.
const OUTAGE: Duration = Duration::from_secs(1);
/// Duration of the longest outage.
const LONGEST: Duration = Duration::from_secs(5);

/// Fades of a kind of link: long periods at a low rate.
///
/// We chose the constants so that players with a title of 0.6 times the mean rate stall as long as on recorded links.
/// Over three LTE links, a player that held 18 s stalled for 0, 0 and 3.7 s, and one that held 42 s never stalled. Over
/// a UMTS link they stalled for 27 s and 2.5 s; with a title of 0.3 times the mean rate and 18 s held, the stall was
/// 16.5 s. All three UMTS figures come from a fade of 54 s at a tenth of the mean.
#[derive(Debug)]
struct FadeModel {
    /// Shortest time between two fades, and the mean of the exponentially distributed time added to it. A player can
    /// fill its buffer in this time.
    gap: (Duration, Duration),
    /// Shortest and longest fade (log-uniform).
    length: (Duration, Duration),
    /// Lowest and highest factor of the rate in a fade (log-uniform).
    depth: (f64, f64),
}

/// Kinds of links by their names.
const KINDS: [(&str, Option<FadeModel>); 3] = [
    ("cellular", None),
    (
        "lte",
        Some(FadeModel {
            gap: (Duration::from_secs(40), Duration::from_secs(40)),
            length: (Duration::from_secs(4), Duration::from_secs(30)),
            depth: (0.02, 0.3),
        }),
    ),
    (
        "umts",
        Some(FadeModel {
            gap: (Duration::from_secs(60), Duration::from_secs(30)),
            length: (Duration::from_secs(30), Duration::from_secs(65)),
            depth: (0.05, 0.15),
        }),
    ),
];

/// A fade from one time to another, and its factor of the rate.
#[derive(Clone, Copy, Debug)]
struct Fade {
    from: Duration,
    until: Duration,
    depth: f64,
}

impl FadeModel {
    /// The fades of a period.
    fn draw(&self, draws: &mut Pcg32) -> Vec<Fade> {
        let log_uniform =
            |(from, to): (f64, f64), draws: &mut Pcg32| from * libm::pow(to / from, unit(draws));
        let mut fades: Vec<Fade> = Vec::new();
        loop {
            let end = fades.last().map_or(Duration::ZERO, |fade| fade.until);
            let from = end + self.gap.0 + exponential(draws, self.gap.1);
            if from >= PERIOD {
                return fades;
            }
            let longer = log_uniform(
                (1.0, self.length.1.as_secs_f64() / self.length.0.as_secs_f64()),
                draws,
            );
            fades.push(Fade {
                from,
                until: from + scale(self.length.0, longer),
                depth: log_uniform(self.depth, draws),
            });
        }
    }
}

/// A cellular link: a rate that changes every 20 ms, and repeats after 240 s.
///
/// The logarithm of the rate is the sum of two Ornstein-Uhlenbeck processes, a slow one (correlation time 8 s, standard
/// deviation 0.45) and a fast one (0.3 s, 0.35). So rates are log-normal with a coefficient of variation of 0.6; they
/// are kept between 0.03 and 4 times the median. Outages begin every 40 s on average and last 1 s on average, 5 s at
/// most; both are exponential. The whole is scaled to the mean rate, including outages. All parameters are ours. The
/// form follows Sprout's model of such links (Winstein et al., NSDI 2013): a wandering rate with outages that end at a
/// constant rate. Measured links differ more than these.
///
/// A link of the kind `lte` or `umts` also fades like recorded links: for 4 to 30 s at 0.02 to 0.3 of the surrounding
/// rate every 90 s, or for 30 to 65 s at 0.05 to 0.15 every 135 s.
///
/// Text form: `cellular(20Mbit/s,7)`, `lte(20Mbit/s,7)` or `umts(2Mbit/s,7)`, the mean rate and a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellularConfig {
    kind: &'static str,
    mean: Bitrate,
    seed: u64,
    schedule: RateSchedule,
}

impl CellularConfig {
    /// Draws a link of this kind and mean rate; the same seed gives the same link. The error says that the rate is zero
    /// or exceeds the exact range of the model.
    fn of_kind(
        kind: &'static str,
        fades: Option<&FadeModel>,
        mean: Bitrate,
        seed: u64,
    ) -> Result<Self, ConfigError> {
        let fades = fades.map(|model| model.draw(&mut Seed::new(seed).child(kind).generator()));
        let draws = &mut Seed::new(seed).child("cellular").generator();
        let steps = steps(mean, &fades.unwrap_or_default(), draws);
        let schedule = RateSchedule::new(&steps, Some(PERIOD)).ok();
        // An outage at every step is impossible, but rates below one bit per second round to zero.
        let schedule = schedule.ok_or_else(|| ConfigError::Rate(mean.to_string()))?;
        Ok(Self {
            kind,
            mean,
            seed,
            schedule,
        })
    }

    /// Reads a text form; `None` if it does not begin with the name of a kind.
    pub(super) fn read(text: &str) -> Option<Result<Self, ConfigError>> {
        let error = || ConfigError::RateText(text.to_owned());
        KINDS.iter().find_map(|(kind, fades)| {
            let parts = parts_of(text, kind)?;
            let [mean, seed] = *parts else {
                return Some(Err(error()));
            };
            let numbers = mean.parse().ok().zip(seed.parse().ok()).ok_or_else(error);
            Some(numbers.and_then(|(mean, seed)| Self::of_kind(kind, fades.as_ref(), mean, seed)))
        })
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

/// The steps of a period, with the mean rate `mean`.
fn steps(mean: Bitrate, fades: &[Fade], draws: &mut Pcg32) -> Vec<(Duration, Bitrate)> {
    let (mut slow, mut fast) = (Wandering::new(SLOW, draws), Wandering::new(FAST, draws));
    let mut outage = exponential(draws, GAP);
    let mut ends = outage + exponential(draws, OUTAGE).min(LONGEST);
    let mut at = Duration::ZERO;
    let mut parts = Vec::new();
    while at < PERIOD {
        let part = libm::exp(slow.next(draws) + fast.next(draws)).clamp(BOUNDS.0, BOUNDS.1);
        let is_out = (outage..ends).contains(&at);
        let fade = fades.iter().find(|fade| (fade.from..fade.until).contains(&at));
        let part = fade.map_or(part, |fade| part * fade.depth);
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

impl fmt::Display for CellularConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({},{})", self.kind, self.mean, self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Time;
    use crate::link::mix;

    fn read(text: &str) -> CellularConfig {
        CellularConfig::read(text).unwrap().unwrap()
    }

    #[test]
    fn a_seed_gives_the_same_link_with_its_mean_its_spread_and_its_outages() {
        let mean = Bitrate::from_mbps(20);
        let [link, again, other] = [7, 7, 8].map(|seed| read(&format!("cellular(20Mbit/s,{seed})")));
        assert_eq!(link, again);
        assert_ne!(link.schedule, other.schedule);
        let (mut out, mut squares, mut count) = (0.0, 0.0, 0.0);
        for seed in 0..20 {
            let steps = steps(mean, &[], &mut Seed::new(seed).child("cellular").generator());
            let rates: Vec<f64> = steps.iter().map(|(_, rate)| rate.as_mbps()).collect();
            let average = rates.iter().sum::<f64>() / rates.len() as f64;
            assert!((average - 20.0).abs() < 0.001, "{average}");
            out += rates.iter().filter(|rate| **rate < 1e-9).count() as f64;
            squares += rates.iter().map(|rate| (rate / 20.0 - 1.0).powi(2)).sum::<f64>();
            count += rates.len() as f64;
        }
        // One second in 41 is an outage, and the rest varies by 0.6 of the mean.
        assert!((0.015..0.035).contains(&(out / count)), "{}", out / count);
        let variation = (squares / count).sqrt();
        assert!((0.5..0.75).contains(&variation), "{variation}");
    }

    #[test]
    fn links_of_a_seed_stay_what_they_are() {
        let digest = |text: &str| {
            let steps = &read(text).schedule.to_string();
            steps.bytes().fold(0, |digest, byte| mix(digest, byte.into()))
        };
        let digests = ["cellular(20Mbit/s,7)", "lte(20Mbit/s,7)", "umts(2Mbit/s,7)"].map(digest);
        assert_eq!(
            digests,
            [
                1_017_029_314_772_541_525,
                15_228_024_420_966_916_481,
                11_309_376_464_965_058_082
            ]
        );
    }

    #[test]
    fn fades_have_the_lengths_and_depths_of_their_kind() {
        // For each kind: bounds of lengths in seconds, of depths, and of the mean number in a period.
        let expected = [
            ("lte", (4.0, 30.0), (0.02, 0.3), 2.0..3.0),
            ("umts", (30.0, 65.0), (0.05, 0.15), 1.2..2.0),
        ];
        for (kind, length, depth, number) in expected {
            let model = KINDS.iter().find(|(name, _)| *name == kind);
            let model = model.and_then(|(_, model)| model.as_ref()).unwrap();
            let draw = |seed| model.draw(&mut Seed::new(seed).child(kind).generator());
            let fades: Vec<Fade> = (0..400).flat_map(draw).collect();
            let mean = fades.len() as f64 / 400.0;
            assert!(number.contains(&mean), "{kind}: {mean}");
            let lengths = fades
                .iter()
                .map(|fade| fade.until.saturating_sub(fade.from).as_secs_f64());
            log_uniform(lengths.collect(), length);
            log_uniform(fades.iter().map(|fade| fade.depth).collect(), depth);
        }
    }

    /// Checks that each quarter of `values` is in its quarter of the range on a logarithmic axis.
    fn log_uniform(mut values: Vec<f64>, (from, to): (f64, f64)) {
        values.sort_by(f64::total_cmp);
        for quarter in 0..=4 {
            let value = values[quarter * (values.len() - 1) / 4];
            let place = (value / from).ln() / (to / from).ln();
            let expected = quarter as f64 / 4.0;
            assert!((place - expected).abs() < 0.08, "quarter {quarter}: {value}");
        }
    }

    /// Stalled time of a player in a period, in seconds. The title has `part` of the mean rate, and the player holds at
    /// most `holds` seconds of it.
    fn stalled(link: &CellularConfig, part: f64, holds: f64) -> f64 {
        let step = STEP.as_secs_f64();
        let (mut held, mut stalled, mut plays) = (0.0_f64, 0.0, false);
        let mut at = Duration::ZERO;
        while at < PERIOD {
            let rate = link.schedule.at(Time::from(at)).0 as f64;
            held = (held + step * rate / (part * link.mean.as_bits_per_second() as f64)).min(holds);
            plays |= held >= 2.0;
            if plays && held < step {
                stalled += step;
            } else if plays {
                held -= step;
            }
            at += STEP;
        }
        stalled
    }

    #[test]
    fn players_stall_in_fades_as_they_did_on_recorded_links() {
        let links = |kind: &str| {
            (0..60)
                .map(|seed| read(&format!("{kind}(2Mbit/s,{seed})")))
                .collect::<Vec<_>>()
        };
        let mean = |links: &[CellularConfig], part, holds| {
            links.iter().map(|link| stalled(link, part, holds)).sum::<f64>() / links.len() as f64
        };
        let (lte, umts) = (links("lte"), links("umts"));
        let all = |links: &[CellularConfig]| {
            [(0.6, 18.0), (0.6, 42.0), (0.6, 1e9), (0.3, 18.0)].map(|(part, holds)| mean(links, part, holds))
        };
        // Measured over recorded links: 1.2, 0, 0 s over LTE; 27, 2.5, 1.8 and 16.5 s over UMTS.
        let [short, long, ideal, _] = all(&lte);
        assert!(
            (0.6..3.0).contains(&short) && long < 1.0 && ideal < 1.0,
            "{:?}",
            all(&lte)
        );
        let [short, long, ideal, slow] = all(&umts);
        assert!(
            (15.0..30.0).contains(&short) && long < 4.0 && ideal < 1.8,
            "{:?}",
            all(&umts)
        );
        assert!((5.0..17.0).contains(&slow), "{slow}");
    }

    #[test]
    fn a_rate_of_nothing_is_refused() {
        for wrong in ["cellular(0bit/s,1)", "lte(20Mbit/s)", "umts(2Mbit/s,1,2)"] {
            assert!(CellularConfig::read(wrong).unwrap().is_err(), "{wrong}");
        }
        assert!(CellularConfig::read("gsm(1Mbit/s,1)").is_none());
    }
}
