//! [`WifiConfig`]: a Wi-Fi hop as the link behind an access point's queue.

use core::error::Error;
use core::fmt::{self, Write as _};
use core::str::FromStr;
use core::time::Duration;

use playrate_units::{Bitrate, Bytes, Probability, duration};
use rand_core::Rng;
use rand_pcg::Pcg32;

use super::super::draw::{exponential, scale, unit};
use crate::{ConfigError, QueueLimit, Time};

/// Packet size for which the mean rate holds.
const FULL_PACKET: f64 = 1_500.0;

/// A Wi-Fi hop. It serves one packet after another; four effects determine the service time of each:
///
/// - **Rate switching**: the station's rate adaptation moves to the next or previous one of `modes` at random, after an
///   exponential time of mean `mean_dwell`. At the ends it may stay, so all modes are used equally long.
/// - **Retries**: an attempt fails with probability `frame_error` and is repeated after a back-off that doubles, up to
///   `attempts` times in all; then the packet is lost. Later packets wait, so the order is kept.
/// - **Contention**: each attempt first waits for a back-off, uniform up to twice `backoff`. It represents 802.11's
///   contention window and the stations that compete in it.
/// - **Stalls**: other cells, scans and power saving occupy the channel for an exponential time of mean
///   `mean_stall`, every `mean_gap` on average.
///
/// Airtime is scaled so that, including all of this, full packets pass at `mean_rate` in the long run. Not modelled:
/// aggregation of frames, and airtime shared between both directions.
///
/// As a [`crate::Rate`] alone it is the hop's service rate; [`crate::PathConfig::wifi`] adds the hop's queues
/// and its residual loss.
///
/// # Calibration
/// All parameters except the mean rate are ours: the papers with such a hop publish measurements, not its parameters.
/// They were set once, with `cubic` alone, so that a saturated connection matches the observations of Cavendish et al.
/// (INTERNET 2014, figures 5, 6 and 9) over an available 15 Mbit/s. There, round trips start at the propagation delay
/// and peak at 150 to 200 ms over a path of 100 ms, and at up to 500 ms over one of 3 ms. `docs/simulation.md` has the
/// table. They are frozen; results that depend on them need a sweep over them.
///
/// Text form: `15Mbit/s` for the calibrated hop, `15Mbit/s,queue=1MB,residual_loss=0.1%` for another.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WifiConfig {
    /// Mean rate of a saturated hop, headers included.
    pub mean_rate: Bitrate,
    /// `modes`: relative rates, in percent, between which the hop switches. Default 60, 80, 100, 120, 140: neighbouring
    /// rates of 802.11 differ by a fifth to a third.
    pub modes: Vec<u32>,
    /// `dwell`: mean time in a mode. Default 200 ms, two rounds of Linux's rate adaptation, which tries a better rate
    /// every 100 ms.
    pub mean_dwell: Duration,
    /// `frame_error`: failure probability of one attempt to send. Default 10 %, the operating point of rate adaptation.
    pub frame_error: Probability,
    /// `attempts`: number of failed attempts after which the packet is lost. Default 7, the short retry limit
    /// of 802.11.
    pub attempts: u32,
    /// `backoff`: mean wait before the first attempt; it doubles for each later one. Default 70 µs: half of 802.11's
    /// first contention window of 15 slots of 9 µs.
    pub backoff: Duration,
    /// `gap`: mean time between stalls. Default 2 s.
    pub mean_gap: Duration,
    /// `stall`: mean length of a stall. Default 30 ms, a scan of one channel.
    pub mean_stall: Duration,
    /// `queue`: queue of the access point towards the station. Default 600 kB, calibrated: a round trip of 500 ms over
    /// 3 ms of propagation while the channel is at its slowest.
    pub queue: QueueLimit,
    /// `device_queue`: queue of the station towards the access point. Default 64 packets; acknowledgements
    /// never fill it.
    pub device_queue: QueueLimit,
    /// `residual_loss`: loss in either direction that retries do not repair. Default 0.06 %, calibrated: with less the
    /// queue is never empty, and a path of 100 ms never shows a round trip of 100 ms.
    pub residual_loss: Probability,
}

