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
    setters! {
        /// The same host at this address.
        with_address(address: IpAddr);

        /// The same host with this one-way delay to its path.
        with_access_delay(access_delay: Duration);

        /// The same host with this interrupt moderation.
        with_interrupt_interval(interrupt_interval: Duration);

        /// The same host with this timer slack.
        with_timer_slack(timer_slack: Duration);

        /// The same host with this many datagrams per system call; 0 and 1 disable segmentation offload.
        with_segments(segments: usize);
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
