//! What the modelled player is told beforehand: buffer sizes, when to start, which clock.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use playrate_units::Bytes;
use thiserror::Error;

/// Playout buffer of 448 packets of 1,464 bytes: 656 kB in the 2013–2015 papers, and the default.
pub const PLAYOUT_BUFFER_448: Bytes = Bytes::new(655_872);
/// Playout buffer of 897 packets of 1,464 bytes (2015 paper, figure 8).
pub const PLAYOUT_BUFFER_897: Bytes = Bytes::new(1_313_208);
/// Playout buffer of 1,345 packets of 1,464 bytes (2015 paper, figure 9).
pub const PLAYOUT_BUFFER_1345: Bytes = Bytes::new(1_969_080);

/// What the product reads ahead of the playout buffer before it stops reading.
///
/// Large enough that flow control seldom binds on a title of ordinary rate, small enough that leaving early wastes little.
pub const READ_AHEAD: Bytes = Bytes::from_mib(16);

/// The receive buffer of the 2013–2015 papers, "256 MB so that flow control never binds".
pub const RECEIVE_BUFFER_PAPERS: Bytes = Bytes::new(256_000_000);

/// A frame shown later than this is not worth showing: the default of [`CatchUp::late`].
pub const DEFAULT_LATE: Duration = Duration::from_millis(200);
/// VLC's default clock jitter: the default of [`CatchUp::max_jitter`].
pub const DEFAULT_MAX_JITTER: Duration = Duration::from_secs(5);
/// The default of [`CatchUp::speed_percent`]: twice the frame rate.
pub const DEFAULT_CATCH_UP_PERCENT: u32 = 200;
/// The default distance of points in the time series.
pub const DEFAULT_SERIES_INTERVAL: Duration = Duration::from_millis(100);

/// Everything the playout model needs to know beforehand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayoutConfig {
    /// Size of the playout buffer ("POB"): how much is held before a catch-up clock starts or resumes after a rebase.
    pub playout_buffer: Bytes,
    /// How much may be delivered and not yet shown (the playout buffer included) before reading pauses.
    /// At least [`playout_buffer`](Self::playout_buffer).
    pub receive_buffer: Bytes,
    /// When playback starts.
    pub start: Start,
    /// What happens when a frame is due and not there.
    pub clock: Clock,
    /// Distance of the points of the time series; zero keeps none.
    pub series_interval: Duration,
}

impl PlayoutConfig {
    /// The product's player: starts when `playout_buffer` is full, reads at most [`READ_AHEAD`] beyond it.
    pub fn new(playout_buffer: Bytes, clock: Clock) -> Self {
        Self {
            playout_buffer,
            receive_buffer: playout_buffer + READ_AHEAD,
            start: Start::Filled(Fill::Bytes(playout_buffer)),
            clock,
            series_interval: DEFAULT_SERIES_INTERVAL,
        }
    }

    /// Checks that the parts fit together.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.receive_buffer < self.playout_buffer {
            return Err(ConfigError::ReceiveBuffer {
                receive_buffer: self.receive_buffer,
                playout_buffer: self.playout_buffer,
            });
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

impl Default for PlayoutConfig {
    fn default() -> Self {
        Self::new(PLAYOUT_BUFFER_448, Clock::CatchUp(CatchUp::default()))
    }
}

/// When playback starts. The first frame must be complete in any case, and the whole title in is always enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// When this much is in.
    Filled(Fill),
    /// When this much session time has passed (the 2012 paper's 10 s playout delay).
    After(Duration),
}

/// How much is delivered and not yet shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Media bytes: everything from the first frame on, so video and audio, and the small boxes of fragments.
    Bytes(Bytes),
    /// How long playback could go on with them.
    PlayingTime(Duration),
    /// Whole segments, as marked by [`Playout::end_segment`](super::Playout::end_segment).
    Segments(u32),
}

/// What the player's clock does when a frame is due and not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clock {
    /// It runs on: the picture freezes, then catches up, and frames that are too late are discarded (VLC; papers of 2012–2015).
    CatchUp(CatchUp),
    /// It stops until enough is in again (browsers, DASH players; the 2021 paper).
    Rebuffer(Rebuffer),
}

impl Clock {
    /// The name of this clock on the command line and in reports.
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
    /// A frame whose turn comes more than this after it was due is discarded.
    pub late: Duration,
    /// A frame still missing when this has passed since it was due rebases the clock.
    pub max_jitter: Duration,
    /// How fast late frames are shown after a freeze, in per cent of the frame rate. More than 100.
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

/// Parameters of the rebuffer clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebuffer {
    /// How much must be in for playback to go on after a stall (the whole rest of the title is always enough).
    pub resume: Fill,
}

/// A clock by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClockKind {
    /// [`Clock::CatchUp`], written `catch-up`.
    CatchUp,
    /// [`Clock::Rebuffer`], written `rebuffer`.
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

/// A player that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No clock has this name.
    #[error("`{0}` is not a playout clock: write catch-up or rebuffer")]
    Clock(String),
    /// The receive buffer includes the playout buffer, so it cannot be smaller.
    #[error(
        "a receive buffer of {receive_buffer} cannot hold the playout buffer of {playout_buffer}: make it at least as large"
    )]
    ReceiveBuffer {
        /// What was asked for.
        receive_buffer: Bytes,
        /// What it must hold.
        playout_buffer: Bytes,
    },
    /// Late frames shown at the frame rate or slower never catch up.
    #[error("a catch-up speed of {0} % never catches up: make it more than 100 %")]
    CatchUpSpeed(u32),
    /// The clock would rebase before the first frame is late enough to be discarded.
    #[error("--max-jitter {} is below --late {}: make it at least as long", playrate_units::duration::display(*.max_jitter), playrate_units::duration::display(*.late))]
    MaxJitter {
        /// What was asked for.
        max_jitter: Duration,
        /// The lateness that discards a frame.
        late: Duration,
    },
}
