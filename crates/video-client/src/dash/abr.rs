//! [`Abr`]: the rule that chooses the representation of the next segment.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use playrate_units::Bitrate;
use thiserror::Error;

use super::history::ThroughputHistory;
use super::presentation::Presentation;
use super::switch_history::SwitchHistory;
use crate::error::PresentationError;

// dash.js 4.0.0, `Settings.js`, `AbrController.js`, `InsufficientBufferRule.js`.

/// Assumed throughput before the first segment (`DEFAULT_VIDEO_BITRATE`).
const INITIAL: Bitrate = Bitrate::from_kbps(1_000);
/// Playing time below which the buffer counts as empty (`stallThreshold`).
const EMPTY: Duration = Duration::from_millis(300);
/// Segments before an empty buffer leads to the lowest rate (`SEGMENT_IGNORE_COUNT`).
const IGNORED: usize = 2;

/// The rule that chooses the representation of the next segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Abr {
    /// `throughput`: the highest rate that the throughput of the last segments allows, and the lowest while the buffer
    /// is empty (dash.js's `ThroughputRule` and `InsufficientBufferRule`).
    #[default]
    Throughput,
    /// `throughput+switch-history`: the same, but it does not switch up to a representation that recent decisions
    /// mostly left for a lower one (dash.js's `SwitchHistoryRule`, which is on by default there).
    ThroughputSwitchHistory,
    /// `fixed:NAME`: always the representation with this name.
    Fixed(String),
}

impl fmt::Display for Abr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Throughput => f.pad("throughput"),
            Self::ThroughputSwitchHistory => f.pad("throughput+switch-history"),
            Self::Fixed(name) => write!(f, "fixed:{name}"),
        }
    }
}

/// A text that is not an [`Abr`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "unknown rule `{0}` to choose a representation; expected throughput, throughput+switch-history or fixed:NAME"
)]
pub struct AbrError(String);

impl FromStr for Abr {
    type Err = AbrError;

    fn from_str(text: &str) -> Result<Self, AbrError> {
        match (text, text.strip_prefix("fixed:")) {
            ("throughput", _) => Ok(Self::Throughput),
            ("throughput+switch-history", _) => Ok(Self::ThroughputSwitchHistory),
            (_, Some(name)) if !name.is_empty() => Ok(Self::Fixed(name.to_owned())),
            _ => Err(AbrError(text.to_owned())),
        }
    }
}

/// Applies an [`Abr`] and keeps the last choice.
#[derive(Clone, Debug)]
pub(super) struct Chooser {
    rates: Vec<Bitrate>,
    /// Index of the last chosen representation.
    pub(super) current: usize,
    is_fixed: bool,
    switches: Option<SwitchHistory>,
}

impl Chooser {
    pub(super) fn new(abr: &Abr, presentation: &Presentation) -> Result<Self, PresentationError> {
        let rates: Vec<Bitrate> = presentation.representations().iter().map(|it| it.rate).collect();
        let current = match abr {
            Abr::Fixed(name) => presentation.named(name)?,
            Abr::Throughput | Abr::ThroughputSwitchHistory => highest(&rates, INITIAL),
        };
        Ok(Self {
            rates,
            current,
            is_fixed: matches!(abr, Abr::Fixed(_)),
            switches: (*abr == Abr::ThroughputSwitchHistory).then(SwitchHistory::default),
        })
    }

    /// Returns true if the current representation is the highest.
    pub(super) fn is_at_top(&self) -> bool {
        self.current + 1 == self.rates.len()
    }

    /// Chooses the lowest representation that a rule proposes; keeps the last one if no rule does.
    /// `held` is the playing time in the buffer, `segments` the number of those fetched, `duration` that of the next.
    pub(super) fn choose(
        &mut self,
        history: &ThroughputHistory,
        (held, segments, duration): (Duration, usize, Duration),
    ) -> usize {
        if self.is_fixed {
            return self.current;
        }
        let switches = &mut self.switches;
        let loaded = held >= EMPTY;
        let by_throughput = history
            .usable(duration)
            .filter(|_| loaded)
            .map(|rate| highest(&self.rates, rate));
        let by_buffer = (!loaded && segments >= IGNORED).then_some(0);
        let by_history = switches
            .as_ref()
            .and_then(|switches| switches.limit(self.rates.len()));
        let rules = [by_throughput, by_buffer, by_history];
        let chosen = rules.into_iter().flatten().min().unwrap_or(self.current);
        if let Some(switches) = switches {
            switches.push(self.current, chosen);
        }
        self.current = chosen;
        chosen
    }
}

/// The highest of these rates that does not exceed `rate`; the lowest if all do.
fn highest(rates: &[Bitrate], rate: Bitrate) -> usize {
    rates.iter().rposition(|&it| it <= rate).unwrap_or(0)
}
