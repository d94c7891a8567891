//! Controllers by name: playrate's own, quinn's as baselines, and any of your own.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use playrate_cc::{CongestionController, VideoKnowledge};

use crate::baseline::Baseline;

/// Builds a controller for a path whose MTU is given in bytes.
type Build = dyn Fn(u16, Arc<VideoKnowledge>) -> Box<dyn CongestionController> + Send + Sync;

/// Which controller a connection gets. Its text form is a controller spec or the name of a [`Baseline`].
#[derive(Clone)]
#[non_exhaustive]
pub enum ControllerChoice {
    /// One of quinn's own.
    Baseline(Baseline),
    /// One that was written elsewhere; see [`ControllerChoice::custom`].
    Custom {
        /// Its name.
        name: Arc<str>,
        /// Builds one for a path.
        build: Arc<Build>,
    },
}

/// A text that names no controller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ControllerError {
    /// Nothing of that name exists.
    #[error("unknown controller `{name}`; there are {known}")]
    Unknown {
        /// The name as it was written.
        name: String,
        /// What there is.
        known: String,
    },
}

pub(crate) enum Built {
    Ours(Box<dyn CongestionController>),
    Baseline(Baseline),
}

impl ControllerChoice {
    /// A controller of your own, built by `build` for each path of each connection from the path's MTU in bytes
    /// and what is known of the video.
    pub fn custom(
        name: &str,
        build: impl Fn(u16, Arc<VideoKnowledge>) -> Box<dyn CongestionController> + Send + Sync + 'static,
    ) -> Self {
        Self::Custom {
            name: name.into(),
            build: Arc::new(build),
        }
    }

    pub(crate) fn build(&self, mtu: u16, knowledge: Arc<VideoKnowledge>) -> Built {
        match self {
            Self::Baseline(baseline) => Built::Baseline(*baseline),
            Self::Custom { build, .. } => Built::Ours(build(mtu, knowledge)),
        }
    }

    /// Whether this controller wants an acknowledgement of every packet.
    pub fn wants_every_ack(&self) -> bool {
        match self.build(1_200, Arc::default()) {
            Built::Ours(controller) => controller.wants_every_ack(),
            Built::Baseline(_) => false,
        }
    }
}

impl fmt::Display for ControllerChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Baseline(baseline) => f.pad(baseline.name()),
            Self::Custom { name, .. } => f.pad(name),
        }
    }
}

impl fmt::Debug for ControllerChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ControllerChoice({self})")
    }
}

impl FromStr for ControllerChoice {
    type Err = ControllerError;

    fn from_str(text: &str) -> Result<Self, ControllerError> {
        let name = text.trim();
        Baseline::ALL
            .into_iter()
            .find(|baseline| baseline.name() == name)
            .map(Self::Baseline)
            .ok_or_else(|| ControllerError::Unknown {
                name: name.to_owned(),
                known: Baseline::ALL.map(Baseline::name).join(", "),
            })
    }
}
