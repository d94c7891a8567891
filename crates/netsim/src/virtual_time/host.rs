//! [`HostConfig`]: access delay and timing of a host.

use core::time::Duration;
use std::net::IpAddr;

/// Configuration of a host. By default it is on the path itself and perfectly punctual: no scheduling, no interrupts,
/// no processing time. Such hosts give better results than any real machine; reports should say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostConfig {
    /// Address; `None` selects the next free one of 10.0.0.0/16.
    pub address: Option<IpAddr>,
    /// One-way delay between the host and its path, without a rate limit.
    pub access_delay: Duration,
    /// Interrupt moderation: datagrams become visible together, this long after the first of them. It makes a receiver
    /// acknowledge in batches, as with network cards (50–200 µs are common).
    pub interrupt_interval: Duration,
    /// Maximum random lateness of the host's timers (Linux' default is 50 µs).
    pub timer_slack: Duration,
    /// Maximum number of datagrams per system call (generic segmentation offload). quinn takes at most 10.
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

    /// The same host with this one-way delay to its path.
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

    /// Returns the same host with this many datagrams per system call; 1 disables segmentation offload.
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
    /// IP address of the host.
    pub fn ip(self) -> IpAddr {
        self.ip
    }
}
