//! Estimators: what a controller works out of acknowledgements and losses.
//!
//! Each is a self-contained struct that is told what happened, in the order of [`events`](crate::events), and asked when a
//! law needs it. None reads a clock or allocates; all keep bounded state.
//!
//! Every controller keeps the RTT (latest, smoothed, variance, extremes, RTO), rounds counted by time, and the time in
//! which the sender did not use its window. What only some parts need is made when the controller is built, if their merged
//! `Needs` ask for it:
//!
//! | estimator | gives |
//! |---|---|
//! | [`Capacity`] | rate of the path's narrowest link, from the two below |
//! | [`TrainCapacity`] | the same from the dispersion of packet trains alone |
//! | [`DeliveryRate`] | rate at which bytes arrive, over at least a round trip: a lower bound of the capacity |
//! | [`LossGuard`] | a ceiling that answers congestive loss for laws that do not |

mod best_samples;
mod capacity;
mod delivery_rate;
pub(crate) mod limited;
mod loss_guard;
pub(crate) mod rounds;
pub(crate) mod rtt;
mod train_capacity;
mod window_max;

pub use capacity::Capacity;
pub use delivery_rate::{DeliveryRate, RateSample};
pub use loss_guard::{LossGuard, RttRange};
pub use train_capacity::TrainCapacity;

use playrate_units::Bytes;

/// What to add to each packet so that a rate is one of IPv4 packets on the link: 20 B of IP and 8 B of UDP header.
///
/// Windows and bytes in flight count QUIC packets, so a law that computes `rate · RTT` wants [`Bytes::ZERO`] instead: with
/// 1200 B packets the link's rate would give 2.3 % too much window.
pub const IPV4_UDP_HEADERS: Bytes = Bytes::new(28);

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A `Duration` as whole nanoseconds, saturating after 584 years.
fn nanos(time: core::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Bytes per second, from bytes in a time; `None` if the time is zero. Saturates at 4.29 GB/s (34 Gbit/s), which no train or
/// window that QUIC sends can reveal, so that a rate fits four bytes.
fn bytes_per_second(bytes: u64, time_ns: u64) -> Option<u32> {
    let rate = bytes.saturating_mul(NANOS_PER_SECOND).checked_div(time_ns)?;
    Some(u32::try_from(rate).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests;