impl WifiConfig {
    /// Creates the calibrated hop of this mean rate.
    pub fn new(mean_rate: Bitrate) -> Self {
        Self {
            mean_rate,
            modes: vec![60, 80, 100, 120, 140],
            mean_dwell: Duration::from_millis(200),
            frame_error: Probability::from_parts_per_billion(100_000_000),
            attempts: 7,
            backoff: Duration::from_micros(70),
            mean_gap: Duration::from_secs(2),
            mean_stall: Duration::from_millis(30),
            queue: QueueLimit::Bytes(Bytes::from_kb(600)),
            device_queue: QueueLimit::Packets(64),
            residual_loss: Probability::from_parts_per_billion(600_000),
        }
    }

    pub(super) fn channel(&self, generator: Pcg32) -> Result<WifiChannel, ConfigError> {
        if self.mean_rate == Bitrate::ZERO || self.mean_rate.as_bits_per_second() > super::FASTEST {
            return Err(ConfigError::Rate(self.mean_rate.to_string()));
        }
        if self.modes.is_empty() || self.modes.contains(&0) {
            return Err(ConfigError::Wifi(format!(
                "modes `{:?}` must be one or more, none of them 0",
                self.modes
            )));
        }
        if self.attempts == 0 || self.frame_error == Probability::ONE {
            let (error_rate, attempts) = (self.frame_error, self.attempts);
            return Err(ConfigError::Wifi(format!(
                "a frame error of {error_rate} with {attempts} attempts never delivers a packet"
            )));
        }
        if self.mean_dwell.is_zero() || self.mean_gap.is_zero() {
            let problem = "mean dwell and mean gap must be longer than 0s";
            return Err(ConfigError::Wifi(problem.to_owned()));
        }
        let failure = self.frame_error.as_f64();
        // Attempts until success or failure, and the back-offs before them.
        let (mut reached, mut attempts, mut waited, mut wait) = (1.0, 0.0, 0.0, self.backoff.as_secs_f64());
        for _ in 0..self.attempts {
            attempts += reached;
            waited += reached * wait;
            reached *= failure;
            wait *= 2.0;
        }
        let mean_mode = self.modes.iter().map(|&mode| f64::from(mode)).sum::<f64>() / self.modes.len() as f64;
        let (gap, stall) = (self.mean_gap.as_secs_f64(), self.mean_stall.as_secs_f64());
        let open = gap / (gap + stall);
        let rate = self.mean_rate.as_bits_per_second() as f64 / open;
        let mut airtime = Vec::with_capacity(self.modes.len());
        for &mode in &self.modes {
            let service = FULL_PACKET * 8.0 * mean_mode / (rate * f64::from(mode));
            let seconds = (service - waited) / attempts;
            if seconds <= 0.0 {
                let backoff = duration::display(self.backoff);
                return Err(ConfigError::Wifi(format!(
                    "a back-off of {backoff} leaves no time to send at {}",
                    self.mean_rate
                )));
            }
            airtime.push(seconds * 1e9 / FULL_PACKET);
        }
        Ok(WifiChannel::new(self.clone(), airtime, generator))
    }
}

impl FromStr for WifiConfig {
    type Err = ConfigError;

    /// Parses `15Mbit/s` or `15Mbit/s,queue=500kB,residual_loss=0.1%`; omitted parameters are those of
    /// [`WifiConfig::new`].
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let mut parts = text.split(',').map(str::trim);
        let rate = parts.next().unwrap_or_default();
        let mut config = Self::new(
            rate.parse()
                .map_err(|error| ConfigError::Wifi(format!("{error}")))?,
        );
        for part in parts {
            let (name, value) = part.split_once('=').ok_or_else(|| {
                ConfigError::Wifi(format!("`{part}`: expected name=value, such as queue=1MB"))
            })?;
            config.set(name, value)?;
        }
        Ok(config)
    }
}

