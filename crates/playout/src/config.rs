//! [`PlayoutConfig`]: buffer sizes, condition to start, and the clock of the modelled player.
#![expect(
    clippy::exhaustive_structs,
    clippy::exhaustive_enums,
    reason = "settings are literals, and new kinds must be handled where settings are read or described"
)]

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use playrate_units::Bytes;
use thiserror::Error;

use super::from_nanos;

/// Playout buffer of 448 packets of 1,464 bytes: 656 kB in the 2013–2015 papers, and the default.
pub const PLAYOUT_BUFFER_448: Bytes = Bytes::new(655_872);
/// Bytes that the client reads ahead of the playout buffer before it pauses reading.
///
/// Large enough that flow control seldom limits a title of ordinary rate, small enough that little is wasted if a
/// viewer leaves early.
pub const READ_AHEAD: Bytes = Bytes::from_mib(16);

/// Receive buffer of the papers of 2013 to 2015, "256 MB so that flow control never binds".
pub const RECEIVE_BUFFER_PAPERS: Bytes = Bytes::new(256_000_000);

/// Default of [`CatchUp::late`]: 200 ms.
pub const DEFAULT_LATE: Duration = Duration::from_millis(200);
/// Default of [`CatchUp::max_jitter`]: VLC's clock jitter.
pub const DEFAULT_MAX_JITTER: Duration = Duration::from_secs(5);
/// Default of [`CatchUp::speed_percent`]: twice the frame rate.
pub const DEFAULT_CATCH_UP_PERCENT: u32 = 200;
/// Default of [`PlayoutConfig::series_interval`]: 100 ms.
pub const DEFAULT_SERIES_INTERVAL: Duration = Duration::from_millis(100);

/// Settings of the modelled player.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayoutConfig {
    /// Size of the playout buffer ("POB" in the papers). A catch-up clock resumes after a rebase when it is full.
    pub playout_buffer: Bytes,
    /// Bytes delivered and not yet shown, including the playout buffer, at which reading pauses. At least
    /// [`playout_buffer`](Self::playout_buffer).
    pub receive_buffer: Bytes,
    /// Condition for playback to start.
    pub start: Start,
    /// Behaviour if a frame is due and not complete.
    pub clock: Clock,
    /// Time between points of the series; zero keeps no series.
    pub series_interval: Duration,
    /// Playback speed chosen by the viewer in per cent: at 200, a second of the title is shown in half a second. At
    /// least 1.
    pub speed_percent: u32,
}

impl PlayoutConfig {
    /// The client's player: starts when `playout_buffer` is full and reads at most [`READ_AHEAD`] beyond it.
    pub fn new(playout_buffer: Bytes, clock: Clock) -> Self {
        Self {
            playout_buffer,
            receive_buffer: playout_buffer + READ_AHEAD,
            start: Start::Filled(Fill::Bytes(playout_buffer)),
            clock,
            series_interval: DEFAULT_SERIES_INTERVAL,
            speed_percent: 100,
        }
    }

    /// Time for showing `media` of the title at the playback speed.
    pub fn viewing_time(&self, media: Duration) -> Duration {
        scaled(media, 100, self.speed_percent)
    }

    /// Media time of the title shown in `viewing` at the playback speed.
    pub fn media_time(&self, viewing: Duration) -> Duration {
        scaled(viewing, self.speed_percent, 100)
    }

    /// Checks the settings for contradictions.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.receive_buffer < self.playout_buffer {
            return Err(ConfigError::ReceiveBuffer {
                receive_buffer: self.receive_buffer,
                playout_buffer: self.playout_buffer,
            });
        }
        if self.speed_percent == 0 {
            return Err(ConfigError::Speed);
        }
        match &self.clock {
            Clock::CatchUp(clock) if clock.speed_percent <= 100 => {
                Err(ConfigError::CatchUpSpeed(clock.speed_percent))
            }
            Clock::CatchUp(clock) if clock.max_jitter < clock.late => Err(ConfigError::MaxJitter {
                max_jitter: clock.max_jitter,
                late: clock.late,
            }),
            _ => Ok(()),
        }
    }
}

