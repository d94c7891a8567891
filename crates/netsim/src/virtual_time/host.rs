//! [`HostConfig`]: access delay and timing of a host.

use core::time::Duration;
use std::net::IpAddr;

/// Configuration of a host. By default it is on the path itself and perfectly punctual: no scheduling, no interrupts,
/// no processing time. Such hosts give better results than any real machine; reports should say so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostConfig {
    /// One-way delay between the host and its path, without a rate limit.
    pub access_delay: Duration,
    /// Interrupt moderation: datagrams become visible together, this long after the first of them. It makes a receiver
    /// acknowledge in batches, as with network cards (50–200 µs are common).
    pub interrupt_interval: Duration,
}

impl HostConfig {
    setters! {
        /// The same host with this one-way delay to its path.
        with_access_delay(access_delay: Duration);

        /// The same host with this interrupt moderation.
        with_interrupt_interval(interrupt_interval: Duration);
    }
}

/// A host of a simulation, at an address of its own in 10.0.0.0/8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Host {
    pub(crate) ip: IpAddr,
}

impl Host {
    /// IP address of the host.
    pub fn ip(self) -> IpAddr {
        self.ip
    }
}
