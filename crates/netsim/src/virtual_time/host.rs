//! [`HostConfig`]: how far a host is from its path, and how punctual it is.

use core::time::Duration;
use std::net::IpAddr;

/// A host as it is asked for. The default is on the path itself, and perfectly punctual: no scheduling, no interrupts,
/// no processing time. Figures from such hosts are better than any real machine's; say so with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostConfig {
    /// Its address; `None` takes the next free one of 10.0.0.0/16.
    pub address: Option<IpAddr>,
    /// How long a packet takes between the host and its path, each way, without limit of rate.
    pub access_delay: Duration,
    /// Datagrams become visible in lumps: from the first one on, so much time passes until the next interrupt. It makes
    /// a receiver acknowledge in batches, as network cards with interrupt moderation do (50–200 µs are common).
    pub interrupt_interval: Duration,
    /// Timers of the host's runtime go off late by a random time up to this (Linux' default is 50 µs).
    pub timer_slack: Duration,
    /// How many datagrams one system call may send (generic segmentation offload). quinn takes at most 10.
    pub segments: usize,
}

impl Default for HostConfig {
    fn default() -> Self {
        Self {
            address: None,
            access_delay: Duration::ZERO,
            interrupt_interval: Duration::ZERO,
            timer_slack: Duration::ZERO,
            segments: 10,
        }
    }
}

impl HostConfig {
    /// The same host at this address.
    #[must_use]
    pub fn with_address(self, address: IpAddr) -> Self {
        Self {
            address: Some(address),
            ..self
        }
    }

    /// The same host so far from its path.
    #[must_use]
    pub fn with_access_delay(self, access_delay: Duration) -> Self {
        Self { access_delay, ..self }
    }

    /// The same host with this interrupt moderation.
    #[must_use]
    pub fn with_interrupt_interval(self, interrupt_interval: Duration) -> Self {
        Self {
            interrupt_interval,
            ..self
        }
    }

    /// The same host with this timer slack.
    #[must_use]
    pub fn with_timer_slack(self, timer_slack: Duration) -> Self {
        Self { timer_slack, ..self }
    }

    /// The same host with this many datagrams a system call; 1 switches segmentation offload off.
    #[must_use]
    pub fn with_segments(self, segments: usize) -> Self {
        Self {
            segments: segments.max(1),
            ..self
        }
    }
}

/// A host of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Host {
    pub(super) ip: IpAddr,
    pub(super) segments: usize,
}

impl Host {
    /// Its address.
    pub fn ip(self) -> IpAddr {
        self.ip
    }
}
