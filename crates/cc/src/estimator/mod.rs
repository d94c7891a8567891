//! Estimators: measurements from acknowledgements and losses.
//!
//! Each is a self-contained struct that receives events, in the order of [`events`](crate::events), and is read when an
//! algorithm needs it. None reads a clock or allocates; all keep bounded state.
//!
//! Every controller keeps the RTT (latest, smoothed, variance, extremes, RTO), rounds counted by time, and the time
//! during which the sender did not use its window. The capacity is estimated if a component's
//! [`Needs`](crate::component::Needs) request it:
//!
//! | estimator | estimate |
//! |---|---|
//! | [`Capacity`] | rate of the path's narrowest link, from the two below |
//! | [`TrainCapacity`] | the same from the dispersion of packet trains alone |
//! | [`DeliveryRate`] | rate at which bytes arrive, over at least a round trip: a lower bound of the capacity |
//!
//! Rates are of QUIC packets, without the headers below: they are multiplied by an RTT to give windows, which count the
//! same bytes. (With 1200 B packets the rate of the link would give 2.3 % too much.)

mod best_samples;
mod capacity;
mod delivery_rate;
mod prompt;
mod risen_floor;
mod slot_max;
mod time;
mod train_capacity;
mod windowed;

pub(crate) use capacity::Capacity;
pub(crate) use delivery_rate::{DeliveryRate, MARKS};
pub(crate) use prompt::PromptSamples;
pub(crate) use risen_floor::RisenFloor;
pub(crate) use slot_max::SlotMax;
pub(crate) use time::{LimitedTime, Rounds, Rtt};
use train_capacity::TrainCapacity;
pub(crate) use windowed::{Largest, Smallest};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Bytes per second, from bytes in a time; `None` if the time is zero. Saturates at 4.29 GB/s (34 Gbit/s) to fit four
/// bytes; no train or window of QUIC can show more.
fn bytes_per_second(bytes: u64, time_ns: u64) -> Option<u32> {
    let rate = bytes.saturating_mul(NANOS_PER_SECOND).checked_div(time_ns)?;
    Some(u32::try_from(rate).unwrap_or(u32::MAX))
}

/// A running mean after another sample, whose weight is one in `parts`.
#[inline]
pub(crate) fn mean(before: u64, sample: u64, parts: u64) -> u64 {
    let part = |value: u64| value.checked_div(parts).unwrap_or(0);
    before.saturating_sub(part(before)).saturating_add(part(sample))
}

#[cfg(test)]
mod tests;
