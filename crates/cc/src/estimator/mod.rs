//! Estimators: what a controller works out of acknowledgements and losses.
//!
//! Each is a self-contained struct that is told what happened, in the order of [`events`](crate::events), and asked when a
//! law needs it. None reads a clock or allocates; all keep bounded state.
//!
//! | estimator | gives |
//! |---|---|
//! | [`RoundRtt`] | smallest RTT and number of samples of each round trip |
//! | [`backlog()`], [`virtual_buffer`] and kin | bytes queued, and how many may be |
//! | [`IdleDetector`] | pauses longer than an RTO |
//! | [`PipeAck`] | bytes that the sender lately proved it uses (RFC 7661) |
//! | [`LossGuard`] | a ceiling that answers congestive loss for laws that do not |

mod backlog;
mod idle;
mod loss_guard;
mod pipe_ack;
mod round_rtt;

pub use backlog::{BufferBounds, backlog, plausible_max_rtt, vegas_diff, vegas_diff_linux, virtual_buffer};
pub use idle::{IdleDetector, IdlePeriod};
pub use loss_guard::{LossGuard, RttRange};
pub use pipe_ack::PipeAck;
pub use round_rtt::{Round, RoundRtt};

/// A `Duration` as whole nanoseconds, saturating after 584 years.
fn nanos(time: core::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