impl WifiConfig {
    /// Sets the parameter called `name` in the text form to `value`, also in text form.
    ///
    /// # Errors
    /// If there is no such parameter, or the value is invalid for it.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), ConfigError> {
        let (name, value) = (name.trim(), value.trim());
        let names = self.parameters().map(|(name, _)| name);
        if !names.contains(&name) {
            let names = names.join(", ");
            let problem = format!("unknown parameter `{name}`; expected one of: {names}");
            return Err(ConfigError::Wifi(problem));
        }
        self.assign(name, value)
            .map_err(|wrong| ConfigError::Wifi(format!("`{name}={value}`: {wrong}")))
    }

    fn assign(&mut self, name: &str, value: &str) -> Result<(), Box<dyn Error>> {
        match name {
            "queue" => self.queue = value.parse()?,
            "device_queue" => self.device_queue = value.parse()?,
            "residual_loss" => self.residual_loss = value.parse()?,
            "frame_error" => self.frame_error = value.parse()?,
            "attempts" => self.attempts = value.parse()?,
            "backoff" => self.backoff = duration::parse(value)?,
            "dwell" => self.mean_dwell = duration::parse(value)?,
            "gap" => self.mean_gap = duration::parse(value)?,
            "stall" => self.mean_stall = duration::parse(value)?,
            _ => {
                let modes = value.split('/').map(|mode| mode.trim().parse());
                self.modes = modes.collect::<Result<_, _>>()?;
            }
        }
        Ok(())
    }

    /// Name and value of every parameter except the rate, in the order of the text form.
    fn parameters(&self) -> [(&'static str, String); 10] {
        let modes: Vec<_> = self.modes.iter().map(ToString::to_string).collect();
        let time = |time| duration::display(time).to_string();
        [
            ("queue", self.queue.to_string()),
            ("device_queue", self.device_queue.to_string()),
            ("residual_loss", self.residual_loss.to_string()),
            ("modes", modes.join("/")),
            ("dwell", time(self.mean_dwell)),
            ("frame_error", self.frame_error.to_string()),
            ("attempts", self.attempts.to_string()),
            ("backoff", time(self.backoff)),
            ("gap", time(self.mean_gap)),
            ("stall", time(self.mean_stall)),
        ]
    }
}

impl fmt::Display for WifiConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calibrated = Self::new(self.mean_rate).parameters();
        let mut text = self.mean_rate.to_string();
        for (parameter, calibrated) in self.parameters().into_iter().zip(calibrated) {
            if parameter != calibrated {
                let (name, value) = parameter;
                // Writing to a String cannot fail.
                let _ = write!(text, ",{name}={value}");
            }
        }
        f.pad(&text)
    }
}

/// Running state of the hop.
#[derive(Clone, Debug)]
pub(crate) struct WifiChannel {
    config: WifiConfig,
    /// Nanoseconds per byte in each mode.
    airtime: Vec<f64>,
    mode: usize,
    mode_until: Time,
    stall: Time,
    stall_until: Time,
    generator: Pcg32,
}

impl WifiChannel {
    fn new(config: WifiConfig, airtime: Vec<f64>, mut generator: Pcg32) -> Self {
        let mode_until = Time::ZERO + exponential(&mut generator, config.mean_dwell);
        let stall = Time::ZERO + exponential(&mut generator, config.mean_gap);
        let stall_until = stall + exponential(&mut generator, config.mean_stall);
        let mode = usize::try_from(generator.next_u32()).unwrap_or(0) % airtime.len().max(1);
        Self {
            config,
            airtime,
            mode,
            mode_until,
            stall,
            stall_until,
            generator,
        }
    }

    /// First time from `start` on outside a stall.
    pub(super) fn begin(&mut self, start: Time) -> Time {
        while self.stall_until <= start {
            self.stall = self.stall_until + exponential(&mut self.generator, self.config.mean_gap);
            self.stall_until = self.stall + exponential(&mut self.generator, self.config.mean_stall);
        }
        if self.stall <= start {
            self.stall_until
        } else {
            start
        }
    }

    /// Departure time of a packet of `bytes` whose turn is at `start`, and true if all its attempts failed.
    pub(super) fn finish(&mut self, start: Time, bytes: u64) -> (Time, bool) {
        let mut now = self.begin(start);
        self.switch(now);
        let per_byte = self.airtime.get(self.mode).copied().unwrap_or(0.0);
        let once = scale(Duration::from_nanos(bytes), per_byte);
        let mut wait = self.config.backoff;
        for _ in 0..self.config.attempts {
            now = now + scale(wait, 2.0 * unit(&mut self.generator)) + once;
            if !self.config.frame_error.accepts(self.generator.next_u32()) {
                return (now, false);
            }
            wait = wait.saturating_mul(2);
        }
        (now, true)
    }

