//! [`Baseline`]: quinn's own controllers, unmodified.

use std::sync::Arc;

use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};

use crate::ControllerChoice;

/// One of quinn's own controllers, unmodified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Baseline {
    /// quinn's `NewReno` (RFC 6582 and RFC 9002).
    NewReno,
    /// quinn's `Cubic` (its default; written after RFC 8312).
    Cubic,
    /// quinn's `Bbr` (BBR, version 1, after Chromium; quinn calls it experimental).
    Bbr,
}

impl Baseline {
    /// Every baseline, in the order of the registry.
    pub const ALL: [Self; 3] = [Self::NewReno, Self::Cubic, Self::Bbr];

    /// Name in a [`ControllerChoice`](crate::ControllerChoice).
    pub const fn name(self) -> &'static str {
        match self {
            Self::NewReno => "quinn-newreno",
            Self::Cubic => "quinn-cubic",
            Self::Bbr => "quinn-bbr",
        }
    }

    /// One line of description for lists of controllers.
    pub const fn about(self) -> &'static str {
        match self {
            Self::NewReno => "quinn's own NewReno, unmodified, as a baseline",
            Self::Cubic => "quinn's own Cubic (its default), unmodified, as a baseline",
            Self::Bbr => "quinn's own experimental BBR (version 1), unmodified, as a baseline",
        }
    }

    /// Returns true if the same events give the same windows. quinn's `Bbr` starts its cycle of gains at a random
    /// point, from the operating system's randomness.
    pub const fn is_deterministic(self) -> bool {
        !matches!(self, Self::Bbr)
    }

    /// quinn's factory of this controller, for paths that start with an MTU of `mtu` bytes. The initial window is
    /// quinn's, or RFC 9002's if quinn's would deadlock with that MTU.
    pub fn factory(self, mtu: u16) -> Arc<dyn ControllerFactory + Send + Sync> {
        match self {
            Self::NewReno => {
                let mut config = NewRenoConfig::default();
                config.initial_window(initial_window(mtu));
                Arc::new(config)
            }
            Self::Cubic => {
                let mut config = CubicConfig::default();
                config.initial_window(initial_window(mtu));
                Arc::new(config)
            }
            // Its initial window of 240,000 bytes holds three packets of any MTU.
            Self::Bbr => Arc::new(BbrConfig::default()),
        }
    }
}

/// quinn's initial window is 12,000 bytes for every MTU. A connection that starts with an MTU of that size would never
/// send a full packet, so from 6,000 bytes on the window is the one that RFC 9002 §7.2 recommends.
fn initial_window(mtu: u16) -> u64 {
    const QUINN_INITIAL_WINDOW: u64 = 12_000;
    let mtu = u64::from(mtu);
    if 2 * mtu < QUINN_INITIAL_WINDOW {
        QUINN_INITIAL_WINDOW
    } else {
        (10 * mtu).min((2 * mtu).max(14_720))
    }
}

impl From<Baseline> for ControllerChoice {
    fn from(baseline: Baseline) -> Self {
        Self::Baseline(baseline)
    }
}
