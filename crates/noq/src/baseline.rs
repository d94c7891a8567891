//! [`Baseline`]: noq's own controllers, unmodified.

use std::sync::Arc;

use noq_proto::congestion::{Bbr3Config, ControllerFactory, CubicConfig, NewRenoConfig};

use crate::ControllerChoice;

/// One of noq's own controllers, unmodified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Baseline {
    /// noq's `NewReno` (RFC 6582 and RFC 9002).
    NewReno,
    /// noq's `Cubic` (its default; written after RFC 8312).
    Cubic,
    /// noq's `Bbr3`, which is BBR in version 3 (draft-ietf-ccwg-bbr).
    Bbr3,
}

impl Baseline {
    /// Every baseline, in the order of the registry.
    pub const ALL: [Self; 3] = [Self::NewReno, Self::Cubic, Self::Bbr3];

    /// Name in a [`ControllerChoice`](crate::ControllerChoice).
    pub const fn name(self) -> &'static str {
        match self {
            Self::NewReno => "noq-newreno",
            Self::Cubic => "noq-cubic",
            Self::Bbr3 => "noq-bbr3",
        }
    }

    /// One line of description for lists of controllers.
    pub const fn about(self) -> &'static str {
        match self {
            Self::NewReno => "noq's own NewReno, unmodified, as a baseline",
            Self::Cubic => "noq's own Cubic (its default), unmodified, as a baseline",
            Self::Bbr3 => "noq's own BBR (version 3), unmodified, as a baseline",
        }
    }

    /// noq's factory of this controller. The initial window is noq's, 12,000 bytes, or two packets if an MTU of `mtu`
    /// bytes makes those larger.
    pub fn factory(self, mtu: u16) -> Arc<dyn ControllerFactory + Send + Sync> {
        let window = (2 * u64::from(mtu)).max(12_000);
        match self {
            Self::NewReno => {
                let mut config = NewRenoConfig::default();
                config.initial_window(window);
                Arc::new(config)
            }
            Self::Cubic => {
                let mut config = CubicConfig::default();
                config.initial_window(window);
                Arc::new(config)
            }
            Self::Bbr3 => {
                let mut config = Bbr3Config::default();
                config.initial_window(window);
                Arc::new(config)
            }
        }
    }
}

impl From<Baseline> for ControllerChoice {
    fn from(baseline: Baseline) -> Self {
        Self::Baseline(baseline)
    }
}