/// `time` × `numerator` ÷ `denominator`; the latter is not zero in a checked configuration.
pub(super) fn scaled(time: Duration, numerator: u32, denominator: u32) -> Duration {
    let nanos = time.as_nanos() * u128::from(numerator) / u128::from(denominator.max(1));
    from_nanos(nanos)
}

impl Default for PlayoutConfig {
    fn default() -> Self {
        Self::new(PLAYOUT_BUFFER_448, Clock::CatchUp(CatchUp::default()))
    }
}

/// Condition for playback to start. The first frame must always be complete; the whole title is always enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// This much is held.
    Filled(Fill),
    /// This much time has passed since the session began (10 s playout delay in the 2012 paper).
    After(Duration),
}

/// An amount of media delivered and not yet shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Media bytes: everything from the first frame on, that is, video, audio, and the small boxes of fragments.
    Bytes(Bytes),
    /// Playing time of the held bytes.
    PlayingTime(Duration),
    /// Whole segments, as marked by [`Playout::end_segment`](super::Playout::end_segment).
    Segments(u32),
}

/// Behaviour of the player if a frame is due and not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The clock continues: after a stall late frames are shown faster, and frames that are too late are discarded
    /// (VLC; papers of 2012 to 2015).
    CatchUp(CatchUp),
    /// The clock stops until this much is held again; the whole remainder of the title is always enough (browsers, DASH
    /// players; the 2021 paper).
    Rebuffer(Fill),
}

impl Clock {
    /// Kind of this clock, its name on the command line and in reports.
    pub fn kind(&self) -> ClockKind {
        match self {
            Self::CatchUp(_) => ClockKind::CatchUp,
            Self::Rebuffer(_) => ClockKind::Rebuffer,
        }
    }
}

/// Parameters of the catch-up clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatchUp {
    /// Lateness beyond which a frame is discarded.
    pub late: Duration,
    /// Lateness of an incomplete frame at which the clock is rebased. At least [`late`](Self::late).
    pub max_jitter: Duration,
    /// Speed of late frames after a stall in per cent of the frame rate. More than 100.
    pub speed_percent: u32,
}

impl Default for CatchUp {
    fn default() -> Self {
        Self {
            late: DEFAULT_LATE,
            max_jitter: DEFAULT_MAX_JITTER,
            speed_percent: DEFAULT_CATCH_UP_PERCENT,
        }
    }
}

/// Name of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClockKind {
    /// Name `catch-up` of [`Clock::CatchUp`].
    CatchUp,
    /// Name `rebuffer` of [`Clock::Rebuffer`].
    Rebuffer,
}

impl fmt::Display for ClockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::CatchUp => "catch-up",
            Self::Rebuffer => "rebuffer",
        })
    }
}

impl FromStr for ClockKind {
    type Err = ConfigError;
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        match text {
            "catch-up" => Ok(Self::CatchUp),
            "rebuffer" => Ok(Self::Rebuffer),
            _ => Err(ConfigError::Clock(text.to_owned())),
        }
    }
}

/// Settings that contradict each other, or an unknown name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A name that is not a clock's.
    #[error("unknown playout clock `{0}`; expected catch-up or rebuffer")]
    Clock(String),
    /// The receive buffer includes the playout buffer, so it cannot be smaller.
    #[error(
        "the receive buffer ({receive_buffer}) must be at least as large as the playout buffer ({playout_buffer})"
    )]
    ReceiveBuffer {
        /// The setting that is too small.
        receive_buffer: Bytes,
        /// The smallest size allowed.
        playout_buffer: Bytes,
    },
    /// Playback speed zero: the title would never be shown.
    #[error("the playback speed must be at least 1 % (got 0 %)")]
    Speed,
    /// Late frames shown at the frame rate or slower never catch up.
    #[error("the catch-up speed must be more than 100 % of the frame rate (got {0} %)")]
    CatchUpSpeed(u32),
    /// The clock would rebase before the first frame is late enough to be discarded.
    #[error(
        "--max-jitter ({}) must be at least --late ({})",
        playrate_units::duration::display(*.max_jitter),
        playrate_units::duration::display(*.late)
    )]
    MaxJitter {
        /// The setting that is too small.
        max_jitter: Duration,
        /// The lateness that discards a frame.
        late: Duration,
    },
}