    /// Applies mode changes up to `now`.
    fn switch(&mut self, now: Time) {
        while self.mode_until <= now {
            let up = self.generator.next_u32() & 1 == 1;
            let last = self.airtime.len().saturating_sub(1);
            self.mode = if up {
                (self.mode + 1).min(last)
            } else {
                self.mode.saturating_sub(1)
            };
            self.mode_until = self.mode_until + exponential(&mut self.generator, self.config.mean_dwell);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;

    fn channel(config: &WifiConfig, seed: u64) -> WifiChannel {
        config.channel(Seed::new(seed).generator()).unwrap()
    }

    #[test]
    fn every_parameter_that_is_printed_is_read() {
        let config = WifiConfig::new(Bitrate::from_mbps(15));
        for (name, value) in config.parameters() {
            let text = format!("15Mbit/s,{name}={value}");
            assert_eq!(text.parse::<WifiConfig>().as_ref(), Ok(&config), "{text}");
        }
    }

    #[test]
    fn a_saturated_hop_carries_its_mean_rate_in_the_long_run() {
        let config = WifiConfig::new(Bitrate::from_mbps(15));
        let mut hop = channel(&config, 1);
        let (mut now, mut lost) = (Time::ZERO, 0_u64);
        let packets = 2_000_000_u64;
        for _ in 0..packets {
            let (at, failed) = hop.finish(now, 1_500);
            now = at;
            lost += u64::from(failed);
        }
        let rate = packets as f64 * 12_000.0 / now.as_secs_f64() / 1e6;
        // 1600 s contain about 1600 mode changes; the mean is accurate to a few per cent.
        assert!((14.0..16.0).contains(&rate), "{rate} Mbit/s");
        assert!(lost < 5, "0.1⁷ of two million: {lost}");
    }

    #[test]
    fn service_times_spread_and_never_run_backwards() {
        let mut hop = channel(&WifiConfig::new(Bitrate::from_mbps(15)), 2);
        let mut now = Time::ZERO;
        let mut times = Vec::new();
        for _ in 0..20_000 {
            let (at, _) = hop.finish(now, 1_500);
            assert!(at > now);
            times.push(at.since(now));
            now = at;
        }
        times.sort();
        let (median, tail) = (times[10_000], times[19_980]);
        assert!(tail > median * 3, "median {median:?}, 99.9th percentile {tail:?}");
    }

    #[test]
    fn a_hop_that_could_never_work_is_refused() {
        let mut config = WifiConfig::new(Bitrate::from_mbps(15));
        config.backoff = Duration::from_millis(5);
        let error = config.channel(Seed::new(1).generator()).unwrap_err().to_string();
        assert!(error.contains("5ms leaves no time"), "{error}");
        config.modes = vec![100, 0];
        assert!(
            config
                .channel(Seed::new(1).generator())
                .unwrap_err()
                .to_string()
                .contains("[100, 0]")
        );
    }

    #[test]
    fn text_names_what_differs_from_the_calibrated_hop() {
        for text in [
            "15Mbit/s",
            "31.9Mbit/s,queue=1MB,device_queue=10packets,residual_loss=0.1%",
            "15Mbit/s,modes=40/100,dwell=1s,frame_error=20%,attempts=4,backoff=50us,gap=5s,stall=100ms",
        ] {
            let config: WifiConfig = text.parse().unwrap();
            assert_eq!(config.to_string(), text);
        }
        let calibrated = "15Mbit/s, queue=600kB".parse::<WifiConfig>().unwrap();
        assert_eq!(calibrated, WifiConfig::new(Bitrate::from_mbps(15)));
        assert_eq!(calibrated.to_string(), "15Mbit/s");
    }

    #[test]
    fn an_unreadable_hop_is_reported_with_the_fault_and_an_example() {
        for (text, part, correction) in [
            ("fast", "fast", "20Mbit/s"),
            ("15Mbit/s,1MB", "`1MB`", "queue=1MB"),
            ("15Mbit/s,quue=1MB", "`quue`", "device_queue"),
            ("15Mbit/s,queue=long", "`queue=long`", "1bdp"),
            ("15Mbit/s,residual_loss=2", "`residual_loss=2`", "%"),
            ("15Mbit/s,modes=1/x", "`modes=1/x`", "digit"),
        ] {
            let error = text.parse::<WifiConfig>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
            assert!(error.contains(correction), "{text}: {error}");
        }
    }
}
